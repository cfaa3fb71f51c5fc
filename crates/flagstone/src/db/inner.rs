//! Putting the engine together from its parts, and closing it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};

use crate::base::allocator::ReleasedAtEnd;
use crate::base::sync::{AtomicBool, Mutex, Ordering, Rank, ranked};
use crate::base::{ColumnFamilyId, Result, SnapshotList, Sometimes};
use crate::db::DbInner;
use crate::db::background::Background;
use crate::db::context::Context;
use crate::db::disk::Disk;
use crate::db::family::Family;
use crate::db::jobs::{Jobs, remote};
use crate::db::limits::Limits;
use crate::db::open_files;
use crate::db::options_file::OptionsFile;
use crate::db::reading::Reader;
use crate::db::statistics::Statistics;
use crate::db::tables::Tables;
use crate::db::trace;
use crate::db::tree::family_state::FamilyState;
use crate::db::tree::{Below, Tree, paused_work};
use crate::db::wal_space::WalSpace;
use crate::db::writing::pipeline::Pipeline;
use crate::env::{GroupMember, Listed};
use crate::manifest::VersionSet;
use crate::memtable::ArenaPool;
use crate::options::{FlushReason, Options, WaitForCompactOptions};

/// What several engines of one process may have together: all states of a database that is
/// followed.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) tables: Arc<Tables>,
    /// Memory of memtables.
    pub(super) arenas: Arc<ArenaPool>,
    pub(super) statistics: Arc<Statistics>,
}

/// What opening and closing a database need.
pub(super) struct Lifecycle {
    /// Held while the database is being closed, before all other locks.
    pub(super) closing: Mutex<Closing>,
    /// Its place in the list of the open databases of the process, while it is open.
    pub(super) listed: Mutex<Option<Listed>>,
    /// Its part of the memory of all databases of the process, while it is open.
    pub(super) memory_share: Mutex<Option<GroupMember>>,
    /// It was closed, whatever that came to.
    pub(super) is_closed: AtomicBool,
    /// A recording of the block cache was begun here, and perhaps not ended.
    pub(super) records_cache: AtomicBool,
    /// Held while a checkpoint looks for its directory and makes it.
    pub(super) checkpoint_begins: Mutex<()>,
    /// Alive as long as the front door has locks on keys.
    pub(super) locks: Mutex<Weak<()>>,
    /// Others have what is shared, too, and will when this one goes.
    pub(super) is_one_of_many: bool,
}

/// How far closing has come, and how that went.
#[derive(Default)]
pub(super) struct Closing {
    begun: Option<Result<()>>,
    ended: Option<Result<()>>,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            closing: ranked(Rank::Closing, Closing::default()),
            listed: Mutex::default(),
            memory_share: Mutex::default(),
            is_closed: AtomicBool::new(false),
            records_cache: AtomicBool::new(false),
            checkpoint_begins: ranked(Rank::Checkpoint, ()),
            locks: Mutex::default(),
            is_one_of_many: false,
        }
    }
}

impl DbInner {
    /// An engine over these versions, with nothing replayed and nothing running.
    pub(in crate::db) fn new(
        path: &Path,
        options: Options,
        read_only: bool,
        versions: VersionSet,
        families: BTreeMap<ColumnFamilyId, FamilyState>,
        Shared { tables, arenas, statistics }: Shared,
    ) -> Self {
        let snapshots = SnapshotList::new();
        let obsolete = versions.obsolete_files().clone();
        let context = Arc::new(Context::new(path, options, read_only, &versions, &statistics));
        let manager = context.settings.load().write_buffer_manager.clone();
        let write_buffers = manager.filter(|_| !read_only).map(|manager| manager.join());
        let limits = Arc::new(Limits::new().with_write_buffers(write_buffers));
        let disk = Arc::new(Disk::new(context.clone(), limits.clone(), obsolete.clone()));
        let background = Arc::new(Background::new(context.clone()));
        let below = Below {
            context: context.clone(),
            disk: disk.clone(),
            limits: limits.clone(),
            tables: tables.clone(),
            snapshots: snapshots.clone(),
            background: background.clone(),
            control: Arc::default(),
            wal_space: Arc::new(WalSpace::new()),
        };
        let tree = Arc::new(Tree::new(below.clone(), versions, families));
        let reader = Arc::new(Reader::new(tables.clone(), snapshots.clone(), statistics, obsolete));
        let pipeline =
            Arc::new(Pipeline::new(below.clone(), tree.clone(), reader.clone(), arenas.clone()));
        let options_file = Arc::new(OptionsFile::new(context.clone(), tree.clone()));
        let inner = Self {
            context,
            pipeline: pipeline.clone(),
            tree: tree.clone(),
            snapshots,
            tables,
            reader: reader.clone(),
            reports: Mutex::default(),
            limits,
            arenas: arenas.clone(),
            background,
            options_file: options_file.clone(),
            jobs: Arc::new(Jobs::new(below, tree, pipeline, reader, arenas, options_file)),
            lifecycle: Lifecycle::default(),
            disk,
            released: ReleasedAtEnd::default(),
        };
        inner.update_limits();
        inner
    }

    /// One of several engines that have what is shared.
    pub(in crate::db) fn one_of_many(mut self) -> Self {
        self.lifecycle.is_one_of_many = true;
        self
    }

