//! Creating, dropping and reconfiguring column families.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{ColumnFamilyId, Error, FileNumber, InternalKeyComparator, Result};
use crate::db::DbInner;
use crate::db::budget::memtable_bytes_max;
use crate::db::exports::{self, ExportedFamily};
use crate::db::family::generation::Generation;
use crate::db::family::{AtCommit, ColumnFamily, Family, SuperVersion};
use crate::db::handle::Db;
use crate::db::limits::Figures;
use crate::db::settings::{HUGE_PAGE, KEPT_ARENA_BYTES_MAX, data_paths, memtable_settings};
use crate::db::tree::directories;
use crate::db::tree::family_state::FamilyState;
use crate::db::writing::pipeline::WritesHeldBack;
use crate::manifest::{FamilySpec, ObsoleteFile, Version, VersionEdit};
use crate::options::names::check_live;
use crate::options::{ColumnFamilyOptions, ImportColumnFamilyOptions};

impl Db {
    /// Creates a column family; durable when the call returns. Where the OPTIONS file that is to
    /// name it cannot be written, as on a full disk, that is tried again later.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is empty or taken, or an option is out of range, or asks for
    /// direct I/O that a file system does not have; `IoError`.
    pub fn create_column_family(
        &self,
        name: &str,
        options: &ColumnFamilyOptions,
    ) -> Result<ColumnFamily> {
        let mut created = self.create_column_families(&[(name, options.clone())])?;
        Ok(created.remove(0))
    }

    /// Creates several column families, each with its own options: all of them, or none. Durable
    /// when the call returns.
    ///
    /// Thousands of families are to be made so: with each call an OPTIONS file is written that
    /// tells of all that there are.
    ///
    /// # Errors
    /// As [`Db::create_column_family`].
    pub fn create_column_families(
        &self,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Vec<ColumnFamily>> {
        let inner = self.inner();
        inner.context.check_writable()?;
        if families.is_empty() {
            return Ok(Vec::new());
        }
        families.iter().try_for_each(|(_, options)| options.validate_for_writing())?;
        let settings = inner.context.settings.load();
        let wanted = families
            .iter()
            .map(|(name, options)| ((*name).to_string(), options.clone().within(&settings.db)));
        let created = inner.create_families(wanted.collect())?;
        inner.options_file.write_options_of_families()?;
        Ok(created.into_iter().map(ColumnFamily).collect())
    }

    /// Creates a column family from one or several exports ([`Db::export_column_family`]), whose
    /// keys must not overlap: the family with all of their keys, or nothing. Entries keep their
    /// levels and sequence numbers. Durable when the call returns.
    ///
    /// Tables are copied; with `move_files` they are linked, and the exports are removed at the
    /// end. Blob files are copied, and the tables that refer to them are rewritten, because the
    /// files get other numbers.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no source, the name is empty or taken, options are out of range,
    /// the comparator differs, or the sources' key ranges overlap. A directory is no export, has
    /// WALs with entries, or has several families and `column_family` names none. `Corruption`: a
    /// file is missing or damaged. `Busy`: the directory is open elsewhere. `ShutdownInProgress`;
    /// `IoError`.
    pub fn create_column_family_with_import(
        &self,
        name: &str,
        options: &ColumnFamilyOptions,
        sources: &[ExportedFamily],
        import: &ImportColumnFamilyOptions,
    ) -> Result<ColumnFamily> {
        let options = options.clone().within(&self.inner().context.settings.load().db);
        let family = exports::import(self.inner(), (name, &options), sources, import)?;
        self.inner().options_file.write_options_of_families()?;
        Ok(ColumnFamily(family))
    }

    /// Drops a column family; durable when the call returns. Reads through existing handles and
    /// iterators go on, and its files are removed when the last of them is gone.
    ///
    /// While a full disk suspends writes it goes on, with what was reserved
    /// (`reserved_disk_space`). If it is the first to meet the full disk it fails, and that is
    /// given up for the next call; but not where an OPTIONS file alone cannot be written, which is
    /// tried again later.
    ///
    /// # Errors
    /// `InvalidArgument` for `default`; `ColumnFamilyDropped`; `IoError`.
    pub fn drop_column_family(&self, family: &ColumnFamily) -> Result<()> {
        let inner = self.inner();
        inner.disk.check_may_free()?;
        inner.disk.check_owner(&family.0)?;
        let outcome = inner
            .drop_family(&family.0)
            .and_then(|()| inner.options_file.write_options_of_families());
        outcome.inspect_err(|error| inner.tree.refused(error))
    }

    /// Changes options of a family while the database runs; `changes` are RocksDB's names and
    /// texts. All or nothing.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name, a bad value, one that asks for direct I/O that the
    /// file system does not have, or an option that needs a reopen; `NotSupported`;
    /// `ColumnFamilyDropped`. `IoError` if the OPTIONS file that says so cannot be written: the
    /// change is in force then, and the file is tried again later, at the latest when the database
    /// is closed.
    pub fn set_options(&self, family: &ColumnFamily, changes: &[(&str, &str)]) -> Result<()> {
        let inner = self.inner();
        inner.context.check_writable()?;
        inner.disk.check_owner(&family.0)?;
        let changed = || {
            family.0.check_alive()?;
            let mut options = family.0.options_asked_for();
            for (name, value) in changes {
                check_live(name, false)?;
                options.set(name, value)?;
            }
            options.validate_for_writing().map(|()| options)
        };
        inner.tree.change_family(family.0.id, || {
            inner.apply_family_options(&family.0, &changed()?);
            Ok(())
        })?;
        let name = &family.0.name;
        inner.context.log.info(|| format!("[{name}] SetOptions: {}", text_of(changes)));
        inner.options_file.write_changed_options()
    }

    /// Changes options of the database while it runs; see [`Db::set_options`].
    ///
    /// # Errors
    /// As [`Db::set_options`]. `IoError`, too, if the system has no thread left for more jobs in
    /// the background: the change is in force then, and in the OPTIONS file, and the next change
    /// tries again to start what is missing.
    pub fn set_db_options(&self, changes: &[(&str, &str)]) -> Result<()> {
        let inner = self.inner();
        inner.context.check_writable()?;
        let resizes_caches = inner.tree.one_at_a_time(|| {
            let mut settings = (*inner.context.settings.load_full()).clone();
            for (name, value) in changes {
                check_live(name, true)?;
                settings.set(name, value)?;
            }
            settings.validate()?;
            let resizes_caches = inner.tables.note_settings(&settings);
            inner.context.settings.store(Arc::new(settings));
            inner.update_limits();
            Ok(resizes_caches)
        })?;
        inner.context.log.info(|| format!("SetDBOptions: {}", text_of(changes)));
        if resizes_caches {
            inner.tables.account().tell_again();
        }
        let started = inner.jobs.start_workers();
        inner.tree.tree_changed();
        inner.options_file.write_changed_options().and(started)
    }
}

fn text_of(changes: &[(&str, &str)]) -> String {
    let texts: Vec<_> = changes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    texts.join(";")
}

impl DbInner {
    /// All of these families, durably, or none.
    pub(super) fn create_families(
        &self,
        wanted: Vec<(String, ColumnFamilyOptions)>,
    ) -> Result<Vec<Arc<Family>>> {
        let specs = wanted.iter().map(|(name, options)| self.spec_of(name, options));
        let specs = specs.collect::<Result<Vec<_>>>()?;
        self.check_directories(&specs)?;
        let families = self.pipeline.add_families(|wal| {
            self.tree.create_families(
                |versions| versions.create_column_families(specs, wal),
                |index, id, version| {
                    let (name, options) = &wanted[index];
                    self.new_family(id, name, options, version, wal)
                },
            )
        })?;
        self.update_limits();
        for family in &families {
            self.context.log.info(|| format!("[{}] column family created", family.name));
        }
        Ok(families)
    }

