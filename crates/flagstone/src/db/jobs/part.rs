//! A job's input in parts: ranges of user keys, each with cursors of its own (RocksDB's
//! subcompactions).
//!
//! A flush has one part without bounds, and so have most compactions.
//! `compaction/pick/subcompactions.rs` says where others are cut; `output` runs the parts and puts
//! together what they wrote.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::base::range_tombstone::TruncatedFragment;
use crate::base::sync::{Mutex, Ordering};
use crate::base::{
    Code, Comparator, Error, InternalIterator, InternalKey, InternalKeyBuf, InternalKeyComparator,
    MAX_SEQUENCE_NUMBER, RangeTombstone, Remedy, Result, SequenceNumber, Sometimes, SstPartitioner,
    TruncatedRangeTombstones, ValueType, key_in_words, timestamp,
};
use crate::blob::{BlobIndex, GarbageMeter, visit_references};
use crate::compaction::pick::{
    CompactionPlan, LevelInput, OutputSplitter, SplitRule, is_divisible, subcompaction_boundaries,
};
use crate::db::jobs::range_cuts::{sequence_cuts, start_of_too_many};
use crate::db::jobs::{Jobs, output};
use crate::db::reading::source::Source;
use crate::db::tables::level_files::{FileList, LevelFiles, ReadThrough, truncated};
use crate::db::tables::tombstones_of;
use crate::db::tree::compaction_job::{CompactionJob, check_not_canceled};
use crate::db::tree::partitioning::partitioner_of;
use crate::db::tree::paused_work;
use crate::env::ReadAhead;
use crate::iter::lookup::{in_key, locate_value};
use crate::iter::{ConcatIterator, KeyBounds, MergingIterator};
use crate::manifest::Version;
use crate::options::CompactionControl;
use crate::sst::{IterSettings, ReadCacheHits, ReadSettings};

/// A compaction reads each input ahead by at most this many bytes, unless the options say how many,
const COMPACTION_READAHEAD: usize = 2 << 20;
/// and all of them together by about this many, unless there are very many.
const COMPACTION_READAHEAD_OF_ALL: usize = 8 << 20;
const COMPACTION_READAHEAD_MIN: usize = 256 << 10;

/// How many places of each table are known to whoever cuts a compaction; RocksDB's number.
const ANCHORS: usize = 128;

/// The places of a compaction's inputs in level 0, the oldest first.
pub(in crate::db) fn epochs(job: &CompactionJob) -> BTreeSet<u64> {
    job.plan.files().map(|(_, file)| file.meta.epoch_number).collect()
}

/// How many cursors a part reads the inputs with.
fn cursors_over(plan: &CompactionPlan) -> usize {
    plan.inputs.iter().map(|input| if input.level == 0 { input.files.len() } else { 1 }).sum()
}

/// What a part reads.
pub(in crate::db) struct Part {
    pub(in crate::db) range: PartRange,
    /// Cursors over the whole of the inputs, or a little more than the range, newest first.
    pub(in crate::db) sources: Vec<Source>,
    /// What these read ahead, in bytes.
    pub(in crate::db) readahead_bytes: usize,
    /// Told by the sources which of their blocks were cached.
    pub(in crate::db) read_cache_hits: Arc<ReadCacheHits>,
    /// Where the tables end.
    pub(in crate::db) cuts: Cuts,
    /// Where those of the young entries do, if they go to another level.
    pub(in crate::db) proximal_cuts: Option<Cuts>,
}

/// Where the tables of a level end.
#[derive(Default)]
pub(in crate::db) struct Cuts {
    /// Where to cut tables; a flush is never cut.
    pub(in crate::db) splitter: Option<OutputSplitter>,
    /// Where the application wants them to be cut.
    pub(in crate::db) partitioner: Option<Box<dyn SstPartitioner>>,
}

/// A range of user keys, and of sequence numbers.
#[derive(Debug, Clone, Default)]
pub(in crate::db) struct PartRange {
    /// The first key; `None` for all from the beginning.
    pub(in crate::db) begin: Option<Vec<u8>>,
    /// The first key that does not belong to it; `None` for all up to the end.
    pub(in crate::db) end: Option<Vec<u8>>,
    /// What of all there is of these keys; `None` for all.
    pub(in crate::db) sequences: Option<RangeInclusive<SequenceNumber>>,
}

impl PartRange {
    /// All keys, of these sequence numbers.
    pub(in crate::db) fn of_sequences(sequences: RangeInclusive<SequenceNumber>) -> Self {
        Self { sequences: Some(sequences), ..Self::default() }
    }

