//! What there is to see at one moment.

use std::collections::BTreeMap;
use std::path::Path;

use flagstone::base::file_name::{self, FileKind};
use flagstone::base::{Error, Result};
use flagstone::db::Facts;
use flagstone::env::{Env, FileSystem, IoMode, process_start, read_file, read_until_end};
use flagstone::figures::{Figures, SIZE_MAX};

/// A file that was written so long ago, by a process that is not here, was left behind: three times
/// the period in which it is written. A process may be in another container.
const STALE_AFTER_US: u64 = 6_000_000;

/// How often a file is read that is written meanwhile.
const ATTEMPTS: u32 = 5;

/// How much of the end of a LOG is read: several reports.
const LOG_TAIL: u64 = 1 << 20;

/// Where the figures come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The process that has it open.
    Live(Figures),
    /// A process that has ended left the file.
    Stale(Figures),
    /// There is no such file, or none that can be read, and why.
    None(Option<String>),
}

/// The files of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Files {
    pub count: u64,
    pub bytes: u64,
}

/// What there is to see.
#[derive(Debug, Clone)]
pub struct Sample {
    pub source: Source,
    /// Now, in microseconds since 1970.
    pub now_us: u64,
    /// The directory's files, by what they are called.
    pub files: BTreeMap<&'static str, Files>,
    /// What the last report in the LOG says, if there is one.
    pub told: Option<Facts>,
}

impl Sample {
    /// Looks at the database in that directory.
    ///
    /// # Errors
    /// `InvalidArgument` if there is none; `IoError`.
    pub fn take(env: &Env, path: &Path) -> Result<Self> {
        let fs = &*env.fs;
        if !env.fs.metadata(&file_name::current(path)).is_ok_and(|found| !found.is_directory) {
            return Err(Error::invalid_argument("there is no database").at(path));
        }
        let now_us = env.clock.unix_micros();
        let source = source(env, path, now_us);
        let told = match source {
            Source::Live(_) => None,
            Source::Stale(_) | Source::None(_) => told(fs, path),
        };
        Ok(Self { source, now_us, files: files(fs, path)?, told })
    }

    /// The figures of a process that has the database open.
    pub fn live(&self) -> Option<&Figures> {
        match &self.source {
            Source::Live(figures) => Some(figures),
            Source::Stale(_) | Source::None(_) => None,
        }
    }

    /// Whether the other one has later figures of the same process.
    pub fn is_older_than(&self, other: &Self) -> bool {
        match (self.live(), other.live()) {
            (Some(this), Some(other)) => {
                this.pid == other.pid
                    && this.opened_at_us == other.opened_at_us
                    && this.updated_at_us < other.updated_at_us
            }
            _ => false,
        }
    }
}

fn source(env: &Env, path: &Path, now_us: u64) -> Source {
    let path = file_name::figures(path);
    let mut outcome = read_file(&*env.fs, &path, SIZE_MAX).and_then(|bytes| Figures::parse(&bytes));
    for _ in 1..ATTEMPTS {
        if !outcome.as_ref().is_err_and(Error::is_corruption) {
            break;
        }
        env.clock.sleep(std::time::Duration::from_millis(5));
        outcome = read_file(&*env.fs, &path, SIZE_MAX).and_then(|bytes| Figures::parse(&bytes));
    }
    match outcome {
        Ok(figures) if is_there(&figures, now_us) => Source::Live(figures),
        Ok(figures) => Source::Stale(figures),
        Err(error) if error.is_not_found() => Source::None(None),
        Err(error) => Source::None(Some(error.to_string())),
    }
}

fn is_there(figures: &Figures, now_us: u64) -> bool {
    let started = process_start(figures.pid);
    let is_same = started.is_some_and(|started| started == figures.process_start);
    is_same || now_us.abs_diff(figures.updated_at_us) < STALE_AFTER_US
}

fn files(fs: &dyn FileSystem, path: &Path) -> Result<BTreeMap<&'static str, Files>> {
    let mut files: BTreeMap<&'static str, Files> = BTreeMap::new();
    for name in fs.list(path)? {
        let Some(kind) = FileKind::parse(&name) else { continue };
        let kind = match kind {
            FileKind::Wal(_) => "wal",
            FileKind::Table(_) => "table",
            FileKind::Blob(_) => "blob",
            FileKind::Manifest(_) => "manifest",
            FileKind::InfoLog => "log",
            _ => "other",
        };
        // One that is gone by now takes no space.
        let Ok(found) = fs.metadata(&path.join(name)) else { continue };
        let files = files.entry(kind).or_default();
        files.count += 1;
        files.bytes = files.bytes.saturating_add(found.size);
    }
    Ok(files)
}

/// What the last report in the LOG says.
fn told(fs: &dyn FileSystem, path: &Path) -> Option<Facts> {
    let file = fs.open_random_access(&path.join("LOG"), IoMode::Buffered).ok()?;
    let size = file.size().ok()?;
    let start = size.saturating_sub(LOG_TAIL);
    let mut bytes = vec![0; (size - start) as usize];
    let filled = read_until_end(&*file, start, &mut bytes).ok()?;
    let mut facts = Facts::default();
    facts.add_statistics(&String::from_utf8_lossy(&bytes[..filled])).ok()?;
    Some(facts)
}
