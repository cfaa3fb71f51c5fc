//! A database on a recording disk that notes what it promises.

use std::path::PathBuf;
use std::sync::Arc;

use flagstone::db::{Db, ValueWriter};
use flagstone::env::{Env, FileSystem};
use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions, Options,
    WriteOptions,
};

use super::disk::Grain;
use super::examine;
use super::followed::{self, Followed, number_of};
use super::promises::{
    Batch, CheckpointLife, FamilyLife, Found, LOGGED, Moment, NEVER, Promises, Span, UNLOGGED,
};
use super::record::CrashFs;
use super::scenarios::Scenario;
use crate::encrypted::encrypted;
use crate::generate::Generator;
use crate::model::{ENTITY, Edit, Model};
use crate::{compare, remote, settings, steps};

/// The option that scenarios change while the database runs; it has no effect on what is written.
pub(super) const LIVE_OPTION: &str = "soft_pending_compaction_bytes_limit";

/// How a batch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// To the WAL.
    Logged,
    /// And synced.
    Synced,
    /// Not even to the WAL.
    Unlogged,
}

impl How {
    /// The same for the engine.
    pub(super) fn options(self) -> WriteOptions {
        WriteOptions {
            sync: self == Self::Synced,
            disable_wal: self == Self::Unlogged,
            ..WriteOptions::default()
        }
    }
}

/// A database, its disk, and what was promised.
pub struct Life {
    pub(super) scenario: &'static Scenario,
    pub(super) fs: CrashFs,
    pub(super) options: Options,
    pub(super) promises: Promises,
    pub(super) random: fastrand::Rng,
    db: Option<Db>,
    /// The seed of the first life: what is the same in all lives after its crashes.
    pub(super) variant: u64,
    pub(super) seed: u64,
    value_length_max: usize,
    /// No power loss has taken anything yet.
    pub(super) is_whole: bool,
    /// The same seed makes the same changes.
    pub(super) is_repeatable: bool,
}

impl Life {
    /// One that has yet to begin, on an empty disk.
    pub(super) fn new(scenario: &'static Scenario, seed: u64) -> Self {
        Self { is_whole: true, ..Self::on(scenario, seed, seed, CrashFs::new(), Promises::new()) }
    }

    /// One that goes on with what a process finds on this disk.
    pub(super) fn on(
        scenario: &'static Scenario,
        variant: u64,
        seed: u64,
        fs: CrashFs,
        promises: Promises,
    ) -> Self {
        let value_length_max = match grain(variant) {
            Grain::FINE => 60,
            _ => 900,
        };
        let random = fastrand::Rng::with_seed(seed);
        let options = options(scenario, variant);
        let promises = Promises { is_atomic: options.atomic_flush, ..promises };
        let is_whole = false;
        Self {
            scenario,
            fs,
            options,
            promises,
            random,
            db: None,
            variant,
            seed,
            value_length_max,
            is_whole,
            is_repeatable: true,
        }
    }

    /// The whole life.
    pub(super) fn live(scenario: &'static Scenario, seed: u64) -> Self {
        let mut life = Self::new(scenario, seed);
        life.create();
        (scenario.live)(&mut life);
        life
    }

    pub(super) fn db(&self) -> &Db {
        self.db.as_ref().expect("the database is open")
    }

    pub(super) fn earliest(&self) -> Moment {
        self.fs.changes() + 1
    }

    pub(super) fn done(&self, earliest: Moment) -> Span {
        Span { earliest, acked: self.fs.changes() }
    }

    /// The span of a batch; what waits in memory a kill may take back.
    pub(super) fn written(&self, earliest: Moment) -> Span {
        if self.options.manual_wal_flush {
            Span { earliest, acked: NEVER }
        } else {
            self.done(earliest)
        }
    }

    /// Makes the database, with the scenario's families.
    fn create(&mut self) {
        let earliest = self.earliest();
        self.set_world();
        let listed: Vec<_> =
            self.scenario.families.iter().map(|name| (*name, self.options.cf.clone())).collect();
        let db = Db::open_with_families(self.scenario.path, &self.options, &listed)
            .expect("a new database");
        self.opened(db, earliest);
    }

