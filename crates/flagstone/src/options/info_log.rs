//! Where a database writes what it does: to its file LOG, to a logger of the program, or nowhere.

use std::fmt;
use std::sync::Arc;

use super::value::NamedChoice;

/// How important a message of the info log is, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum InfoLogLevel {
    /// Details for who debugs the engine.
    Debug,
    /// Flushes, compactions and other work.
    #[default]
    Info,
    /// Delayed writers and other causes of trouble.
    Warn,
    /// What went wrong.
    Error,
    /// What ended writing until the database is reopened.
    Fatal,
    /// The head of a log: version and options. Written at every level.
    Header,
}

impl NamedChoice for InfoLogLevel {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("DEBUG_LEVEL", Self::Debug),
        ("INFO_LEVEL", Self::Info),
        ("WARN_LEVEL", Self::Warn),
        ("ERROR_LEVEL", Self::Error),
        ("FATAL_LEVEL", Self::Fatal),
        ("HEADER_LEVEL", Self::Header),
    ];
    const AFFIXES: (&'static str, &'static str) = ("", "_LEVEL");
}

/// Takes the messages of a database.
pub trait Logger: Send + Sync {
    /// Takes a message without a line break at its end. Threads of a database call this, one at a
    /// time; those of another database may at the same time. It must not call the database.
    fn log(&self, level: InfoLogLevel, message: &str);
}

/// Where the messages of a database go.
#[derive(Clone, Default)]
pub enum InfoLog {
    /// To the file LOG in the database's directory or in `db_log_dir`. A database that is not open
    /// for writing writes none.
    #[default]
    File,
    /// To this logger.
    Logger(Arc<dyn Logger>),
    /// Nowhere.
    Off,
}

impl fmt::Debug for InfoLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "File",
            Self::Logger(_) => "Logger",
            Self::Off => "Off",
        })
    }
}