    /// A family with files that lie in its directories, durably, or nothing. No writer inserts.
    /// Also returns whether the MANIFEST may name the files: from then on they are the tree's.
    pub(super) fn create_family_with_files(
        &self,
        held_back: &WritesHeldBack<'_>,
        spec: FamilySpec,
        options: &ColumnFamilyOptions,
        files: VersionEdit,
    ) -> (bool, Result<Arc<Family>>) {
        let newest = files.new_files.iter().map(|(_, file)| file.largest_seqno).max();
        let (name, paths, mut may_be_named) = (spec.name.clone(), spec.paths.clone(), false);
        let brought = ObsoleteFile::added_by(&files, &paths);
        let created = held_back.add_family(newest.unwrap_or(0), |wal| {
            may_be_named = true;
            let added = self.tree.create_families(
                |versions| Ok(vec![versions.import_column_family(spec, wal, files)?]),
                |_, id, version| self.new_family(id, &name, options, version, wal),
            );
            added.inspect_err(|_| self.tree.settle_later(brought))
        });
        self.update_limits();
        (may_be_named, created)
    }

    /// What the MANIFEST is told of a new family, whose directories are made.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty name; those of the file system.
    pub(super) fn spec_of(&self, name: &str, options: &ColumnFamilyOptions) -> Result<FamilySpec> {
        if name.is_empty() {
            return Err(Error::invalid_argument("a column family's name must not be empty"));
        }
        let settings = self.context.settings.load();
        let paths = data_paths(&self.context.path, &settings.db, options)?;
        directories::make_data_directories(&self.tree, &paths)?;
        Ok(FamilySpec {
            name: name.to_string(),
            comparator: options.comparator.clone(),
            persists_timestamps: options.persist_user_defined_timestamps,
            paths,
            num_levels: options.sanitized().num_levels as usize,
        })
    }

