//! Living a case: every operation is done to the engine and to the model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flagstone::base::{Code, Snapshot};
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::{Env, FileSystem};
use flagstone::options::{
    ColumnFamilyOptions, CompactFilesOptions, CompactRangeOptions, ReadOptions, RecoveryMode, WriteOptions,
};

use super::case::{Case, FAMILIES, World};
use super::journal::{Crash, Journal};
use super::operation::{Durability, Operation, Power};
use super::patience::Patience;
use super::read::Reader;
use crate::crash::{CrashFs, Disk, State, Survival};
use crate::model::{Edit, Family, Model, SINGLE};
use crate::settings::{Chosen, Setting};
use crate::{compare, steps};

const DIRECTORY: &str = "/db";

/// What a life consisted of.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Operations by kind.
    pub operations: BTreeMap<&'static str, u64>,
    /// Changes of the disk.
    pub changes: u64,
}

/// Lives a case from the creation of the database to a last comparison.
///
/// # Panics
/// When the engine says something else than the model, or fails.
pub fn live(case: &Case) -> Tally {
    let mut life = Life::begin(case);
    for operation in &case.operations {
        *life.tally.operations.entry(operation.kind()).or_default() += 1;
        life.opens.store(0, Ordering::Relaxed);
        life.turn += 1;
        life.take(operation);
        life.rest();
    }
    for last in [Operation::Check, Operation::Reopen(Vec::new()), Operation::Check] {
        life.opens.store(0, Ordering::Relaxed);
        life.take(&last);
    }
    life.tally.changes += life.fs.changes() as u64;
    life.tally
}

pub(super) struct Life {
    fs: CrashFs,
    /// Files opened by the operation under way.
    opens: Arc<AtomicU64>,
    env: Env,
    settings: Vec<Setting>,
    /// What they come to, with what was changed while the database ran.
    pub(super) chosen: Chosen,
    pub(super) db: Db,
    pub(super) model: Model,
    pub(super) snapshots: Vec<(Snapshot, Model)>,
    pub(super) readers: Vec<Reader>,
    /// Handles of families that were dropped: writes to them are passed over where asked.
    gone: BTreeMap<String, ColumnFamily>,
    /// Operations so far.
    turn: u64,
    journal: Journal,
    /// The moments of this disk at which the database was there, and was last opened.
    created: usize,
    opened: usize,
    /// When to do background work unasked, and how often in sixteen.
    unasked: Option<(fastrand::Rng, u8)>,
    checkpoints: usize,
    tally: Tally,
}

impl Life {
    fn begin(case: &Case) -> Self {
        let (fs, opens) = (CrashFs::new(), Arc::new(AtomicU64::new(0)));
        let patient = Arc::new(Patience::new(fs.clone(), opens.clone()));
        let (env, unasked) = match case.world {
            World::Threads => (Env::memory().with_fs(patient), None),
            World::Steps { seed, eagerness } => {
                (steps::world(patient, seed), Some((fastrand::Rng::with_seed(seed), eagerness)))
            }
        };
        let chosen = Chosen::new(&env, &case.settings).expect("the options are taken");
        let names = FAMILIES.map(str::to_string);
        let db = Db::open_with_families(DIRECTORY, &chosen.options, &chosen.listed(&names))
            .expect("a new database");
        let families = names.into_iter().map(|name| {
            let reversed = is_reversed(&chosen, &name);
            (name, Family { reversed, ..Family::default() })
        });
        let model = Model { families: families.collect() };
        Self {
            settings: case.settings.clone(),
            journal: Journal::new(model.clone(), chosen.options.atomic_flush),
            created: fs.changes(),
            opened: fs.changes(),
            snapshots: Vec::new(),
            readers: Vec::new(),
            gone: BTreeMap::new(),
            turn: 0,
            checkpoints: 0,
            tally: Tally::default(),
            fs,
            opens,
            env,
            chosen,
            db,
            model,
            unasked,
        }
    }

    /// Background work that nobody asked for.
    fn rest(&mut self) {
        if let Some((random, eagerness)) = &mut self.unasked
            && random.u8(..16) < *eagerness
        {
            self.db.background_step().expect("background work");
        }
    }

    pub(super) fn family(&self, name: &str) -> Option<ColumnFamily> {
        self.model.families.contains_key(name).then(|| self.db.column_family(name).expect("it exists"))
    }

