//! How a command ends: exit code 0 for done, 1 for a fault found or an operation that failed, 2 for wrong usage, 3 for a
//! database that was salvaged with losses, is slow and not broken, or was changed while faults were looked for.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use flagstone::base::Error;

/// What a command that did its work found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing wrong.
    Sound,
    /// Something wrong, already reported; exit code 1.
    Faulty,
    /// What was asked for was done as far as possible, or is not as it should be without being broken, or it is not certain that
    /// it is broken, which the report says; exit code 3.
    Incomplete,
}

/// What every command returns.
pub type Outcome = Result<Verdict, Failure>;

/// The verdict, if it could be told; it stands where nobody reads the report to its end (`flagstone verify | head`), too.
pub fn reported(verdict: Verdict, report: Result<(), Failure>) -> Outcome {
    match report {
        Err(failure) if !failure.is_closed_pipe() => Err(failure),
        _ => Ok(verdict),
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The command line makes no sense; exit code 2.
    Usage(String),
    /// The engine refused or failed.
    Engine(Error),
    /// Reading input or writing output failed.
    Stream(&'static str, io::Error),
    /// Anything else, as a sentence.
    Other(String),
}

impl Failure {
    /// Whether the reader of our output went away, which is no failure of ours (`flagstone scan | head`).
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
            Self::Engine(error) => write!(f, "{error}"),
            Self::Stream(doing, error) => write!(f, "cannot {doing}: {error}"),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

/// Tells of something on stderr. Where nobody listens, or a log is full, the work goes on all the same.
pub fn say(message: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "flagstone: {message}");
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
