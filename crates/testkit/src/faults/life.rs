//! An application that goes on whatever its database says, on a disk that fails.
//!
//! It notes what it was told, and checks at once: a read is right or an error; every error can be
//! traced to the fault that was injected; a full disk never poisons; a failed sync does, and the
//! refusals name the file.

use std::sync::Arc;

use flagstone::base::{Error, Result, Snapshot, SubCode};
use flagstone::db::{ColumnFamily, Db, Iter, Ticker};
use flagstone::env::Env;
use flagstone::options::{CompactRangeOptions, Options, ReadOptions, WriteOptions};

use super::judge;
use super::past::{self, Batch, Fate, HistoryEpoch, LASTING, Moment, Passing, Unlogged};
use super::two_phase::{self, Way};
use crate::fault::{Call, Failure, FaultFs, Injection, Plan, Sort, sort_of};
use crate::model::Edit;
use crate::{CrashFs, Family, compare, fakes, remote, settings, steps};

/// Where the database lies; a checkpoint's path begins otherwise.
pub const DATABASE: &str = "/db";

/// Where WALs lie, if not there.
const WAL_DIRECTORY: &str = "/wal";

/// They count failures that no call returns.
const PUT_OFF: [Ticker; 5] = [
    Ticker::TablesNotOpened,
    Ticker::RemovalsPutOff,
    Ticker::OptionsFilesPutOff,
    Ticker::FlushesPutOff,
    Ticker::RemoteCompactionsFailed,
];

/// What a write is called that waits for its sync.
const SYNCED_WRITE: &str = "synced write";

/// An open cursor of `default`, what it must show, and where it stands.
struct Reader {
    iter: Iter,
    expected: compare::Entries,
    next: usize,
}

/// The application.
pub struct Life {
    /// The disk underneath.
    pub disk: CrashFs,
    /// The file system that fails.
    pub fs: FaultFs,
    /// What the database is opened with.
    pub options: Options,
    /// The open database.
    pub db: Option<Db>,
    /// What was asked for, and what was answered.
    pub past: HistoryEpoch,
    /// The errors that calls returned.
    pub heard: Vec<String>,
    /// For the application's own choices.
    pub random: fastrand::Rng,
    plan: Plan,
    snapshots: Vec<(Snapshot, Family)>,
    readers: Vec<Reader>,
    /// Failures of the file system that the life has looked at.
    seen: usize,
    /// Whether a sync of a WAL has failed in this process.
    pub(super) wal_is_lost: bool,
    /// Whether anything has failed in this process after which the database may accept nothing any
    /// more.
    may_be_poisoned: bool,
    /// The batches of earlier processes, while it is not known which of them took place.
    inherited: Option<usize>,
    /// How batches are written.
    pub way: Way,
}

impl Life {
    /// A new disk, and options changed as said.
    pub fn new(seed: u64, changes: &[(&str, &str)]) -> Self {
        let disk = CrashFs::new();
        let fs = FaultFs::above(&disk);
        let mut options = settings::tiny(&steps::world(Arc::new(fs.clone()), seed));
        settings::set(&mut options, changes);
        Self {
            disk,
            fs,
            options,
            db: None,
            past: HistoryEpoch::default(),
            heard: Vec::new(),
            random: fastrand::Rng::with_seed(seed),
            plan: Plan::Nothing,
            snapshots: Vec::new(),
            readers: Vec::new(),
            seen: 0,
            wal_is_lost: false,
            may_be_poisoned: false,
            inherited: None,
            way: Way::Whole,
        }
    }

    /// Lets calls fail from now on.
    pub fn begin(&mut self, plan: Plan) {
        self.plan = plan;
        self.heard.clear();
        self.fs.plan(plan);
    }

    /// No call fails any more.
    pub fn heal(&mut self) {
        self.fs.heal();
    }

    /// The options with which a healthy world opens the database.
    pub fn options_in(&self, env: Env) -> Options {
        Options { env, ..self.options.clone() }
    }

    pub(super) fn now(&self) -> Moment {
        self.disk.changes()
    }

