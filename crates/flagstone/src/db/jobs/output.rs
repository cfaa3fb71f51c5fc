//! The writing half of flushes and compactions: sorted input goes through the drop rules into tables and blob files.
//!
//! 1. In each part of the key space ([`Part`]; mostly one, else several at the same time), merge the sources; count the blob
//!    references that flow in ([`PartInput`]).
//! 2. Let [`CompactionStream`] drop what nobody can see, and [`Placement`] move large values to blob files (or
//!    relocate those whose file is being collected).
//! 3. Write tables, cut where the splitter says; give each the range tombstones of its part of the key space.
//! 4. Sync tables and blob files (of a flush, also those that the memtables had filled), then their directories: only then may
//!    the MANIFEST name them.
//!
//! If a part fails the others stop. Files of a job that fails are removed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use super::job::{JobOutput, JobSpec, PartFilter, Unfinished};
use super::merged_onto::InformedFilter;
use super::part::{Part, PartInput, PartRange};
use super::placement::{BlobReads, OwnBlobFiles, Placement};
use super::range_cuts::key_cuts;
use super::written::Entries;
use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::base::{
    Code, CompactionFilter, Error, FileNumber, InternalKey, InternalKeyBuf, Mutant, RangeTombstone, Result,
    SequenceNumber, Sometimes, SubCode, ValueType, file_name,
};
use crate::blob::{BlobIndex, BlobReadahead, GarbageMeter};
use crate::cache::Holder;
use crate::compaction::pick::{DeletedRanges, KeysBelow, OutputSplitter, range_surely_absent};
use crate::compaction::{CompactionStream, OutputFile, StreamSettings, StreamTombstones, bounds_of_output};
use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::statistics::Ticker;
use crate::env::{File, NewNames, Task, Turn};
use crate::manifest::{BlobReferences, EntryStats, FileMetadata, ObsoleteFile};
use crate::options::{ColumnFamilyOptions, CompactionControl};
use crate::sst::{Filter, TableBuilder, Warmth};

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
    /// What it is to hold when it is read back, if it is to be.
    entries: Option<Entries>,
    /// Entries that refer to no blob file.
    others: u64,
    /// Bytes of the records that its entries refer to.
    blobs: BTreeMap<FileNumber, u64>,
}

/// What the parts of a job have in common.
struct Job<'a> {
    inner: &'a DbInner,
    spec: &'a JobSpec,
    options: Arc<ColumnFamilyOptions>,
    /// Those that were live when the job began.
    snapshots: Vec<SequenceNumber>,
    tombstones: StreamTombstones,
    /// The range tombstones that the output must hold.
    surviving: Vec<RangeTombstone>,
    /// Between which keys tables must end, so that none has more of them than it can hold.
    range_cuts: Vec<Vec<u8>>,
    unfinished: Unfinished<'a>,
    /// Where values are read from around the system's cache, if they are.
    blob_files: Option<OwnBlobFiles>,
    /// Tells the other parts to stop.
    has_failed: AtomicBool,
}

/// What a part wrote, and the blob references that it read and wrote.
type Written = (JobOutput, GarbageMeter);

impl DbInner {
    /// Runs a job to synced files. `parts`, which is told the range tombstones that are to survive, makes ascending ones that
    /// together are all of its input.
    pub(in crate::db) fn run_job(
        &self,
        spec: &JobSpec,
        parts: impl FnOnce(&[RangeTombstone]) -> Result<Vec<Part>>,
    ) -> Result<JobOutput> {
        let snapshots = if Mutant::ForgetSnapshots.is_on() { Vec::new() } else { self.snapshots.sequences() };
        let tombstones = StreamTombstones::new(spec.family.comparator(), &spec.tombstones, &snapshots);
        let surviving = tombstones.surviving(&snapshots, spec.bottommost, |start, end| {
            let absent =
                || spec.bottommost || range_surely_absent(&spec.version, spec.output_level, start, end);
            !spec.is_flush && (Mutant::DropRangeTombstoneTooEarly.is_on() || absent())
        });
        let parts = parts(&surviving)?;
        let range_cuts = match spec.output_level {
            // Tables of level 0 are cut between sequence numbers.
            0 => Vec::new(),
            _ => {
                let most = self.range_deletion_bytes_max.load(Ordering::Relaxed);
                key_cuts(spec.family.comparator(), &surviving, most)
            }
        };
        let reads_directly = !spec.is_flush && self.settings.load().use_direct_io_for_flush_and_compaction;
        let directories = spec.family.paths.directories().iter();
        let names = directories.map(|path| (path.clone(), self.names.before_making(path))).collect();
        let job = Job {
            inner: self,
            spec,
            options: spec.family.options.load_full(),
            snapshots,
            tombstones,
            surviving,
            range_cuts,
            unfinished: Unfinished::new(self, spec.priority),
            blob_files: reads_directly.then(OwnBlobFiles::default),
            has_failed: AtomicBool::new(false),
        };
        let (mut output, mut meter) = job.run_parts(parts)?;
        self.settle_direct_files(&spec.family, &spec.direct, &mut meter, &mut output)?;
        output.garbage.extend(meter.finish()?);
        if !Mutant::SkipDirectorySync.is_on() {
            self.sync_directories_of(spec, &output, &names)?;
        }
        job.unfinished.keep();
        Ok(output)
    }

