//! Where a database writes what it does: the file `LOG`, or a logger of the program.

use std::sync::Arc;

use flagstone::options as engine;

use super::LogLevel;

/// Takes the messages of a database.
#[derive(Clone)]
pub struct InfoLogger {
    target: Target,
    level: LogLevel,
}

type Callback = dyn Fn(LogLevel, &str) + Send + Sync;

#[derive(Clone)]
enum Target {
    File,
    Stderr { prefix: String },
    Callback(Arc<Callback>),
}

impl InfoLogger {
    /// Writes messages from `log_level` on to the standard error stream, each after `prefix` and a
    /// blank.
    ///
    /// # Panics
    /// If there is a NUL byte in the prefix, as in the rocksdb crate.
    pub fn new_stderr_logger<S: AsRef<str>>(log_level: LogLevel, prefix: Option<S>) -> Self {
        let prefix = prefix.map(|prefix| prefix.as_ref().to_string()).unwrap_or_default();
        assert!(!prefix.contains('\0'), "cannot have NULL in prefix");
        Self { target: Target::Stderr { prefix }, level: log_level }
    }

    /// Calls a function with each message from `level` on. Threads of the database call it, one
    /// after the other.
    pub fn new_callback_logger<F: Fn(LogLevel, &str) + Sync + Send + 'static>(
        level: LogLevel,
        cb: F,
    ) -> Self {
        Self { target: Target::Callback(Arc::new(cb)), level }
    }

    /// The logger as the engine takes it, and the least level of its messages; a file has
    /// `of_files`.
    pub(super) fn engine(
        &self,
        of_files: engine::InfoLogLevel,
    ) -> (engine::InfoLog, engine::InfoLogLevel) {
        match &self.target {
            Target::File => (engine::InfoLog::File, of_files),
            _ => (engine::InfoLog::Logger(Arc::new(self.clone())), self.level.engine()),
        }
    }
}

impl Default for InfoLogger {
    fn default() -> Self {
        Self { target: Target::File, level: LogLevel::Info }
    }
}

impl engine::Logger for InfoLogger {
    fn log(&self, level: engine::InfoLogLevel, message: &str) {
        match &self.target {
            // The engine's own.
            Target::File => {}
            Target::Stderr { prefix } => eprintln!("{prefix} {message}"),
            Target::Callback(callback) => callback(LogLevel::of_engine(level), message),
        }
    }
}

impl LogLevel {
    /// The same level of the engine.
    pub(super) fn engine(self) -> engine::InfoLogLevel {
        match self {
            Self::Debug => engine::InfoLogLevel::Debug,
            Self::Info => engine::InfoLogLevel::Info,
            Self::Warn => engine::InfoLogLevel::Warn,
            Self::Error => engine::InfoLogLevel::Error,
            Self::Fatal => engine::InfoLogLevel::Fatal,
            Self::Header => engine::InfoLogLevel::Header,
        }
    }

    fn of_engine(level: engine::InfoLogLevel) -> Self {
        match level {
            engine::InfoLogLevel::Debug => Self::Debug,
            engine::InfoLogLevel::Info => Self::Info,
            engine::InfoLogLevel::Warn => Self::Warn,
            engine::InfoLogLevel::Error => Self::Error,
            engine::InfoLogLevel::Fatal => Self::Fatal,
            engine::InfoLogLevel::Header => Self::Header,
        }
    }
}

#[cfg(test)]
mod tests;
