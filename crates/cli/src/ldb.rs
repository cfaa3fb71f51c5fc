//! Command lines of `ldb`: its flags may stand in front of the command (`ldb --db=/data/photos
//! scan`), and some of its commands are here under other names with other arguments.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory};

use crate::command_line::CommandLine;

/// Commands of `ldb` that take other arguments here, and what stands for them.
const ELSEWHERE: [(&str, &str); 7] = [
    ("dump_wal", "wal FILE --operations"),
    ("file_checksum_dump", "list-files --db DB --checksums"),
    ("get_property", "stats --db DB --property NAME"),
    ("idump", "sst DIR --entries"),
    ("repair", "salvage --db DB --to NEW"),
    ("restore", "backup restore --dir DIR --db DB"),
    ("write_extern_sst", "write-extern-sst --db DB TABLE, which reads the output of dump"),
];

/// What stands here for this command of `ldb`.
pub fn elsewhere(command: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(theirs, _)| *theirs == command).map(|(_, ours)| *ours)
}

/// Moves the flags in front of the command behind it, where clap takes them.
pub fn in_order(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(is_flag)
        && let Some(command) = place_of_command(&arguments)
    {
        arguments[1..=command].rotate_right(1);
    }
    arguments
}

/// Where the command stands, if there are only flags and their values in front of it. Which flags
/// have a value, it says itself: `--statistics` of `doctor` has one, that of `bench` has none.
fn place_of_command(arguments: &[OsString]) -> Option<usize> {
    let all = CommandLine::command();
    let called = |argument: &OsString| {
        let argument = argument.to_str()?;
        let is_called = |command: &&Command| {
            command.get_name() == argument
                || command.get_all_aliases().any(|alias| alias == argument)
        };
        all.get_subcommands().find(is_called)
    };
    let with = |unknown: fn(&OsString, bool) -> Option<bool>| {
        (1..arguments.len()).find(|&at| {
            called(&arguments[at]).is_some_and(|command| {
                end_of_flags(&arguments[..=at], &[&all, command], unknown) == Some(at)
            })
        })
    };
    // Options of RocksDB are flags of a benchmark, too; and of a misspelt flag clap says what is
    // wrong.
    let known =
        with(|_, _| None).or_else(|| with(|next, is_last| Some(!is_last && !is_flag(next))));
    // So it does of a word that is no command.
    known.or_else(|| {
        let any: Vec<&Command> = [&all].into_iter().chain(all.get_subcommands()).collect();
        end_of_flags(arguments, &any, |_, _| Some(false))
    })
}

/// The first argument that is neither a flag nor the value of one, by what these commands say. None
/// where a call for help comes first. `unknown` says whether what follows a flag that they do not
/// know, which may be the last argument, is its value.
fn end_of_flags(
    arguments: &[OsString],
    commands: &[&Command],
    unknown: fn(&OsString, bool) -> Option<bool>,
) -> Option<usize> {
    let mut at = 1;
    loop {
        let argument = arguments.get(at)?;
        match argument.as_encoded_bytes() {
            // They want no command, and nothing is a flag behind the last one.
            b"--help" | b"-h" | b"--version" | b"-V" | b"--" => return None,
            _ if !is_flag(argument) => return Some(at),
            _ => at += 1,
        }
        let next = arguments.get(at)?;
        let is_value =
            takes_next(argument, commands).or_else(|| unknown(next, at + 1 == arguments.len()))?;
        at += usize::from(is_value);
    }
}

fn is_flag(argument: &OsString) -> bool {
    argument.as_encoded_bytes().starts_with(b"-")
}

/// Whether the next argument is the value of this flag; `None` if no command knows it.
fn takes_next(flag: &OsString, commands: &[&Command]) -> Option<bool> {
    let Some(name) = flag.to_str().filter(|flag| !flag.contains('=')) else { return Some(false) };
    let name = name.trim_start_matches('-');
    let is_it = |arg: &&Arg| {
        let mut aliases = arg.get_all_aliases().into_iter().flatten();
        arg.get_long() == Some(name)
            || arg.get_long().is_some() && aliases.any(|alias| alias == name)
    };
    let known = commands.iter().flat_map(|command| command.get_arguments()).filter(is_it);
    known.map(|arg| arg.get_action().takes_values() && !arg.is_require_equals_set()).max()
}

#[cfg(test)]
mod tests;
