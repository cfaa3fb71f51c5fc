//! The database says what it does to other processes, in the file FIGURES of its directory
//! (`flagstone top` shows it).
//!
//! A worker that looks for work writes the file, if the last time was [`PERIOD_US`] ago: with some
//! 10 KiB into the system's cache, once in two seconds. No thread waits for it, and it is never
//! synced. Where it cannot be made there is none; a write that fails is tried again when the next
//! is due.

use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::db::context::Context;
use crate::db::family::Family;
use crate::db::jobs::Jobs;
use crate::db::statistics::Ticker;
use crate::env::{PublishedFile, process_start};
use crate::figures::{Figures, LevelFigures};
use crate::manifest::BlobFileState;

/// How often the file is written at most.
const PERIOD_US: u64 = 2_000_000;

/// Levels of more families would make the file long.
const FAMILIES_MAX: usize = 100;

/// Nothing is due.
const NEVER: u64 = u64::MAX;

/// The file, while there is one.
pub(super) struct Published {
    open: Mutex<Option<Open>>,
    /// When it is to be written next; [`NEVER`] while there is none.
    due_us: AtomicU64,
    /// Bytes of the WALs when they were last at hand.
    wal_bytes: AtomicU64,
}

struct Open {
    file: Box<dyn PublishedFile>,
    pid: u32,
    process_start: u64,
    opened_at_us: u64,
    /// Whether the last write failed, which was logged.
    has_failed: bool,
}

impl Default for Published {
    fn default() -> Self {
        Self { open: Mutex::default(), due_us: AtomicU64::new(NEVER), wal_bytes: AtomicU64::new(0) }
    }
}

impl Published {
    /// Begins the file, where the file system has such files and the options do not forbid it.
    pub(super) fn begin(&self, context: &Context) {
        if !context.settings.load().publish_figures || context.read_only {
            return;
        }
        let path = crate::base::file_name::figures(&context.path);
        let mut open = self.open.lock();
        // The directory may soon be another owner's. Closing calls `end` behind this flag.
        if open.is_some() || context.closing.load(Ordering::Acquire) {
            return;
        }
        let file = match context.env.fs.publish(&path) {
            Ok(Some(file)) => file,
            Ok(None) => return,
            Err(error) => {
                context.log.info(|| format!("the file FIGURES cannot be made: {error}"));
                return;
            }
        };
        let pid = std::process::id();
        *open = Some(Open {
            file,
            pid,
            process_start: process_start(pid).unwrap_or_default(),
            opened_at_us: context.env.clock.unix_micros(),
            has_failed: false,
        });
        self.due_us.store(0, Ordering::Relaxed);
    }

    /// Removes the file.
    pub(super) fn end(&self) {
        self.due_us.store(NEVER, Ordering::Relaxed);
        self.open.lock().take();
    }

    /// Writes the file if it is due.
    pub(super) fn write_if_due(&self, jobs: &Jobs) {
        let due_us = self.due_us.load(Ordering::Relaxed);
        if due_us == NEVER {
            return;
        }
        let now_us = jobs.context.env.clock.now_us();
        let next = now_us.saturating_add(PERIOD_US);
        let (mine, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
        if now_us < due_us || self.due_us.compare_exchange(due_us, next, mine, relaxed).is_err() {
            return;
        }
        // Writers hold the commit lock while they sync: the last value serves meanwhile.
        if let Some(bytes) = jobs.pipeline.wal_bytes_at_hand() {
            self.wal_bytes.store(bytes, relaxed);
        }
        let mut figures = gather(jobs, self.wal_bytes.load(relaxed));
        // It is held only while the file is begun or removed: this write is then left out.
        let Some(mut open) = self.open.try_lock() else { return };
        let Some(open) = &mut *open else { return };
        figures.pid = open.pid;
        figures.process_start = open.process_start;
        figures.opened_at_us = open.opened_at_us;
        let outcome = open.file.publish(figures.encode().as_bytes());
        if let Err(error) = &outcome
            && !open.has_failed
        {
            jobs.context.log.info(|| format!("the file FIGURES cannot be written now: {error}"));
        }
        open.has_failed = outcome.is_err();
    }
}

/// What the database does now.
fn gather(jobs: &Jobs, wal_bytes: u64) -> Figures {
    let Jobs { context, tree, pipeline, tables, snapshots, .. } = jobs;
    let (flushes, compactions) = tree.running();
    let cache = tables.caches().blocks();
    let families: Vec<_> = tree.families.read().values().cloned().collect();
    let mut memory = Memory::default();
    families.iter().for_each(|family| memory.add(family));
    let named = [
        ("families", families.len() as u64),
        ("memtable_bytes", memory.bytes),
        ("immutable_memtables", memory.immutable),
        ("running_flushes", flushes as u64),
        ("running_compactions", compactions as u64),
        ("is_write_stopped", u64::from(pipeline.control().is_stopped())),
        ("delayed_write_rate", pipeline.control().delayed_rate()),
        ("wal_bytes", wal_bytes),
        ("blob_files", memory.blob_files),
        ("blob_bytes", memory.blob_bytes),
        ("block_cache_usage", cache.usage() as u64),
        ("block_cache_capacity", cache.capacity() as u64),
        ("block_cache_hits", cache.statistics().hits),
        ("block_cache_misses", cache.statistics().misses),
        ("snapshots", snapshots.count() as u64),
        ("sequence_number", snapshots.published.load(Ordering::Acquire)),
        ("background_errors", context.poison.failures()),
    ];
    let counter = |ticker: &Ticker| (ticker.name().to_string(), context.statistics.get(*ticker));
    Figures {
        updated_at_us: context.env.clock.unix_micros(),
        counters: Ticker::ALL.iter().map(counter).collect(),
        figures: named.map(|(name, value)| (name.to_string(), value)).into(),
        levels: families.iter().take(FAMILIES_MAX).flat_map(|family| levels_of(family)).collect(),
        ..Figures::default()
    }
}

/// What families have in memory and in blob files.
#[derive(Default)]
struct Memory {
    bytes: u64,
    immutable: u64,
    blob_files: u64,
    blob_bytes: u64,
}

impl Memory {
    fn add(&mut self, family: &Family) {
        let current = family.current.load();
        let memtables = std::iter::once(&current.mem).chain(&current.immutable);
        self.bytes += memtables.map(|mem| mem.memory_usage() as u64).sum::<u64>();
        self.immutable += current.immutable.len() as u64;
        self.blob_files += current.version.blob_files.len() as u64;
        let blobs = current.version.blob_files.values();
        let bytes =
            |blob: &BlobFileState| blob.file.meta.total_bytes.saturating_sub(blob.punched());
        self.blob_bytes += blobs.map(bytes).sum::<u64>();
    }
}

fn levels_of(family: &Family) -> Vec<LevelFigures> {
    let current = family.current.load();
    let levels = current.version.levels.iter().enumerate();
    let filled = levels.filter(|(_, files)| !files.is_empty());
    let figures = filled.map(|(level, files)| LevelFigures {
        family: family.name.clone(),
        level: level as u32,
        tables: files.len() as u64,
        bytes: files.iter().map(|file| file.meta.size).sum(),
    });
    figures.collect()
}