    /// Syncs the directories that a job made files in, of those that it may make some in.
    fn sync_directories_of(
        &self,
        spec: &JobSpec,
        output: &JobOutput,
        names: &BTreeMap<Arc<Path>, NewNames>,
    ) -> Result<()> {
        let paths = &spec.family.paths;
        let tables = Some(paths.directory(spec.path_id)).filter(|_| !output.tables.is_empty());
        let blobs = Some(paths.of_blobs()).filter(|_| !output.blob_files.is_empty());
        let written: BTreeSet<_> = match Mutant::SyncFirstDirectoryOnly.is_on() {
            true => blobs.into_iter().chain(tables.map(|_| paths.directory(0))).collect(),
            false => blobs.into_iter().chain(tables).collect(),
        };
        written.into_iter().try_for_each(|directory| names[directory].sync())
    }

    /// # Errors
    /// `ShutdownInProgress` or `ColumnFamilyDropped`, if nobody waits for a job of the family any longer.
    pub(in crate::db) fn check_wanted(&self, family: &Family) -> Result<()> {
        self.check_open()?;
        family.check_alive()
    }

    /// Syncs a file of a job. A failure poisons, whoever asked for the job; a full disk does not, as the job's data goes to
    /// other files when it is tried again.
    pub(in crate::db) fn sync_output(&self, file: &dyn File) -> Result<()> {
        file.sync().inspect_err(|error| {
            if error.subcode() != SubCode::NoSpace {
                self.fail(&mut self.state.lock(), error);
            }
        })
    }

    /// Removes the files of a job whose result is not wanted any longer.
    pub(in crate::db) fn discard(&self, family: &Family, output: &JobOutput) {
        self.tables.uncache_blob_files(output.blob_files.iter().map(|blob| blob.number));
        for file in output.files(&family.paths) {
            if let ObsoleteFile::Table { number, .. } = &file {
                self.tables.forget_table(*number);
            }
            if let Err(error) = self.env.fs.remove(&file.path()) {
                tracing::warn!(%error, "cannot remove an unused file");
            }
        }
    }
}

