//! Opening a database.
//!
//! 1. Take the LOCK; find CURRENT, or make a new database if that is allowed.
//! 2. Read the MANIFEST into a [`VersionSet`]; check that its files are there.
//! 3. Replay the WALs ([`super::recovery`]); what they hold goes to level 0 (or stays in memory).
//! 4. Start a new WAL, write one MANIFEST with the full state, then OPTIONS; remove what is
//!    obsolete.
//! 5. Start the workers.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::file_name::{self, FileKind};
use crate::base::{Error, FileNumber, InternalKeyComparator, Remedy, Result};
use crate::cache::MemoryAccount;
use crate::db::DbInner;
use crate::db::budget::BudgetRule;
use crate::db::family::generation::Generation;
use crate::db::family::{AtCommit, Family, SuperVersion};
use crate::db::handle::Db;
use crate::db::inner::{self, Shared};
use crate::db::jobs::tracking;
use crate::db::open_files;
use crate::db::opening::following::check_no_follower;
use crate::db::opening::moving::{at_one_time, hold_files};
use crate::db::opening::observed::with_files_around;
use crate::db::opening::replayed::ProgressMeter;
use crate::db::opening::wal_directory::{check_newest_wal, check_wals_are_not_here};
use crate::db::settings::{data_paths, memtable_settings};
use crate::db::statistics::Statistics;
use crate::db::tables::{Tables, read_mode};
use crate::db::tree::directories::{
    self, check_directory, check_files_are_not_here, exists, is_database, make_directory,
};
use crate::db::tree::directory_owner::check_owner;
use crate::db::tree::family_state::FamilyState;
use crate::env::{
    Env, Names, ThreadOperation, ThreadStage, ThreadType, check_direct_reads, check_direct_writes,
};
use crate::manifest::{self, FamilySpec, ManifestSettings, RecoverOptions, VersionSet};
use crate::memtable::ArenaPool;
use crate::options::{
    ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY_NAME, DbSettings, InfoLogLevel, Options,
};
use crate::trace::IoTrace;
use crate::wal::RecoveryMode;

/// The families to open, with their options.
pub(in crate::db) type Wanted = Vec<(String, ColumnFamilyOptions)>;

