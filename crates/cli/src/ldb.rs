//! Command lines of `ldb`: its flags may stand in front of the command (`ldb --db=/data/photos scan`), and some of its commands
//! are here under other names with other arguments.

use std::ffi::OsString;

/// Commands of `ldb` that take other arguments here, and what stands for them.
const ELSEWHERE: [(&str, &str); 13] = [
    (
        "approxsize",
        "none for ranges: stats --db DB has the sizes of levels, and a program Db::approximate_sizes",
    ),
    ("backup", "checkpoint --db DB DIR"),
    ("batchput", "put --db DB KEY VALUE, one by one, or load --db DB"),
    ("change_compaction_style", "compact --db DB --set compaction_style=kCompactionStyleUniversal"),
    ("dump_live_files", "list-files --db DB, and then manifest, sst, wal and blob"),
    ("dump_wal", "wal FILE --operations"),
    ("get_property", "stats --db DB --property NAME"),
    ("idump", "sst DIR --entries"),
    ("list_file_range_deletes", "sst DIR --entries"),
    ("reduce_levels", "compact --db DB --change-level, and then compact --db DB --set num_levels=NUMBER"),
    ("repair", "salvage --db DB --to NEW"),
    ("restore", "none: a checkpoint is a database by itself"),
    ("unsafe_remove_sst_file", "salvage --db DB --to NEW"),
];

/// What stands here for this command of `ldb`.
pub fn elsewhere(command: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(theirs, _)| *theirs == command).map(|(_, ours)| *ours)
}

/// Flags of many commands that have a value, which may be the next argument.
const WITH_VALUE: [&str; 5] = ["--db", "--cf", "--column_family", "--column-family", "--set"];

/// Moves the flags in front of the command behind it, where clap takes them.
pub fn in_order(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let mut command = 1;
    while let Some(argument) = arguments.get(command) {
        command += match argument.as_encoded_bytes() {
            // They want no command, and nothing is a flag behind the last one.
            b"--help" | b"-h" | b"--version" | b"-V" | b"--" => return arguments,
            _ if WITH_VALUE.iter().any(|flag| argument == flag) => 2,
            [b'-', ..] => 1,
            _ => break,
        };
    }
    // Where there is none, clap says so.
    if let Some(flags_and_command) = arguments.get_mut(1..=command) {
        flags_and_command.rotate_right(1);
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(line: &str) -> String {
        let arguments = in_order(line.split(' ').map(OsString::from).collect());
        arguments.iter().filter_map(|argument| argument.to_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn flags_in_front_of_the_command_come_behind_it() {
        for (line, understood) in [
            ("flagstone --db=scan scan --limit=3", "flagstone scan --db=scan --limit=3"),
            ("flagstone --hex --db get --cf put scan", "flagstone scan --hex --db get --cf put"),
            ("flagstone --json bench -num=3", "flagstone bench --json -num=3"),
        ] {
            assert_eq!(ordered(line), understood);
        }
        for line in [
            "flagstone",
            "flagstone --db",
            "flagstone --db x",
            "flagstone get --db x -- --db",
            "flagstone -- scan",
            "flagstone --version scan",
            "flagstone --json --help scan",
        ] {
            assert_eq!(ordered(line), line);
        }
    }
}
