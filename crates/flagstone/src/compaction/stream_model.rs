//! A small LSM tree of plain vectors, rewritten by the real rules, and the history that it must
//! show.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;

use super::stream_model_filter::{Fate, FilterOfOperands, Filtered};
use super::*;
use crate::base::entity;
use crate::base::merge::StringAppendOperator;
use crate::base::range_tombstone::RangeTombstone;
use crate::base::{
    CompactionFilter, Comparator, FragmentedRangeTombstones, InternalIterator, InternalKey,
    InternalKeyBuf, InternalKeyComparator, MAX_SEQUENCE_NUMBER, MergeOperator, Result,
    SequenceNumber, TruncatedRangeTombstones, ValueType,
};
use crate::iter::testing::{Entry, VecIterator, show_entry, show_tombstone};
use crate::iter::{FileOpener, LevelTombstones, MergingIterator, SortedFiles, ValueResolver};

/// Keys `a`..; the last few are only ever put and single-deleted.
pub(super) const KEYS: u8 = 14;
const SINGLE_KEYS: u8 = 4;

/// Whether the key is one of those that are single-deleted.
pub(super) fn is_single(key: &[u8]) -> bool {
    key[0] >= b'a' + KEYS - SINGLE_KEYS
}

pub(super) fn order() -> InternalKeyComparator {
    InternalKeyComparator::new(Comparator::Bytewise)
}

/// A blob's index is its value in lower case.
#[derive(Clone, Copy)]
pub(super) struct Blobs;

impl ValueResolver for Blobs {
    fn resolve_blob(&self, _user_key: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        Ok(blob_index.to_ascii_uppercase().into())
    }
}

struct RandomPlaces(fastrand::Rng);

impl ValueSeparator for RandomPlaces {
    fn place(
        &mut self,
        key: InternalKey<'_>,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ValueType>> {
        assert!(out.is_empty());
        if self.0.u8(..4) > 0 || key.value_type() == Some(ValueType::WideColumnEntity) {
            return Ok(None);
        }
        Ok(Some(if key.value_type() == Some(ValueType::Value) {
            out.extend(value.to_ascii_lowercase());
            ValueType::BlobIndex
        } else {
            out.extend(value.to_ascii_uppercase());
            ValueType::Value
        }))
    }
}

#[derive(Clone)]
pub(super) struct File {
    pub(super) entries: Vec<Entry>,
    pub(super) tombstones: Arc<FragmentedRangeTombstones>,
    pub(super) smallest: InternalKeyBuf,
    pub(super) largest: InternalKeyBuf,
}

impl File {
    pub(super) fn truncated(&self) -> TruncatedRangeTombstones {
        self.tombstones.truncated(self.smallest.as_key(), self.largest.as_key())
    }

    pub(super) fn cursor(&self) -> VecIterator {
        VecIterator::new(order(), self.entries.clone())
    }

    pub(super) fn contains(&self, user_key: &[u8]) -> bool {
        self.smallest.user_key() <= user_key && user_key <= self.largest.user_key()
    }

    fn overlaps(&self, (first, last): (&[u8], &[u8])) -> bool {
        self.smallest.user_key() <= last && first <= self.largest.user_key()
    }
}

#[derive(Clone)]
pub(super) struct Level(pub(super) Vec<File>);

impl SortedFiles for Level {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn smallest(&self, index: usize) -> InternalKey<'_> {
        self.0[index].smallest.as_key()
    }

    fn largest(&self, index: usize) -> InternalKey<'_> {
        self.0[index].largest.as_key()
    }
}

impl FileOpener for Level {
    type Cursor = VecIterator;

    fn open(&self, index: usize) -> Result<VecIterator> {
        Ok(self.0[index].cursor())
    }
}

impl LevelTombstones for Level {
    fn tombstones(&self, index: usize) -> Result<Option<TruncatedRangeTombstones>> {
        let file = &self.0[index];
        Ok((!file.tombstones.is_empty()).then(|| file.truncated()))
    }
}