impl Job<'_> {
    /// Runs all parts, several at the same time as far as there are threads. Once one has failed the others stop.
    fn run_parts(&self, mut parts: Vec<Part>) -> Result<Written> {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return self.run_part(only);
        }
        let written = Mutex::new(parts.iter().map(|_| None).collect::<Vec<Option<Written>>>());
        let failure = Mutex::new(None);
        let task = |(index, part)| {
            let (written, failure) = (&written, &failure);
            let work = move || match self.inner.guarded("compaction", || self.run_part(part)) {
                Ok(done) => written.lock()[index] = Some(done),
                Err(error) => {
                    // The others' errors say no more than that they have stopped.
                    failure.lock().get_or_insert(error);
                    self.has_failed.store(true, Ordering::Release);
                }
            };
            Box::new(work) as Task<'_>
        };
        self.inner.env.spawner.run_all("flagstone-part", parts.into_iter().enumerate().map(task).collect());
        if let Some(error) = failure.lock().take() {
            return Err(error);
        }
        let mut all = Written::default();
        for done in written.lock().drain(..) {
            let (output, meter) = done.expect("a part that has not failed is done");
            all.0.absorb(output);
            all.1.absorb(meter);
        }
        Ok(all)
    }

    /// Reads, judges and writes one part.
    fn run_part(&self, part: Part) -> Result<Written> {
        self.check_others()?;
        let Self { inner, spec, options, .. } = self;
        let Part { range, sources, readahead_bytes: _, warmth, mut splitter } = part;
        let meter = Mutex::new(GarbageMeter::new());
        // What a flush reads may refer to blob files of memtables.
        let version = (!spec.is_flush).then_some(&*spec.version);
        let input = PartInput::new(spec.family.order.clone(), sources, &range, &meter, version)
            .followed_by(spec.control.as_deref());
        let filter = self.choose_filter();
        let ahead = match options.blob_compaction_readahead_size as usize {
            // The system reads nothing ahead of what goes around its cache.
            0 => self.blob_files.is_some().then(Mutex::default),
            bytes => Some(Mutex::new(BlobReadahead::of_size(bytes))),
        };
        let bytes = ahead.as_ref().map(|ahead| ahead.lock().windows_bytes_max());
        let _windows = bytes.map(|bytes| inner.tables.account().hold(Holder::Jobs, bytes));
        let reads = BlobReads { ahead: ahead.as_ref(), own_files: self.blob_files.as_ref() };
        let placement = Placement::new(inner, spec, options, &self.unfinished, reads);
        let mut below = KeysBelow::new(&spec.version, spec.output_level);
        let bottommost = spec.bottommost && range.has_oldest();
        let settings = spec.stream_settings(options, self.snapshots.clone());
        let mut stream = CompactionStream::new(
            StreamSettings { bottommost, ..settings },
            input,
            &self.tombstones,
            |key| bottommost || !spec.is_flush && below.surely_absent(key),
            filter.as_ref().map(|filter| filter as &dyn CompactionFilter),
            placement.resolver(),
            placement,
        );
        let mut writer = self.writer_of(&range, &warmth);

        let mut entries = 0u64;
        self.take_turns(|turn| {
            while stream.valid() {
                entries += 1;
                if entries.is_multiple_of(CANCEL_INTERVAL) {
                    inner.check_wanted(&spec.family)?;
                    self.check_others()?;
                }
                let (key, value) = (stream.key(), stream.value());
                let added = writer.add(key, value, splitter.as_mut(), &meter);
                added.map_err(|error| self.trace(error, Some(key)))?;
                stream.next();
                if turn.is_over() {
                    return Ok(false);
                }
            }
            stream.status().map_err(|error| self.trace(error, None))?;
            writer.finish_last()?;
            Ok(true)
        })?;
        let mut output = writer.output;
        output.entries_read = stream.input().entries();
        let counts = stream.counts();
        output.is_filtered = counts.dropped_by_filter > 0;
        inner.statistics.add(Ticker::FilterUnstorable, counts.unstorable_by_filter);
        (output.key_faults_met, output.key_faults) = (counts.key_faults, stream.take_faults());
        let placement = stream.into_separator();
        placement.finish(&mut output)?;
        let meter = std::mem::take(&mut *meter.lock());
        Ok((output, meter))
    }

    fn writer_of<'a>(&'a self, range: &PartRange, warmth: &'a Arc<Warmth>) -> TableWriter<'a> {
        TableWriter {
            job: self,
            surviving: range.own(&self.surviving),
            cuts: range.inner_cuts(self.spec.family.comparator(), &self.range_cuts),
            range: range.clone(),
            earlier_tables: 0,
            warmth,
            output: JobOutput::default(),
            open: None,
        }
    }

    /// The compaction filter of a part.
    fn choose_filter(&self) -> Option<InformedFilter<'_>> {
        let Self { inner, spec, options, .. } = self;
        let filter = PartFilter::choose(options, &spec.filtered)?;
        Some(InformedFilter { inner, family: &spec.family, filter, reason: spec.filtered.reason })
    }

    /// Does all of a part's work, which says when that is.
    fn take_turns(&self, mut work: impl FnMut(&mut Turn<'_>) -> Result<bool> + Send) -> Result<()> {
        if !self.spec.gives_way {
            while !work(&mut Turn::Only)? {}
            return Ok(());
        }
        let prompt = self.inner.workers.giving_way().take_turns(work)?;
        self.inner.statistics.add(Ticker::PromptTurns, prompt);
        Ok(())
    }

    /// Damage that no checksum tells is met where nobody knows any longer which table an entry came from: that is found out, so
    /// that the table can be set aside, unless nobody wants it any longer. `key` is that of the entry which the output cannot
    /// take.
    #[cold]
    fn trace(&self, error: Error, key: Option<InternalKey<'_>>) -> Error {
        if !error.is_corruption() || error.path().is_some() {
            return error;
        }
        let tables = self.spec.inputs.iter().map(|file| self.inner.tables.open(&self.spec.family, file));
        let check = || {
            let tables = tables.collect::<Result<Vec<_>>>()?;
            let goes_on = || self.inner.check_wanted(&self.spec.family).and_then(|()| self.check_others());
            tables.iter().try_for_each(|table| table.check_entries(&goes_on))?;
            // Each by itself is in order: two have the same entry.
            let Some(key) = key else { return Ok(()) };
            let mut first = None;
            for table in tables {
                match (table.offset_of_entry(key)?, &first) {
                    (Some(offset), None) => first = Some((table, offset)),
                    // The newer of the two: when it was written the older had taken that sequence number.
                    (Some(_), Some((newer, offset))) => {
                        let message = format!("{key:?} is in table {}, too", table.path().display());
                        return Err(Error::corruption(message).at(newer.path()).at_offset(*offset));
                    }
                    (None, _) => {}
                }
            }
            Ok(())
        };
        check().err().unwrap_or(error)
    }

    /// An error if another part has failed, or somebody has canceled it all.
    fn check_others(&self) -> Result<()> {
        check_not_canceled(self.spec.control.as_deref())?;
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        Sometimes::SubcompactionGivenUp.reached();
        Err(Error::new(Code::Aborted, "another part of the compaction failed"))
    }
}

