//! Following a database that another process writes: a secondary instance, or a follower, which
//! reads no WALs.
//!
//! **Algorithm.** What readers see is a *state*: an engine open for reading, which never changes.
//! Catching up makes the next state out of what the last one had and what is new, and takes time
//! for that alone:
//! 1. Read on in the MANIFEST ([`ManifestTail`]), and open and lock the files that it names by now.
//!    A file stays open as long as any state has it (`env/followed.rs`).
//! 2. Make an engine of these versions. It shares tables, caches and memtables with the states
//!    before; a memtable goes when the log number of its family has passed its WAL.
//! 3. Look at the MANIFEST again. If it has changed, go on with step 1.
//! 4. Read on in the WALs into the memtables (`wals`).
//! 5. If no family has come meanwhile, and no WAL was written over, this is one state of the
//!    database, and readers get it. Otherwise go on with step 1.
//!
//! **Proof.** A writer removes a file, punches a hole into it, or writes a WAL over, only after an
//! edit of the MANIFEST has made that superfluous. So, where the MANIFEST ends in step 3 where it
//! ended in step 1, all that it needs was there in between, and is open: files that are missing in
//! step 1 are lost; no WAL was removed that has writes of any family behind its log number. A WAL
//! that is removed while it is read in step 4 stays as it is. One that is used again gets another
//! name before it is written over, and is not taken in step 5. What precedes is what an opening
//! reads (see `moving`). Steps 1 to 3 are short, so that few rounds meet an edit in them.
//!
//! States share memtables that still grow: a state sees the sequence numbers up to its own last
//! one, and what is added is behind that (`wals` says what happens otherwise).
//!
//! After an error readers keep the state that they have. If memtables may then have a part of
//! something, the next call reads MANIFEST and WALs anew; tables stay open.
//!
//! **Thread safety.** One thread catches up at a time. Readers take no lock for the state.

mod directory;
mod follower;
mod refresh;
mod secondary;
mod wals;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use crate::base::sync::{ArcSwap, Mutex, Rank, ranked};
use crate::base::{
    Code, ColumnFamilyId, Error, FileNumber, InternalKeyComparator, Remedy, Result, SequenceNumber,
    Sometimes,
};
use crate::cache::MemoryAccount;
use crate::db::DbInner;
use crate::db::budget::BudgetRule;
use crate::db::family::generation::Generation;
use crate::db::family::{AtCommit, Family, SuperVersion};
use crate::db::handle::Db;
use crate::db::inner::Shared;
use crate::db::open_files;
use crate::db::opening::following::wals::WalTail;
use crate::db::opening::open::no_database;
use crate::db::settings::{data_paths, memtable_settings};
use crate::db::tables::{Tables, of_named_file, read_mode};
use crate::db::tree::damage::note_suspects;
use crate::db::tree::directories::is_database;
use crate::db::tree::following::{self, FollowedMemtables};
use crate::db::tree::state::LiveWal;
use crate::env::{
    FileSystem, FollowedFiles, IoMode, LinkedFiles, RandomAccessFile, is_out_of_descriptors,
};
use crate::manifest::{FamilySpec, ManifestTail, VersionSet, WantedFamilies};
use crate::memtable::ArenaPool;
use crate::options::{ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY_NAME, Options};

pub use directory::check_no_follower;
pub use follower::Follower;
pub use secondary::Secondary;

/// How often a state is looked for while the MANIFEST changes.
const ROUNDS: usize = 1000;

/// The state of a database that another process writes, and what the next one is made of.
struct Following {
    tail: Mutex<Tail>,
    now: ArcSwap<Db>,
    /// Why the last attempt to catch up failed, if it did.
    failure: Mutex<Option<Error>>,
}

/// What the next state is made of.
struct Tail {
    path: PathBuf,
    /// Their file system is `files`.
    options: Options,
    choice: Arc<Choice>,
    files: Arc<FollowedFiles>,
    /// A follower's own names of the tables and blob files. It reads no WALs.
    links: Option<Arc<LinkedFiles>>,
    shared: Shared,
    manifest: ManifestTail,
    wals: WalTail,
    memtables: BTreeMap<ColumnFamilyId, FollowedMemtables>,
    /// Memtables of any state that name blob files.
    with_blobs: Vec<Weak<Generation>>,
    /// The MANIFEST has changed since the last state.
    has_changed: bool,
    /// The last sequence number of the states that share the memtables.
    seen: SequenceNumber,
    /// That of the last state.
    last_sequence: SequenceNumber,
    /// Memtables may have a part of something.
    is_broken: bool,
}

