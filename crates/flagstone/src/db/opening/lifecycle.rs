//! Putting the engine together, keeping its OPTIONS file, and closing it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::allocator::ReleasedAtEnd;
use crate::base::sync::{ArcSwap, AtomicBool, Mutex, Ordering};
use crate::base::unique_id::session_identity;
use crate::base::{Code, ColumnFamilyId, Mutant, Result, SnapshotList, Sometimes, SubCode, file_name};
use crate::db::DbInner;
use crate::db::context::Context;
use crate::db::disk::Disk;
use crate::db::events::Events;
use crate::db::family::{Family, FamilyState};
use crate::db::files::Tables;
use crate::db::jobs::background::Background;
use crate::db::limits::Limits;
use crate::db::opening::Lifecycle;
use crate::db::opening::due_options::DueOptions;
use crate::db::poison::Poison;
use crate::db::reading::Reader;
use crate::db::statistics::{Statistics, Ticker};
use crate::db::tree::{Below, Tree};
use crate::db::writing::pipeline::Pipeline;
use crate::db::writing::wal_space::WalSpace;
use crate::manifest::VersionSet;
use crate::memtable::ArenaPool;
use crate::options::{self, ColumnFamilyOptions, Options};

impl DbInner {
    /// An engine over these versions, with nothing replayed and nothing running.
    pub(in crate::db) fn new(
        path: &Path,
        options: Options,
        read_only: bool,
        versions: VersionSet,
        families: BTreeMap<ColumnFamilyId, FamilyState>,
        (tables, arenas): (Arc<Tables>, Arc<ArenaPool>),
    ) -> Self {
        let env = options.env.clone();
        let wal_directory = match options.wal_dir.as_str() {
            "" => path.to_path_buf(),
            directory => PathBuf::from(directory),
        };
        let events = Arc::new(Events::new(options.listeners.clone()));
        let statistics = Arc::<Statistics>::default();
        let snapshots = SnapshotList::new();
        let obsolete = versions.obsolete_files().clone();
        let context = Context {
            path: path.to_path_buf(),
            wal_directory,
            read_only,
            opened_at_us: env.clock.now_us(),
            identity: versions.db_id().to_string(),
            session: session_identity(env.random.next_u64(), env.random.next_u64()),
            env,
            names: versions.names().clone(),
            poison: Poison::new(events.clone()),
            events,
            statistics: statistics.clone(),
            closing: AtomicBool::new(false),
            settings: ArcSwap::from_pointee(options),
        };
        let (context, limits) = (Arc::new(context), Arc::new(Limits::new()));
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
        let pipeline = Arc::new(Pipeline::new(below, tree.clone(), reader.clone(), arenas.clone()));
        let inner = Self {
            context,
            pipeline,
            tree,
            snapshots,
            tables,
            reader,
            records_cache: AtomicBool::new(false),
            last_report: Mutex::default(),
            limits,
            arenas,
            memory_share: Mutex::default(),
            background,
            lifecycle: Lifecycle::default(),
            disk,
            released: ReleasedAtEnd::default(),
        };
        inner.update_limits();
        inner
    }

    /// The options in force as the text of an OPTIONS file; `change` may say otherwise of the database's own.
    pub(in crate::db) fn options_text(&self, of_copy: bool) -> String {
        let mut options = self.context.settings.load_full().as_kept();
        let mut families: Vec<(Arc<Family>, ColumnFamilyOptions)> = self
            .tree
            .families
            .read()
            .values()
            .map(|family| (family.clone(), (*family.options.load_full()).clone()))
            .collect();
        if of_copy {
            options.stand_alone();
            families.iter_mut().for_each(|(_, family)| family.stand_alone());
        }
        let listed: Vec<(&str, &ColumnFamilyOptions)> =
            families.iter().map(|(family, options)| (family.name.as_str(), options)).collect();
        options::file::print(&options, &listed)
    }

    /// Writes the options in force to a new OPTIONS file.
    pub(in crate::db) fn write_options_file(&self) -> Result<()> {
        self.write_options(&mut self.lifecycle.options_file.lock())
    }

    /// One at a time, so that the file with the highest number says what is in force.
    fn write_options(&self, due: &mut DueOptions) -> Result<()> {
        self.context.check_open()?;
        let text = self.options_text(false);
        let number = self.tree.file_numbers.allocate();
        let temporary = file_name::temporary(&self.context.path, number);
        let target = file_name::options(&self.context.path, number);
        let written = self.context.names.replace_file(&temporary, &target, text.as_bytes());
        written.inspect_err(|_| {
            // A name that a power loss may take is not to count among the newest two, which stay.
            let _ = self.context.names.fs().remove(&target);
        })?;
        due.settle();
        // It stands whatever becomes of older ones.
        self.tree.tidy_metadata();
        Ok(())
    }

