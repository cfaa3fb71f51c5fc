use std::path::Path;
use std::sync::{Arc, mpsc};

use super::InfoLogger;
use super::file::{log_path, time_text};
use crate::base::Error;
use crate::base::sync::Mutex;
use crate::env::{Env, read_file};
use crate::options::{
    BackgroundErrorReason, EventListener as _, InfoLog, InfoLogLevel, Logger, Options,
};

fn world() -> Options {
    let env = Env::memory();
    env.fs.create_directory(Path::new("/db")).unwrap();
    Options { env, ..Options::default() }
}

fn begin(options: &Options) -> InfoLogger {
    InfoLogger::new(Path::new("/db"), options, false)
}

fn text(options: &Options, path: &str) -> String {
    let bytes = read_file(options.env.fs.as_ref(), Path::new(path), 1 << 20).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn old_logs(options: &Options) -> usize {
    let names = options.env.fs.list(Path::new("/db")).unwrap();
    names.iter().filter(|name| name.starts_with("LOG.old.")).count()
}

#[test]
fn times_are_dates() {
    assert_eq!(time_text(0), "1970/01/01-00:00:00.000000");
    assert_eq!(time_text(951_827_696_000_007), "2000/02/29-12:34:56.000007");
    assert_eq!(time_text(1_735_689_599_999_999), "2024/12/31-23:59:59.999999");
}

#[test]
fn an_opening_keeps_the_logs_of_those_before() {
    let mut options = world();
    options.db.keep_log_file_num = 2;
    for opening in ["first", "second", "third"] {
        begin(&options).info(|| opening.to_string());
    }
    assert!(text(&options, "/db/LOG").ends_with(" third\n"));
    assert_eq!(old_logs(&options), 1);
}

#[test]
fn a_large_log_is_begun_anew_with_its_head() {
    let mut options = world();
    options.db.max_log_file_size = 40;
    let log = begin(&options);
    log.head(&options, &[]);
    log.on_error_recovery_completed(&Error::corruption("what was"));
    assert_eq!(old_logs(&options), 0, "the head does not count");
    log.on_error_recovery_completed(&Error::corruption("what was"));
    assert!(text(&options, "/db/LOG").starts_with("Flagstone version: "));
    assert!(old_logs(&options) >= 1);
}

#[test]
fn many_families_with_the_same_options_are_listed_once() {
    let options = world();
    let mut other = options.cf.clone();
    other.settings.write_buffer_size = 12345;
    let mut families = vec![("other".to_string(), other)];
    families.extend((0..16).map(|number| (number.to_string(), options.cf.clone())));
    begin(&options).head(&options, &families);
    let text = text(&options, "/db/LOG");
    assert_eq!(text.matches("Options.write_buffer_size: ").count(), 2);
    assert!(text.ends_with(" those of [0]\n"), "{text}");
    begin(&options).head(&options, &families[..16]);
    assert_eq!(self::text(&options, "/db/LOG").matches("Options.write_buffer_size: ").count(), 16);
}

#[test]
fn after_its_end_a_log_leaves_the_names_to_the_next_opening() {
    let mut options = world();
    options.db.max_log_file_size = 1;
    let log = begin(&options);
    log.info(|| "before".to_string());
    log.end();
    begin(&options).info(|| "the next opening".to_string());
    log.info(|| "late".to_string());
    assert!(text(&options, "/db/LOG").ends_with(" the next opening\n"));
    assert_eq!(old_logs(&options), 1);
}

#[test]
fn a_directory_for_logs_tells_databases_apart() {
    let path = log_path(Path::new("/data/my db"), "/logs");
    assert_eq!(path, Path::new("/logs/data_my_db_LOG"));
}

#[test]
fn a_database_that_is_only_read_writes_no_file() {
    let options = world();
    let log = InfoLogger::new(Path::new("/db"), &options, true);
    log.say(InfoLogLevel::Fatal, "nothing");
    assert!(options.env.fs.list(Path::new("/db")).unwrap().is_empty());
}

struct Pipe(Mutex<mpsc::Sender<(InfoLogLevel, String)>>);

impl Logger for Pipe {
    fn log(&self, level: InfoLogLevel, message: &str) {
        self.0.lock().send((level, message.to_string())).unwrap();
        assert_ne!(level, InfoLogLevel::Error, "a logger that panics stops nobody");
    }
}

#[test]
fn a_logger_hears_from_its_level_on_and_may_panic() {
    let (told, heard) = mpsc::channel();
    let mut options = world();
    options.db.info_log_level = InfoLogLevel::Warn;
    options.info_log = InfoLog::Logger(Arc::new(Pipe(Mutex::new(told))));
    let log = begin(&options);
    log.on_error_recovery_completed(&Error::corruption("what was"));
    let (reason, error) = (BackgroundErrorReason::Write, Error::corruption("what is"));
    log.on_background_error(reason, &error, false);
    log.on_background_error(reason, &error, true);
    log.say(InfoLogLevel::Header, "head");
    let levels: Vec<_> = heard.try_iter().map(|(level, _)| level).collect();
    assert_eq!(levels, [InfoLogLevel::Error, InfoLogLevel::Fatal, InfoLogLevel::Header]);
}
