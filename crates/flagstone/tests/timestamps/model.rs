//! A database whose keys end in timestamps beside a model of it: an ordered map from keys to all
//! their versions.

use std::collections::BTreeMap;

use flagstone::base::timestamp::from_u64;
use flagstone::{
    BottommostLevelCompaction, CompactRangeOptions, Comparator, Cursor, Db, Family, ReadOptions,
    WriteBatch,
};

/// What a write did to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Put(Vec<u8>),
    Delete,
    Merge(Vec<u8>),
}

#[derive(Debug, Clone)]
struct Version {
    stamp: u64,
    /// How many writes came before.
    order: u64,
    change: Change,
}

struct RangeDeletion {
    begin: Vec<u8>,
    end: Vec<u8>,
    stamp: u64,
    order: u64,
}

/// All that was written, and the oldest timestamp that may be asked for.
#[derive(Default)]
struct Model {
    versions: BTreeMap<Vec<u8>, Vec<Version>>,
    ranges: Vec<RangeDeletion>,
    writes: u64,
    low: u64,
}

impl Model {
    fn write(&mut self, key: &[u8], stamp: u64, change: Change) {
        self.writes += 1;
        let version = Version { stamp, order: self.writes, change };
        self.versions.entry(key.to_vec()).or_default().push(version);
    }

    fn delete_range(&mut self, begin: &[u8], end: &[u8], stamp: u64) {
        self.writes += 1;
        let (begin, end) = (begin.to_vec(), end.to_vec());
        self.ranges.push(RangeDeletion { begin, end, stamp, order: self.writes });
    }

    fn is_covered(&self, key: &[u8], version: &Version, as_of: u64) -> bool {
        self.ranges.iter().any(|range| {
            range.begin[..] <= *key
                && *key < range.end[..]
                && range.stamp <= as_of
                && range.order > version.order
        })
    }

    /// The versions of a key that a read sees, newest first.
    fn seen(&self, key: &[u8], as_of: u64) -> Vec<&Version> {
        let Some(versions) = self.versions.get(key) else { return Vec::new() };
        let mut seen: Vec<_> = versions.iter().filter(|it| it.stamp <= as_of).collect();
        seen.sort_by_key(|it| std::cmp::Reverse((it.stamp, it.order)));
        seen
    }

    fn get(&self, key: &[u8], as_of: u64) -> Option<(Vec<u8>, u64)> {
        let mut operands = Vec::new();
        let mut newest = None;
        let mut base = None;
        for version in self.seen(key, as_of) {
            if self.is_covered(key, version, as_of) {
                break;
            }
            match &version.change {
                Change::Delete => break,
                Change::Put(value) => {
                    newest = newest.or(Some(version.stamp));
                    base = Some(value);
                    break;
                }
                Change::Merge(operand) => {
                    newest = newest.or(Some(version.stamp));
                    operands.push(operand);
                }
            }
        }
        let parts: Vec<&[u8]> =
            base.into_iter().chain(operands.into_iter().rev()).map(Vec::as_slice).collect();
        Some((parts.join(&b","[..]), newest?))
    }

    /// What a scan over history shows: operands and what they are merged with as one entry.
    fn history(&self, from: u64, as_of: u64) -> Vec<Shown> {
        let mut shown = Vec::new();
        for key in self.versions.keys() {
            let versions = self.seen(key, as_of);
            let mut at = 0;
            while let Some(newest) = versions.get(at).filter(|it| it.stamp >= from) {
                let mut operands = Vec::new();
                let mut last = newest;
                let value = loop {
                    let Some(version) = versions.get(at) else { break None };
                    if self.is_covered(key, version, as_of) {
                        last = version;
                        break None;
                    }
                    last = version;
                    match &version.change {
                        Change::Put(value) => break Some(value),
                        Change::Delete => break None,
                        Change::Merge(operand) => operands.push(operand),
                    }
                    at += 1;
                };
                let is_hidden = operands.is_empty() && self.is_covered(key, newest, as_of);
                let is_deletion = operands.is_empty() && newest.change == Change::Delete;
                if !is_hidden {
                    let parts = value.into_iter().chain(operands.into_iter().rev());
                    let merged = parts.map(Vec::as_slice).collect::<Vec<_>>().join(&b","[..]);
                    shown.push((key.clone(), newest.stamp, (!is_deletion).then_some(merged)));
                }
                // What is older under the same timestamp is overwritten.
                at = versions.partition_point(|it| it.stamp >= last.stamp);
            }
        }
        shown
    }
}

/// An entry of a scan over history: a key, its timestamp and its value, unless it is deleted.
type Shown = (Vec<u8>, u64, Option<Vec<u8>>);

fn entry_of(cursor: &mut Cursor) -> Option<Shown> {
    cursor.valid().then(|| {
        let value = (!cursor.is_deletion()).then(|| cursor.value().unwrap().to_vec());
        (cursor.key().to_vec(), as_number(cursor.timestamp()), value)
    })
}