/// Which families are opened, and how.
struct Choice {
    named: HashMap<String, ColumnFamilyOptions>,
    /// All others, also those that are created later.
    others: Option<ColumnFamilyOptions>,
}

impl Choice {
    fn options_of(&self, name: &str) -> Option<&ColumnFamilyOptions> {
        self.named.get(name).or(self.others.as_ref())
    }
}

impl Choice {
    /// These families, each with its own options; `default` may be left out and then has
    /// `options.cf`. All `others` have these options, also those that are created later.
    fn new(
        options: &Options,
        families: &[(&str, ColumnFamilyOptions)],
        others: Option<ColumnFamilyOptions>,
    ) -> Self {
        // Of two with the same name the first.
        let mut named: HashMap<String, ColumnFamilyOptions> = families
            .iter()
            .rev()
            .map(|(name, family)| ((*name).to_string(), family.clone()))
            .collect();
        named.entry(DEFAULT_COLUMN_FAMILY_NAME.to_string()).or_insert_with(|| options.cf.clone());
        Self { named, others }
    }

    /// All families, also those that are created later, with `options.cf`.
    fn all(options: &Options) -> Self {
        Self { named: HashMap::new(), others: Some(options.cf.clone()) }
    }

    /// The options of the families as the database's own change them.
    ///
    /// # Errors
    /// `InvalidArgument` if an option of the database or of a family is out of range.
    fn checked(self, options: &Options) -> Result<Self> {
        options.validate()?;
        options.check_wal_codec()?;
        let within = |family: ColumnFamilyOptions| family.within(&options.db);
        let choice = Self {
            named: self.named.into_iter().map(|(name, it)| (name, within(it))).collect(),
            others: self.others.map(within),
        };
        for (name, family) in &choice.named {
            let checked = ColumnFamilyOptions::validate(family);
            checked.map_err(|error| error.context(format!("column family '{name}'")))?;
        }
        Ok(choice)
    }
}

impl Following {
    /// The first state.
    fn begin(mut tail: Tail) -> Result<Self> {
        let state = tail.catch_up()?.ok_or_else(|| no_database(&tail.path))?;
        Ok(Self {
            tail: ranked(Rank::Following, tail),
            now: ArcSwap::from_pointee(state),
            failure: Mutex::default(),
        })
    }

    /// The last state. Cheap.
    fn now(&self) -> Db {
        (**self.now.load()).clone()
    }

    /// Goes on to what the other process has written by now. Returns whether there was anything
    /// new.
    fn catch_up(&self) -> Result<bool> {
        let mut tail = self.tail.lock();
        // A report of damage keeps the state that met it, and so its files.
        note_suspects(&self.now().inner().tree);
        let caught_up = tail.catch_up();
        *self.failure.lock() = caught_up.as_ref().err().cloned();
        let state = caught_up?;
        let is_new = state.is_some();
        if let Some(state) = state {
            drop(self.now.swap(Arc::new(state)));
        }
        tail.sweep(&self.now());
        Ok(is_new)
    }

    /// Why the last call of [`Self::catch_up`] failed, if it did.
    fn failure(&self) -> Option<Error> {
        self.failure.lock().clone()
    }
}

/// What came of one round.
enum Round {
    /// There is nothing new.
    Nothing,
    /// The next state.
    State(Db),
    /// The MANIFEST has changed meanwhile.
    Changed,
}

