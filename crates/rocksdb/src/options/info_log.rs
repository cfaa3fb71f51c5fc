//! Where a database says what it does: the file `LOG`, or a logger of the program.
//!
//! Like RocksDB's, a log begins with all options. After that come flushes, compactions, stalls and
//! what went wrong. The opening of a database renames the log of the one before to
//! `LOG.old.MICROSECONDS`; a log that is too large or too old is renamed, too.
//!
//! A log that cannot be written is given up: it stops no database.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flagstone::Env;
use flagstone::env::{IoMode, WritableFile};
use flagstone::options::{
    BackgroundErrorReason, DamagedFile, EventListener, JobInfo, KeyFault, StallCondition,
};

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
}

/// What options say of logs.
#[derive(Clone)]
pub(super) struct LogSettings {
    pub(super) logger: InfoLogger,
    /// That of the database where there is none.
    pub(super) directory: Option<PathBuf>,
    /// Of the file.
    pub(super) level: LogLevel,
    /// In bytes; 0 for no limit.
    pub(super) size_max: u64,
    /// 0 for no limit.
    pub(super) seconds_max: u64,
    pub(super) files_max: usize,
    /// What is asked for to collect properties of tables.
    pub(super) collectors: Vec<String>,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            logger: InfoLogger { target: Target::File, level: LogLevel::Info },
            directory: None,
            level: LogLevel::Info,
            size_max: 0,
            seconds_max: 0,
            files_max: 1000,
            collectors: Vec::new(),
        }
    }
}

/// The log of one open database.
pub(super) struct InfoLog {
    settings: LogSettings,
    env: Env,
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<OpenFile>,
    /// The log was given up.
    has_failed: bool,
    /// What a new file begins with.
    head: String,
}

struct OpenFile {
    file: Arc<dyn WritableFile>,
    size: u64,
    begun: u64,
}

/// Where the log of the database in `path` lies.
fn log_path(settings: &LogSettings, path: &Path) -> PathBuf {
    let Some(directory) = &settings.directory else { return path.join("LOG") };
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let name = path.to_string_lossy();
    let name = name.trim_start_matches('/').replace(|c| !kept(c), "_");
    directory.join(format!("{name}_LOG"))
}

/// Lines as messages: those that are indented by four spaces belong to the one before.
fn messages(lines: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for line in lines.lines() {
        match messages.last_mut() {
            Some(message) if line.starts_with("    ") => {
                message.push('\n');
                message.push_str(line);
            }
            _ => messages.push(line.to_string()),
        }
    }
    messages
}

impl InfoLog {
    /// `None` for a database that is open for reading, if no logger was given.
    pub(super) fn new(
        settings: &LogSettings,
        env: &Env,
        path: &Path,
        is_read_only: bool,
    ) -> Option<Arc<Self>> {
        if is_read_only && matches!(settings.logger.target, Target::File) {
            return None;
        }
        let path = log_path(settings, path);
        let settings = settings.clone();
        Some(Arc::new(Self { settings, env: env.clone(), path, state: Mutex::default() }))
    }

    pub(super) fn collectors(&self) -> &[String] {
        &self.settings.collectors
    }

    /// Begins the log with these lines.
    pub(super) fn head(&self, lines: &str) {
        if matches!(self.settings.logger.target, Target::File) {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.head = lines.to_string();
        }
        messages(lines).iter().for_each(|message| self.say(LogLevel::Header, message));
    }

    fn say(&self, level: LogLevel, message: &str) {
        let logger = &self.settings.logger;
        match &logger.target {
            Target::File if level >= self.settings.level => self.append(message),
            Target::Stderr { prefix } if level >= logger.level => eprintln!("{prefix} {message}"),
            Target::Callback(callback) if level >= logger.level => callback(level, message),
            _ => {}
        }
    }

    fn append(&self, message: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.has_failed {
            return;
        }
        let seconds = self.env.clock.unix_seconds();
        let is_full = state.file.as_ref().is_some_and(|open| self.is_full(open, seconds));
        let line = format!("{} {message}\n", time_text(seconds));
        let written = if state.file.is_none() || is_full {
            self.begin(&mut state, seconds, is_full).and_then(|()| state.write(&line))
        } else {
            state.write(&line)
        };
        if written.is_err() {
            *state = State { has_failed: true, ..State::default() };
        }
    }

    fn is_full(&self, open: &OpenFile, seconds: u64) -> bool {
        let LogSettings { size_max, seconds_max, .. } = self.settings;
        let age = seconds.saturating_sub(open.begun);
        (size_max > 0 && open.size >= size_max) || (seconds_max > 0 && age >= seconds_max)
    }

