//! The writing half of flushes and compactions: sorted input goes through the drop rules into tables and blob files.
//!
//! 1. Merge the sources; count the blob references that flow in ([`Metered`]).
//! 2. Let [`CompactionStream`] drop what nobody can see, and [`Placement`] move large values to blob files (or
//!    relocate those whose file is being collected).
//! 3. Write tables, cut where the splitter says; give each the range tombstones of its part of the key space.
//! 4. Sync tables and blob files (of a flush, also those that the memtables had filled), then the directory: only then may
//!    the MANIFEST name them.
//!
//! Files of a job that fails are removed.

use std::sync::Arc;

use super::DbInner;
use super::family::Family;
use super::iterate::Source;
use super::job::{JobOutput, JobSpec, Unfinished};
use super::placement::Placement;
use super::settings::compression_options;
use crate::base::sync::Mutex;
use crate::base::{
    FileNumber, InternalIterator, InternalKey, InternalKeyBuf, InternalKeyComparator, Mutant, RangeTombstone,
    Result, SequenceNumber, Sometimes, SubCode, ValueType, file_name,
};
use crate::blob::{BlobIndex, GarbageMeter};
use crate::compaction::pick::{KeysBelow, OutputSplitter, range_surely_absent};
use crate::compaction::{CompactionStream, OutputFile, StreamTombstones, bounds_of_output};
use crate::env::File;
use crate::iter::MergingIterator;
use crate::manifest::FileMetadata;
use crate::options::DataBlockIndexType;
use crate::sst::filter::WrittenBy;
use crate::sst::{TableBuilder, TableBuilderSettings};

/// Entries between two looks at whether the work is still wanted.
const CANCEL_INTERVAL: u64 = 1024;

/// A table being written.
struct OpenTable {
    number: FileNumber,
    file: Arc<dyn File>,
    builder: TableBuilder,
    first: InternalKeyBuf,
    last: InternalKeyBuf,
    smallest_seqno: SequenceNumber,
    largest_seqno: SequenceNumber,
    oldest_blob_file: Option<FileNumber>,
}

impl DbInner {
    /// Runs a job to synced files.
    pub(super) fn run_job(&self, mut spec: JobSpec) -> Result<JobOutput> {
        let unfinished = Unfinished::new(self);
        let snapshots = if Mutant::ForgetSnapshots.is_on() { Vec::new() } else { self.snapshots.sequences() };
        let order = spec.family.order.clone();
        let tombstones = StreamTombstones::new(&order.user, &spec.tombstones);
        let surviving = tombstones.surviving(&snapshots, spec.bottommost, |start, end| {
            let absent = || range_surely_absent(&spec.version, spec.output_level, start, end);
            !spec.is_flush && (Mutant::DropRangeTombstoneTooEarly.is_on() || absent())
        });
        let meter = Arc::new(Mutex::new(GarbageMeter::new()));
        let options = spec.family.options.load_full();
        let mut splitter = spec.splitter.take();
        let mut input = Metered {
            inner: MergingIterator::new(order.clone(), std::mem::take(&mut spec.sources)),
            order: order.clone(),
            meter: meter.clone(),
        };
        input.seek_to_first();
        let filter = options.compaction_filter.as_deref().filter(|_| !spec.is_flush);
        let placement = Placement::new(self, &spec, &options, &unfinished);
        let mut below = KeysBelow::new(&spec.version, spec.output_level);
        let mut stream = CompactionStream::new(
            spec.stream_settings(&options, snapshots),
            input,
            &tombstones,
            |key| !spec.is_flush && below.surely_absent(key),
            filter,
            placement.resolver(),
            placement,
        );
        let mut writer = TableWriter {
            inner: self,
            spec: &spec,
            unfinished: &unfinished,
            surviving: &surviving,
            output: JobOutput::default(),
            open: None,
        };

        let mut entries = 0u64;
        while stream.valid() {
            entries += 1;
            if entries.is_multiple_of(CANCEL_INTERVAL) {
                self.check_wanted(&spec.family)?;
            }
            let (key, value) = (stream.key(), stream.value());
            writer.add(key, value, splitter.as_mut(), &meter)?;
            stream.next();
        }
        stream.status()?;
        let placement = stream.into_separator();
        writer.finish_last()?;
        let mut output = writer.output;
        placement.finish(&mut output)?;
        let mut meter = std::mem::take(&mut *meter.lock());
        self.settle_direct_files(spec.family.id, &spec.direct, &mut meter, &mut output)?;
        output.garbage.extend(meter.finish()?);
        let wrote_files = !(output.tables.is_empty() && output.blob_files.is_empty());
        if wrote_files && !Mutant::SkipDirectorySync.is_on() {
            self.env.fs.sync_directory(&self.path)?;
        }
        unfinished.keep();
        Ok(output)
    }