impl Tail {
    fn begin(
        path: &Path,
        options: &Options,
        choice: Choice,
        links: Option<Arc<LinkedFiles>>,
    ) -> Result<Self> {
        options.env.fs.raise_open_files();
        let env = options.env.clone();
        let env = match &links {
            Some(links) => env.with_fs(links.clone()),
            None => env,
        };
        let files = Arc::new(FollowedFiles::new(&env));
        let options =
            Options { env: env.with_fs(files.clone()), open_progress: None, ..options.clone() };
        let choice = Arc::new(choice);
        let manifest = match open_manifest(path, &options, &choice) {
            Err(_) if !is_database(&*options.env.fs, path)? => return Err(no_database(path)),
            opened => opened?,
        };
        let missing = manifest.missing(choice.named.keys().map(String::as_str));
        if let Some(name) = missing {
            let error = Error::invalid_argument(format!("Column family not found: {name}"));
            return Err(error.at(path));
        }
        let account = Arc::new(MemoryAccount::default());
        let arenas = Arc::new(ArenaPool::accounted(0, account.clone()));
        let budget = BudgetRule::new(&options.db, true).with_arenas(&arenas);
        let statistics = Arc::default();
        let tables = Arc::new(Tables::new(&options, account, budget, &statistics));
        Ok(Self {
            path: path.to_path_buf(),
            options,
            choice,
            files,
            links,
            shared: Shared { tables, arenas, statistics },
            manifest,
            wals: WalTail::default(),
            memtables: BTreeMap::new(),
            with_blobs: Vec::new(),
            has_changed: true,
            seen: 0,
            last_sequence: 0,
            is_broken: false,
        })
    }

    /// Reads MANIFEST and WALs from their beginnings.
    fn begin_anew(&mut self) -> Result<()> {
        let opened = open_manifest(&self.path, &self.options, &self.choice);
        let mut manifest = opened.map_err(|error| self.if_gone(error))?;
        manifest.go_on_from(&self.manifest)?;
        (self.manifest, self.wals, self.memtables) =
            (manifest, WalTail::default(), BTreeMap::new());
        (self.has_changed, self.seen, self.is_broken) = (true, 0, false);
        Ok(())
    }

    /// The next state, if there is anything new.
    fn catch_up(&mut self) -> Result<Option<Db>> {
        if self.is_broken {
            self.begin_anew()?;
        }
        for _ in 0..ROUNDS {
            match self.round()? {
                Round::Nothing => return Ok(None),
                Round::State(state) => return Ok(Some(state)),
                Round::Changed => Sometimes::FollowerWentOn.reached(),
            }
        }
        let message = "the database changes too fast to be followed; try again";
        Err(Error::new(Code::TryAgain, message).at(&self.path))
    }

    fn round(&mut self) -> Result<Round> {
        self.advance()?;
        let versions = self.manifest.versions().inspect_err(|_| self.is_broken = true)?;
        let directory = self.wal_directory();
        let names = match self.links {
            None => self.options.env.fs.list(&directory)?,
            Some(_) => Vec::new(),
        };
        let kept_from = versions.min_log_number_to_keep();
        self.wals.look(&self.files, &directory, &names, kept_from)?;
        if !self.has_changed && !self.wals.has_more()? {
            return Ok(Round::Nothing);
        }
        if let Err(error) = self.hold(&versions) {
            // What the MANIFEST needs no longer may have gone.
            let is_gone = error.is_not_found();
            return if is_gone && self.advance()? { Ok(Round::Changed) } else { Err(gone(error)) };
        }
        if self.advance()? {
            return Ok(Round::Changed);
        }
        let largest = versions.last_sequence();
        let families = self.manifest.max_column_family();
        let inner = Arc::new(self.assemble(versions));
        let read = self.wals.read(&inner, self.seen);
        self.memtables = following::followed_memtables(&inner.tree);
        self.note_blobs(&inner);
        if let Err(error) = read {
            self.is_broken = true;
            // What it met may be what another WAL is written over.
            return if self.advance()? {
                self.begin_anew().map(|()| Round::Changed)
            } else {
                Err(error)
            };
        }
        let has_changed = self.advance()?;
        if self.manifest.max_column_family() != families {
            // What WALs have for a family that was not known yet was passed over.
            return self.begin_anew().map(|()| Round::Changed);
        }
        // What history waits for may have gone with the change.
        let is_doubtful = || -> Result<bool> {
            Ok(self.wals.waits().is_some() || !self.wals.are_their_own(&self.files)?)
        };
        if has_changed && is_doubtful()? {
            return Ok(Round::Changed);
        }
        self.check_families_agree(&inner)?;
        inner.check_prepared(self.wals.prepared())?;
        self.last_sequence = self.last_sequence.max(self.wals.last_sequence()).max(largest);
        let state = self.show(inner)?;
        self.has_changed = has_changed;
        Ok(Round::State(state))
    }