    /// Begins a file, with the head again if it follows another of this opening.
    fn begin(&self, state: &mut State, begun: u64, with_head: bool) -> flagstone::Result<()> {
        let fs = &self.env.fs;
        if let Some(directory) = &self.settings.directory {
            fs.create_directory(directory)?;
        }
        state.file = None;
        if fs.metadata(&self.path).is_ok() {
            fs.rename(&self.path, &self.free_name(begun))?;
        }
        self.remove_old_logs()?;
        let file = fs.create_writable(&self.path, IoMode::Buffered)?;
        state.file = Some(OpenFile { file, size: 0, begun });
        let head = if with_head { state.head.clone() } else { String::new() };
        state.write(&head)
    }

    fn old_prefix(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}.old.")
    }

    fn free_name(&self, seconds: u64) -> PathBuf {
        let micros = seconds * 1_000_000;
        let names = (micros..).map(|micros| format!("{}{micros}", self.old_prefix()));
        let mut paths = names.map(|name| self.path.with_file_name(name));
        let free = paths.find(|path| self.env.fs.metadata(path).is_err());
        free.expect("there are more names than files")
    }

    /// Leaves room for one more log.
    fn remove_old_logs(&self) -> flagstone::Result<()> {
        let Some(directory) = self.path.parent() else { return Ok(()) };
        let prefix = self.old_prefix();
        let number = |name: &String| name.strip_prefix(&prefix)?.parse::<u64>().ok();
        let names = self.env.fs.list(directory)?;
        let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        let left_over = numbers.len().saturating_sub(self.settings.files_max - 1);
        for number in &numbers[..left_over] {
            self.env.fs.remove(&directory.join(format!("{prefix}{number}")))?;
        }
        Ok(())
    }
}

impl State {
    fn write(&mut self, text: &str) -> flagstone::Result<()> {
        let Some(open) = &mut self.file else { return Ok(()) };
        open.file.write_at(open.size, text.as_bytes())?;
        open.size += text.len() as u64;
        Ok(())
    }
}

/// `YYYY/MM/DD-HH:MM:SS`, in UTC.
fn time_text(unix_seconds: u64) -> String {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Years that begin in March end in their leap day, if they have one. Day 0 is 1 March of year
    // 0, which lies 719,468 days before 1970.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, shift) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + shift;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}/{month:02}/{day_of_month:02}-{hour:02}:{minute:02}:{:02}", second % 60)
}

/// A job's tables, for a message.
fn job_text(job: &JobInfo) -> String {
    let tables = job.tables.iter().map(|table| table.size);
    let bytes: u64 = tables.chain(job.blob_files.iter().map(|blob| blob.size)).sum();
    format!(
        "{} tables and {} blob files of {bytes} bytes in level {}",
        job.tables.len(),
        job.blob_files.len(),
        job.output_level
    )
}

impl EventListener for InfoLog {
    fn on_flush_completed(&self, job: &JobInfo) {
        let message = format!("[{}] flushed: {}", job.family_name, job_text(job));
        self.say(LogLevel::Info, &message);
    }

    fn on_compaction_completed(&self, job: &JobInfo) {
        let (name, inputs) = (&job.family_name, job.inputs.len());
        match &job.outcome {
            Ok(()) => {
                let message = format!("[{name}] compacted {inputs} tables: {}", job_text(job));
                self.say(LogLevel::Info, &message);
            }
            Err(error) => {
                let message = format!("[{name}] did not compact {inputs} tables: {error}");
                self.say(LogLevel::Warn, &message);
            }
        }
    }

    fn on_background_error(
        &self,
        _reason: BackgroundErrorReason,
        error: &flagstone::Error,
        is_fatal: bool,
    ) {
        let level = if is_fatal { LogLevel::Fatal } else { LogLevel::Error };
        self.say(level, &format!("writes are refused: {error}"));
    }

    fn on_error_recovery_completed(&self, earlier: &flagstone::Error) {
        self.say(LogLevel::Info, &format!("writes are accepted again, after: {earlier}"));
    }

    fn on_stall_conditions_changed(&self, before: StallCondition, now: StallCondition) {
        self.say(LogLevel::Warn, &format!("writers: {now}, before: {before}"));
    }

    fn on_file_damaged(&self, file: &DamagedFile) {
        self.say(LogLevel::Error, &format!("damaged file: {file}"));
    }

    fn on_key_fault(&self, fault: &KeyFault) {
        self.say(LogLevel::Warn, &fault.to_string());
    }
}

#[cfg(test)]
mod tests;