struct World {
    directory: tempfile::TempDir,
    db: Option<Db>,
    model: Model,
    random: fastrand::Rng,
    now: u64,
    merges: bool,
    is_reverse: bool,
}

const KEYS: usize = 24;

impl World {
    fn new(seed: u64, merges: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let is_reverse = random.u8(..4) == 0;
        let mut world = Self {
            directory: tempfile::tempdir().expect("a directory"),
            db: None,
            model: Model::default(),
            random,
            now: 1,
            merges,
            is_reverse,
        };
        world.open();
        world
    }

    fn open(&mut self) {
        drop(self.db.take());
        let (merges, is_reverse) = (self.merges, self.is_reverse);
        let db = Db::builder(self.directory.path())
            .column_family("stamped", move |family| {
                family.comparator = if is_reverse {
                    Comparator::ReverseBytewiseU64Ts
                } else {
                    Comparator::BytewiseU64Ts
                };
                family.settings.write_buffer_size = 8 << 10;
                family.settings.target_file_size_base = 2 << 10;
                family.settings.max_bytes_for_level_base = 4 << 10;
                family.settings.level0_file_num_compaction_trigger = 3;
                family.settings.min_blob_size = Some(200);
                family.settings.enable_blob_files = Some(true);
                family.settings.enable_blob_garbage_collection = true;
                family.set("filter_policy", "bloomfilter:10").expect("a policy");
                if merges {
                    family.set("merge_operator", "stringappend").expect("an operator");
                }
            })
            .open()
            .expect("the database opens");
        self.db = Some(db);
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open")
    }

    fn family(&self) -> Family {
        self.db().column_family("stamped").expect("a family")
    }

    fn key(&mut self) -> Vec<u8> {
        // Some keys begin with others, and may look like these with a timestamp.
        let number = self.random.usize(..KEYS);
        match number % 3 {
            0 => format!("k{:02}", number / 3).into_bytes(),
            1 => format!("k{:02}\0", number / 3).into_bytes(),
            _ => [format!("k{:02}", number / 3).as_bytes(), &[1; 8]].concat(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let size = if self.random.u8(..4) == 0 { 300 } else { 12 };
        let size = if self.random.u8(..20) == 0 { 6000 } else { size };
        format!("{:01$}", self.random.u32(..1000), size).into_bytes()
    }

    fn write(&mut self) {
        self.now += self.random.u64(..3);
        let (stamp, family, key) = (self.now, self.family(), self.key());
        match self.random.u8(..20) {
            0..=2 => {
                family.delete_with_timestamp(&key, from_u64(stamp)).unwrap();
                self.model.write(&key, stamp, Change::Delete);
            }
            3 => {
                let (mut begin, mut end) = (key, self.key());
                if (begin > end) != self.is_reverse {
                    std::mem::swap(&mut begin, &mut end);
                }
                family.delete_range_with_timestamp(&begin..&end, from_u64(stamp)).unwrap();
                if self.is_reverse {
                    // The model's ranges are in byte order, and without their first key.
                    self.model.delete_range(
                        &[&end[..], b"\0"].concat(),
                        &[&begin[..], b"\0"].concat(),
                        stamp,
                    );
                } else {
                    self.model.delete_range(&begin, &end, stamp);
                }
            }
            4..=6 if self.merges => {
                let operand = self.value();
                family.merge_with_timestamp(&key, from_u64(stamp), &operand).unwrap();
                self.model.write(&key, stamp, Change::Merge(operand));
            }
            7 => {
                let mut batch = WriteBatch::new();
                for _ in 0..3 {
                    let (key, value) = (self.key(), self.value());
                    batch.put_with_timestamp(&family, &key, from_u64(stamp), &value).unwrap();
                    self.model.write(&key, stamp, Change::Put(value));
                }
                self.db().write(batch).unwrap();
            }
            _ => {
                let value = self.value();
                family.put_with_timestamp(&key, from_u64(stamp), &value).unwrap();
                self.model.write(&key, stamp, Change::Put(value));
            }
        }
    }

    fn maintain(&mut self) {
        match self.random.u8(..12) {
            0 => self.open(),
            1 => self.family().compact().unwrap(),
            6 => {
                let options = CompactRangeOptions {
                    bottommost_level_compaction: BottommostLevelCompaction::Force,
                    max_subcompactions: 3,
                    ..CompactRangeOptions::default()
                };
                let (mut begin, mut end) = (self.key(), self.key());
                if (begin > end) != self.is_reverse {
                    std::mem::swap(&mut begin, &mut end);
                }
                self.family().compact_range::<Vec<u8>>(begin..=end, &options).unwrap();
            }
            2 if self.now > self.model.low => {
                self.model.low = self.random.u64(self.model.low..=self.now);
                let low = from_u64(self.model.low);
                self.family().increase_full_history_ts_low(low).unwrap();
            }
            3..=5 => self.family().flush().unwrap(),
            _ => {}
        }
    }

    fn check(&mut self) {
        let as_of = self.random.u64(self.model.low..=self.now + 1);
        let (family, model) = (self.family(), &self.model);
        let options = ReadOptions { timestamp: Some(from_u64(as_of).into()), ..<_>::default() };
        let mut expected = Vec::new();
        for key in model.versions.keys() {
            let wanted = model.get(key, as_of);
            let found = family.get_with_timestamp(key, &options).unwrap();
            let found = found.map(|(value, stamp)| (value.to_vec(), stamp));
            let wanted_raw = wanted.clone().map(|(value, stamp)| (value, from_u64(stamp).to_vec()));
            // What is before the history that is kept has lost its order.
            let is_same = match (&found, &wanted_raw) {
                (Some((value, stamp)), Some((known, known_stamp))) => {
                    value == known && (stamp == known_stamp || as_number(stamp) < model.low)
                }
                (found, known) => found == known,
            };
            assert!(is_same, "{} as of {as_of}: {found:?}, not {wanted:?}", key.escape_ascii());
            expected.extend(
                wanted
                    .zip(found)
                    .map(|((value, _), (_, stamp))| (key.clone(), as_number(&stamp), Some(value))),
            );
        }
        if self.is_reverse {
            expected.reverse();
        }
        let view = family.as_of(from_u64(as_of));
        let values =
            || expected.iter().map(|(key, _, value)| (key.clone(), value.clone().unwrap()));
        let shown = view.iter().map(|entry| entry.unwrap());
        assert!(shown.eq(values()), "forward as of {as_of}");
        let back = view.iter().rev().map(|entry| entry.unwrap());
        assert!(back.eq(values().rev()), "backward as of {as_of}");
        let keys: Vec<_> = model.versions.keys().cloned().collect();
        let values: Vec<_> = view.get_many(&keys).unwrap();
        assert_eq!(values.iter().flatten().count(), expected.len());
        self.wander(&options, &expected);
        self.check_history(as_of);
    }

    fn check_history(&mut self, as_of: u64) {
        let (family, model) = (self.family(), &self.model);
        if as_of <= model.low {
            return;
        }
        let from = model.low.max(as_of.saturating_sub(20));
        let options = ReadOptions {
            timestamp: Some(from_u64(as_of).into()),
            iter_start_ts: Some(from_u64(from).into()),
            ..<_>::default()
        };
        let mut expected = model.history(from, as_of);
        if self.is_reverse {
            expected.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.cmp(&a.1)));
        }
        let mut cursor = family.cursor(&options).unwrap();
        let mut shown = Vec::new();
        cursor.seek_to_first();
        while let Some(entry) = entry_of(&mut cursor) {
            shown.push(entry);
            cursor.next();
        }
        cursor.status().unwrap();
        assert_eq!(shown, expected, "history from {from} to {as_of}");
        let mut back = Vec::new();
        cursor.seek_to_last();
        while let Some(entry) = entry_of(&mut cursor) {
            back.push(entry);
            cursor.prev();
        }
        cursor.status().unwrap();
        back.reverse();
        assert_eq!(back, expected, "history back from {as_of} to {from}");
        self.wander(&options, &expected);
    }