#[derive(Clone)]
enum Write {
    Set(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// The tree, and the history that it must show.
pub(super) struct Tree {
    pub(super) random: fastrand::Rng,
    pub(super) operator: Arc<dyn MergeOperator>,
    history: Vec<Write>,
    pub(super) snapshots: Vec<SequenceNumber>,
    memtable: (Vec<Entry>, Vec<RangeTombstone>),
    /// Newest first.
    pub(super) level0: Vec<File>,
    /// Levels 1 and 2.
    pub(super) levels: [Vec<File>; 2],
    /// Which of the single-deleted keys are put and not yet deleted.
    single_put: Vec<bool>,
    /// What rewrites are filtered by, in some trees, and what it has done so far.
    filter: Option<FilterOfOperands>,
    filtered: Filtered,
    pub(super) log: String,
}

pub(super) type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

impl Tree {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let operator = if random.bool() {
            StringAppendOperator::new(",")
        } else {
            StringAppendOperator::without_partial_merge(",")
        };
        Self {
            random,
            operator: Arc::new(operator),
            history: Vec::new(),
            snapshots: Vec::new(),
            memtable: Default::default(),
            level0: Vec::new(),
            levels: Default::default(),
            single_put: vec![false; usize::from(SINGLE_KEYS)],
            filter: seed.is_multiple_of(3).then(FilterOfOperands::default),
            filtered: Filtered::default(),
            log: format!("seed {seed}\n"),
        }
    }

    pub(super) fn last_sequence(&self) -> SequenceNumber {
        self.history.len() as SequenceNumber
    }

    fn write(&mut self) {
        let sequence = self.last_sequence() + 1;
        let number = self.random.u8(..KEYS);
        let key = vec![b'a' + number];
        let value = format!("V{sequence}").into_bytes();
        let choice = self.random.u8(..12);
        let single = number.checked_sub(KEYS - SINGLE_KEYS).map(usize::from);
        let (value_type, stored, write) = match (choice, single) {
            (0 | 1, _) => return self.delete_range(sequence),
            (2..8, Some(single)) if !self.single_put[single] => {
                self.single_put[single] = true;
                (ValueType::Value, value.clone(), Write::Set(key.clone(), value))
            }
            (_, Some(single)) => {
                self.single_put[single] = false;
                (ValueType::SingleDeletion, vec![], Write::Delete(key.clone()))
            }
            (2, None) => {
                let preferred = self.random.u64(..sequence);
                let stored = [&value[..], &preferred.to_le_bytes()].concat();
                (ValueType::ValuePreferredSeqno, stored, Write::Set(key.clone(), value))
            }
            (3 | 4, None) => (ValueType::Value, value.clone(), Write::Set(key.clone(), value)),
            (5, None) => {
                (ValueType::BlobIndex, value.to_ascii_lowercase(), Write::Set(key.clone(), value))
            }
            (6, None) => {
                let stored = entity::encode(&[(b"", &value), (b"c", b"1")]);
                (ValueType::WideColumnEntity, stored, Write::Set(key.clone(), value))
            }
            (7 | 8, None) => (ValueType::Deletion, vec![], Write::Delete(key.clone())),
            (_, None) => (ValueType::Merge, value.clone(), Write::Merge(key.clone(), value)),
        };
        let internal = InternalKeyBuf::new(&key, sequence, value_type);
        writeln!(self.log, "{}", show_entry(internal.as_key(), &stored)).unwrap();
        self.memtable.0.push((internal, stored));
        self.history.push(write);
    }

    fn delete_range(&mut self, sequence: SequenceNumber) {
        let first = self.random.u8(..KEYS);
        let length = if self.random.bool() { 3 } else { KEYS };
        let last = first + 1 + self.random.u8(..length);
        let tombstone =
            RangeTombstone { start: vec![b'a' + first], end: vec![b'a' + last], sequence };
        writeln!(self.log, "{}", show_tombstone(&tombstone)).unwrap();
        self.history.push(Write::DeleteRange(tombstone.start.clone(), tombstone.end.clone()));
        self.memtable.1.push(tombstone);
    }

    pub(super) fn has_deleted_ranges(&self) -> bool {
        self.history.iter().any(|write| matches!(write, Write::DeleteRange(..)))
    }

    /// What the history says that a snapshot sees.
    pub(super) fn expected(&self, snapshot: SequenceNumber) -> Pairs {
        let mut pairs = Pairs::new();
        for (write, sequence) in self.history[..snapshot as usize].iter().zip(1..) {
            let fate = self.filtered.fate(sequence, snapshot);
            match write {
                Write::Set(key, _) if fate == Fate::Removed => _ = pairs.remove(key),
                Write::Set(key, value) => _ = pairs.insert(key.clone(), fate.leaves(value)),
                Write::Delete(key) => _ = pairs.remove(key),
                Write::Merge(..) if fate == Fate::Removed => {}
                Write::Merge(key, operand) => {
                    let existing = pairs.get(key).map(Vec::as_slice);
                    let merged =
                        self.operator.full_merge(key, existing, &[&fate.leaves(operand)]).unwrap();
                    pairs.insert(key.clone(), merged);
                }
                Write::DeleteRange(start, end) => pairs.retain(|key, _| key < start || key >= end),
            }
        }
        pairs
    }

    pub(super) fn memtable_cursor(&self) -> VecIterator {
        let mut entries = self.memtable.0.clone();
        entries.sort_by(|a, b| order().compare(a.0.as_key(), b.0.as_key()));
        VecIterator::new(order(), entries)
    }

    pub(super) fn memtable_tombstones(&self) -> Arc<FragmentedRangeTombstones> {
        Arc::new(FragmentedRangeTombstones::new(&Comparator::Bytewise, self.memtable.1.clone()))
    }

    pub(super) fn flush(&mut self) {
        self.log.push_str("flush\n");
        let (cursor, tombstones) =
            (self.memtable_cursor(), self.memtable_tombstones().untruncated());
        let job = Job { bottommost: false, split: false, below: None };
        let files = self.rewrite(vec![Box::new(cursor)], &[tombstones], job);
        assert!(files.len() <= 1);
        self.level0.splice(0..0, files);
        self.memtable = Default::default();
    }

    /// Compacts the oldest files of level 0 and what they overlap in level 1.
    fn compact_level0(&mut self) {
        if self.level0.is_empty() {
            return;
        }
        let count = self.random.usize(1..=self.level0.len());
        let upper = self.level0.split_off(self.level0.len() - count);
        writeln!(self.log, "compact {count} of level 0").unwrap();
        self.compact_into(0, upper);
    }

    /// Compacts some of level 1 and what it overlaps in level 2.
    fn compact_level1(&mut self) {
        if self.levels[0].is_empty() {
            return;
        }
        let first = self.random.usize(..self.levels[0].len());
        let (first, last) = clean_cut(&self.levels[0], first, first + 1);
        writeln!(self.log, "compact {first}..{last} of level 1").unwrap();
        let upper = self.levels[0].drain(first..last).collect();
        self.compact_into(1, upper);
    }

    /// Rewrites some of the last level in place.
    fn compact_level2(&mut self) {
        if self.levels[1].is_empty() {
            return;
        }
        let first = self.random.usize(..self.levels[1].len());
        let (first, last) = clean_cut(&self.levels[1], first, first + 1);
        writeln!(self.log, "compact {first}..{last} of level 2").unwrap();
        let upper = self.levels[1].drain(first..last).collect();
        self.compact_into(1, upper);
    }

    /// Compacts `upper` with what it overlaps in `self.levels[target]`, into that level.
    pub(super) fn compact_into(&mut self, target: usize, upper: Vec<File>) {
        let range = user_range(&upper);
        let level = &self.levels[target];
        let first = level.iter().position(|file| file.overlaps((&range.0, &range.1)));
        let mut lower = Vec::new();
        let mut at = level.iter().filter(|file| file.largest.user_key() < &range.0[..]).count();
        if let Some(first) = first {
            let count = level.iter().filter(|file| file.overlaps((&range.0, &range.1))).count();
            let (first, last) = clean_cut(level, first, first + count);
            lower = self.levels[target].drain(first..last).collect();
            at = first;
        }
        let inputs: Vec<File> = upper.into_iter().chain(lower).collect();
        let range = user_range(&inputs);
        let below = if target == 0 { self.levels[1].clone() } else { Vec::new() };
        let bottommost = !below.iter().any(|file| file.overlaps((&range.0, &range.1)));
        let cursors = inputs
            .iter()
            .map(|file| Box::new(file.cursor()) as Box<dyn InternalIterator>)
            .collect();
        let tombstones: Vec<_> = inputs.iter().map(File::truncated).collect();
        let files =
            self.rewrite(cursors, &tombstones, Job { bottommost, split: true, below: Some(below) });
        self.levels[target].splice(at..at, files);
        let level = &self.levels[target];
        for pair in level.windows(2) {
            let ordered =
                order().compare(pair[0].largest.as_key(), pair[1].smallest.as_key()).is_lt();
            assert!(ordered, "{:?} and {:?}\n{}", pair[0].largest, pair[1].smallest, self.log);
        }
    }

    /// Runs the stream, as one or two subcompactions, and cuts the output into files.
    fn rewrite(
        &mut self,
        cursors: Vec<Box<dyn InternalIterator>>,
        tombstones: &[TruncatedRangeTombstones],
        job: Job,
    ) -> Vec<File> {
        let tombstones = StreamTombstones::new(&Comparator::Bytewise, tombstones, &self.snapshots);
        let nothing_below = |start: &[u8], end: &[u8]| match &job.below {
            None => false,
            Some(below) => !below.iter().any(|file| file.overlaps((start, end))),
        };
        let surviving = tombstones.surviving(&self.snapshots, job.bottommost, nothing_below);
        let mut entries = Vec::new();
        let mut input = MergingIterator::new(order(), cursors);
        input.seek_to_first();
        while input.valid() {
            entries.push((input.key().to_buf(), input.value().to_vec()));
            input.next();
        }
        let boundary =
            (job.split && self.random.u8(..3) == 0).then(|| vec![b'a' + self.random.u8(..KEYS)]);
        let mut files = Vec::new();
        let Some(boundary) = boundary else {
            self.run(&job, entries, &tombstones, &surviving, (None, None), &mut files);
            return files;
        };
        writeln!(self.log, "two subcompactions, divided at {}", boundary.escape_ascii()).unwrap();
        let later =
            entries.split_off(entries.partition_point(|(key, _)| key.user_key() < &boundary[..]));
        self.run(&job, entries, &tombstones, &surviving, (None, Some(&boundary)), &mut files);
        self.run(&job, later, &tombstones, &surviving, (Some(&boundary), None), &mut files);
        files
    }

    /// One subcompaction.
    fn run(
        &mut self,
        job: &Job,
        entries: Vec<Entry>,
        tombstones: &StreamTombstones,
        surviving: &[RangeTombstone],
        (begin, end): (Option<&[u8]>, Option<&[u8]>),
        files: &mut Vec<File>,
    ) {
        let mut settings = StreamSettings::new(Comparator::Bytewise);
        settings.snapshots = self.snapshots.clone();
        settings.bottommost = job.bottommost;
        settings.merge_operator = Some(self.operator.clone());
        let mut input = VecIterator::new(order(), entries);
        input.seek_to_first();
        let not_below = |key: &[u8]| match &job.below {
            None => false,
            Some(below) => !below.iter().any(|file| file.contains(key)),
        };
        let places = RandomPlaces(self.random.fork());
        let filter = self.filter.as_ref().map(|filter| filter as &dyn CompactionFilter);
        let mut stream =
            CompactionStream::new(settings, input, tombstones, not_below, filter, Blobs, places);
        let mut outputs: Vec<Vec<Entry>> = vec![vec![]];
        while stream.valid() {
            if job.split && self.random.u8(..4) == 0 && !outputs[outputs.len() - 1].is_empty() {
                outputs.push(vec![]);
            }
            outputs.last_mut().unwrap().push((stream.key().to_buf(), stream.value().to_vec()));
            stream.next();
        }
        stream.status().unwrap_or_else(|error| panic!("{error}\n{}", self.log));
        if let Some(filter) = &self.filter {
            filter.take_verdicts(self.snapshots.last().copied(), &mut self.filtered, &mut self.log);
        }
        for index in 0..outputs.len() {
            let entries = outputs[index].clone();
            let points = entries.first().zip(entries.last());
            let next = outputs.get(index + 1).map(|next| next[0].0.user_key()).or(end);
            let file = OutputFile {
                points: points.map(|(first, last)| (first.0.as_key(), last.0.as_key())),
                has_previous: index > 0,
                begin,
                next,
            };
            let bounds = bounds_of_output(&Comparator::Bytewise, surviving, file);
            let (Some(smallest), Some(largest)) = (bounds.smallest, bounds.largest) else {
                continue;
            };
            for tombstone in &bounds.tombstones {
                // RocksDB's iterators rely on it when they come back into the file.
                let start = InternalKeyBuf::new(
                    &tombstone.start,
                    tombstone.sequence,
                    ValueType::RangeDeletion,
                );
                let starts_inside = order().compare(start.as_key(), largest.as_key()).is_le();
                assert!(starts_inside, "{tombstone:?} begins after {largest:?}\n{}", self.log);
            }
            let tombstones =
                FragmentedRangeTombstones::new(&Comparator::Bytewise, bounds.tombstones);
            files.push(File { entries, tombstones: Arc::new(tombstones), smallest, largest });
        }
    }

    pub(super) fn step(&mut self) {
        match self.random.u8(..20) {
            0..10 => (0..self.random.usize(1..8)).for_each(|_| self.write()),
            10 | 11 => {
                let sequence = self.last_sequence();
                if self.snapshots.last() != Some(&sequence) {
                    writeln!(self.log, "snapshot {sequence}").unwrap();
                    self.snapshots.push(sequence);
                }
            }
            12 if !self.snapshots.is_empty() => {
                let index = self.random.usize(..self.snapshots.len());
                let sequence = self.snapshots.remove(index);
                writeln!(self.log, "release {sequence}").unwrap();
            }
            12..15 => self.flush(),
            15 | 16 => self.compact_level0(),
            17 | 18 => self.compact_level1(),
            _ => self.compact_level2(),
        }
    }
}

impl std::fmt::Display for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.log)?;
        let show = |f: &mut std::fmt::Formatter<'_>, name: &str, file: &File| {
            write!(f, "{name} {:?}..{:?}:", file.smallest, file.largest)?;
            for (key, value) in &file.entries {
                write!(f, " {}", show_entry(key.as_key(), value))?;
            }
            for fragment in file.tombstones.fragments() {
                let (start, end) = (fragment.start.escape_ascii(), fragment.end.escape_ascii());
                write!(f, " [{start},{end})@{:?}", fragment.sequences)?;
            }
            writeln!(f)
        };
        self.level0.iter().try_for_each(|file| show(f, "L0", file))?;
        self.levels[0].iter().try_for_each(|file| show(f, "L1", file))?;
        self.levels[1].iter().try_for_each(|file| show(f, "L2", file))
    }
}

struct Job {
    bottommost: bool,
    /// Whether the output may be cut and the work divided.
    split: bool,
    /// The files below the output; `None` for a flush, which does not look.
    below: Option<Vec<File>>,
}

/// The smallest and the largest user key of files.
fn user_range(files: &[File]) -> (Vec<u8>, Vec<u8>) {
    let first = files.iter().map(|file| file.smallest.user_key()).min().unwrap_or_default();
    let last = files.iter().map(|file| file.largest.user_key()).max().unwrap_or_default();
    (first.to_vec(), last.to_vec())
}

/// Extends `first..last` so that no user key straddles its ends.
fn clean_cut(level: &[File], mut first: usize, mut last: usize) -> (usize, usize) {
    let straddles = |a: &File, b: &File| {
        a.largest.user_key() == b.smallest.user_key()
            && a.largest.as_key().sequence() != MAX_SEQUENCE_NUMBER
    };
    while first > 0 && straddles(&level[first - 1], &level[first]) {
        first -= 1;
    }
    while last < level.len() && straddles(&level[last - 1], &level[last]) {
        last += 1;
    }
    (first, last)
}