    /// Hands a state to readers.
    fn show(&mut self, inner: Arc<DbInner>) -> Result<Db> {
        let live = self.wals.sizes()?.into_iter();
        let live = live.map(|(number, bytes)| LiveWal { number, bytes, created_here: false });
        inner.pipeline.set_last_sequence(self.last_sequence);
        inner.tree.show_recovered(live.collect());
        self.seen = self.last_sequence;
        self.forget_what_is_closed(&inner);
        open_files::list_as_open(&inner);
        Ok(Db::from_inner(inner))
    }

    /// Reads on in the MANIFEST. Returns whether there was anything new.
    fn advance(&mut self) -> Result<bool> {
        let mut looks = 0;
        loop {
            match self.manifest.advance() {
                // CURRENT names another one by now.
                Err(error) if error.is_not_found() && looks < ROUNDS => looks += 1,
                Err(error) => {
                    self.is_broken = true;
                    return Err(self.if_gone(error));
                }
                Ok(has_any) => {
                    self.has_changed |= has_any;
                    return Ok(has_any);
                }
            }
        }
    }

    /// Says so where a file is missing because there is no database any more.
    fn if_gone(&self, error: Error) -> Error {
        let is_gone = error.is_not_found()
            && is_database(&*self.options.env.fs, &self.path).is_ok_and(|is_there| !is_there);
        if is_gone { error.context("the database that is followed is gone") } else { error }
    }

    /// Removes a follower's names of files that no state has open; `now` is the newest.
    fn sweep(&mut self, now: &Db) {
        let Some(links) = self.links.clone() else { return };
        // Readers of an earlier state that is gone may have opened blob files for all.
        self.forget_what_is_closed(now.inner());
        links.sweep(&self.files.open_paths());
    }

    fn wal_directory(&self) -> PathBuf {
        match self.options.wal_dir.as_str() {
            "" => self.path.clone(),
            elsewhere => PathBuf::from(elsewhere),
        }
    }

    /// Opens the files of these versions that are not open yet.
    fn hold(&self, versions: &VersionSet) -> Result<()> {
        let (fs, mode) = (&*self.options.env.fs, read_mode(&self.options));
        for version in versions.families().map(|family| &family.current) {
            for (_, table) in version.files().filter(|(_, table)| !table.is_held()) {
                let path = table.path();
                let file = match open(fs, &path, mode) {
                    // LevelDB's name for a table.
                    Err(error) if error.is_not_found() => {
                        let file = open(fs, &path.with_extension("ldb"), mode);
                        let file = file.map_err(|_| error)?;
                        table.note_leveldb_name();
                        file
                    }
                    opened => opened?,
                };
                let size = file.size()?;
                if size != table.meta.size && self.options.db.paranoid_checks {
                    return Err(Error::corruption(format!(
                        "Sst file size mismatch: the MANIFEST records {} bytes, the file has {size}",
                        table.meta.size
                    ))
                    .at(&path));
                }
                table.hold(file);
            }
            let blobs = version.blob_files.values().filter(|blob| !blob.file.is_held());
            for blob in blobs {
                blob.file.hold(open(fs, &blob.file.path(), mode)?);
            }
        }
        Ok(())
    }

