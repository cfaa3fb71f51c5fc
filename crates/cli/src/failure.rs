//! How a command ends: exit code 0 for done, 1 for a fault found or an operation that failed, 2 for
//! wrong usage, 3 for a database that was salvaged with losses, is slow and not broken, or was
//! changed while faults were looked for.
//!
//! Wrong usage is what cannot be meant, as such or of this database: a flag, a setting, a range,
//! the name of a column family that it does not have, or of a new one that it has, or an import of
//! nothing. A key, a file or a database that is not there is a failure, as is one that is in the
//! way: that depends on what others do.

use std::error::Error as _;
use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use flagstone::base::file_name::FileKind;
use flagstone::base::{Code, Error, Remedy};

use crate::text;

/// What a command that did its work found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing wrong.
    Sound,
    /// Something wrong, already reported; exit code 1.
    Faulty,
    /// What was asked for was done as far as possible, or is not as it should be without being
    /// broken, or it is not certain that it is broken, which the report says; exit code 3.
    Incomplete,
}

impl Verdict {
    /// That of two parts: a fault counts most.
    pub fn worse(self, other: Self) -> Self {
        match (self, other) {
            (Self::Faulty, _) | (_, Self::Faulty) => Self::Faulty,
            (Self::Incomplete, _) | (_, Self::Incomplete) => Self::Incomplete,
            (Self::Sound, Self::Sound) => Self::Sound,
        }
    }
}

/// What every command returns.
pub type Outcome = Result<Verdict, Failure>;

/// The verdict, if it could be told; it stands where nobody reads the report to its end (`flagstone
/// verify | head`), too.
pub fn reported(verdict: Verdict, report: Result<(), Failure>) -> Outcome {
    match report {
        Err(failure) if !failure.is_closed_pipe() => Err(failure),
        _ => Ok(verdict),
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The command line makes no sense, as such or for this database; exit code 2.
    Usage(String),
    /// The engine refused or failed.
    Engine(Error),
    /// Reading input or writing output failed.
    Stream(&'static str, io::Error),
    /// Anything else, as a sentence, and what helps.
    Advised(String, Box<Remedy>),
    /// Anything else, as a sentence.
    Other(String),
}

impl Failure {
    /// Whether the reader of our output went away, which is no failure of ours (`flagstone scan |
    /// head`).
    fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Stream(_, error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => {
                write!(f, "{message}\nTry --help for the command's flags and an example.")
            }
            Self::Engine(error) => {
                write!(f, "{error}")?;
                what_helps(error).map_or(Ok(()), |helps| write!(f, "\n{helps}"))
            }
            Self::Stream(doing, error) => {
                write!(f, "cannot {doing}: {error}")?;
                Remedy::of_system(error).map_or(Ok(()), |remedy| write!(f, "\n{remedy}"))
            }
            Self::Advised(message, remedy) => write!(f, "{message}\n{remedy}"),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// What helps where the engine does not say so itself.
fn what_helps(error: &Error) -> Option<Remedy> {
    if error.is_corruption() {
        return error.remedy().is_none().then_some(Remedy::VerifyAndSalvage);
    }
    what_the_system_wants(error)
}

/// What helps where the operating system refused what the engine did.
pub fn what_the_system_wants(error: &Error) -> Option<Remedy> {
    let refused = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    // Of a file that is missing, and of files that are too many, the engine may know more.
    let is_known = |refused: &&io::Error| {
        let too_many = Some(rustix::io::Errno::MFILE.raw_os_error());
        refused.kind() == ErrorKind::NotFound || refused.raw_os_error() == too_many
    };
    refused
        .filter(|refused| error.remedy().is_none() || !is_known(refused))
        .and_then(Remedy::of_system)
}

/// Whether the system could not give a WAL, so that the database does not open. A WAL that this
/// user may not read is not one: the database may be in order.
pub fn is_of_unreadable_wal(error: &Error) -> bool {
    let name = error.path().and_then(|path| path.file_name()?.to_str());
    error.code() == Code::IoError
        && !error.is_refused()
        && matches!(name.and_then(FileKind::parse), Some(FileKind::Wal(_)))
}

/// Tells of something on stderr. Where nobody listens, or a log is full, the work goes on all the
/// same.
pub fn say(message: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "flagstone: {}", text::lines(&message.to_string()));
}

/// Says that something is read from standard input if that is a terminal, where it would look like
/// a program that hangs.
pub fn tell_if_typed(what: &str) {
    if io::stdin().is_terminal() {
        say(format_args!(
            "reading {what} from the terminal; end with Ctrl-D on a line of its own, cancel with Ctrl-C"
        ));
    }
}

/// Reports a failure on stderr and turns the outcome into the process's exit code.
pub fn exit_code(outcome: &Outcome) -> ExitCode {
    match outcome {
        Ok(Verdict::Sound) => ExitCode::SUCCESS,
        Ok(Verdict::Faulty) => ExitCode::from(1),
        Ok(Verdict::Incomplete) => ExitCode::from(3),
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            say(failure);
            ExitCode::from(if matches!(failure, Failure::Usage(_)) { 2 } else { 1 })
        }
    }
}

#[cfg(test)]
mod tests;
