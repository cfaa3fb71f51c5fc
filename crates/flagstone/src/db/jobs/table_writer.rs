//! The tables of one part of a job, written one after the other.
//!
//! A table ends where the splitter says, or where it would get more range tombstones than a table
//! can hold (`range_cuts.rs`). It gets those of its part of the key space when it ends; a part of
//! which nothing else is left has one of these alone.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::base::{
    Error, FileNumber, InternalKey, InternalKeyBuf, PartitionRequest, RangeTombstone, Result,
    SequenceNumber, Sometimes, SstPartitioner, ValueType, file_name, timestamp,
};
use crate::blob::{GarbageMeter, visit_references};
use crate::cache::{Held, MemoryKind};
use crate::compaction::pick::DeletedRanges;
use crate::compaction::{OutputFile, bounds_of_output};
use crate::db::jobs::job::{Made, Target};
use crate::db::jobs::output::{self, Job};
use crate::db::jobs::part::{Cuts, PartRange};
use crate::db::jobs::written::{self, Entries};
use crate::db::jobs::{deletions, table_settings};
use crate::db::tree::output::JobOutput;
use crate::env::{WritableFile, hint_temperature};
use crate::manifest::{BlobReferences, EntryStats, FileMetadata};
use crate::sst::{
    Filter, ReadCacheHits, TableBuilder, TableProperties, parallel_compression_memory,
};

/// A table being written.
struct OpenTable {
    number: FileNumber,
    file: Arc<dyn WritableFile>,
    builder: TableBuilder,
    first: InternalKeyBuf,
    last: InternalKeyBuf,
    smallest_seqno: SequenceNumber,
    largest_seqno: SequenceNumber,
    /// What it is to hold when it is read back, if it is to be.
    entries: Option<Entries>,
    /// Entries that refer to no blob file.
    others: u64,
    /// Bytes of the records that its entries refer to.
    blobs: BTreeMap<FileNumber, u64>,
    /// The bytes of the timestamps that keys are stored without, if they are.
    stripped: Option<usize>,
    /// The memory of the threads that compress its blocks.
    _compression: Option<Held>,
}

/// Writes a part's tables of one level, one after the other.
pub(super) struct TableWriter<'a> {
    job: &'a Job<'a>,
    target: Target,
    /// What is being written: the part, or a piece of it.
    range: PartRange,
    /// Where further pieces begin, each of which has no more range tombstones than a table can
    /// hold.
    cuts: VecDeque<Vec<u8>>,
    /// How many tables were written of the pieces before.
    earlier_tables: usize,
    /// Of the range tombstones that the output must hold, those of the range's sequence numbers
    /// that go to the level.
    surviving: Cow<'a, [RangeTombstone]>,
    read_cache_hits: &'a Arc<ReadCacheHits>,
    output: JobOutput,
    open: Option<OpenTable>,
}

impl OpenTable {
    fn add_range_tombstones(&mut self, tombstones: &[RangeTombstone]) {
        let size = self.stripped.unwrap_or(0);
        for tombstone in tombstones {
            let (start, end) =
                (timestamp::strip(&tombstone.start, size), timestamp::strip(&tombstone.end, size));
            self.builder.add_range_tombstone(start, end, tombstone.sequence);
            self.smallest_seqno = self.smallest_seqno.min(tombstone.sequence);
            self.largest_seqno = self.largest_seqno.max(tombstone.sequence);
        }
    }
}

impl<'a> TableWriter<'a> {
    pub(super) fn new(
        job: &'a Job<'a>,
        target: Target,
        range: &PartRange,
        read_cache_hits: &'a Arc<ReadCacheHits>,
    ) -> Self {
        let mut surviving = range.own(&job.surviving);
        if job.spec.proximal.is_some() {
            let belongs =
                |tombstone: &RangeTombstone| job.is_young(tombstone.sequence) == target.is_proximal;
            surviving.to_mut().retain(belongs);
        }
        Self {
            job,
            target,
            surviving,
            cuts: range.inner_cuts(job.spec.family.comparator(), &job.range_cuts),
            range: range.clone(),
            earlier_tables: 0,
            read_cache_hits,
            output: JobOutput::default(),
            open: None,
        }
    }