    /// An engine of these versions, with the memtables that there are by now.
    fn assemble(&mut self, versions: VersionSet) -> DbInner {
        let mut families = BTreeMap::new();
        let at_commit = AtCommit::of(&self.options.db);
        for listed in versions.families() {
            let options = self.choice.options_of(&listed.name);
            let Some(options) = options else { continue };
            let settings = memtable_settings(&self.options.db, options, &self.shared.arenas);
            let order = InternalKeyComparator::new(options.comparator.clone());
            let fresh = || Arc::new(Generation::new(order, &settings));
            let memtables = match self.memtables.remove(&listed.id) {
                Some(known) => known.without_flushed(listed.log_number, fresh),
                None => FollowedMemtables::new(fresh(), self.wals.current()),
            };
            let first = SuperVersion::first(memtables.mem().clone(), listed.current.clone())
                .with_history_low(listed.full_history_ts_low.as_deref());
            let owner = versions.obsolete_files().clone();
            let family = Family::new(listed.id, &listed.name, options, first, owner, at_commit);
            families.insert(listed.id, memtables.into_state(family));
        }
        let (options, shared) = (self.options.clone(), self.shared.clone());
        DbInner::new(&self.path, options, true, versions, families, shared).one_of_many()
    }

    /// Where history waits for something, no family may have tables from behind that.
    fn check_families_agree(&self, inner: &DbInner) -> Result<()> {
        let Some((wal, error)) = self.wals.waits() else { return Ok(()) };
        let Some(family) = inner.tree.family_ahead_of(*wal) else { return Ok(()) };
        let why = format!("column family '{family}' is ahead of what WAL {wal} holds");
        Err(error.clone().context(why))
    }

    fn note_blobs(&mut self, inner: &DbInner) {
        let known = |mem: &Arc<Generation>, list: &[Weak<Generation>]| {
            list.iter().any(|known| known.as_ptr() == Arc::as_ptr(mem))
        };
        self.with_blobs.retain(|mem| mem.strong_count() > 0);
        for mem in following::memtables_with_blobs(&inner.tree) {
            if !known(&mem, &self.with_blobs) {
                self.with_blobs.push(Arc::downgrade(&mem));
            }
        }
    }

    /// Closes blob files that neither this state nor a memtable of an earlier one names. Versions
    /// of earlier ones keep their own files open, and open them again.
    fn forget_what_is_closed(&mut self, inner: &DbInner) {
        let mut named: BTreeSet<FileNumber> = following::blob_files_of_versions(&inner.tree);
        let alive = self.with_blobs.iter().filter_map(Weak::upgrade);
        named.extend(alive.flat_map(|mem| mem.blobs.numbers()));
        self.shared.tables.retain_blob_files(|number| named.contains(&number));
        self.files.forget_closed();
    }
}

/// Reads the MANIFEST that CURRENT names; that may be replaced meanwhile.
fn open_manifest(path: &Path, options: &Options, choice: &Arc<Choice>) -> Result<ManifestTail> {
    let (env, wanted) = (&options.env, wanted(path, options, choice));
    let mut looks = 0;
    loop {
        match ManifestTail::open(env.clone(), path, wanted.clone()) {
            Err(error) if error.is_not_found() => {
                if !is_database(&*env.fs, path)? {
                    return Err(error);
                }
                looks += 1;
                if looks == ROUNDS {
                    return Err(error.advise(Remedy::RestoreManifest));
                }
            }
            opened => return opened,
        }
    }
}

fn wanted(path: &Path, options: &Options, choice: &Arc<Choice>) -> WantedFamilies {
    let (path, settings, choice) = (path.to_path_buf(), options.db.clone(), choice.clone());
    Arc::new(move |name| {
        let Some(family) = choice.options_of(name) else { return Ok(None) };
        let paths = data_paths(&path, &settings, family)
            .map_err(|error| error.context(format!("column family '{name}'")))?;
        Ok(Some(FamilySpec {
            name: name.to_string(),
            comparator: family.comparator.clone(),
            persists_timestamps: family.persist_user_defined_timestamps,
            paths,
            num_levels: family.sanitized().num_levels as usize,
        }))
    })
}

fn open(fs: &dyn FileSystem, path: &Path, mode: IoMode) -> Result<Arc<dyn RandomAccessFile>> {
    fs.open_random_access(path, mode).map_err(|error| {
        if is_out_of_descriptors(&error) {
            let remedy = Remedy::HoldAllFiles { limit: fs.raise_open_files(), wanted: 0 };
            error.advise(remedy)
        } else {
            error
        }
    })
}

/// The error of a file that the MANIFEST names still.
fn gone(error: Error) -> Error {
    of_named_file(error)
}