    fn check_wanted(&self, family: &Family) -> Result<()> {
        self.check_open()?;
        family.check_alive()
    }

    /// Syncs a file of a job. A failure poisons, whoever asked for the job; a full disk does not, as the job's data goes to
    /// other files when it is tried again.
    pub(super) fn sync_output(&self, file: &dyn File) -> Result<()> {
        file.sync().inspect_err(|error| {
            if error.subcode() != SubCode::NoSpace {
                self.fail(&mut self.state.lock(), error);
            }
        })
    }

    /// Removes the files of a job whose result is not wanted any longer.
    pub(super) fn discard(&self, output: &JobOutput) {
        let tables = output.tables.iter().map(|table| file_name::table(&self.path, table.number));
        let blobs = output.blob_files.iter().map(|blob| file_name::blob(&self.path, blob.number));
        for path in tables.chain(blobs) {
            if let Err(error) = self.env.fs.remove(&path) {
                tracing::warn!(%error, "cannot remove an unused file");
            }
        }
    }
}

/// Writes the job's tables one after the other.
struct TableWriter<'a> {
    inner: &'a DbInner,
    spec: &'a JobSpec,
    unfinished: &'a Unfinished<'a>,
    surviving: &'a [RangeTombstone],
    output: JobOutput,
    open: Option<OpenTable>,
}

impl TableWriter<'_> {
    fn add(
        &mut self,
        key: InternalKey<'_>,
        value: &[u8],
        splitter: Option<&mut OutputSplitter>,
        meter: &Mutex<GarbageMeter>,
    ) -> Result<()> {
        if let Some(splitter) = splitter {
            let size = self.open.as_ref().map(|open| open.builder.estimated_size());
            if splitter.should_stop_before(key, size) {
                self.finish(Some(key.user_key()))?;
            }
        }
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let fresh = self.begin(key.to_buf())?;
                self.open.insert(fresh)
            }
        };
        if key.value_type() == Some(ValueType::BlobIndex) {
            let index = BlobIndex::decode(value)?;
            meter.lock().flow_out(key.user_key().len(), &index);
            open.oldest_blob_file =
                Some(open.oldest_blob_file.map_or(index.file, |oldest| oldest.min(index.file)));
        }
        open.builder.add(key, value)?;
        open.last.set_from(key);
        open.smallest_seqno = open.smallest_seqno.min(key.sequence());
        open.largest_seqno = open.largest_seqno.max(key.sequence());
        Ok(())
    }

    fn begin(&self, first: InternalKeyBuf) -> Result<OpenTable> {
        let number = self.inner.file_numbers.allocate();
        let (number, file) = self.unfinished.create(number, file_name::table(&self.inner.path, number))?;
        let settings = self.inner.table_builder_settings(self.spec, number);
        let builder = TableBuilder::new(file.clone(), settings)?;
        let last = first.clone();
        Ok(OpenTable {
            number,
            file,
            builder,
            first,
            last,
            smallest_seqno: SequenceNumber::MAX,
            largest_seqno: 0,
            oldest_blob_file: None,
        })
    }

    /// Finishes the last table; one of range tombstones alone if nothing else is left.
    fn finish_last(&mut self) -> Result<()> {
        if self.open.is_none() && self.output.tables.is_empty() && !self.surviving.is_empty() {
            Sometimes::RangeTombstonesAlone.reached();
            let placeholder = InternalKeyBuf::new(b"", 0, ValueType::Value);
            let fresh = self.begin(placeholder)?;
            self.open = Some(fresh);
        }
        if self.open.is_some() { self.finish(None) } else { Ok(()) }
    }

    /// Finishes the open table, before the entry with user key `next`.
    fn finish(&mut self, next: Option<&[u8]>) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let has_points = open.builder.num_entries() > 0;
        let bounds = bounds_of_output(
            self.spec.family.comparator(),
            self.surviving,
            OutputFile {
                points: has_points.then(|| (open.first.as_key(), open.last.as_key())),
                has_previous: !self.output.tables.is_empty(),
                begin: None,
                next,
            },
        );
        for tombstone in &bounds.tombstones {
            open.builder.add_range_tombstone(&tombstone.start, &tombstone.end, tombstone.sequence);
            open.smallest_seqno = open.smallest_seqno.min(tombstone.sequence);
            open.largest_seqno = open.largest_seqno.max(tombstone.sequence);
        }
        let (Some(smallest), Some(largest)) = (bounds.smallest, bounds.largest) else { return Ok(()) };
        let summary = open.builder.finish()?;
        if !Mutant::SkipTableSync.is_on() {
            self.inner.sync_output(&*open.file)?;
        }
        let now = self.inner.env.clock.unix_seconds();
        let oldest = if self.spec.oldest_ancestor_time == 0 { now } else { self.spec.oldest_ancestor_time };
        self.output.tables.push(FileMetadata {
            number: open.number,
            size: summary.size,
            smallest,
            largest,
            smallest_seqno: open.smallest_seqno,
            largest_seqno: open.largest_seqno,
            oldest_blob_file: open.oldest_blob_file,
            oldest_ancestor_time: oldest,
            file_creation_time: now,
            epoch_number: self.spec.epoch_number,
            unique_id: summary.unique_id,
            tail_size: summary.tail_size,
            ..FileMetadata::default()
        });
        Ok(())
    }
}