    /// Adds an entry, in a new table if it does not belong into the open one. What refers to a blob
    /// file flows out, by `meter`.
    pub(super) fn add(
        &mut self,
        key: InternalKey<'_>,
        value: &[u8],
        cuts: &mut Cuts,
        meter: &Mutex<GarbageMeter>,
    ) -> Result<()> {
        if let Some(splitter) = &mut cuts.splitter {
            if self.is_partitioned_before(key, cuts.partitioner.as_mut()) {
                self.end_before(key)?;
            }
            let size = self.open.as_ref().map(|open| open.builder.estimated_size());
            let is_full = splitter.should_stop_before(key, size);
            if (is_full || self.is_cut_before(key)) && !self.has_versions_of(key) {
                self.end_before(key)?;
            }
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let fresh = self.begin(key.to_buf())?;
                self.open.insert(fresh)
            }
        };
        let mut refers = false;
        visit_references(key.value_type(), value, |index| {
            refers = true;
            meter.lock().flow_out(key.user_key().len(), &index);
            let bytes = open.blobs.entry(index.file).or_default();
            *bytes = bytes.saturating_add(index.record_bytes(key.user_key().len()));
            Ok(())
        })?;
        open.others += u64::from(!refers);
        if let Some(entries) = &mut open.entries {
            entries.add(key, value);
        }
        match &open.stripped {
            None => open.builder.add(key, value)?,
            Some(size) => {
                let bare = timestamp::strip(key.user_key(), *size);
                let kind = key.value_type().unwrap_or(ValueType::Value);
                let stored = InternalKeyBuf::new(bare, key.sequence(), kind);
                open.builder.add(stored.as_key(), value)?;
            }
        }
        open.last.set_from(key);
        open.smallest_seqno = open.smallest_seqno.min(key.sequence());
        open.largest_seqno = open.largest_seqno.max(key.sequence());
        Ok(())
    }

    /// Whether the application wants the open table to end before `key`.
    fn is_partitioned_before(
        &self,
        key: InternalKey<'_>,
        partitioner: Option<&mut Box<dyn SstPartitioner>>,
    ) -> bool {
        let (Some(open), Some(partitioner)) = (&self.open, partitioner) else { return false };
        let (last, size) = (open.last.as_key(), open.builder.estimated_size());
        let request = PartitionRequest::new(last.user_key(), key.user_key(), size);
        let is_partitioned = partitioner.should_partition(&request) && !self.has_versions_of(key);
        if is_partitioned {
            Sometimes::CutByPartitioner.reached();
        }
        is_partitioned
    }

    /// Ends the open table before `key`, and the pieces before it.
    fn end_before(&mut self, key: InternalKey<'_>) -> Result<()> {
        self.check_order(key)?;
        while self.is_cut_before(key) {
            self.end_piece()?;
        }
        self.finish(Some(key.user_key()))
    }

    /// The bytes of the timestamps that the tables' keys are stored without.
    fn stripped_bytes(&self) -> Option<usize> {
        let history = self.job.spec.history.as_ref();
        history
            .filter(|history| history.is_stripped)
            .map(|_| self.job.spec.family.order.timestamp_size())
    }

    /// Whether the open table has versions of the key with other timestamps: it does not end
    /// between these.
    fn has_versions_of(&self, key: InternalKey<'_>) -> bool {
        let order = &self.job.spec.family.order;
        order.timestamp_size() > 0
            && self.open.as_ref().is_some_and(|open| {
                order.keys().compare(open.last.user_key(), key.user_key()).is_eq()
            })
    }

    /// Where a table ends there is no builder that would notice. It may end between two versions of
    /// one key.
    fn check_order(&self, key: InternalKey<'_>) -> Result<()> {
        let order = &self.job.spec.family.order;
        match &self.open {
            Some(open) if order.compare(open.last.as_key(), key).is_ge() => {
                let last = open.last.as_key();
                Err(Error::corruption(format!(
                    "entries are out of order: {key:?} comes after {last:?}"
                )))
            }
            _ => Ok(()),
        }
    }

    fn begin(&self, first: InternalKeyBuf) -> Result<OpenTable> {
        let Job { inner, spec, unfinished, .. } = self.job;
        let number = inner.tree.file_numbers.allocate();
        let place = &self.target.place;
        let path = file_name::table(spec.family.paths.directory(place.path_id), number);
        hint_temperature(&*inner.context.env.fs, &path, place.temperature);
        let (number, file) = unfinished.create(Made::Table, number, path)?;
        let settings = table_settings::settings_of_table(inner, spec, &self.target, number);
        let prepopulate = table_settings::prepopulate(inner, spec, number, self.read_cache_hits);
        let threads = table_settings::compression_threads(inner, spec, &settings);
        let builder = TableBuilder::new(file.clone(), settings)?
            .prepopulating(prepopulate)
            .compressing_in_parallel(&inner.context.env.spawner, threads)?;
        let last = first.clone();
        Ok(OpenTable {
            number,
            file,
            builder,
            first,
            last,
            smallest_seqno: SequenceNumber::MAX,
            largest_seqno: 0,
            entries: self.job.options.paranoid_file_checks.then(Entries::default),
            others: 0,
            blobs: BTreeMap::new(),
            stripped: self.stripped_bytes(),
            _compression: (threads > 0).then(|| {
                let bytes = parallel_compression_memory(threads, spec.pace.entry_size);
                inner.tables.account().hold(MemoryKind::Jobs, bytes)
            }),
        })
    }

    #[inline]
    fn is_cut_before(&self, key: InternalKey<'_>) -> bool {
        let user = self.job.spec.family.comparator();
        self.cuts.front().is_some_and(|cut| user.compare(cut, key.user_key()).is_le())
    }

    /// Goes on with the next piece, of which there is one.
    fn end_piece(&mut self) -> Result<()> {
        let Some(cut) = self.cuts.pop_front() else { return Ok(()) };
        let end = self.range.end.replace(cut.clone());
        self.finish_piece()?;
        (self.range.begin, self.range.end) = (Some(cut), end);
        self.earlier_tables = self.output.tables.len();
        Ok(())
    }

    /// The tables, all of which are finished.
    pub(super) fn into_output(self) -> JobOutput {
        self.output
    }

    /// Finishes the last table.
    pub(super) fn finish_last(&mut self) -> Result<()> {
        while !self.cuts.is_empty() {
            self.end_piece()?;
        }
        self.finish_piece()
    }

    /// Finishes the last table of a piece; one of range tombstones alone if nothing else is left.
    fn finish_piece(&mut self) -> Result<()> {
        let user = self.job.spec.family.comparator();
        let has_tombstones =
            || self.surviving.iter().any(|tombstone| self.range.overlaps(user, tombstone));
        if self.open.is_none()
            && self.output.tables.len() == self.earlier_tables
            && has_tombstones()
        {
            Sometimes::RangeTombstonesAlone.reached();
            let placeholder = InternalKeyBuf::new(b"", 0, ValueType::Value);
            let fresh = self.begin(placeholder)?;
            self.open = Some(fresh);
        }
        let end = self.range.end.clone();
        if self.open.is_some() { self.finish(end.as_deref()) } else { Ok(()) }
    }

    /// Has a new table opened as soon as it is part of the tree, if something waits for it in
    /// memory.
    fn note_to_open(&mut self, number: FileNumber, is_cached: bool, key_filter: Option<Filter>) {
        if is_cached || key_filter.is_some() {
            self.output.to_open.push(number);
        }
        if let Some(filter) = key_filter {
            self.job.inner.tables.keep_key_filter(number, filter);
        }
    }

    /// Notes the ranges that the tombstones of a table delete as a whole; the bytes below them.
    fn note_deleted(
        &mut self,
        number: FileNumber,
        bounds: (&InternalKeyBuf, &InternalKeyBuf),
        tombstones: &[RangeTombstone],
    ) -> u64 {
        if tombstones.is_empty() || self.job.spec.history.is_some() {
            // Below those with timestamps is what they spare.
            return 0;
        }
        let Job { inner, spec, .. } = self.job;
        let (version, level) = (&spec.version, self.target.place.level);
        self.output.deleted.extend(DeletedRanges::new(version, level, number, bounds, tombstones));
        deletions::bytes_below(inner, &spec.family, version, level, tombstones)
    }

    /// For what listeners are told.
    fn note_properties(&mut self, number: FileNumber, properties: &TableProperties) {
        if self.job.inner.context.events.has_listeners() {
            self.output.properties.push((number, Arc::new(properties.clone())));
        }
    }

    /// Finishes the open table, before what begins with the user key `next`.
    fn finish(&mut self, next: Option<&[u8]>) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let has_points = open.builder.num_entries() > 0;
        let bounds = bounds_of_output(
            self.job.spec.family.comparator(),
            &self.surviving,
            OutputFile {
                points: has_points.then(|| (open.first.as_key(), open.last.as_key())),
                has_previous: self.output.tables.len() > self.earlier_tables,
                begin: self.range.begin.as_deref(),
                next,
            },
        );
        open.add_range_tombstones(&bounds.tombstones);
        let (Some(smallest), Some(largest)) = (bounds.smallest, bounds.largest) else {
            return Ok(());
        };
        let Job { inner, spec, .. } = self.job;
        if !bounds.tombstones.is_empty() && open.stripped.is_none() {
            open.builder.note_bounds(smallest.as_key(), largest.as_key());
        }
        if !spec.is_flush {
            // What it says by its own entries is lost where they lose their sequence numbers.
            open.builder.note_flushed_until(spec.flushed_until());
        }
        let summary = open.builder.finish()?;
        let (min_timestamp, max_timestamp) = timestamps_of(&summary.properties);
        self.output.counts.raw_bytes +=
            summary.properties.raw_key_size + summary.properties.raw_value_size;
        output::sync_output(inner, spec, &*open.file)?;
        if let Some(entries) = &open.entries {
            written::check_written(inner, &spec.family, open.file.path(), summary.size, entries)?;
        }
        self.note_properties(open.number, &summary.properties);
        let checksum = self.job.unfinished.checksum_of(open.number, &*open.file, summary.size)?;
        self.note_to_open(open.number, summary.is_cached, summary.key_filter);
        let covered = self.note_deleted(open.number, (&smallest, &largest), &bounds.tombstones);
        let now = inner.context.env.clock.unix_seconds();
        // Where there are no blob files, the MANIFEST need not say what might hide some.
        let others = if spec.version.blob_files.is_empty() { 0 } else { open.others };
        let meta = FileMetadata {
            number: open.number,
            path_id: self.target.place.path_id,
            size: summary.size,
            marked_for_compaction: summary.needs_compaction && spec.may_mark(&self.target),
            smallest,
            largest,
            min_timestamp,
            max_timestamp,
            user_timestamps_persisted: open.stripped.is_none(),
            padded_bytes: open.stripped.unwrap_or(0),
            smallest_seqno: open.smallest_seqno,
            largest_seqno: open.largest_seqno,
            oldest_blob_file: open.blobs.keys().next().copied(),
            blob_references: BlobReferences::new(others, open.blobs.into_iter().collect()),
            oldest_ancestor_time: self.target.oldest_ancestor_time_or(now),
            file_creation_time: spec.inherited.file_creation_time_or(now),
            temperature: self.target.place.temperature,
            epoch_number: spec.inherited.epoch_number,
            unique_id: summary.unique_id,
            tail_size: summary.tail_size,
            compensated_range_deletion_size: covered,
            entry_stats: Some(EntryStats::of(&summary.properties)),
            ..FileMetadata::default()
        };
        self.output.tables.push(meta.with_checksum(checksum));
        Ok(())
    }
}

/// The oldest and the newest timestamp of a table's keys; empty if these have none.
fn timestamps_of(properties: &TableProperties) -> (Vec<u8>, Vec<u8>) {
    let stamps = properties.timestamps();
    stamps.map_or_else(Default::default, |(min, max)| (min.to_vec(), max.to_vec()))
}