    /// The ranges between these ascending keys.
    fn between(boundaries: &[Vec<u8>]) -> Vec<Self> {
        let begins = std::iter::once(None).chain(boundaries.iter().cloned().map(Some));
        let ends = boundaries.iter().cloned().map(Some).chain([None]);
        begins.zip(ends).map(|(begin, end)| Self { begin, end, sequences: None }).collect()
    }

    fn leaves_out(&self, sequence: SequenceNumber) -> bool {
        self.sequences.as_ref().is_some_and(|sequences| !sequences.contains(&sequence))
    }

    /// Whether nothing older than what belongs to it does to another of the same keys.
    pub(in crate::db) fn has_oldest(&self) -> bool {
        self.sequences.as_ref().is_none_or(|sequences| *sequences.start() == 0)
    }

    /// Those of ascending keys at which it can be cut in two.
    pub(in crate::db) fn inner_cuts(
        &self,
        user: &Comparator,
        cuts: &[Vec<u8>],
    ) -> VecDeque<Vec<u8>> {
        let is_inner = |cut: &&Vec<u8>| {
            self.begin.as_ref().is_none_or(|begin| user.compare(cut, begin).is_gt())
                && self.end.as_ref().is_none_or(|end| user.compare(cut, end).is_lt())
        };
        cuts.iter().filter(is_inner).cloned().collect()
    }

    /// Those of the range tombstones, in the same order, that are of its sequence numbers.
    pub(in crate::db) fn own<'a>(
        &self,
        tombstones: &'a [RangeTombstone],
    ) -> Cow<'a, [RangeTombstone]> {
        match &self.sequences {
            None => Cow::Borrowed(tombstones),
            Some(_) => {
                let own =
                    tombstones.iter().filter(|tombstone| !self.leaves_out(tombstone.sequence));
                Cow::Owned(own.cloned().collect())
            }
        }
    }

    /// Whether a range tombstone covers keys of the range.
    pub(in crate::db) fn overlaps(&self, user: &Comparator, tombstone: &RangeTombstone) -> bool {
        self.begin.as_ref().is_none_or(|begin| user.compare(&tombstone.end, begin).is_gt())
            && self.end.as_ref().is_none_or(|end| user.compare(&tombstone.start, end).is_lt())
    }

    fn ends_before(&self, user: &Comparator, key: InternalKey<'_>) -> bool {
        let Some(end) = &self.end else { return false };
        let order = user.compare(key.user_key(), end);
        order.is_ge()
    }
}

/// The range tombstones of all inputs of a compaction.
pub(in crate::db) fn tombstones_of_inputs(
    jobs: &Jobs,
    job: &CompactionJob,
) -> Result<Vec<TruncatedRangeTombstones>> {
    let mut tombstones = Vec::new();
    for (_, file) in job.plan.files() {
        if let Some(found) = tombstones_of(jobs.tables.open(&job.family, file)?) {
            tombstones.push(truncated(found, file));
        }
    }
    Ok(tombstones)
}

/// Up to which sequence number the inputs of a compaction say that tables had all writes of the
/// family. One from another database, or of another family, says it of that one's.
pub(in crate::db) fn inputs_flushed_until(
    jobs: &Jobs,
    job: &CompactionJob,
) -> Result<SequenceNumber> {
    let mut until = 0;
    for (_, file) in job.plan.files() {
        let properties = jobs.tables.open(&job.family, file)?.properties();
        let is_own = properties.column_family == Some(job.family.id.0);
        if is_own && properties.db_identity == jobs.context.identity.database {
            until = properties.flushed_until().map_or(until, |noted| noted.max(until));
        }
    }
    Ok(until)
}

/// The parts of a compaction, of whose range tombstones these are to survive.
pub(in crate::db) fn compaction_parts(
    jobs: &Jobs,
    job: &CompactionJob,
    surviving: &[RangeTombstone],
) -> Result<Vec<Part>> {
    let ranges = match job.plan.output_level {
        0 => level0_ranges(jobs, job, surviving)?,
        _ => {
            check_range_deletions_fit(jobs, job, surviving)?;
            PartRange::between(&boundaries(jobs, job)?)
        }
    };
    parts_of(jobs, job, ranges)
}