    /// Waits until no flush and no compaction is running or wanted. Where the database is open
    /// read-only nobody does what is.
    ///
    /// # Errors
    /// `TimedOut`; `Aborted` while work is paused, if `options` say so.
    pub(in crate::db) fn wait_until_idle_as(&self, options: &WaitForCompactOptions) -> Result<()> {
        if self.context.read_only {
            return self.context.check_open();
        }
        self.tree.wait_until_idle(options.timeout, options.abort_on_pause)?;
        if options.wait_for_purge {
            self.jobs.purge_all_obsolete_files();
        } else {
            self.jobs.purge_obsolete_files();
        }
        Ok(())
    }

    /// Stops the workers and lets go of the directory. Once; whoever calls later hears, in the end,
    /// how that went.
    pub(in crate::db) fn close(&self) -> Result<()> {
        self.context.process.check()?;
        self.context.events.note_shutdown();
        let closed = {
            let mut closing = self.lifecycle.closing.lock();
            let Closing { begun, ended } = &mut *closing;
            let begun = begun.get_or_insert_with(|| self.begin_once()).clone();
            let end = || {
                let ended = self.end_once();
                self.lifecycle.is_closed.store(true, Ordering::Release);
                begun.and(ended)
            };
            ended.get_or_insert_with(end).clone()
        };
        // Without the lock: a listener may close, too.
        self.context.events.end();
        closed
    }

    #[cfg(test)]
    pub(in crate::db) fn wait_until_idle(&self) -> Result<()> {
        self.wait_until_idle_as(&WaitForCompactOptions {
            wait_for_purge: true,
            ..WaitForCompactOptions::default()
        })
    }

    /// Begins to stop the workers, and does not wait for them. Once.
    ///
    /// # Errors
    /// That of the last flush.
    pub(in crate::db) fn begin_closing(&self) -> Result<()> {
        self.context.process.check()?;
        self.context.events.note_shutdown();
        let begun =
            self.lifecycle.closing.lock().begun.get_or_insert_with(|| self.begin_once()).clone();
        // Without the lock, as in `close`. No thread of the database tells any more.
        self.context.events.tell();
        begun
    }

    fn begin_once(&self) -> Result<()> {
        self.pipeline.begin_ending();
        self.background.set_closing();
        paused_work::end_pauses(&self.tree);
        let flushed = self.flush_unlogged();
        // It flushes nothing more: databases that have one limit with it would wait in vain.
        self.leave_write_buffers();
        self.options_file.close();
        remote::cancel_awaiting(&self.jobs);
        self.tree.call_all();
        flushed
    }

    fn end_once(&self) -> Result<()> {
        remote::end_awaiting(&self.jobs);
        self.background.leave();
        // Manual compactions run in their callers' threads, and so do checkpoints, and flushes of
        // those who resume writes; none may change or read anything once the directory is let go.
        // None begins any more, and each that runs ends, also with a panic.
        self.tree.wait_for_callers();
        self.tree.forget_promises();
        self.tree.families.read().values().for_each(|family| family.parked.close());
        trace::end_traces(self);
        self.jobs.end_figures();
        self.jobs.purge_all_obsolete_files();
        let ended = self.pipeline.end_wal();
        self.tree.end_manifest();
        self.tree.remove_recyclable_wals();
        self.disk.close_reserve();
        self.options_file.wait();
        self.context.log.info(|| match &ended {
            Ok(()) => "closed".to_string(),
            Err(error) => format!("closed, but the WAL could not be ended: {error}"),
        });
        trace::end_io_trace(self);
        self.abandon();
        ended
    }

    /// Releases the directory and leaves the lists of the process. Writes nothing: an opening that
    /// failed leaves what a crash could have left.
    pub(in crate::db) fn abandon(&self) {
        let share = self.lifecycle.memory_share.lock().take();
        drop(share);
        open_files::unlist(self);
        self.context.log.end();
        self.leave_write_buffers();
        self.disk.forget_files();
        self.disk.release_directory();
    }

    fn leave_write_buffers(&self) {
        if let Some(buffers) = self.limits.write_buffers() {
            buffers.leave();
        }
    }

    /// What was written without the WAL would be lost at the end of the process, and what memtables
    /// have in blob files could not be read by RocksDB. All families are flushed for that: were
    /// only some, the others would be behind them if somebody lost the WAL.
    fn flush_unlogged(&self) -> Result<()> {
        if self.context.read_only {
            return Ok(());
        }
        let unlogged = self.pipeline.has_unlogged()
            && !self.context.settings.load().avoid_flush_during_shutdown;
        if unlogged {
            Sometimes::UnloggedFlushedAtClose.reached();
        }
        let families: Vec<_> = self.tree.families.read().values().cloned().collect();
        let has_blobs = |family: &Arc<Family>| {
            family.current.load().generations().any(|mem| !mem.blobs.is_empty())
        };
        let direct = families.iter().any(has_blobs);
        if unlogged || direct {
            self.jobs.flush_families(&families, true, FlushReason::Close)
        } else {
            Ok(())
        }
    }
}

/// With `memory_budget=auto`: has a part of what the process may have, until it is closed.
pub(in crate::db) fn join_memory_share(db: &Arc<DbInner>) {
    let inner = Arc::downgrade(db);
    let share = db.context.settings.load().memory_budget.join(move || {
        if let Some(inner) = inner.upgrade() {
            inner.update_limits();
            inner.tables.account().tell_again();
        }
    });
    let has_part = share.is_some();
    *db.lifecycle.memory_share.lock() = share;
    if has_part {
        // Its limits and caches were made without counting itself.
        db.update_limits();
        db.tables.account().tell_again();
    }
}

impl Drop for DbInner {
    fn drop(&mut self) {
        if !self.lifecycle.is_one_of_many {
            self.released.expect(self.tables.freed_at_end());
        }
    }
}