impl DbInner {
    /// How a job writes the table `number`.
    fn table_builder_settings(&self, spec: &JobSpec, number: FileNumber) -> TableBuilderSettings {
        let options = spec.family.options.load();
        let table = &options.table;
        let now = self.env.clock.unix_seconds();
        let written_by = match spec.is_flush {
            true => WrittenBy::Flush,
            false => WrittenBy::Compaction { level: spec.output_level as u32 },
        };
        TableBuilderSettings {
            comparator: spec.family.comparator().clone(),
            format_version: table.format_version,
            checksum: table.checksum,
            compression: spec.compression.0,
            compression_options: compression_options(&options, spec.compression.1),
            compress_index: table.enable_index_compression,
            block_align: table.block_align.then_some(4096),
            block_size: table.block_size as usize,
            block_size_deviation: table.block_size_deviation as usize,
            block_restart_interval: table.block_restart_interval as usize,
            index_block_restart_interval: table.index_block_restart_interval as usize,
            index_type: table.index_type,
            metadata_block_size: table.metadata_block_size as usize,
            index_shortening: table.index_shortening,
            filter_policy: table.filter_policy,
            written_by,
            prefix_extractor: options.prefix_extractor.clone(),
            whole_key_filtering: table.whole_key_filtering,
            partition_filters: table.partition_filters,
            data_block_hash_ratio: (table.data_block_index_type == DataBlockIndexType::BinaryAndHash)
                .then_some(table.data_block_hash_table_util_ratio),
            column_family: spec.family.id,
            column_family_name: spec.family.name.clone(),
            merge_operator_name: options.merge_operator.as_ref().map(|operator| operator.name().to_string()),
            creation_time: if spec.oldest_ancestor_time == 0 { now } else { spec.oldest_ancestor_time },
            oldest_key_time: if spec.is_flush { now } else { 0 },
            newest_key_time: None,
            file_creation_time: now,
            db_identity: self.identity.clone(),
            session_identity: self.session.clone(),
            file_number: number,
            user_properties: Vec::new(),
            buffer_size: self.settings.load().writable_file_max_buffer_size as usize,
        }
    }
}

/// Counts the blob references among a job's inputs as they are read.
struct Metered {
    inner: MergingIterator<Source>,
    order: InternalKeyComparator,
    meter: Arc<Mutex<GarbageMeter>>,
}

impl Metered {
    fn count(&mut self) {
        if self.inner.valid()
            && self.inner.key().value_type() == Some(ValueType::BlobIndex)
            && let Ok(index) = BlobIndex::decode(self.inner.value())
        {
            self.meter.lock().flow_in(self.inner.key().user_key().len(), &index);
        }
    }
}

impl InternalIterator for Metered {
    fn valid(&self) -> bool {
        self.inner.valid()
    }

    fn seek_to_first(&mut self) {
        self.inner.seek_to_first();
        self.count();
    }

    fn seek_to_last(&mut self) {
        unreachable!("a job reads forwards");
    }

    /// Steps instead of seeking: what is skipped is garbage and must be counted.
    fn seek(&mut self, target: InternalKey<'_>) {
        while self.inner.valid() && self.order.compare(self.inner.key(), target).is_lt() {
            self.next();
        }
    }

    fn seek_for_prev(&mut self, _target: InternalKey<'_>) {
        unreachable!("a job reads forwards");
    }

    fn next(&mut self) {
        self.inner.next();
        self.count();
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
        self.inner.status()
    }
}