/// A compaction within level 0 is one part, unless a table cannot hold the range tombstones: it
/// is cut between sequence numbers then, as if memtables had ended there, and its outputs take
/// the inputs' places.
///
/// # Errors
/// `Aborted`: there would be no fewer of them.
fn level0_ranges(
    jobs: &Jobs,
    job: &CompactionJob,
    surviving: &[RangeTombstone],
) -> Result<Vec<PartRange>> {
    let ranges = sequence_cuts(surviving, jobs.limits.range_deletion_bytes_max());
    if ranges.len() == 1 {
        return Ok(vec![PartRange::default()]);
    }
    if ranges.len() >= epochs(job).len() {
        job.is_in_vain.store(true, Ordering::Relaxed);
        let message = "the range deletions in level 0 do not fit into fewer tables; the tables stay as they are";
        return Err(Error::new(Code::Aborted, message));
    }
    Sometimes::Level0RangesCut.reached();
    Ok(ranges.into_iter().map(PartRange::of_sequences).collect())
}

/// Tables of a deeper level are cut between the starts of range tombstones.
///
/// # Errors
/// `NotSupported`, if a table cannot hold those of one start, naming the newest input with some
/// of them: it is set aside.
fn check_range_deletions_fit(
    jobs: &Jobs,
    job: &CompactionJob,
    surviving: &[RangeTombstone],
) -> Result<()> {
    let user = job.family.comparator();
    let most = jobs.limits.range_deletion_bytes_max();
    let Some(start) = start_of_too_many(user, surviving, most) else { return Ok(()) };
    let message = format!(
        "the range deletions that begin with the key '{}' and that snapshots need are more than a table can hold: they stay \
         where they are",
        key_in_words(start)
    );
    let error = Error::new(Code::NotSupported, message).advise(Remedy::DropOldestSnapshots);
    for (_, file) in job.plan.files() {
        let table = jobs.tables.open(&job.family, file)?;
        let is_over = |fragment: TruncatedFragment<'_>| {
            user.compare(fragment.start.user_key, start).is_le()
                && user.compare(start, fragment.end.user_key).is_lt()
        };
        let has_some = |found| truncated(found, file).fragments().any(is_over);
        if tombstones_of(table).is_some_and(has_some) {
            Sometimes::RangeDeletionsSetAside.reached();
            job.is_outnumbered.store(true, Ordering::Relaxed);
            return Err(error.at(table.path()));
        }
    }
    Err(error)
}

/// These parts of a compaction.
pub(in crate::db) fn parts_of(
    jobs: &Jobs,
    job: &CompactionJob,
    ranges: Vec<PartRange>,
) -> Result<Vec<Part>> {
    // Around the system's cache nothing comes by itself while the window before is used up.
    let reads_ahead = jobs.context.settings.load().use_direct_io_for_flush_and_compaction
        && jobs.tree.has_workers();
    let windows = if reads_ahead { 2 } else { 1 };
    let (settings, through) = reads_of(jobs, job, windows * ranges.len() * cursors_over(&job.plan));
    let readahead_size = windows * settings.readahead_size;
    let follows = job.family.options.load().table.cache_follows_compaction;
    let rule = SplitRule::from(&job.plan);
    let parts = ranges.into_iter().map(|range| {
        let read_cache_hits = Arc::new(ReadCacheHits::default());
        let settings = IterSettings {
            upper_bound: range.end.clone(),
            read_cache_hits: follows.then(|| read_cache_hits.clone()),
            ..settings.clone()
        };
        let ahead = reads_ahead.then(|| Arc::new(ReadAhead::new(jobs.context.env.spawner.clone())));
        let through = ReadThrough { ahead, ..through.clone() };
        let sources = compaction_sources(jobs, job, &range, settings, &through)?;
        let readahead_bytes = sources.len() * readahead_size;
        let cuts = |rule: &SplitRule| Cuts {
            splitter: Some(OutputSplitter::new(rule.clone(), job.family.order.keys().clone())),
            partitioner: partitioner_of(&job.family, &job.version, &job.plan, job.is_manual),
        };
        let proximal_cuts = job.plan.proximal.map(|proximal| cuts(&SplitRule::from(&proximal)));
        let cuts = cuts(&rule);
        Ok(Part { range, sources, readahead_bytes, read_cache_hits, cuts, proximal_cuts })
    });
    parts.collect()
}

