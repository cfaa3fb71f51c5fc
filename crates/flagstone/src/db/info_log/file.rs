//! The file LOG. An opening renames that of the one before to `LOG.old.MICROSECONDS`; so is one
//! that is too large or too old.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::Result;
use crate::env::{Env, IoMode, WritableFile, remove_if_there};
use crate::options::Options;

/// The current file, and the names of the older ones.
pub(super) struct LogFiles {
    env: Env,
    path: PathBuf,
    size_max: u64,
    seconds_max: u64,
    files_max: usize,
    /// What a file begins with that follows another of this opening.
    head: String,
    /// The numbers in the names of older logs.
    old: BTreeSet<u64>,
    state: State,
    /// Messages that could not be written since the last that was.
    lost: u64,
}

enum State {
    /// Nothing was written yet.
    NotBegun,
    Open(OpenFile),
    /// No more files are begun.
    Ended(Option<OpenFile>),
}

struct OpenFile {
    file: Arc<dyn WritableFile>,
    size: u64,
    /// Bytes of the head, which may be larger than a file should be.
    head_size: u64,
    begun_at: u64,
}

impl LogFiles {
    pub(super) fn new(database: &Path, options: &Options) -> Self {
        Self {
            env: options.env.clone(),
            path: log_path(database, &options.db_log_dir),
            size_max: options.max_log_file_size,
            seconds_max: options.log_file_time_to_roll,
            files_max: usize::try_from(options.keep_log_file_num).unwrap_or(usize::MAX),
            head: String::new(),
            old: BTreeSet::new(),
            state: State::NotBegun,
            lost: 0,
        }
    }

    /// Begins the log with these messages, and each file that follows with the same lines.
    pub(super) fn write_head(&mut self, head: &str, messages: &[String]) {
        self.head = head.to_string();
        let micros = self.env.clock.unix_micros();
        let lines: String = messages.iter().map(|message| line(micros, message)).collect();
        self.write_or_give_up(&lines, micros);
        if let State::Open(open) = &mut self.state {
            open.head_size = open.size;
        }
    }

    /// Appends a message as a line with time and thread.
    pub(super) fn append(&mut self, message: &str) {
        let micros = self.env.clock.unix_micros();
        if self.lost > 0 {
            let lost = format!("{} messages before this one could not be written", self.lost);
            if self.write_line(&line(micros, &lost), micros).is_ok() {
                self.lost = 0;
            }
        }
        self.write_or_give_up(&line(micros, message), micros);
    }

    /// A file that cannot be begun is given up; a write is tried again with the next message.
    fn write_or_give_up(&mut self, lines: &str, micros: u64) {
        let Err(error) = self.write_line(lines, micros) else { return };
        let path = self.path.display();
        if matches!(self.state, State::NotBegun) {
            tracing::warn!(%error, %path, "the info log is given up until the next opening");
            self.state = State::Ended(None);
        } else {
            if self.lost == 0 {
                tracing::warn!(%error, %path, "the info log misses messages");
            }
            self.lost += 1;
        }
    }

    /// Begins no more files.
    pub(super) fn end(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::NotBegun) {
            State::Open(open) => State::Ended(Some(open)),
            State::Ended(open) => State::Ended(open),
            State::NotBegun => State::Ended(None),
        };
    }

    fn write_line(&mut self, line: &str, micros: u64) -> Result<()> {
        let is_due = match &self.state {
            State::NotBegun => true,
            State::Open(open) => self.is_full(open, micros / 1_000_000),
            State::Ended(_) => false,
        };
        if is_due {
            self.begin(micros)?;
        }
        match &mut self.state {
            State::Open(open) | State::Ended(Some(open)) => open.write(line),
            State::NotBegun | State::Ended(None) => Ok(()),
        }
    }

    fn is_full(&self, open: &OpenFile, seconds: u64) -> bool {
        let age = seconds.saturating_sub(open.begun_at);
        (self.size_max > 0 && open.size - open.head_size >= self.size_max)
            || (self.seconds_max > 0 && age >= self.seconds_max)
    }

    /// Begins a file, with the head if it follows another of this opening.
    fn begin(&mut self, micros: u64) -> Result<()> {
        let is_first = matches!(self.state, State::NotBegun);
        if is_first {
            self.find_old_logs()?;
        }
        self.state = State::NotBegun;
        let fs = self.env.fs.clone();
        if fs.metadata(&self.path).is_ok() {
            let number = (micros..).find(|number| !self.old.contains(number)).unwrap_or(micros);
            fs.rename(&self.path, &self.old_path(number))?;
            self.old.insert(number);
        }
        while self.old.len() >= self.files_max {
            let Some(oldest) = self.old.pop_first() else { break };
            remove_if_there(&*fs, &self.old_path(oldest))?;
        }
        let file = fs.create_writable(&self.path, IoMode::Buffered)?;
        let mut open = OpenFile { file, size: 0, head_size: 0, begun_at: micros / 1_000_000 };
        if !is_first {
            open.write(&self.head)?;
            open.head_size = open.size;
        }
        self.state = State::Open(open);
        Ok(())
    }

    fn old_prefix(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}.old.")
    }

    fn old_path(&self, number: u64) -> PathBuf {
        self.path.with_file_name(format!("{}{number}", self.old_prefix()))
    }

    /// Makes the directory if need be, and looks which logs are there.
    fn find_old_logs(&mut self) -> Result<()> {
        let fs = &self.env.fs;
        let directory = self.path.parent().unwrap_or(Path::new(""));
        if fs.metadata(directory).is_err() {
            fs.create_directory(directory)?;
        }
        let prefix = self.old_prefix();
        let number = |name: &String| name.strip_prefix(&prefix)?.parse::<u64>().ok();
        self.old = fs.list(directory)?.iter().filter_map(number).collect();
        Ok(())
    }
}

impl OpenFile {
    fn write(&mut self, text: &str) -> Result<()> {
        self.file.write_at(self.size, text.as_bytes())?;
        self.size += text.len() as u64;
        Ok(())
    }
}

fn line(micros: u64, message: &str) -> String {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed").replace(' ', "-");
    format!("{} {thread} {message}\n", time_text(micros))
}

/// Where the log of the database lies.
pub(super) fn log_path(database: &Path, directory: &str) -> PathBuf {
    if directory.is_empty() {
        return database.join("LOG");
    }
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let name = database.to_string_lossy();
    let name = name.trim_start_matches('/').replace(|c| !kept(c), "_");
    Path::new(directory).join(format!("{name}_LOG"))
}

/// `YYYY/MM/DD-HH:MM:SS.MICROS`, in UTC.
pub(super) fn time_text(unix_micros: u64) -> String {
    let (unix_seconds, micros) = (unix_micros / 1_000_000, unix_micros % 1_000_000);
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
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}/{month:02}/{day_of_month:02}-{hour:02}:{minute:02}:{second:02}.{micros:06}")
}