    /// A number below `limit` that differs from operation to operation, for what must make no difference.
    fn any(&self, limit: usize) -> usize {
        let mixed = (self.turn + limit as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed as usize % limit
    }

    /// The snapshot of that index, and what it holds; as of now without an index, or without snapshots.
    pub(super) fn moment(&self, snapshot: Option<usize>) -> (ReadOptions, &Model) {
        let plain = ReadOptions {
            total_order_seek: true,
            verify_checksums: self.any(3) > 0,
            fill_cache: self.any(4) > 0,
            readahead_size: [0, 100, 5000][self.any(5) % 3],
            ..ReadOptions::default()
        };
        match snapshot {
            Some(index) if !self.snapshots.is_empty() => {
                let (snapshot, model) = &self.snapshots[index % self.snapshots.len()];
                let auto_refresh_iterator_with_snapshot = self.any(2) > 0;
                let snapshot = Some(snapshot.clone());
                (ReadOptions { snapshot, auto_refresh_iterator_with_snapshot, ..plain }, model)
            }
            _ => (plain, &self.model),
        }
    }

    fn take(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { durability, edits } => self.write(*durability, edits),
            Operation::Get { family, snapshot, only_cached, keys } => {
                self.get(family, *snapshot, *only_cached, keys);
            }
            Operation::PrefixScan { family, snapshot, key } => self.prefix_scan(family, *snapshot, key),
            Operation::TakeSnapshot => self.snapshots.push((self.db.snapshot(), self.model.clone())),
            Operation::DropSnapshot(index) if !self.snapshots.is_empty() => {
                self.snapshots.swap_remove(index % self.snapshots.len());
            }
            Operation::OpenIterator { family, snapshot, lower, upper } => {
                self.open_iterator(family, *snapshot, lower.as_deref(), upper.as_deref());
            }
            Operation::MoveIterator { index, moves } if !self.readers.is_empty() => {
                let index = index % self.readers.len();
                self.readers[index].walk(moves);
            }
            Operation::DropIterator(index) if !self.readers.is_empty() => {
                self.readers.swap_remove(index % self.readers.len());
            }
            Operation::Flush { family: name, options } => {
                if let Some(family) = self.family(name) {
                    self.db.flush(&family, options).expect("a flush");
                    if options.wait {
                        self.note_flush(name);
                    }
                }
            }
            Operation::FlushAll => {
                self.db.flush_all().expect("a flush");
                self.note_flushes();
            }
            Operation::CompactRange { family, begin, end, options } => {
                self.compact_range(family, begin.as_deref(), end.as_deref(), options);
            }
            Operation::CompactFiles { family, level, tables } => self.compact_files(family, *level, tables),
            Operation::SetOptions { family, changes } => self.set_options(family.as_deref(), changes),
            Operation::CreateFamily(name) => self.create_family(name),
            Operation::DropFamily(name) => self.drop_family(name),
            Operation::Checkpoint => self.checkpoint(),
            Operation::Reopen(settings) => self.reopen(settings),
            Operation::ReadOnly => self.read_only(),
            Operation::Background(steps) => {
                for _ in 0..*steps {
                    self.db.background_step().expect("background work");
                }
            }
            Operation::Idle => self.db.wait_for_compactions().expect("it ends"),
            Operation::Pass(seconds) => {
                if self.unasked.is_some() {
                    self.env.clock.sleep(Duration::from_secs(*seconds));
                }
            }
            Operation::SyncWal => {
                self.db.sync_wal().expect("a sync");
                self.journal.synced(self.fs.changes());
            }
            Operation::FlushWal => {
                self.db.flush_wal(false).expect("a flush of the WAL");
                self.journal.written(self.fs.changes());
            }
            Operation::Crash { power, back } => self.crash(*power, *back),
            Operation::Check => self.check(),
            Operation::DropSnapshot(_) | Operation::MoveIterator { .. } | Operation::DropIterator(_) => {}
        }
    }