/// Whether as many entries were read of a compaction's inputs as these have. A part ends at the
/// first key that belongs to the next, which finds its beginning by itself: what comes behind
/// such a key and is out of order lies in neither.
///
/// # Errors
/// That of a table whose entries are out of order; what it is that keeps the compaction from
/// going on.
pub(in crate::db) fn is_all_read(
    jobs: &Jobs,
    job: &CompactionJob,
    entries_read: u64,
) -> Result<bool> {
    let mut entries = 0u64;
    for (_, file) in job.plan.files() {
        let properties = jobs.tables.open(&job.family, file)?.properties();
        let points = properties.num_entries.saturating_sub(properties.num_range_deletions);
        entries = entries.saturating_add(points);
    }
    if entries == entries_read {
        return Ok(true);
    }
    let goes_on = || {
        output::check_wanted(jobs, &job.family)
            .and_then(|()| paused_work::check_not_stopped(&jobs.tree, job.is_manual))
            .and_then(|()| check_not_canceled(job.control.as_deref()))
    };
    for (_, file) in job.plan.files() {
        jobs.tables.open(&job.family, file)?.check_entries(&goes_on)?;
    }
    Ok(false)
}

/// How a compaction reads its inputs, with so many cursors at the same time.
pub(in crate::db) fn reads_of(
    jobs: &Jobs,
    job: &CompactionJob,
    cursors: usize,
) -> (IterSettings, ReadThrough) {
    let options = jobs.context.settings.load();
    let most = match options.compaction_readahead_size {
        0 => COMPACTION_READAHEAD,
        size => size as usize,
    };
    let of_all = match options.memory_budget.bytes() {
        0 => COMPACTION_READAHEAD_OF_ALL,
        budget => COMPACTION_READAHEAD_OF_ALL.min((budget / 32) as usize),
    };
    let readahead_size = most.min((of_all / cursors.max(1)).max(COMPACTION_READAHEAD_MIN));
    let read = ReadSettings { verify_checksums: true, fill_cache: false, cache_only: false };
    let through = ReadThrough {
        directly: options.use_direct_io_for_flush_and_compaction,
        limit: jobs.background.read_limit(job.priority()),
        ahead: None,
    };
    (
        IterSettings { read, readahead_size, maps_readahead: true, ..IterSettings::default() },
        through,
    )
}

/// Where it is cut for parts: nowhere unless it may and should be.
pub(in crate::db) fn boundaries(jobs: &Jobs, job: &CompactionJob) -> Result<Vec<Vec<u8>>> {
    let parts_max =
        job.max_subcompactions.unwrap_or(jobs.context.settings.load().max_subcompactions) as usize;
    if parts_max <= 1 || !is_divisible(&job.plan) {
        return Ok(Vec::new());
    }
    let mut anchors = Vec::new();
    for (_, file) in job.plan.files() {
        let table = jobs.tables.open(&job.family, file)?;
        if table.properties().num_entries == 0 {
            // It does not say how many it has: nobody could tell that the parts have read all.
            return Ok(Vec::new());
        }
        anchors.extend(table.anchors(ANCHORS)?);
    }
    let size = job.family.order.timestamp_size();
    for anchor in &mut anchors {
        // All versions of a key are judged in one part.
        anchor.user_key = timestamp::opening(&anchor.user_key, size).into_owned();
    }
    let boundaries = subcompaction_boundaries(
        job.family.comparator(),
        anchors,
        parts_max,
        job.plan.sizes.target,
    );
    if !boundaries.is_empty() {
        Sometimes::CompactionCut.reached();
    }
    Ok(boundaries)
}

/// Cursors over the inputs, newest first: each table of level 0, each deeper level as a whole.
fn compaction_sources(
    jobs: &Jobs,
    job: &CompactionJob,
    range: &PartRange,
    settings: IterSettings,
    through: &ReadThrough,
) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for LevelInput { level, files } in &job.plan.inputs {
        if *level == 0 {
            for file in files {
                let cursor = jobs.tables.iterate(&job.family, file, &settings, Some(through))?;
                sources.push(Source::Table(cursor));
            }
        } else if !files.is_empty() {
            let list = FileList::Chosen(files.clone());
            let level =
                LevelFiles::new(jobs.tables.clone(), job.family.clone(), list, settings.clone())
                    .reading_through(through.clone());
            let order = job.family.order.clone();
            let bounds = KeyBounds { lower: None, upper: range.end.as_deref().map(Arc::from) };
            sources.push(Source::Level(ConcatIterator::new(order, level, bounds)));
        }
    }
    Ok(sources)
}

/// The entries of a part, whose blob references are counted as they are read.
pub(in crate::db) struct PartInput<'a> {
    inner: MergingIterator<Source>,
    order: InternalKeyComparator,
    range: &'a PartRange,
    meter: &'a Mutex<GarbageMeter>,
    /// Of tables: what has all blob files to which they may refer.
    version: Option<&'a Version>,
    /// Whether `inner` stands on an entry of the range.
    valid: bool,
    /// How many of them it has come to.
    entries: u64,
    /// What is wrong with the value of the entry at which it ended, if anything is.
    error: Option<Error>,
    /// Who wants to know how far it is, and the bytes read that he was not told of yet.
    follower: Option<&'a CompactionControl>,
    untold: u64,
}