/// # Errors
/// `Incomplete`, if who follows a compaction has canceled it.
pub(in crate::db) fn check_not_canceled(control: Option<&CompactionControl>) -> Result<()> {
    if !control.is_some_and(CompactionControl::is_canceled) {
        return Ok(());
    }
    Sometimes::ManualCompactionCanceled.reached();
    Err(Error::new(Code::Incomplete, "the compaction was canceled")
        .with_subcode(SubCode::ManualCompactionPaused))
}

/// Writes a part's tables one after the other.
struct TableWriter<'a> {
    job: &'a Job<'a>,
    /// What is being written: the part, or a piece of it.
    range: PartRange,
    /// Where further pieces begin, each of which has no more range tombstones than a table can hold.
    cuts: VecDeque<Vec<u8>>,
    /// How many tables were written of the pieces before.
    earlier_tables: usize,
    /// Of the range tombstones that the output must hold, those of the range's sequence numbers.
    surviving: Cow<'a, [RangeTombstone]>,
    warmth: &'a Arc<Warmth>,
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
            let is_full = splitter.should_stop_before(key, size);
            if is_full || self.is_cut_before(key) {
                self.check_order(key)?;
                while self.is_cut_before(key) {
                    self.end_piece()?;
                }
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
        match key.value_type() {
            Some(ValueType::BlobIndex) => {
                let index = BlobIndex::decode(value)?;
                meter.lock().flow_out(key.user_key().len(), &index);
                let bytes = open.blobs.entry(index.file).or_default();
                *bytes = bytes.saturating_add(index.record_bytes(key.user_key().len()));
            }
            _ => open.others += 1,
        }
        if let Some(entries) = &mut open.entries {
            entries.add(key, value);
        }
        open.builder.add(key, value)?;
        open.last.set_from(key);
        open.smallest_seqno = open.smallest_seqno.min(key.sequence());
        open.largest_seqno = open.largest_seqno.max(key.sequence());
        Ok(())
    }

    /// Where a table ends there is no builder that would notice. It may end between two versions of one key.
    fn check_order(&self, key: InternalKey<'_>) -> Result<()> {
        let order = &self.job.spec.family.order;
        match &self.open {
            Some(open) if order.compare(open.last.as_key(), key).is_ge() => {
                let last = open.last.as_key();
                Err(Error::corruption(format!("entries are out of order: {key:?} comes after {last:?}")))
            }
            _ => Ok(()),
        }
    }

    fn begin(&self, first: InternalKeyBuf) -> Result<OpenTable> {
        let Job { inner, spec, unfinished, .. } = self.job;
        let number = inner.file_numbers.allocate();
        let directory = spec.family.paths.directory(spec.path_id);
        let path = file_name::table(directory, number);
        if spec.temperature.is_known() {
            inner.env.fs.advise(&path, spec.temperature);
        }
        let (number, file) = unfinished.create(number, path)?;
        let settings = inner.table_builder_settings(spec, number);
        let prepopulate = inner.prepopulate(spec, number, self.warmth);
        let builder = TableBuilder::new(file.clone(), settings)?.prepopulating(prepopulate);
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

    /// Finishes the last table.
    fn finish_last(&mut self) -> Result<()> {
        while !self.cuts.is_empty() {
            self.end_piece()?;
        }
        self.finish_piece()
    }

    /// Finishes the last table of a piece; one of range tombstones alone if nothing else is left.
    fn finish_piece(&mut self) -> Result<()> {
        let user = self.job.spec.family.comparator();
        let has_tombstones = || self.surviving.iter().any(|tombstone| self.range.overlaps(user, tombstone));
        if self.open.is_none() && self.output.tables.len() == self.earlier_tables && has_tombstones() {
            Sometimes::RangeTombstonesAlone.reached();
            let placeholder = InternalKeyBuf::new(b"", 0, ValueType::Value);
            let fresh = self.begin(placeholder)?;
            self.open = Some(fresh);
        }
        let end = self.range.end.clone();
        if self.open.is_some() { self.finish(end.as_deref()) } else { Ok(()) }
    }

    /// Has a new table opened as soon as it is part of the tree, if something waits for it in memory.
    fn note_to_open(&mut self, number: FileNumber, is_cached: bool, key_filter: Option<Filter>) {
        if is_cached || key_filter.is_some() {
            self.output.to_open.push(number);
        }
        if let Some(filter) = key_filter {
            self.job.inner.tables.keep_key_filter(number, filter);
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
        for tombstone in &bounds.tombstones {
            open.builder.add_range_tombstone(&tombstone.start, &tombstone.end, tombstone.sequence);
            open.smallest_seqno = open.smallest_seqno.min(tombstone.sequence);
            open.largest_seqno = open.largest_seqno.max(tombstone.sequence);
        }
        let (Some(smallest), Some(largest)) = (bounds.smallest, bounds.largest) else { return Ok(()) };
        let Job { inner, spec, .. } = self.job;
        if !bounds.tombstones.is_empty() {
            open.builder.note_bounds(smallest.as_key(), largest.as_key());
        }
        if !spec.is_flush {
            // What it says by its own entries is lost where they lose their sequence numbers.
            open.builder.note_flushed_until(spec.version.largest_seqno());
        }
        let summary = open.builder.finish()?;
        self.output.raw_bytes += summary.properties.raw_key_size + summary.properties.raw_value_size;
        if !Mutant::SkipTableSync.is_on() {
            inner.sync_output(&*open.file)?;
        }
        if let Some(entries) = &open.entries {
            inner.check_written(&spec.family, open.file.path(), summary.size, entries)?;
        }
        self.note_to_open(open.number, summary.is_cached, summary.key_filter);
        let mut covered = 0;
        if !bounds.tombstones.is_empty() {
            let (version, level) = (&spec.version, spec.output_level);
            covered = inner.bytes_below(&spec.family, version, level, &bounds.tombstones);
            let limits = (&smallest, &largest);
            let whole = DeletedRanges::new(version, level, open.number, limits, &bounds.tombstones);
            self.output.deleted.extend(whole);
        }
        let now = inner.env.clock.unix_seconds();
        let oldest = if spec.oldest_ancestor_time == 0 { now } else { spec.oldest_ancestor_time };
        // Where there are no blob files, the MANIFEST need not say what might hide some.
        let others = if spec.version.blob_files.is_empty() { 0 } else { open.others };
        self.output.tables.push(FileMetadata {
            number: open.number,
            path_id: spec.path_id,
            size: summary.size,
            smallest,
            largest,
            smallest_seqno: open.smallest_seqno,
            largest_seqno: open.largest_seqno,
            oldest_blob_file: open.blobs.keys().next().copied(),
            blob_references: BlobReferences::new(others, open.blobs.into_iter().collect()),
            oldest_ancestor_time: oldest,
            file_creation_time: if spec.file_creation_time == 0 { now } else { spec.file_creation_time },
            temperature: spec.temperature,
            epoch_number: spec.epoch_number,
            unique_id: summary.unique_id,
            tail_size: summary.tail_size,
            compensated_range_deletion_size: covered,
            entry_stats: Some(EntryStats::of(&summary.properties)),
            ..FileMetadata::default()
        });
        Ok(())
    }
}
