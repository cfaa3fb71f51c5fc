use std::path::Path;
use std::sync::mpsc;

use flagstone::Env;
use flagstone::env::read_file;
use flagstone::options::EventListener as _;

use super::{InfoLog, InfoLogger, LogSettings, log_path, time_text};
use crate::options::LogLevel;
use flagstone::options::BackgroundErrorReason;

fn text(env: &Env, path: &str) -> String {
    String::from_utf8(read_file(env.fs.as_ref(), Path::new(path), 1 << 20).unwrap()).unwrap()
}

fn old_logs(env: &Env) -> usize {
    let names = env.fs.list(Path::new("/db")).unwrap();
    names.iter().filter(|name| name.starts_with("LOG.old.")).count()
}

fn world() -> Env {
    let env = Env::memory();
    env.fs.create_directory(Path::new("/db")).unwrap();
    env
}

#[test]
fn times_are_dates() {
    assert_eq!(time_text(0), "1970/01/01-00:00:00");
    assert_eq!(time_text(951_827_696), "2000/02/29-12:34:56");
    assert_eq!(time_text(1_735_689_599), "2024/12/31-23:59:59");
}

#[test]
fn an_opening_keeps_the_log_of_the_one_before() {
    let env = world();
    let settings = LogSettings { files_max: 2, ..LogSettings::default() };
    for opening in ["first", "second", "third"] {
        let log = InfoLog::new(&settings, &env, Path::new("/db"), false).unwrap();
        log.head(opening);
    }
    assert!(text(&env, "/db/LOG").ends_with(" third\n"));
    assert_eq!(old_logs(&env), 1);
}

#[test]
fn a_large_log_is_begun_anew_with_its_head() {
    let env = world();
    let settings = LogSettings { size_max: 40, ..LogSettings::default() };
    let log = InfoLog::new(&settings, &env, Path::new("/db"), false).unwrap();
    log.head("the head of the log");
    log.on_error_recovery_completed(&flagstone::Error::corruption("what was"));
    log.on_error_recovery_completed(&flagstone::Error::corruption("what was"));
    assert!(text(&env, "/db/LOG").starts_with("the head of the log"));
    assert!(old_logs(&env) >= 1);
}

#[test]
fn a_directory_for_logs_tells_databases_apart() {
    let settings = LogSettings { directory: Some("/logs".into()), ..LogSettings::default() };
    assert_eq!(log_path(&settings, Path::new("/data/my db")), Path::new("/logs/data_my_db_LOG"));
}

#[test]
fn a_callback_hears_from_its_level_on() {
    let (told, heard) = mpsc::channel();
    let told = std::sync::Mutex::new(told);
    let logger = InfoLogger::new_callback_logger(LogLevel::Warn, move |level, message: &str| {
        told.lock().unwrap().send((level, message.to_string())).unwrap();
    });
    let settings = LogSettings { logger, ..LogSettings::default() };
    let log = InfoLog::new(&settings, &world(), Path::new("/db"), true).unwrap();
    log.head("head");
    log.on_error_recovery_completed(&flagstone::Error::corruption("what was"));
    log.on_background_error(
        BackgroundErrorReason::Write,
        &flagstone::Error::corruption("what is"),
        true,
    );
    let levels: Vec<_> = heard.try_iter().map(|(level, _)| level).collect();
    assert_eq!(levels, [LogLevel::Header, LogLevel::Fatal]);
}