    /// Opens the database again (or makes one, if there is none); what a dead process had not
    /// logged is lost.
    pub(super) fn open(&mut self) {
        let earliest = self.earliest();
        self.set_world();
        let db = Db::open(self.scenario.path, &self.options)
            .unwrap_or_else(|error| panic!("opening: {error}"));
        if !self.promises.families.is_empty() {
            let found = self.promises.recognise(&examine::contents(&db));
            self.promises.keep_found(&found);
        }
        self.opened(db, earliest);
    }

    fn set_world(&mut self) {
        let fs = Arc::new(self.fs.clone());
        let seed = self.seed ^ self.fs.changes() as u64;
        self.options.env = world(self.scenario, fs, seed);
        remote::follow(&mut self.options);
    }

    fn opened(&mut self, db: Db, earliest: Moment) {
        let span = self.done(earliest);
        let promises = &mut self.promises;
        promises.exists.earliest = promises.exists.earliest.min(earliest);
        promises.exists.acked = promises.exists.acked.min(span.acked);
        promises.options.push((examine::live_option(&self.options.cf), span));
        let there: Vec<_> = db
            .column_families()
            .iter()
            .map(|family| (family.name().to_string(), family.id().0))
            .collect();
        for family in &mut promises.families {
            let is_there = there.iter().any(|(_, id)| family.id == *id);
            let unsettled = if is_there { &mut family.created } else { &mut family.dropped };
            unsettled.acked = unsettled.acked.min(span.acked);
        }
        for (name, id) in there {
            if promises.families.iter().all(|family| family.id != id) {
                promises.families.push(FamilyLife {
                    name,
                    id,
                    created: span,
                    dropped: Span::NEVER,
                });
            }
        }
        self.db = Some(db);
    }

    /// Closes the database: all of it is durable.
    pub(super) fn close(&mut self) {
        self.db().close().expect("a clean close");
        self.db = None;
        self.note_durable(|_| true);
    }

    /// The process dies; nothing is written any more.
    pub(super) fn kill(&mut self) {
        self.fs = self.fs.kill();
        self.db = None;
    }

    pub(super) fn note_durable(&mut self, which: impl Fn(&Batch) -> bool) {
        let now = self.fs.changes();
        let chosen = self.promises.batches.iter_mut().filter(|batch| which(batch));
        chosen.for_each(|batch| batch.durable = batch.durable.min(now));
    }

    /// The living family of that name.
    pub(super) fn family(&self, name: &str) -> usize {
        let families = &self.promises.families;
        let living = |family: &FamilyLife| family.name == name && family.dropped.acked == NEVER;
        families.iter().rposition(living).unwrap_or_else(|| panic!("no family {name} is alive"))
    }

    /// The next batch: these edits, and its number in every family that it touches.
    pub(super) fn numbered(
        &mut self,
        how: How,
        edits: &[(&str, Edit)],
    ) -> (u64, Vec<(String, Edit)>) {
        let number = self.promises.next_number;
        self.promises.next_number += 1;
        let key = if how == How::Unlogged { UNLOGGED } else { LOGGED };
        let mut batch: Vec<(String, Edit)> =
            edits.iter().map(|(name, edit)| ((*name).to_string(), edit.clone())).collect();
        let mut touched: Vec<_> = batch.iter().map(|(name, _)| name.clone()).collect();
        touched.sort_unstable();
        touched.dedup();
        let is_one_flush = touched.len() == 1 || self.promises.is_atomic;
        assert!(how != How::Unlogged || is_one_flush, "a flush is of one family");
        let put =
            |name| (name, Edit::Put { key: key.to_vec(), value: number.to_string().into_bytes() });
        batch.extend(touched.into_iter().map(put));
        (number, batch)
    }

    /// Writes a batch, with its number in every family that it touches.
    pub(super) fn write(&mut self, how: How, edits: &[(&str, Edit)]) {
        let (number, batch) = self.numbered(how, edits);
        let earliest = self.earliest();
        self.db()
            .write_with(&how.options(), compare::to_batch(self.db(), &batch))
            .expect("a write");
        let edits = batch.into_iter().map(|(name, edit)| (self.family(&name), edit)).collect();
        let is_logged = how != How::Unlogged;
        let span = self.written(earliest);
        self.note_write(Batch { number, is_logged, edits, span, durable: NEVER }, how);
    }

    /// Promises what was written.
    pub(super) fn note_write(&mut self, batch: Batch, how: How) {
        self.promises.batches.push(batch);
        if how == How::Synced {
            self.note_durable(|batch| batch.is_logged);
        }
    }