    /// Whether files can be written to the families' directories as the options ask.
    pub(super) fn check_directories(&self, specs: &[FamilySpec]) -> Result<()> {
        if !self.context.settings.load().use_direct_io_for_flush_and_compaction {
            return Ok(());
        }
        let written: BTreeSet<_> = specs.iter().flat_map(|spec| spec.paths.directories()).collect();
        directories::check_direct_writes(&self.tree, written)
    }

    /// A family that the MANIFEST has, with what that says of it.
    fn new_family(
        &self,
        id: ColumnFamilyId,
        name: &str,
        options: &ColumnFamilyOptions,
        version: Arc<Version>,
        wal: FileNumber,
    ) -> FamilyState {
        let order = InternalKeyComparator::new(options.comparator.clone());
        let of_db = self.context.settings.load();
        let settings = memtable_settings(&of_db, options, &self.arenas);
        let mem = Arc::new(Generation::new(order, &settings));
        let first = SuperVersion::first(mem.clone(), version);
        let family =
            Family::new(id, name, options, first, self.disk.owner(), AtCommit::of(&of_db.db));
        FamilyState::new(family, mem, wal)
    }

    fn drop_family(&self, family: &Arc<Family>) -> Result<()> {
        if family.id == ColumnFamilyId::DEFAULT {
            return Err(Error::invalid_argument("the column family 'default' cannot be dropped"));
        }
        family.check_alive()?;
        self.pipeline.drop_family(family)?;
        self.context.log.info(|| format!("[{}] column family dropped", family.name));
        self.update_limits();
        Ok(())
    }

    pub(super) fn apply_family_options(&self, family: &Arc<Family>, options: &ColumnFamilyOptions) {
        family.set_options(options);
        self.update_limits();
    }

    /// Works out what depends on the options of all families.
    pub(super) fn update_limits(&self) {
        self.limits.update(|| self.set_limits());
    }

    fn set_limits(&self) {
        let families = self.tree.families.read();
        let (mut buffers, mut direct_blob_min) = (WriteBuffers::default(), u64::MAX);
        let mut preserved_seconds = None;
        for family in families.values() {
            let options = family.options.load();
            let spans =
                [options.preserve_internal_time_seconds, options.preclude_last_level_data_seconds];
            preserved_seconds = spans.into_iter().fold(preserved_seconds, with_span);
            buffers.add(options.write_buffer_size, options.max_write_buffer_number.max(1) as u64);
            direct_blob_min =
                direct_blob_min.min(family.limits.direct_blob_min.load(Ordering::Relaxed));
        }
        // All that are flushed at once, each with what its last piece of memory may have too much.
        let kept =
            buffers.most_full.saturating_mul(buffers.largest.saturating_add(HUGE_PAGE as u64));
        let half_of_all = memtable_bytes_max(&self.context.settings.load())
            .map_or(u64::MAX, |all| all.div_ceil(2));
        self.limits.set(&Figures {
            memtable_bytes: half_of_all,
            largest_write_buffer: buffers.largest,
            direct_blob_min,
            preserved_seconds,
        });
        self.arenas.set_capacity(kept.min(KEPT_ARENA_BYTES_MAX).min(half_of_all) as usize);
        let (flushed_at, cap) = match self.context.settings.load().max_total_wal_size {
            // RocksDB's default.
            0 => (buffers.total.saturating_mul(4), u64::MAX),
            // Flushes have as long as it takes to write the rest.
            cap => (cap / 4 * 3, cap),
        };
        self.pipeline.set_wal_limits(flushed_at, cap);
        // A reader without the lock cannot find again what it closes.
        if !self.context.read_only {
            self.tables.limit_open_files(self.context.settings.load().max_open_files);
        }
    }
}

/// The write buffers of all families.
#[derive(Default)]
struct WriteBuffers {
    largest: u64,
    /// How many full ones a family may have.
    most_full: u64,
    /// Bytes of all memtables that there may be.
    total: u64,
}

impl WriteBuffers {
    /// Those of one family: at most so many of that size.
    fn add(&mut self, size: u64, count: u64) {
        self.largest = self.largest.max(size);
        self.most_full = self.most_full.max(count - 1);
        self.total = self.total.saturating_add(size.saturating_mul(count));
    }
}

/// The shortest and the longest of some times and one more, which is none if it is 0.
fn with_span(spans: Option<(u64, u64)>, span: u64) -> Option<(u64, u64)> {
    match spans {
        _ if span == 0 => spans,
        None => Some((span, span)),
        Some((shortest, longest)) => Some((shortest.min(span), longest.max(span))),
    }
}

#[cfg(test)]
mod tests;
