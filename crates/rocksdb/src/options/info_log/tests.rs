use std::sync::{Mutex, mpsc};

use flagstone::options::{self as engine, Logger as _};

use super::InfoLogger;
use crate::options::LogLevel;

#[test]
fn a_callback_has_its_own_level() {
    let (told, heard) = mpsc::channel();
    let told = Mutex::new(told);
    let logger = InfoLogger::new_callback_logger(LogLevel::Warn, move |level, message: &str| {
        told.lock().unwrap().send((level, message.to_string())).unwrap();
    });
    let (target, level) = logger.engine(engine::InfoLogLevel::Info);
    assert!(matches!(target, engine::InfoLog::Logger(_)));
    assert_eq!(level, engine::InfoLogLevel::Warn);
    logger.log(engine::InfoLogLevel::Fatal, "what is");
    let heard: Vec<_> = heard.try_iter().collect();
    assert_eq!(heard, [(LogLevel::Fatal, "what is".to_string())]);
}

#[test]
fn a_file_has_the_level_of_the_options() {
    let (target, level) = InfoLogger::default().engine(engine::InfoLogLevel::Error);
    assert!(matches!(target, engine::InfoLog::File));
    assert_eq!(level, engine::InfoLogLevel::Error);
}