    /// Writes a batch of nothing but its number, as a value in pieces that has a blob file of its
    /// own.
    pub(super) fn stream(&mut self, how: How, name: &str) {
        let number = self.promises.next_number;
        self.promises.next_number += 1;
        let value = format!("{number:0>400}").into_bytes();
        let earliest = self.earliest();
        let mut writer = self.stream_to(how, name, LOGGED);
        value.chunks(130).for_each(|piece| writer.append(piece).expect("a piece"));
        writer.commit().expect("a value in pieces");
        let edits = vec![(self.family(name), Edit::Put { key: LOGGED.to_vec(), value })];
        let span = self.written(earliest);
        self.promises.batches.push(Batch { number, is_logged: true, edits, span, durable: NEVER });
        if how == How::Synced {
            self.note_durable(|batch| batch.is_logged);
        }
    }

    /// Begins a value in pieces, and thinks better of it.
    pub(super) fn give_up_stream(&mut self, name: &str) {
        let mut writer = self.stream_to(How::Logged, name, b"never");
        writer.append(&[b'x'; 300]).expect("a piece");
        writer.append(&[b'y'; 300]).expect("a piece");
        drop(writer);
    }

    fn stream_to(&self, how: How, name: &str, key: &[u8]) -> ValueWriter {
        let family = self.db().column_family(name).expect("it exists");
        self.db().put_stream(&family, key, &how.options()).expect("a stream").with_buffer(100)
    }

    /// A value of some length, of bytes that compress or do not.
    pub(super) fn value(&mut self) -> Vec<u8> {
        let length = self.random.usize(..=self.value_length_max);
        if self.random.bool() {
            vec![self.random.u8(b'a'..=b'z'); length]
        } else {
            (0..length).map(|_| self.random.u8(..)).collect()
        }
    }

    pub(super) fn put_edit(&mut self) -> Edit {
        let key = format!("k{:02}", self.random.u8(..20)).into_bytes();
        Edit::Put { key, value: self.value() }
    }

    /// Puts a key of each of these families.
    pub(super) fn put(&mut self, how: How, families: &[&str]) {
        let edits: Vec<_> = families.iter().map(|name| (*name, self.put_edit())).collect();
        self.write(how, &edits);
    }

    /// Some batches over some of these families, now and then synced; puts, deletions, merges,
    /// deletions of ranges.
    pub(super) fn writes(&mut self, count: usize, families: &[&str]) {
        for _ in 0..count {
            let how = if self.random.u8(..5) == 0 { How::Synced } else { How::Logged };
            let mut edits = Vec::new();
            for _ in 0..self.random.usize(1..4) {
                let name = families[self.random.usize(..families.len())];
                let key = format!("k{:02}", self.random.u8(..20)).into_bytes();
                edits.push((
                    name,
                    match self.random.u8(..10) {
                        0 => Edit::Delete { key },
                        1 => Edit::DeleteRange { end: [&key[..], b"~"].concat(), begin: key },
                        2 => Edit::Merge { key, operand: b"more".to_vec() },
                        3 => Edit::PutEntity { key, value: [ENTITY, &self.value()].concat() },
                        _ => Edit::Put { key, value: self.value() },
                    },
                ));
            }
            self.write(how, &edits);
        }
    }

    /// So many batches as a generator makes them.
    pub(super) fn generated(&mut self, generator: &mut Generator, count: usize) {
        for _ in 0..count {
            let mut model = Model::default();
            for name in self.db().column_families().iter().map(|family| family.name().to_string()) {
                let family = self.promises.contents(self.family(&name), u64::MAX, u64::MAX);
                model.families.insert(name, family);
            }
            let batch = generator.batch(&mut model);
            let how = if self.random.u8(..10) == 0 { How::Synced } else { How::Logged };
            let edits: Vec<_> =
                batch.iter().map(|(name, edit)| (name.as_str(), edit.clone())).collect();
            self.write(how, &edits);
        }
    }

    /// Brings all logged writes into the WAL's file.
    pub(super) fn flush_log(&mut self) {
        self.db().flush_wal(false).expect("a flush of the WAL");
        let now = self.fs.changes();
        let logged = self.promises.batches.iter_mut().filter(|batch| batch.is_logged);
        logged.for_each(|batch| batch.span.acked = batch.span.acked.min(now));
    }

    /// Makes all logged writes durable.
    pub(super) fn sync(&mut self) {
        self.db().sync_wal().expect("a sync");
        self.note_durable(|batch| batch.is_logged);
    }