impl Db {
    /// Opens the database in `path` with all of its families, each with `options.cf`.
    ///
    /// # Errors
    /// - `InvalidArgument`: there is none and `create_if_missing` is off, or there is one and
    ///   `error_if_exists` is on; a family has another comparator, or merges in the WALs and no
    ///   merge operator; an option is out of range.
    /// - `Busy`: it is open elsewhere. `Corruption`: its files contradict each other. `IoError`.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let path = path.as_ref();
        let mut wanted = vec![(DEFAULT_COLUMN_FAMILY_NAME.to_string(), options.cf.clone())];
        for listing in existing_families(&options.env, path)? {
            if listing != DEFAULT_COLUMN_FAMILY_NAME {
                wanted.push((listing, options.cf.clone()));
            }
        }
        Self::open_wanted(path, options, wanted)
    }

    /// Opens the database in `path` with exactly these families; `default` may be left out and then
    /// has `options.cf`. Those that do not exist are created if `create_missing_column_families` is
    /// on.
    ///
    /// # Errors
    /// As [`Db::open`]; also `InvalidArgument` if the database has families that are not named.
    pub fn open_with_families(
        path: impl AsRef<Path>,
        options: &Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Self> {
        Self::open_wanted(path.as_ref(), options, with_default(options, families))
    }

    /// As [`Db::open_with_families`], for a while and with options that are not to be found later:
    /// the newest OPTIONS file stays the one of the opening before, unless options or families are
    /// changed.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub(crate) fn open_without_options_file(
        path: &Path,
        options: &Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Self> {
        Self::open_to_write(path, options, with_default(options, families), false)
    }

    /// Opens an existing database for reading, without changing its directory: no lock, no recovery
    /// on disk. What the WALs hold is read into memory; later changes by a writer are not seen.
    ///
    /// The handle opens every table, blob file and WAL at once and holds them to its end, whatever
    /// `max_open_files` says: a writer may remove them meanwhile, and the disk has the space back
    /// when the handle goes. For that the process's soft limit of open files is raised to the hard
    /// one. A writer that is Flagstone punches no holes into these files, and begins no new WAL
    /// over them; one that is RocksDB may recycle a WAL, which an opening notices, and
    /// [`Db::verify`] may not.
    ///
    /// # Errors
    /// As [`Db::open`]; also `TryAgain` if a writer changed its files again and again meanwhile;
    /// `IoError` if there are more files than the process may have open.
    pub fn open_read_only(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let path = path.as_ref();
        Self::open_for_reading(path, options, || {
            let names = existing_families(&options.env, path)?;
            Ok(names.into_iter().map(|name| (name, options.cf.clone())).collect())
        })
    }

    /// As [`Db::open_read_only`], each family with its own options.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open_read_only_with_families(
        path: impl AsRef<Path>,
        options: &Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Self> {
        let wanted: Wanted =
            families.iter().map(|(name, family)| ((*name).to_string(), family.clone())).collect();
        Self::open_for_reading(path.as_ref(), options, || Ok(wanted.clone()))
    }

    /// The names of the families of the database in `path`, in the order of their creation.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no database; `Corruption`, `IoError`.
    pub fn list_column_families(path: impl AsRef<Path>, options: &Options) -> Result<Vec<String>> {
        let path = path.as_ref();
        let names = existing_families(&options.env, path)?;
        if names.is_empty() { Err(no_database(path)) } else { Ok(names) }
    }

    fn open_wanted(path: &Path, options: &Options, wanted: Wanted) -> Result<Self> {
        Self::open_to_write(path, options, wanted, true)
    }

    fn open_to_write(
        path: &Path,
        options: &Options,
        wanted: Wanted,
        writes_options: bool,
    ) -> Result<Self> {
        options.validate()?;
        options.check_wal_codec()?;
        check_families(&wanted, ColumnFamilyOptions::validate_for_writing)?;
        let wanted = within(wanted, options);
        let (options, io_trace) = &with_files_around(options);
        let read_only = false;
        let inner = Opening { path, options, wanted, read_only, writes_options, io_trace }.run()?;
        // The workers that did start hold the engine, and with it the lock of the directory.
        inner.jobs.start_workers().inspect_err(|_| drop(inner.close()))?;
        inner.context.events.tell();
        Ok(Self::from_inner(inner))
    }

    /// Opens the families that are `wanted` at the time of each attempt.
    fn open_for_reading(
        path: &Path,
        options: &Options,
        wanted: impl Fn() -> Result<Wanted>,
    ) -> Result<Self> {
        options.validate()?;
        let (options, io_trace) = &with_files_around(options);
        let inner = at_one_time(path, options, |options| {
            let wanted = wanted()?;
            check_families(&wanted, ColumnFamilyOptions::validate)?;
            let wanted = within(wanted, options);
            let (read_only, writes_options) = (true, false);
            Opening { path, options, wanted, read_only, writes_options, io_trace }.run()
        })?;
        Ok(Self::from_inner(inner))
    }
}

/// Families that are named, and `default`.
fn with_default(options: &Options, families: &[(&str, ColumnFamilyOptions)]) -> Wanted {
    let mut wanted: Wanted =
        families.iter().map(|(name, family)| ((*name).to_string(), family.clone())).collect();
    if !wanted.iter().any(|(name, _)| name == DEFAULT_COLUMN_FAMILY_NAME) {
        wanted.insert(0, (DEFAULT_COLUMN_FAMILY_NAME.to_string(), options.cf.clone()));
    }
    wanted
}

/// The families' options as the database's own change them.
fn within(wanted: Wanted, options: &Options) -> Wanted {
    wanted.into_iter().map(|(name, family)| (name, family.within(&options.db))).collect()
}

fn check_families(
    families: &Wanted,
    check: impl Fn(&ColumnFamilyOptions) -> Result<()>,
) -> Result<()> {
    families.iter().try_for_each(|(name, family)| {
        check(family).map_err(|error| error.context(format!("column family '{name}'")))
    })
}

/// A family as the MANIFEST is read with.
pub(in crate::db) fn family_spec(
    path: &Path,
    of_db: &DbSettings,
    name: &str,
    family: &ColumnFamilyOptions,
) -> Result<FamilySpec> {
    let paths = data_paths(path, of_db, family)
        .map_err(|error| error.context(format!("column family '{name}'")))?;
    Ok(FamilySpec {
        name: name.to_string(),
        comparator: family.comparator.clone(),
        persists_timestamps: family.persist_user_defined_timestamps,
        paths,
        num_levels: family.sanitized().num_levels as usize,
    })
}

/// How the MANIFEST is read and written.
pub(in crate::db) fn manifest_settings(of_db: &DbSettings) -> ManifestSettings {
    ManifestSettings {
        max_manifest_file_size: of_db.max_manifest_file_size,
        preallocation_size: if of_db.allow_fallocate {
            of_db.manifest_preallocation_size
        } else {
            0
        },
        readahead_size: of_db.log_readahead_size as usize,
    }
}

