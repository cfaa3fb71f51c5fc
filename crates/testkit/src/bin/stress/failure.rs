//! Why the program could not do its work.

use std::fmt;
use std::io;

/// Why the program could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The command line makes no sense; exit code 2.
    Usage(String),
    /// Something failed; exit code 1.
    Failed(String),
}

impl Failure {
    /// The program's own files, or its output, could not be read or written.
    pub fn io(doing: &str, error: io::Error) -> Self {
        Self::Failed(format!("cannot {doing}: {error}"))
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Failed(_) => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => {
                write!(f, "{message}\nTry --help for the flags and an example.")
            }
            Self::Failed(message) => f.write_str(message),
        }
    }
}