    /// Flushes a family: what it holds is durable, and so is what was logged before.
    pub(super) fn flush(&mut self, name: &str) {
        let family = self.db().column_family(name).expect("it exists");
        self.db().flush(&family, &Default::default()).expect("a flush");
        self.note_flushed(name);
    }

    fn note_flushed(&mut self, name: &str) {
        if self.promises.is_atomic {
            return self.note_durable(|_| true);
        }
        let index = self.family(name);
        let touching = self.promises.batches.iter().filter(|batch| batch.touches(index));
        let Some(last) = touching.map(|batch| batch.number).max() else { return };
        self.note_durable(|batch| {
            if batch.is_logged { batch.number <= last } else { batch.touches(index) }
        });
    }

    pub(super) fn flush_all(&mut self) {
        self.db().flush_all().expect("a flush");
        self.note_durable(|_| true);
    }

    /// Does the work that threads would do, until there is none.
    pub(super) fn work(&mut self) {
        while self.db().background_step().expect("background work") {}
        let strays = self.db().check().expect("a listing").strays;
        assert!(strays.is_empty(), "no longer used and still there: {strays:?}");
    }

    /// Rewrites all of a family, and collects its blobs.
    pub(super) fn compact(&mut self, name: &str) {
        let options = CompactRangeOptions {
            blob_garbage_collection_policy: BlobGarbageCollectionPolicy::Force,
            blob_garbage_collection_age_cutoff: 1.0,
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        let family = self.db().column_family(name).expect("it exists");
        self.db().compact_range(&family, None, None, &options).expect("a compaction");
        self.note_flushed(name);
    }

    pub(super) fn create_family(&mut self, name: &str) {
        let earliest = self.earliest();
        let family = self.db().create_column_family(name, &self.options.cf).expect("a new family");
        let (created, id) = (self.done(earliest), family.id().0);
        self.promises.families.push(FamilyLife {
            name: name.to_string(),
            id,
            created,
            dropped: Span::NEVER,
        });
    }

    pub(super) fn drop_family(&mut self, name: &str) {
        let (index, earliest) = (self.family(name), self.earliest());
        let family = self.db().column_family(name).expect("it exists");
        self.db().drop_column_family(&family).expect("it may be dropped");
        self.promises.families[index].dropped = self.done(earliest);
    }

    /// Changes the option.
    pub(super) fn set_option(&mut self, value: u64) {
        let earliest = self.earliest();
        let family = self.db().default_column_family();
        self.db()
            .set_options(family, &[(LIVE_OPTION, &value.to_string())])
            .expect("a change of options");
        let span = self.done(earliest);
        self.promises.options.push((value, span));
    }

    pub(super) fn set_db_option(&mut self, name: &str, value: &str) {
        self.db().set_db_options(&[(name, value)]).expect("a change of options");
    }

    /// Makes a checkpoint of all that is there.
    pub(super) fn checkpoint(&mut self, path: &str) {
        let earliest = self.earliest();
        self.db().checkpoint(PathBuf::from(path)).expect("a checkpoint");
        let span = self.done(earliest);
        let found = self.now();
        self.promises.checkpoints.push(CheckpointLife { path: path.to_string(), span, found });
        // It begins with a flush.
        self.note_durable(|_| true);
    }

    /// What is there now.
    fn now(&self) -> Found {
        self.promises.recognise(&examine::contents(self.db()))
    }

    /// Reads along, from the oldest write that the WALs have, as far as they go: to the last one,
    /// before anything was lost.
    pub(super) fn follow(&mut self) {
        let (db, at) = (self.db(), self.fs.changes());
        let Some(oldest) = db.oldest_update().expect("a look at the WALs") else { return };
        let since = db.get_updates_since(oldest);
        let Some(mut updates) = self.told(since) else { return };
        let (mut given, mut is_cut) = (Vec::new(), false);
        loop {
            let Some(update) = self.told(updates.next_update()) else {
                is_cut = true;
                break;
            };
            let Some(update) = update else { break };
            let number = number_of(&update.batch);
            let batch = self.promises.batches.iter().find(|batch| batch.number == number);
            let batch =
                batch.unwrap_or_else(|| panic!("batch {number} is handed out, and was lost"));
            let name = |family: usize| self.promises.families[family].name.clone();
            let edits: Vec<_> =
                batch.edits.iter().map(|(family, edit)| (name(*family), edit.clone())).collect();
            let is_whole = compare::to_batch(db, &edits).body() == update.batch.body();
            assert!(is_whole, "batch {number} is handed out as {:?}", update.batch);
            given.push(Followed { number, position: update.position, at });
        }
        let written =
            self.promises.batches.iter().filter(|batch| batch.is_logged).map(|batch| batch.number);
        let (newest, written) = (given.last().map(|followed| followed.number), written.max());
        // What was flushed is in no WAL, unless an archive has it, and what waits in memory is in
        // none either: then the WALs begin behind the last write.
        let has_nothing = newest.is_none() && oldest > db.latest_sequence_number();
        let is_all = is_cut || has_nothing || newest == written || self.options.manual_wal_flush;
        assert!(
            is_all || !self.is_whole,
            "{newest:?} is the last of {written:?} that is handed out"
        );
        let last = self.promises.followed.iter().map(|followed| followed.number).max().unwrap_or(0);
        self.promises.followed.extend(given.into_iter().filter(|followed| followed.number > last));
    }

    /// Before anything was lost there is no gap, but where a large value was overwritten, whose
    /// space others have now.
    fn told<T>(&self, outcome: flagstone::base::Result<T>) -> Option<T> {
        if !self.is_whole {
            return followed::told(outcome);
        }
        outcome
            .inspect_err(|error| assert!(followed::is_given_back(error), "all is there: {error}"))
            .ok()
    }

    /// What a user might do after a recovery; some of it by chance.
    pub(super) fn go_on(&mut self) {
        let names: Vec<_> =
            self.db().column_families().iter().map(|family| family.name().to_string()).collect();
        let families: Vec<&str> = names.iter().map(String::as_str).collect();
        self.writes(2, &families);
        let is_followed = !self.promises.followed.is_empty();
        if is_followed {
            self.follow();
        }
        self.put(How::Synced, &families);
        self.writes(1, &families);
        if is_followed {
            self.follow();
        }
        match self.random.u8(..4) {
            0 => self.flush_all(),
            1 => self.compact("default"),
            2 => {
                self.kill();
                self.open();
            }
            _ => self.flush("default"),
        }
        self.work();
        self.writes(2, &families);
        self.close();
    }
}

/// The pages of the disk of lives of this variant.
pub(super) fn grain(variant: u64) -> Grain {
    if variant.is_multiple_of(2) { Grain::REAL } else { Grain::FINE }
}

/// What the third and fourth of four variants of a scenario do in addition, if chance says so.
const VARIATIONS: &[(&str, &str)] = &[
    ("recycle_log_file_num", "1"),
    ("wal_write_mode", "plain"),
    ("WAL_size_limit_MB", "1"),
    ("wal_compression", "kZSTD"),
    ("avoid_flush_during_recovery", "true"),
    ("max_manifest_file_size", "700"),
    ("enable_blob_files", "true"),
    ("blob_commit_min_size", "30"),
    ("blob_commit_synced_min_size", "60"),
    ("use_direct_reads", "true"),
    ("use_direct_io_for_flush_and_compaction", "true"),
    ("min_write_buffer_number_to_merge", "2"),
    ("level0_file_num_compaction_trigger", "1"),
    ("compression", "kLZ4Compression"),
    ("table.format_version", "6"),
    ("cache_blobs", "true"),
    ("block_cache", "1000"),
    ("manual_wal_flush", "true"),
];

/// The world of a scenario, over these files.
pub(super) fn world(scenario: &Scenario, fs: Arc<dyn FileSystem>, seed: u64) -> Env {
    let world = steps::world(fs, seed);
    if scenario.settings.contains(&(settings::ENCRYPTION, "on")) { encrypted(world) } else { world }
}

/// The options of a scenario's variant.
pub(super) fn options(scenario: &Scenario, variant: u64) -> Options {
    let mut options = settings::tiny(&Env::memory());
    let base =
        [("block_cache", "65536"), ("recycle_log_file_num", "0"), (LIVE_OPTION, "1000000000")];
    settings::set(&mut options, &base);
    if variant % 4 >= 2 {
        let mut random = fastrand::Rng::with_seed(variant);
        VARIATIONS
            .iter()
            .filter(|_| random.u8(..3) == 0)
            .for_each(|set| settings::set(&mut options, &[*set]));
    }
    settings::set(&mut options, scenario.settings);
    options
}