    /// The same when families were made or dropped, which is durable by then, and not undone by a file that cannot be written:
    /// that is tried again.
    pub(in crate::db) fn write_options_of_families(&self) -> Result<()> {
        let mut due = self.lifecycle.options_file.lock();
        match self.write_options(&mut due) {
            Err(error) if error.code() == Code::IoError => {
                if !due.is_due() || error.subcode() != SubCode::NoSpace {
                    tracing::warn!(%error, "an OPTIONS file is left for later");
                }
                self.put_off_options(&mut due);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// The same when options were changed, which are in force by then: it is tried again as well, and the caller told.
    pub(in crate::db) fn write_changed_options(&self) -> Result<()> {
        let mut due = self.lifecycle.options_file.lock();
        self.write_options(&mut due).map_err(|error| match error.code() {
            Code::IoError => {
                self.put_off_options(&mut due);
                error.context("the change is in force, and in no OPTIONS file yet")
            }
            _ => error,
        })
    }

    fn put_off_options(&self, due: &mut DueOptions) {
        due.put_off(self.context.env.clock.now_us());
        self.context.statistics.add(Ticker::OptionsFilesPutOff, 1);
    }

    /// Writes the OPTIONS file that could not be written before; not again right after an attempt.
    pub(in crate::db) fn write_due_options_file(&self) {
        // Who writes one now writes what is due, or it is due still.
        if let Some(mut due) = self.lifecycle.options_file.try_lock()
            && due.is_due()
            && due.may_be_tried(self.context.env.clock.now_us())
            && let Err(error) = self.write_due_options(&mut due)
            // That there is no room was said.
            && error.subcode() != SubCode::NoSpace
        {
            tracing::warn!(%error, "no OPTIONS file");
        }
    }

    /// Writes the OPTIONS file if one is due.
    fn write_due_options(&self, due: &mut DueOptions) -> Result<()> {
        if !due.is_due() {
            return Ok(());
        }
        let written = self.context.poison.check_fatal().and_then(|()| self.write_options(due));
        written.inspect_err(|_| self.put_off_options(due))
    }

    /// Waits until no flush and no compaction is running or wanted. Where the database is open read-only nobody does what is.
    pub(in crate::db) fn wait_until_idle(&self) -> Result<()> {
        if self.context.read_only {
            return self.context.check_open();
        }
        self.tree.wait_until_idle()?;
        self.purge_all_obsolete_files();
        Ok(())
    }

    /// Stops the workers and lets go of the directory. Once; whoever calls later hears, in the end, how that went.
    pub(in crate::db) fn close(&self) -> Result<()> {
        let closed = {
            let mut closed = self.lifecycle.closed.lock();
            closed.get_or_insert_with(|| self.close_once()).clone()
        };
        // Without the lock: a listener may close, too.
        self.context.events.end();
        closed
    }

    fn close_once(&self) -> Result<()> {
        self.pipeline.commit.lock().end.has_begun = true;
        self.background.io.set_closing();
        let flushed = self.flush_unlogged();
        {
            // Together: who comes later is refused, and leaves none that is due.
            let mut due = self.lifecycle.options_file.lock();
            if let Err(error) = self.write_due_options(&mut due) {
                tracing::warn!(%error, "closed without an OPTIONS file that tells of families and options as they are");
            }
            self.context.closing.store(true, Ordering::Release);
        }
        self.tree.call_all();
        self.background.workers.leave();
        // Manual compactions run in their callers' threads, and so do checkpoints, and flushes of those who resume writes; none
        // may change or read anything once the directory is let go. None begins any more, and each that runs ends, also with a
        // panic.
        self.tree.wait_for_callers();
        self.tree.families.read().values().for_each(|family| family.parked.close());
        self.end_traces();
        self.purge_all_obsolete_files();
        let ended = self.pipeline.end_wal();
        self.tree.end_manifest();
        self.tree.remove_recyclable_wals();
        self.disk.close_reserve();
        drop(self.lifecycle.options_file.lock());
        let share = self.memory_share.lock().take();
        drop(share);
        self.unlist();
        *self.disk.lock.lock() = None;
        flushed.and(ended)
    }

    /// What was written without the WAL would be lost at the end of the process, and what memtables have in blob files
    /// could not be read by RocksDB. All families are flushed for that: were only some, the others would be behind them if
    /// somebody lost the WAL.
    fn flush_unlogged(&self) -> Result<()> {
        if self.context.read_only {
            return Ok(());
        }
        let unlogged = self.pipeline.unlogged.load(Ordering::Acquire)
            && !Mutant::ForgetUnloggedAtClose.is_on()
            && !self.context.settings.load().avoid_flush_during_shutdown;
        if unlogged {
            Sometimes::UnloggedFlushedAtClose.reached();
        }
        let families: Vec<_> = self.tree.families.read().values().cloned().collect();
        let has_blobs =
            |family: &Arc<Family>| family.current.load().generations().any(|mem| !mem.blobs.is_empty());
        let direct = !Mutant::ForgetBlobsAtClose.is_on() && families.iter().any(has_blobs);
        if unlogged || direct { self.flush_families(&families, true) } else { Ok(()) }
    }
}

impl Drop for DbInner {
    fn drop(&mut self) {
        self.released.expect(self.tables.freed_at_end());
    }
}