/// The families of an existing database; none if there is no database.
pub(crate) fn existing_families(env: &Env, path: &Path) -> Result<Vec<String>> {
    match manifest::list_column_families(env, path) {
        Ok(listings) => Ok(listings.into_iter().map(|listing| listing.name).collect()),
        Err(error) if error.is_not_found() && !is_database(&*env.fs, path)? => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

pub(in crate::db) fn no_database(path: &Path) -> Error {
    Error::invalid_argument("there is no database here (CURRENT is missing)").at(path)
}

struct Opening<'a> {
    path: &'a Path,
    options: &'a Options,
    wanted: Wanted,
    read_only: bool,
    /// Whether the options go into an OPTIONS file.
    writes_options: bool,
    /// Where the files record their calls.
    io_trace: &'a Arc<IoTrace>,
}

impl Opening<'_> {
    fn run(mut self) -> Result<Arc<DbInner>> {
        let env = &self.options.env;
        let is_new = !is_database(&*env.fs, self.path)?;
        if is_new {
            check_no_follower(&*env.fs, self.path)?;
        }
        if is_new && (self.read_only || !self.options.db.create_if_missing) {
            return Err(self.no_database());
        }
        if !is_new && self.options.db.error_if_exists {
            return Err(Error::invalid_argument(
                "the database already exists and error_if_exists is set",
            )
            .at(self.path));
        }
        let elsewhere = self.directories_elsewhere()?;
        check_owner(&*env.fs, self.path, self.path)?;
        elsewhere
            .iter()
            .try_for_each(|directory| check_directory(&*env.fs, self.path, directory))?;
        let was_opened = exists(&*env.fs, &file_name::lock(self.path))?;
        let names = Names::new(env.fs.clone());
        let lock = if self.read_only {
            None
        } else {
            if is_new {
                names.create_directory(self.path)?;
            }
            // That of the WALs only when it is known that none is missing.
            let mut others =
                elsewhere.iter().filter(|other| is_new || other.as_path() != self.wal_directory());
            others.try_for_each(|directory| make_directory(&names, directory))?;
            Some(env.fs.lock(&file_name::lock(self.path))?)
        };
        if is_new {
            self.refuse_stray_files()?;
        }
        let (versions, missing) = self.read_manifest(is_new)?;
        check_files_are_not_here(&*env.fs, self.path, &versions)?;
        self.check_wals(&versions, was_opened, &names)?;
        self.check_direct_io(&versions)?;
        // As in RocksDB: without paranoia a database with missing files opens, and reads of those
        // files fail.
        let mut meter = ProgressMeter::new(self.options.open_progress.clone());
        if self.options.db.paranoid_checks {
            meter.checks_files(&versions);
            manifest::check_files(&versions, &mut || meter.checked_file())?;
        }
        manifest::find_holes(&versions)?;
        let inner = Arc::new(self.assemble(versions));
        let (operation, stage) = (ThreadOperation::DbOpen, ThreadStage::Unknown);
        let details = || (String::new(), Vec::new());
        let _doing = tracking::begin(&inner.context, ThreadType::User, operation, stage, details);
        inner.disk.hold_directory(lock);
        // Who lists the open databases meanwhile may keep the engine for longer than this thread.
        let opened = self.fill(&inner, &elsewhere, missing, meter);
        opened.inspect_err(|error| {
            let log = &inner.context.log;
            log.say(InfoLogLevel::Error, &format!("the database was not opened: {error}"));
            inner.abandon();
        })?;
        Ok(inner)
    }

    /// Makes an engine that has the directory, and nothing in memory yet, one that is open.
    fn fill(
        &self,
        inner: &Arc<DbInner>,
        elsewhere: &BTreeSet<PathBuf>,
        missing: Wanted,
        meter: ProgressMeter,
    ) -> Result<()> {
        inner::join_memory_share(inner);
        open_files::list_as_open(inner);
        let families: Wanted = self.wanted.iter().chain(&missing).cloned().collect();
        inner.context.log.head(self.options, &families);
        if !self.read_only {
            inner.disk.set_hole_size(self.block_size(inner)?);
            inner.disk.open_reserve()?;
            elsewhere.iter().try_for_each(|other| {
                directories::take_directory(&inner.tree, other, || FileNumber(0))
            })?;
        }
        self.recover(inner, missing, meter)
    }

    /// Replays the WALs, makes the families that are `missing`, and puts the directory in order.
    fn recover(&self, inner: &Arc<DbInner>, missing: Wanted, meter: ProgressMeter) -> Result<()> {
        let recovered = inner.replay_wals(meter)?;
        if self.read_only {
            return inner.finish_read_only(recovered);
        }
        inner.finish_recovery(recovered)?;
        if !missing.is_empty() {
            inner.create_families(missing)?;
        }
        if self.writes_options {
            inner.options_file.write_options_file()?;
        }
        inner.jobs.remove_leftovers()?;
        inner.disk.fill_reserve()
    }

    /// Refuses to go on without a WAL that may hold what was acknowledged; `was_opened` for
    /// writing, here, before. Else makes their directory, if it is not there.
    fn check_wals(&self, versions: &VersionSet, was_opened: bool, names: &Names) -> Result<()> {
        let fs = &*self.options.env.fs;
        check_wals_are_not_here(fs, self.path, self.wal_directory(), versions)?;
        let goes_on =
            !was_opened || self.options.wal_recovery_mode == RecoveryMode::SkipAnyCorruptedRecords;
        match check_newest_wal(fs, self.wal_directory(), versions) {
            Err(error) if goes_on && (error.is_corruption() || error.is_not_found()) => {
                tracing::warn!(%error, "opened without the newest WAL");
            }
            outcome => outcome?,
        }
        if self.read_only || self.wal_directory() == self.path {
            Ok(())
        } else {
            make_directory(names, self.wal_directory())
        }
    }

    fn wal_directory(&self) -> &Path {
        match self.options.wal_dir.as_str() {
            "" => self.path,
            elsewhere => Path::new(elsewhere),
        }
    }

    /// The largest block of the file systems that blob files lie in.
    fn block_size(&self, inner: &DbInner) -> Result<u64> {
        let fs = &*self.options.env.fs;
        let mut largest = fs.metadata(&file_name::current(self.path))?.block_size;
        for family in inner.tree.families.read().values() {
            let blobs = family.paths.of_blobs();
            if blobs.as_ref() != self.path {
                largest = largest.max(fs.metadata(blobs)?.block_size);
            }
        }
        Ok(largest)
    }

    /// Refuses a file system that has no direct I/O, if the options ask for it.
    fn check_direct_io(&self, versions: &VersionSet) -> Result<()> {
        let fs = &*self.options.env.fs;
        if self.options.use_direct_reads {
            check_direct_reads(fs, &file_name::current(self.path))?;
        }
        if !self.read_only && self.options.use_direct_io_for_flush_and_compaction {
            let paths = versions.families().map(|family| &family.current.paths);
            let directories: BTreeSet<_> = paths.flat_map(|paths| paths.directories()).collect();
            for directory in directories {
                let probe = file_name::temporary(directory, versions.file_numbers().allocate());
                check_direct_writes(fs, &probe)?;
            }
        }
        Ok(())
    }

    /// The directories for WALs, tables and blob files that are not the database's own, by their
    /// names. Those of families that are to be created are among them.
    fn directories_elsewhere(&self) -> Result<BTreeSet<PathBuf>> {
        let mut elsewhere = BTreeSet::new();
        for (name, family) in &self.wanted {
            let paths = data_paths(self.path, &self.options.db, family)
                .map_err(|error| error.context(format!("column family '{name}'")))?;
            let unknown = paths
                .directories()
                .iter()
                .filter(|directory| !elsewhere.contains(directory.as_ref()));
            elsewhere.extend(unknown.map(|directory| directory.to_path_buf()).collect::<Vec<_>>());
        }
        if !self.options.wal_dir.is_empty() {
            elsewhere.insert(PathBuf::from(&self.options.wal_dir));
        }
        elsewhere.remove(self.path);
        Ok(elsewhere)
    }

    /// Where data lies there, it is not a new one that is wanted.
    fn no_database(&self) -> Error {
        match self.refuse_stray_files() {
            Err(lost) if lost.is_corruption() => {
                let place = lost.path().unwrap_or(self.path);
                Error::invalid_argument(lost.message()).at(place)
            }
            _ if self.read_only => no_database(self.path),
            _ => Error::invalid_argument(
                "there is no database here (CURRENT is missing); set create_if_missing to create one",
            )
            .at(self.path),
        }
    }

    /// WALs, tables and blob files without a MANIFEST are somebody's data: a new database must not
    /// be laid over them, and would remove the files.
    fn refuse_stray_files(&self) -> Result<()> {
        self.refuse_files_of(self.wal_directory(), |kind| matches!(kind, FileKind::Wal(_)))?;
        for (_, family) in &self.wanted {
            for directory in data_paths(self.path, &self.options.db, family)?.directories() {
                self.refuse_files_of(directory, |kind| {
                    matches!(kind, FileKind::Table(_) | FileKind::Blob(_))
                })?;
            }
        }
        self.refuse_files_of(self.path, |kind| {
            matches!(kind, FileKind::Table(_) | FileKind::Blob(_))
        })
    }

    fn refuse_files_of(&self, directory: &Path, is_data: impl Fn(&FileKind) -> bool) -> Result<()> {
        let fs = &self.options.env.fs;
        if !exists(&*self.options.env.fs, directory)? {
            return Ok(());
        }
        for name in fs.list(directory)? {
            let path = directory.join(&name);
            // An empty one is what a power loss can leave of a database whose creation had failed.
            if FileKind::parse(&name).is_some_and(|kind| is_data(&kind))
                && fs.metadata(&path)?.size > 0
            {
                return Err(Error::corruption(
                    "there is data, but no database (CURRENT is missing): restore CURRENT, save the data (flagstone \
                     salvage), or move the .log, .sst and .blob files away",
                )
                .at(path));
            }
        }
        Ok(())
    }

    /// The version set, and the families that are still to be created.
    fn read_manifest(&mut self, is_new: bool) -> Result<(VersionSet, Wanted)> {
        let of_db = &self.options.db;
        let spec =
            |name: &str, family: &ColumnFamilyOptions| family_spec(self.path, of_db, name, family);
        let settings = manifest_settings(of_db);
        let env = self.options.env.clone();
        let existing: HashSet<String> = if is_new {
            HashSet::from([DEFAULT_COLUMN_FAMILY_NAME.to_string()])
        } else {
            existing_families(&env, self.path)?.into_iter().collect()
        };
        let (present, missing): (Wanted, Wanted) =
            self.wanted.drain(..).partition(|(name, _)| existing.contains(name));
        if let Some((name, _)) = missing.first()
            && (self.read_only || !(self.options.db.create_missing_column_families || is_new))
        {
            let error = Error::invalid_argument(format!("Column family not found: {name}"));
            // One that is only read makes none.
            let error =
                if self.read_only { error } else { error.advise(Remedy::CreateMissingFamilies) };
            return Err(error.at(self.path));
        }
        let versions = if is_new {
            let (name, family) = present.first().ok_or_else(|| no_database(self.path))?;
            VersionSet::create(env, self.path, spec(name, family)?, settings)?
        } else {
            let families =
                present.iter().map(|(name, family)| spec(name, family)).collect::<Result<_>>()?;
            let read_only = self.read_only;
            VersionSet::recover(env, self.path, RecoverOptions { families, read_only, settings })?
        };
        self.wanted = present;
        if self.read_only {
            hold_files(&versions, self.path, read_mode(self.options))?;
        }
        Ok((versions, missing))
    }

    fn assemble(&self, versions: VersionSet) -> DbInner {
        let account = Arc::new(MemoryAccount::default());
        let arenas = Arc::new(ArenaPool::accounted(0, account.clone()));
        let mut families = BTreeMap::new();
        // Of two with the same name the first.
        let wanted: HashMap<&str, &ColumnFamilyOptions> =
            self.wanted.iter().rev().map(|(name, family)| (name.as_str(), family)).collect();
        for listed in versions.families() {
            let Some(&options) = wanted.get(listed.name.as_str()) else { continue };
            let order = InternalKeyComparator::new(options.comparator.clone());
            let settings = memtable_settings(&self.options.db, options, &arenas);
            let mem = Arc::new(Generation::new(order, &settings));
            let first = SuperVersion::first(mem.clone(), listed.current.clone())
                .with_history_low(listed.full_history_ts_low.as_deref());
            let owner = versions.obsolete_files().clone();
            let at_commit = AtCommit::of(&self.options.db);
            let family = Family::new(listed.id, &listed.name, options, first, owner, at_commit);
            families.insert(listed.id, FamilyState::new(family, mem, listed.log_number));
        }
        let budget = BudgetRule::new(&self.options.db, self.read_only).with_arenas(&arenas);
        let statistics = Arc::new(Statistics::of_files(self.io_trace.clone()));
        let tables = Arc::new(Tables::new(self.options, account, budget, &statistics));
        let options = Options { open_progress: None, ..self.options.clone() };
        let shared = Shared { tables, arenas, statistics };
        DbInner::new(self.path, options, self.read_only, versions, families, shared)
    }
}
