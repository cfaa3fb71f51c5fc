//! Command lines of `ldb`, whose flags may stand in front of the command: `ldb --db=/data/photos scan`.

use std::ffi::OsString;

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