/// So many bytes are read between two words on how far it is.
const TOLD_EVERY: u64 = 64 << 10;

impl<'a> PartInput<'a> {
    /// The sources merged, newest first; stands on the first entry of the range. Where `version` is
    /// given, entries must not refer to blob files that it does not have.
    pub(in crate::db) fn new(
        order: InternalKeyComparator,
        sources: Vec<Source>,
        range: &'a PartRange,
        meter: &'a Mutex<GarbageMeter>,
        version: Option<&'a Version>,
    ) -> Self {
        let inner = MergingIterator::new(order.clone(), sources);
        let mut input = Self {
            inner,
            order,
            range,
            meter,
            version,
            valid: false,
            entries: 0,
            error: None,
            follower: None,
            untold: 0,
        };
        input.seek_to_first();
        input
    }

    /// One whose progress somebody follows.
    pub(in crate::db) fn followed_by(self, follower: Option<&'a CompactionControl>) -> Self {
        Self { follower, ..self }
    }

    /// How many entries of the range were read so far.
    pub(in crate::db) fn entries(&self) -> u64 {
        self.entries
    }

    #[cold]
    fn note_progress(&mut self, follower: &CompactionControl) {
        self.untold += (self.inner.key().as_bytes().len() + self.inner.value().len()) as u64;
        if self.untold >= TOLD_EVERY {
            follower.note_read(std::mem::take(&mut self.untold));
        }
    }

    /// Looks at the entry that the cursor has come to.
    fn settle(&mut self) {
        while self.range.sequences.is_some()
            && self.inner.valid()
            && self.range.leaves_out(self.inner.key().sequence())
        {
            self.inner.next();
        }
        self.valid =
            self.inner.valid() && !self.range.ends_before(&self.order.user, self.inner.key());
        self.entries += u64::from(self.valid);
        if self.valid
            && let Err(error) = self.take_value()
        {
            self.valid = false;
            self.error = Some(self.inner.current().locate(error));
        }
    }

    /// Counts what the entry's value refers to. What cannot be read must not pass: here it is known
    /// in which table it lies, and what it may refer to would be garbage where the table goes.
    #[inline]
    fn take_value(&self) -> Result<()> {
        let (key, value) = (self.inner.key(), self.inner.value());
        let kind = key.value_type();
        if let Some(kind @ (ValueType::WideColumnEntity | ValueType::ValuePreferredSeqno)) = kind {
            locate_value(key.user_key(), kind, value)?;
        }
        let refer = |index: BlobIndex| {
            if self.version.is_some_and(|version| !version.blob_files.contains_key(&index.file)) {
                return Err(Error::corruption(format!(
                    "its value is in blob file {}, which the MANIFEST does not list",
                    index.file
                )));
            }
            self.meter.lock().flow_in(key.user_key().len(), &index);
            Ok(())
        };
        visit_references(kind, value, refer).map_err(|error| in_key(error, key.user_key()))
    }
}

impl InternalIterator for PartInput<'_> {
    fn valid(&self) -> bool {
        self.valid
    }

    fn seek_to_first(&mut self) {
        match &self.range.begin {
            None => self.inner.seek_to_first(),
            Some(begin) => {
                self.inner.seek(InternalKeyBuf::for_seek(begin, MAX_SEQUENCE_NUMBER).as_key());
            }
        }
        self.settle();
    }

    fn seek_to_last(&mut self) {
        unreachable!("a job reads forwards");
    }

    /// Steps instead of seeking: what is skipped is garbage and must be counted.
    fn seek(&mut self, target: InternalKey<'_>) {
        while self.valid && self.order.compare(self.inner.key(), target).is_lt() {
            self.next();
        }
    }

    fn seek_for_prev(&mut self, _target: InternalKey<'_>) {
        unreachable!("a job reads forwards");
    }

    fn next(&mut self) {
        if let Some(follower) = self.follower {
            self.note_progress(follower);
        }
        self.inner.next();
        self.settle();
    }

    fn prev(&mut self) {
        unreachable!("a job reads forwards");
    }

    fn key(&self) -> InternalKey<'_> {
        self.inner.key()
    }

    fn value(&self) -> &[u8] {
        self.inner.value()
    }

    fn status(&self) -> Result<()> {
        self.error.clone().map_or_else(|| self.inner.status(), Err)
    }
}