    fn write(&mut self, durability: Durability, edits: &[(String, Edit)]) {
        let (mut written, mut batch) = (Vec::new(), WriteBatch::new());
        // What removes keys for single deletions must not be lost where what puts them again is not.
        let mut must_be_logged = false;
        for (name, edit) in edits {
            let Some(family) = self.model.families.get_mut(name) else {
                if let Some(handle) = self.gone.get(name) {
                    compare::add(&mut batch, handle, edit);
                }
                continue;
            };
            let Some(edit) = allowed(family, edit) else { continue };
            must_be_logged |= removes_single(family, &edit);
            family.apply(&edit);
            compare::add(&mut batch, &self.db.column_family(name).expect("it exists"), &edit);
            written.push((name.clone(), edit));
        }
        let sync = durability == Durability::Synced;
        let disable_wal = durability == Durability::Unlogged && !must_be_logged;
        let options = WriteOptions {
            sync,
            disable_wal,
            low_pri: self.any(7) == 0,
            ignore_missing_column_families: true,
            ..WriteOptions::default()
        };
        let begun = self.fs.changes();
        self.db.write_with(&options, batch).expect("a write");
        self.journal.wrote(begun, self.fs.changes(), written, !disable_wal);
        self.note_handed_over();
        if sync {
            self.journal.synced(self.fs.changes());
        }
    }

    /// Without `manual_wal_flush` nothing waits in memory.
    fn note_handed_over(&mut self) {
        if !self.chosen.options.manual_wal_flush {
            self.journal.written(self.fs.changes());
        }
    }

    fn note_flush(&mut self, name: &str) {
        self.journal.flushed(self.fs.changes(), name);
    }

    fn note_flushes(&mut self) {
        let moment = self.fs.changes();
        self.model.families.keys().for_each(|name| self.journal.flushed(moment, name));
    }

    fn compact_range(
        &mut self,
        name: &str,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        options: &CompactRangeOptions,
    ) {
        if let Some(family) = self.family(name) {
            self.db.compact_range(&family, begin, end, options).expect("a compaction");
            self.note_flush(name);
        }
    }

    /// Compacts tables of those that there are, in whatever level they have come to be: it may be that they cannot go there,
    /// or that another compaction is in the way.
    fn compact_files(&mut self, name: &str, level: usize, tables: &[usize]) {
        let Some(family) = self.family(name) else { return };
        let live = self.db.live_files().into_iter();
        let there: Vec<_> = live.filter(|file| file.column_family == name && file.level.is_some()).collect();
        if there.is_empty() {
            return;
        }
        let chosen: Vec<_> = tables.iter().map(|table| there[table % there.len()].number).collect();
        let level = level % family.options().num_levels as usize;
        if let Err(error) = self.db.compact_files(&family, &chosen, level, &CompactFilesOptions::default()) {
            assert!(matches!(error.code(), Code::InvalidArgument | Code::Aborted), "{error}");
        }
    }

    /// Makes one change after the other, those that go together with what is set.
    fn set_options(&mut self, name: Option<&str>, changes: &[(String, String)]) {
        let family = name.map(|name| self.family(name));
        for (option, value) in changes {
            let change = [(option.as_str(), value.as_str())];
            match &family {
                Some(None) => {}
                None => {
                    let mut options = self.chosen.options.clone();
                    if options.set(option, value).and_then(|()| options.validate_for_writing()).is_ok() {
                        self.db.set_db_options(&change).unwrap_or_else(|error| panic!("{change:?}: {error}"));
                        self.chosen.options = options;
                    }
                }
                Some(Some(family)) => {
                    let mut options = self.chosen.family(family.name()).clone();
                    if options.set(option, value).and_then(|()| options.validate_for_writing()).is_ok() {
                        self.db
                            .set_options(family, &change)
                            .unwrap_or_else(|error| panic!("{change:?}: {error}"));
                        self.chosen.own.insert(family.name().to_string(), options);
                    }
                }
            }
        }
    }

    fn create_family(&mut self, name: &str) {
        if self.model.families.contains_key(name) {
            return;
        }
        let begun = self.fs.changes();
        self.db.create_column_family(name, self.chosen.family(name)).expect("a new family");
        let empty = Family { reversed: is_reversed(&self.chosen, name), ..Family::default() };
        self.journal.created(begun, self.fs.changes(), name, empty.reversed);
        self.note_handed_over();
        for (_, model) in &mut self.snapshots {
            model.families.insert(name.to_string(), empty.clone());
        }
        self.model.families.insert(name.to_string(), empty);
    }

    fn drop_family(&mut self, name: &str) {
        if FAMILIES.contains(&name) {
            return;
        }
        let Some(family) = self.family(name) else { return };
        let begun = self.fs.changes();
        self.db.drop_column_family(&family).expect("it may be dropped");
        self.journal.dropped(begun, self.fs.changes(), name);
        self.note_handed_over();
        self.gone.insert(name.to_string(), family);
        self.model.families.remove(name);
        for (_, model) in &mut self.snapshots {
            model.families.remove(name);
        }
    }

