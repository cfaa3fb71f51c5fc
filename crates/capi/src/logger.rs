//! Where the messages of a database go.

use std::ffi::{c_char, c_uint, c_void};

use flagstone_rocksdb as rdb;

use crate::abi::{State, Tagged, calling, handles, make};
use crate::api::{c_api, destroys};
use crate::options::Options;

/// A logger.
pub struct Logger(rdb::InfoLogger);

impl Logger {
    /// The logger behind it.
    pub fn engine(&self) -> rdb::InfoLogger {
        self.0.clone()
    }
}

handles! { Logger = "logger", }
destroys! { rocksdb_logger_destroy: Logger, }

/// Takes a message: its level, its bytes, and how many these are.
type LogCallback = extern "C-unwind" fn(*mut c_void, c_uint, *mut c_char, usize);

/// The level of a number.
pub fn log_level(number: i32) -> rdb::LogLevel {
    match number {
        i32::MIN..=0 => rdb::LogLevel::Debug,
        1 => rdb::LogLevel::Info,
        2 => rdb::LogLevel::Warn,
        3 => rdb::LogLevel::Error,
        4 => rdb::LogLevel::Fatal,
        _ => rdb::LogLevel::Header,
    }
}

c_api! {
    fn rocksdb_logger_create_stderr_logger(level: i32, prefix: ?cstr) -> *mut Tagged<Logger> {
        let prefix = prefix.map(|prefix| prefix.to_string_lossy());
        make(Logger(rdb::InfoLogger::new_stderr_logger(log_level(level), prefix)))
    }

    fn rocksdb_logger_create_callback_logger(
        level: i32, callback: LogCallback, state: *mut c_void
    ) -> *mut Tagged<Logger> {
        let state = State::new(state, None);
        let log = move |level: rdb::LogLevel, message: &str| {
            // The callback may write to its message.
            let mut message = message.as_bytes().to_vec();
            let (bytes, len) = (message.as_mut_ptr().cast::<c_char>(), message.len());
            // RocksDB's callback logger is told of what heads a log as of any other message.
            let level = if level == rdb::LogLevel::Header { rdb::LogLevel::Info } else { level };
            calling("a logger", || callback(state.pointer(), level as c_uint, bytes, len));
        };
        make(Logger(rdb::InfoLogger::new_callback_logger(log_level(level), log)))
    }

    fn rocksdb_options_set_info_log(o: &mut Options, logger: ?Logger) {
        if let Some(logger) = logger {
            o.rdb.set_info_logger(logger.engine());
        }
    }

    fn rocksdb_options_get_info_log(o: &Options) -> *mut Tagged<Logger> {
        make(Logger(o.rdb.get_info_logger()))
    }
}