    /// A cursor that seeks and turns.
    fn wander(&mut self, options: &ReadOptions, expected: &[Shown]) {
        let mut cursor = self.family().cursor(options).unwrap();
        let is_reverse = self.is_reverse;
        let mut at: Option<usize> = None;
        for _ in 0..12 {
            let target = self.key();
            let order =
                |key: &[u8]| if is_reverse { target[..].cmp(key) } else { key.cmp(&target[..]) };
            at = match (self.random.u8(..6), at) {
                (0 | 1, Some(at)) => {
                    cursor.next();
                    Some(at + 1).filter(|at| *at < expected.len())
                }
                (2 | 3, Some(at)) => {
                    cursor.prev();
                    at.checked_sub(1)
                }
                (4, _) => {
                    cursor.seek(&target);
                    expected.iter().position(|(key, ..)| order(key).is_ge())
                }
                _ => {
                    cursor.seek_for_prev(&target);
                    expected.iter().rposition(|(key, ..)| order(key).is_le())
                }
            };
            assert_eq!(entry_of(&mut cursor), at.map(|at| expected[at].clone()));
        }
    }
}

fn as_number(stamp: &[u8]) -> u64 {
    u64::from_le_bytes(stamp.try_into().expect("eight bytes"))
}

fn run(seed: u64, merges: bool) {
    let mut world = World::new(seed, merges);
    for round in 0..30 {
        for _ in 0..15 {
            world.write();
        }
        world.maintain();
        println!("seed {seed}, round {round}");
        world.check();
    }
}

#[test]
fn a_database_with_timestamps_is_like_its_model() {
    for seed in 0..12 {
        run(seed, false);
    }
}

#[test]
fn operands_with_timestamps_are_merged_as_in_the_model() {
    for seed in 100..108 {
        run(seed, true);
    }
}