    /// Adds settings that go together with those before, and takes back what was changed while the database ran.
    fn choose(&mut self, settings: &[Setting]) {
        for setting in settings {
            let mut with = self.settings.clone();
            with.retain(|other| (&other.family, &other.name) != (&setting.family, &setting.name));
            with.push(setting.clone());
            if Chosen::new(&self.env, &with).is_ok() {
                self.settings = with;
            }
        }
        self.chosen = Chosen::new(&self.env, &self.settings).expect("they go together");
        self.journal.goes_on(self.chosen.options.atomic_flush);
    }

    /// Closes, and opens with other options.
    fn reopen(&mut self, settings: &[Setting]) {
        let keeps_unlogged = !self.chosen.options.avoid_flush_during_shutdown;
        self.snapshots.clear();
        self.gone.clear();
        self.db.close().expect("a clean close");
        // What is open stays valid.
        for reader in &mut self.readers {
            reader.walk_through();
        }
        self.readers.clear();
        self.journal.synced(self.fs.changes());
        if keeps_unlogged {
            self.note_flushes();
        }
        self.choose(settings);
        if keeps_unlogged || !self.journal.has_unlogged() {
            self.db = open(DIRECTORY, &self.chosen, self.model.families.keys());
            self.opened = self.fs.changes();
        } else {
            // What is lost for good cannot be found by a crash that goes back to before.
            self.created = self.fs.changes();
            let found = self.find_again(Crash { at: self.created, is_kept: true });
            self.go_on_from(found);
        }
    }

    /// Opens after a crash, and goes on from what is found.
    fn find_again(&mut self, crash: Crash) -> Model {
        let names = Db::list_column_families(DIRECTORY, &self.chosen.options).expect("a database");
        self.db = open(DIRECTORY, &self.chosen, &names);
        let found = contents(&self.db, &self.chosen).expect("a scan");
        self.journal.check(crash, &found).unwrap_or_else(|wrong| panic!("after a crash: {wrong}"));
        self.opened = self.fs.changes();
        found
    }

    /// Goes on from what was found on a disk that lost something.
    fn go_on_from(&mut self, found: Model) {
        self.journal = Journal::new(found.clone(), self.chosen.options.atomic_flush);
        self.model = found;
    }

    fn crash(&mut self, power: Power, back: usize) {
        self.snapshots.clear();
        self.readers.clear();
        self.gone.clear();
        // The other modes of recovery refuse, or pass over, what a power loss leaves.
        let in_order = self.chosen.options.wal_recovery_mode == RecoveryMode::PointInTimeRecovery;
        let survival = match power {
            Power::Lost if in_order => Survival::Lost,
            Power::Random(seed) if in_order => Survival::Random(seed),
            _ => Survival::Kept,
        };
        // Nor need they bear what was written with another mode.
        let earliest = if in_order { self.created } else { self.opened };
        let at = self.fs.changes().saturating_sub(back).max(earliest);
        // If nothing can be lost, what was not synced may still be lost by a later crash.
        let is_whole = !self.journal.has_unlogged() && !self.chosen.options.manual_wal_flush;
        let is_kill = survival == Survival::Kept && at == self.fs.changes() && is_whole;
        let before = std::mem::take(&mut self.fs);
        self.fs = match is_kill {
            true => before.kill(),
            false => CrashFs::on(Disk::holding(&State::of(&before.after_crash(at, survival)))),
        };
        // The handle goes, with its lock; whatever it still does, it does to another disk, or to none.
        let _ = self.db.close();
        let patient = Patience::new(self.fs.clone(), self.opens.clone());
        self.env = self.env.clone().with_fs(Arc::new(patient));
        self.choose(&[]);
        // The files may be found a second time as they were found the first time.
        let recovery = self.fs.changes();
        let found = self.find_again(Crash { at, is_kept: survival == Survival::Kept });
        if is_kill {
            self.journal.synced(self.fs.changes());
        } else {
            self.tally.changes += before.changes() as u64;
            self.go_on_from(found);
            self.created = recovery;
        }
    }