    /// Notes what a call returned.
    pub fn hear<T>(&mut self, what: &str, outcome: Result<T>) -> Option<T> {
        let is_poisoned = matches!(&outcome, Err(error) if error.subcode() == SubCode::Poisoned);
        let outcome = match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                self.judge(what, &error);
                self.heard.push(format!("{what}: {error}"));
                None
            }
        };
        self.look_for_failed_syncs(what);
        let said = self.heard.last();
        assert!(
            !is_poisoned || self.may_be_poisoned,
            "a full disk poisons, {:?}: {said:?}",
            self.fs.failed()
        );
        outcome
    }

    /// An error must be the fault that was injected, or follow from it.
    fn judge(&self, what: &str, error: &Error) {
        let failed = self.fs.failed();
        assert!(!failed.is_empty(), "{what} fails on a sound disk: {error}");
        let is_short = failed.iter().any(|failure| failure.injection == Injection::Short);
        let is_cut = error.is_corruption() || error.message().contains("up to the file's size");
        let is_traced = error.to_string().contains("(injected)") || is_short && is_cut;
        assert!(is_traced, "{what} says something else than what happened, {failed:?}: {error}");
        if matches!(self.plan, Plan::Full { .. }) {
            assert_eq!(error.subcode(), SubCode::NoSpace, "{what} on a full disk: {error}");
        }
    }

    /// After a failed sync of the database's own files nothing is acknowledged, and the refusal
    /// names the file. A full disk is survived where the data can be written to another file.
    fn look_for_failed_syncs(&mut self, what: &str) {
        let failed = self.fs.failed();
        let is_own = |failure: &Failure| {
            let inside = [DATABASE, WAL_DIRECTORY].iter().any(|own| failure.path.starts_with(own));
            // What a worker has not synced is written again, by the database.
            let of_worker = failure.path.iter().any(|part| part == "remote_compactions");
            failure.call == Call::Sync && inside && !of_worker
        };
        let first = failed[self.seen..].iter().find(|failure| {
            let fatal_if_full = sort_of(&failure.path) == Sort::Wal;
            is_own(failure)
                && matches!(
                    sort_of(&failure.path),
                    Sort::Wal | Sort::Manifest | Sort::Table | Sort::Blob
                )
                && (failure.injection != Injection::NoSpace || fatal_if_full)
        });
        let is_wal = |failure: &Failure| is_own(failure) && sort_of(&failure.path) == Sort::Wal;
        self.wal_is_lost |= failed[self.seen..].iter().any(is_wal);
        let may_poison = |failure: &Failure| judge::may_poison(failure, what == SYNCED_WRITE);
        self.may_be_poisoned |= failed[self.seen..].iter().any(may_poison);
        let is_first_failure = self.seen == 0 && failed.len() == 1;
        let first = first.cloned();
        self.seen = failed.len();
        let (Some(first), Some(db)) = (first, self.db.clone()) else { return };
        // A table that is brought in is not the database's before it is synced.
        let is_brought_in = what == "ingest" && sort_of(&first.path) == Sort::Table;
        if what == "close" || is_brought_in {
            return;
        }
        let Err(error) = db.put("refused", "") else {
            panic!("a write is acknowledged after a failed sync of {first:?}");
        };
        assert_eq!(error.subcode(), SubCode::Poisoned, "after a failed sync of {first:?}: {error}");
        if is_first_failure {
            assert_eq!(error.path(), Some(&*first.path), "the refusal names the file: {error}");
        }
    }

    /// What became of a call that changes something.
    pub(super) fn fate<T>(outcome: &Result<T>) -> Fate {
        match outcome {
            Ok(_) => Fate::Acknowledged,
            Err(error) if error.subcode() == SubCode::Poisoned => Fate::Refused,
            Err(_) => Fate::Unknown,
        }
    }

    /// Opens the database, with the families that last.
    pub fn open(&mut self) -> bool {
        let opened = Db::open(DATABASE, &self.options);
        let Some(db) = self.hear("open", opened) else { return false };
        self.db = Some(db.clone());
        self.wal_is_lost = false;
        if db.column_family(LASTING[1]).is_none() {
            let created = db.create_column_family(LASTING[1], &self.options.cf);
            self.hear("create the second family", created);
        }
        two_phase::settle(self);
        self.inherited = Some(self.past.batches.len());
        self.settle_past();
        true
    }

    /// Finds out what of the earlier processes' work took place; whether that is known.
    fn settle_past(&mut self) -> bool {
        let Some(inherited) = self.inherited else { return true };
        let Some(mut found) = self.call("look for marks", |db, _| judge::marks(db, LASTING[0]))
        else {
            return false;
        };
        found.truncate(inherited);
        self.past.settle(&found, inherited, self.now());
        self.inherited = None;
        true
    }

    /// Opens, and once more if that failed: a fault that has passed must not stay behind.
    pub fn open_twice(&mut self) -> bool {
        self.open() || self.open()
    }

    /// Closes the database, if it is open.
    pub fn close(&mut self) {
        self.readers.clear();
        self.snapshots.clear();
        let Some(db) = self.db.take() else { return };
        let closed = db.close();
        if self.hear("close", closed).is_some() {
            self.past.all_durable(self.now());
        }
        self.hear_counted(&db);
        self.new_process();
    }

    /// The process dies: what was not written is gone, and nobody closes anything.
    pub fn give_up(&mut self) {
        self.readers.clear();
        self.snapshots.clear();
        self.fs.kill();
        if let Some(db) = self.db.take() {
            self.hear_counted(&db);
        }
        self.new_process();
    }

    /// Notes failures that no call returns, since nothing depends on them: they are counted.
    fn hear_counted(&mut self, db: &Db) {
        for ticker in PUT_OFF {
            let count = db.statistics().get(ticker);
            if count > 0 {
                self.heard.push(format!("{}: {count}", ticker.name()));
            }
        }
        self.heard
            .extend(db.damaged_files().iter().map(|file| format!("a file was set aside: {file}")));
    }

    fn new_process(&mut self) {
        self.past.end_process();
        self.fs = self.fs.new_process();
        (self.wal_is_lost, self.may_be_poisoned) = (false, false);
        self.options.env.fs = fakes::around(Arc::new(self.fs.clone()));
        remote::follow(&mut self.options);
    }

    /// The open database, for a call whose outcome is heard.
    pub fn call<T>(&mut self, what: &str, work: impl FnOnce(&Db, &Self) -> Result<T>) -> Option<T> {
        let db = self.db.clone()?;
        let outcome = work(&db, self);
        self.hear(what, outcome)
    }

    /// The edits of the next batch, with its marks.
    pub(super) fn edits(&mut self, value_length: usize, unlogged: bool) -> Vec<(String, Edit)> {
        let number = self.past.batches.len();
        let mut names: Vec<String> =
            past::marked(unlogged).iter().map(|name| (*name).to_string()).collect();
        let db = self.db.as_ref().expect("only an open database is written to");
        let passing =
            self.past.passing.keys().filter(|name| !unlogged && db.column_family(name).is_some());
        names.extend(passing.cloned());
        let mut edits = Vec::new();
        for _ in 0..self.random.usize(1..4) {
            let name = names[self.random.usize(..names.len())].clone();
            let key = format!("k{:03}", self.random.u32(..60)).into_bytes();
            let edit = match self.random.u8(..16) {
                0 => Edit::Delete { key },
                1..=3 => Edit::Merge { key, operand: number.to_string().into_bytes() },
                4 => Edit::DeleteRange { end: [&key[..], b"~"].concat(), begin: key },
                5 => {
                    let begin = format!("k{:03}", self.random.u32(..60)).into_bytes();
                    let (begin, end) = if begin < key { (begin, key) } else { (key, begin) };
                    Edit::DeleteRange { begin, end }
                }
                _ => Edit::Put { key, value: self.value(value_length) },
            };
            edits.push((name, edit));
        }
        // Put once, and deleted as what was put once.
        let single = |number: usize| format!("s{number:05}").into_bytes();
        let once = Edit::Put { key: single(number), value: self.value(value_length) };
        edits.push((LASTING[0].to_string(), once));
        if let Some(before) = number.checked_sub(3) {
            edits.push((LASTING[0].to_string(), Edit::SingleDelete { key: single(before) }));
        }
        for name in past::marked(unlogged) {
            let value = number.to_string().into_bytes();
            edits.push(((*name).to_string(), Edit::Put { key: past::mark(number), value }));
        }
        edits
    }

    fn value(&mut self, length: usize) -> Vec<u8> {
        let length = self.random.usize(..=length);
        (0..length).map(|_| self.random.u8(b'a'..=b'p')).collect()
    }

    /// Writes one batch over several families.
    pub fn write(&mut self, sync: bool, value_length: usize) -> bool {
        let Some(db) = self.db.clone() else { return false };
        if db.column_family(LASTING[1]).is_none() {
            return false;
        }
        let number = self.past.batches.len();
        let unlogged = match self.past.unlogged {
            Unlogged::None => false,
            Unlogged::Some => !sync && self.random.u8(..3) == 0,
            Unlogged::All => true,
        };
        let edits = self.edits(value_length, unlogged);
        let begun = self.now();
        let sync = sync && !unlogged;
        let options = WriteOptions { sync, disable_wal: unlogged, ..WriteOptions::default() };
        let has_range = edits.iter().any(|(_, edit)| matches!(edit, Edit::DeleteRange { .. }));
        let outcome = match &mut self.way {
            Way::Transactions if !has_range => by_transaction(&db, &edits, &options),
            Way::TwoPhases(known) if !has_range => {
                let batch = compare::to_batch(&db, &edits);
                two_phase::write(&db, number, batch, &options, known)
            }
            _ => db.write_with(&options, compare::to_batch(&db, &edits)),
        };
        let fate = Self::fate(&outcome);
        assert!(
            fate != Fate::Acknowledged || !self.wal_is_lost,
            "batch {number} is acknowledged after a failed sync of a WAL"
        );
        let taken = (fate == Fate::Acknowledged).then_some(self.past.processes);
        let logged = taken.is_some() && !unlogged && !self.options.manual_wal_flush;
        self.past.batches.push(Batch {
            edits,
            unlogged,
            fate,
            taken,
            logged,
            begun,
            durable: None,
            settled: None,
        });
        if sync && fate == Fate::Acknowledged {
            self.past.all_synced(self.now());
        }
        self.hear(if sync { SYNCED_WRITE } else { "write" }, outcome).is_some()
    }

    /// Writes batches, some of them synced, and does background work now and then.
    pub fn writes(&mut self, count: usize, value_length: usize) {
        for index in 0..count {
            self.write(index % 7 == 6, value_length);
            if index % 4 == 3 {
                self.step();
            }
        }
    }

    /// One flush or compaction, if there is one to do.
    pub fn step(&mut self) -> bool {
        self.call("background work", |db, _| db.background_step()).unwrap_or(false)
    }

    /// Background work until there is none, or it fails.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    /// Flushes all families.
    pub fn flush(&mut self) -> bool {
        let flushed = self.call("flush", |db, _| db.flush_all()).is_some();
        if flushed {
            self.past.all_durable(self.now());
        }
        flushed
    }

    /// Syncs the WAL.
    pub fn sync_wal(&mut self) {
        if self.call("sync the WAL", |db, _| db.sync_wal()).is_some() {
            self.past.all_synced(self.now());
        }
    }

    /// Brings what waits in memory into the WAL.
    pub fn flush_log(&mut self) {
        if self.call("flush the WAL", |db, _| db.flush_wal(false)).is_some() {
            self.past.all_logged();
        }
    }

    /// Compacts a range of a family.
    pub fn compact(
        &mut self,
        name: &str,
        range: [Option<&str>; 2],
        options: &CompactRangeOptions,
    ) -> bool {
        let [begin, end] = range.map(|end| end.map(str::as_bytes));
        let compacted = self.call("compact", |db, _| match db.column_family(name) {
            Some(family) => db.compact_range(&family, begin, end, options),
            None => Ok(()),
        });
        compacted.is_some()
    }

    /// Creates a family that may be dropped again.
    pub fn create(&mut self, name: &str) {
        let Some(db) = self.db.clone() else { return };
        let begun = self.now();
        let outcome = db.create_column_family(name, &self.options.cf);
        let created = (begun, self.now(), Self::fate(&outcome));
        self.past.passing.insert(name.to_string(), Passing { created, dropped: None });
        self.hear("create a family", outcome);
    }

    /// Drops it.
    pub fn drop_family(&mut self, name: &str) {
        let Some(db) = self.db.clone() else { return };
        let Some(family) = db.column_family(name) else { return };
        let begun = self.now();
        let outcome = db.drop_column_family(&family);
        let dropped = (begun, self.now(), Self::fate(&outcome));
        self.past.passing.get_mut(name).expect("it was created").dropped = Some(dropped);
        self.hear("drop a family", outcome);
    }

    /// Changes options of the running database.
    pub fn set_options(&mut self, changes: &[(&str, &str)]) {
        self.call("set options", |db, _| db.set_options(db.default_column_family(), changes));
    }

    /// Takes a snapshot and opens a cursor, to be looked at later.
    pub fn hold(&mut self) {
        let Some(db) = self.db.clone().filter(|_| self.settle_past()) else { return };
        let family = self.past.visible(LASTING[0]);
        self.snapshots.push((db.snapshot(), family.clone()));
        if let Some(mut iter) = self.call("open a cursor", |db, _| db.iter(&ReadOptions::default()))
        {
            iter.seek_to_first();
            let status = iter.status();
            if self.hear("a cursor", status).is_some() {
                let expected = family.entries.into_iter().collect();
                self.readers.push(Reader { iter, expected, next: 0 });
            }
        }
    }

    /// Moves the cursors on.
    pub fn walk(&mut self, steps: usize) {
        let mut readers = std::mem::take(&mut self.readers);
        readers.retain_mut(|reader| (0..steps).all(|_| self.walk_one(reader)));
        self.readers = readers;
    }

    /// One step of a cursor; whether there is more.
    fn walk_one(&mut self, reader: &mut Reader) -> bool {
        if !reader.iter.valid() {
            let status = reader.iter.status();
            if self.hear("a cursor", status).is_some() {
                assert_eq!(reader.next, reader.expected.len(), "a cursor ends early");
            }
            return false;
        }
        let (key, value) =
            &reader.expected.get(reader.next).expect("a cursor shows more than there is");
        assert_eq!(reader.iter.key(), key, "a cursor's key");
        let found = reader.iter.value().map(|value| value.to_vec());
        if let Some(found) = self.hear("a cursor's value", found) {
            assert_eq!(found, *value, "a cursor's value");
        }
        reader.next += 1;
        reader.iter.next();
        true
    }

    /// Reads with and without the snapshots: right, or an error.
    pub fn read(&mut self) {
        let Some(db) = self.db.clone().filter(|_| self.settle_past()) else { return };
        for family in db.column_families() {
            let model = self.past.visible(family.name());
            self.read_family(&db, &family, &model, &ReadOptions::default());
        }
        let snapshots = std::mem::take(&mut self.snapshots);
        for (snapshot, model) in &snapshots {
            let options =
                ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
            self.read_family(&db, db.default_column_family(), model, &options);
        }
        self.snapshots = snapshots;
    }

    fn read_family(
        &mut self,
        db: &Db,
        family: &ColumnFamily,
        model: &Family,
        options: &ReadOptions,
    ) {
        for key in model.entries.keys().step_by(7) {
            let found =
                db.get_with(options, family, key).map(|value| value.map(|value| value.to_vec()));
            if let Some(found) = self.hear("get", found) {
                assert_eq!(found.as_ref(), model.entries.get(key), "get {}", key.escape_ascii());
            }
        }
        let found = compare::scan(db, family, options);
        if let Some(found) = self.hear("scan", found) {
            compare::check_entries(family.name(), &found, model);
        }
        let found = compare::scan_back(db, family, options);
        if let Some(found) = self.hear("scan back", found) {
            compare::check_entries(family.name(), &found, model);
        }
    }

    /// Copies the database, and looks at the copy.
    pub fn checkpoint(&mut self, target: &str) {
        if self.call("checkpoint", |db, _| db.checkpoint(target)).is_none() {
            return;
        }
        // A copy has its WALs with it; the other directory is the original's.
        let mut own = self.options.clone();
        own.db.wal_dir.clear();
        let opened = Db::open_read_only(target, &own);
        if let Some(copy) = self.hear("open the copy", opened) {
            self.look_at(&copy);
        }
    }

    /// Reads everything in another handle.
    pub fn look_at(&mut self, db: &Db) {
        for family in db.column_families() {
            let model = self.past.visible(family.name());
            let found = compare::scan(db, &family, &ReadOptions::default());
            if let Some(found) = self.hear("scan the copy", found) {
                compare::check_entries(family.name(), &found, &model);
            }
        }
    }
}

/// Writes a batch by a transaction that reads each key for update, and takes something back. Values
/// that are not short are written in pieces.
fn by_transaction(db: &Db, edits: &[(String, Edit)], options: &WriteOptions) -> Result<()> {
    let db = flagstone::Db::around(db)?;
    let mut transaction = db.begin();
    transaction.set_save_point();
    transaction.put(&db, "never", "taken back")?;
    transaction.rollback_to_save_point()?;
    for (name, edit) in edits {
        let family = db.column_family(name)?;
        if let Edit::Put { key, .. } | Edit::Delete { key } | Edit::Merge { key, .. } = edit {
            transaction.get_for_update(&family, key)?;
        }
        compare::change_in_pieces(&mut transaction, &family, edit)?;
    }
    transaction.commit_with(options)
}