    /// Reads the files as they are, as after the process was killed.
    fn read_only(&mut self) {
        let listed = self.chosen.listed(self.model.families.keys());
        let opened = Db::open_read_only_with_families(DIRECTORY, &self.chosen.options, &listed);
        let db = match opened {
            // It says that it was overtaken by changes, as often as it looked.
            Err(error) if error.code() == Code::TryAgain && self.unasked.is_none() => return,
            opened => opened.expect("the files open"),
        };
        match contents(&db, &self.chosen) {
            Ok(found) => {
                let killed = Crash { at: self.fs.changes(), is_kept: true };
                let outcome = self.journal.check(killed, &found);
                outcome.unwrap_or_else(|wrong| panic!("read-only: {wrong}"));
            }
            // A compaction may have removed a table meanwhile.
            Err(_) if self.unasked.is_none() => {}
            Err(error) => panic!("read-only: {error}"),
        }
    }

    fn checkpoint(&mut self) {
        self.checkpoints += 1;
        let path = format!("/checkpoint-{}", self.checkpoints);
        self.db.checkpoint(&path).expect("a checkpoint");
        self.note_flushes();
        let mut chosen = self.chosen.clone();
        chosen.options.stand_alone();
        chosen.own.values_mut().for_each(ColumnFamilyOptions::stand_alone);
        let db = open(&path, &chosen, self.model.families.keys());
        compare::check_database(&db, &self.model);
        compare::check_files(&db);
        db.close().expect("a clean close");
        drop(db);
        self.remove_tree(Path::new(&path));
    }

    fn remove_tree(&self, directory: &Path) {
        for name in self.fs.list(directory).expect("a listing") {
            let path = directory.join(name);
            match self.fs.metadata(&path).expect("it was listed").is_directory {
                true => self.remove_tree(&path),
                false => self.fs.remove(&path).expect("a file in memory"),
            }
        }
        self.fs.remove_directory(directory).expect("an empty directory");
    }

    fn check(&mut self) {
        for moment in (0..self.snapshots.len()).map(Some).chain([None]) {
            let (options, model) = self.moment(moment);
            for (name, family) in &model.families {
                let handle = self.family(name).expect("snapshots know those that exist");
                compare::check_scans(&self.db, &handle, family, &options);
            }
        }
        for reader in &mut self.readers {
            reader.walk_through();
        }
        compare::check_files(&self.db);
    }
}

fn is_reversed(chosen: &Chosen, name: &str) -> bool {
    chosen.family(name).comparator.compare(b"a", b"b").is_gt()
}

fn open<'a>(path: &str, chosen: &Chosen, names: impl IntoIterator<Item = &'a String>) -> Db {
    let opened = match chosen.own.is_empty() {
        true => Db::open(path, &chosen.options),
        false => Db::open_with_families(path, &chosen.options, &chosen.listed(names)),
    };
    opened.unwrap_or_else(|error| panic!("opening {path} again: {error}"))
}

fn contents(db: &Db, chosen: &Chosen) -> flagstone::base::Result<Model> {
    let mut model = Model::default();
    for family in db.column_families() {
        let options = ReadOptions { total_order_seek: true, ..ReadOptions::default() };
        let entries = compare::scan(db, &family, &options)?.into_iter().collect();
        let found = Family { entries, reversed: is_reversed(chosen, family.name()) };
        model.families.insert(family.name().to_string(), found);
    }
    Ok(model)
}

/// The edit as the family may be given it: ranges begin before they end, and the contract of single deletions is kept.
fn allowed(family: &Family, edit: &Edit) -> Option<Edit> {
    let is_single = |key: &[u8]| key.first() == Some(&SINGLE);
    match edit {
        Edit::Put { key, .. } => family.may_put(key).then(|| edit.clone()),
        Edit::SingleDelete { key } => family.may_single_delete(key).then(|| edit.clone()),
        Edit::Delete { key } | Edit::Merge { key, .. } => (!is_single(key)).then(|| edit.clone()),
        Edit::DeleteRange { begin, end } if family.is_before(end, begin) => {
            Some(Edit::DeleteRange { begin: end.clone(), end: begin.clone() })
        }
        Edit::DeleteRange { .. } => Some(edit.clone()),
    }
}

fn removes_single(family: &Family, edit: &Edit) -> bool {
    match edit {
        Edit::SingleDelete { .. } => true,
        Edit::DeleteRange { begin, end } => {
            family.keys_between(begin, end).iter().any(|key| key.first() == Some(&SINGLE))
        }
        _ => false,
    }
}
