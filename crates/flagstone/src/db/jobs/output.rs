//! The writing half of flushes and compactions: sorted input goes through the drop rules into
//! tables and blob files.
//!
//! 1. In each part of the key space ([`Part`]; mostly one, else several at the same time), merge
//!    the sources; count the blob references that flow in ([`PartInput`]).
//! 2. Let [`CompactionStream`] drop what nobody can see, and [`Placement`] move large values to
//!    blob files (or relocate those whose file is being collected).
//! 3. Write tables, cut where the splitter says ([`TableWriter`]).
//! 4. Sync tables and blob files (of a flush, also those that the memtables had filled), then their
//!    directories: only then may the MANIFEST name them.
//!
//! If a part fails the others stop. Files of a job that fails are removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::base::{
    Code, CompactionFilter, Error, InternalKey, Mutant, RangeTombstone, Result, SequenceNumber,
    Sometimes, SubCode,
};
use crate::blob::{BlobReadahead, GarbageMeter};
use crate::cache::{Held, MemoryKind};
use crate::compaction::pick::{KeysBelow, range_surely_absent};
use crate::compaction::{CompactionStream, StreamSettings, StreamTombstones};
use crate::db::events::Event;
use crate::db::family::Family;
use crate::db::jobs::Jobs;
use crate::db::jobs::job::{JobSpec, PartFilter, Unfinished};
use crate::db::jobs::merged_onto::InformedFilter;
use crate::db::jobs::outlets::Outlets;
use crate::db::jobs::part::{Part, PartInput};
use crate::db::jobs::placement::{BlobReads, OwnBlobFiles, Placement};
use crate::db::jobs::range_cuts::key_cuts;
use crate::db::jobs::steps::reason_of;
use crate::db::jobs::tracking;
use crate::db::statistics::Ticker;
use crate::db::tree::compaction_job::check_not_canceled;
use crate::db::tree::output::JobOutput;
use crate::db::tree::paused_work;
use crate::env::{NewNames, Task, ThreadStage, Turn, WritableFile, enter_stage};
use crate::manifest::ObsoleteFile;
use crate::options::{ColumnFamilyOptions, SubcompactionInfo};

/// Entries between two looks at whether the work is still wanted.
const CANCEL_INTERVAL: u64 = 1024;

/// What the parts of a job have in common.
pub(super) struct Job<'a> {
    pub(super) inner: &'a Jobs,
    pub(super) spec: &'a JobSpec,
    pub(super) options: Arc<ColumnFamilyOptions>,
    /// Those that were live when the job began.
    snapshots: Vec<SequenceNumber>,
    tombstones: StreamTombstones,
    /// The range tombstones that the output must hold.
    pub(super) surviving: Vec<RangeTombstone>,
    /// Between which keys tables must end, so that none has more of them than it can hold.
    pub(super) range_cuts: Vec<Vec<u8>>,
    pub(super) unfinished: Unfinished<'a>,
    /// Where values are read from around the system's cache, if they are.
    blob_files: Option<OwnBlobFiles>,
    /// Tells the other parts to stop.
    has_failed: AtomicBool,
}

/// What a part wrote, and the blob references that it read and wrote.
type Written = (JobOutput, GarbageMeter);

/// Runs a job to synced files. `parts`, which is told the range tombstones that are to survive,
/// makes ascending ones that together are all of its input.
pub(in crate::db) fn run_job(
    jobs: &Jobs,
    spec: &JobSpec,
    parts: impl FnOnce(&[RangeTombstone]) -> Result<Vec<Part>>,
) -> Result<JobOutput> {
    let snapshots =
        if Mutant::ForgetSnapshots.is_on() { Vec::new() } else { jobs.snapshots.sequences() };
    let history = spec.history.as_ref();
    let order = spec.family.comparator();
    let tombstones = StreamTombstones::with_history(order, &spec.tombstones, &snapshots, history);
    // Tables that are ingested behind come below all that there is now.
    let may_be_last = !spec.family.options.load().cf_allow_ingest_behind;
    let is_last = spec.target.place.bottommost && may_be_last;
    let surviving = tombstones.surviving(&snapshots, is_last, |start, end| {
        let absent = || range_surely_absent(&spec.version, spec.target.place.level, start, end);
        !spec.is_flush && may_be_last && absent()
    });
    let parts = parts(&surviving)?;
    let range_cuts = match spec.target.place.level {
        // Tables of level 0 are cut between sequence numbers.
        0 => Vec::new(),
        _ => {
            let most = jobs.limits.range_deletion_bytes_max();
            key_cuts(spec.family.comparator(), &surviving, most)
        }
    };
    let reads_directly =
        !spec.is_flush && jobs.context.settings.load().use_direct_io_for_flush_and_compaction;
    let directories = spec.family.paths.directories().iter();
    let names =
        directories.map(|path| (path.clone(), jobs.context.names.before_making(path))).collect();
    let job = Job {
        inner: jobs,
        spec,
        options: spec.family.options.load_full(),
        snapshots,
        tombstones,
        surviving,
        range_cuts,
        unfinished: Unfinished::new(jobs, spec),
        blob_files: reads_directly.then(OwnBlobFiles::default),
        has_failed: AtomicBool::new(false),
    };
    let (mut output, mut meter) = job.run_parts(parts)?;
    jobs.pipeline.settle_direct_files(&spec.family, &spec.direct, &mut meter, &mut output)?;
    output.garbage.extend(meter.finish()?);
    sync_directories_of(spec, &output, &names)?;
    job.unfinished.keep(&output);
    Ok(output)
}

/// Syncs the directories that a job made files in, of those that it may make some in.
fn sync_directories_of(
    spec: &JobSpec,
    output: &JobOutput,
    names: &BTreeMap<Arc<Path>, NewNames>,
) -> Result<()> {
    let paths = &spec.family.paths;
    let tables =
        Some(paths.directory(spec.target.place.path_id)).filter(|_| !output.tables.is_empty());
    let blobs = Some(paths.of_blobs()).filter(|_| !output.blob_files.is_empty());
    let written: BTreeSet<_> = blobs.into_iter().chain(tables).collect();
    written.into_iter().try_for_each(|directory| names[directory].sync())
}

/// # Errors
/// `ShutdownInProgress` or `ColumnFamilyDropped`, if nobody waits for a job of the family any
/// longer.
pub(in crate::db) fn check_wanted(jobs: &Jobs, family: &Family) -> Result<()> {
    jobs.context.check_open()?;
    family.check_alive()
}

/// Syncs a file of a job. A failure poisons, whoever asked for the job; a full disk does not,
/// as the job's data goes to other files when it is tried again.
pub(in crate::db) fn sync_output(
    jobs: &Jobs,
    spec: &JobSpec,
    file: &dyn WritableFile,
) -> Result<()> {
    file.sync().inspect_err(|error| {
        if error.subcode() != SubCode::NoSpace {
            jobs.tree.fail(reason_of(spec.is_flush), error);
        }
    })
}

/// Notes what a flush or compaction of the family in so many parts has in buffers, until the
/// answer is dropped: what its inputs read ahead; and in each part what is gathered for a table
/// of at most `table_bytes` and a blob file, and what a table's index and filter are made of
/// until its end.
pub(super) fn hold_job_buffers(
    jobs: &Jobs,
    family: &Family,
    parts: usize,
    readahead_bytes: usize,
    table_bytes: u64,
) -> Held {
    let settings = jobs.context.settings.load();
    let options = family.options.load();
    let files = if options.separates_values() { 2 } else { 1 };
    let is_direct = settings.use_direct_io_for_flush_and_compaction;
    let gathered =
        settings.writable_file_max_buffer_size as usize * files * if is_direct { 2 } else { 1 };
    let table_bytes = table_bytes.min(options.target_file_size_base) as usize;
    // Eight bytes a key for the filter, and the keys of the index: of entries of some hundred
    // bytes.
    let until_the_end = table_bytes / if options.table.filter_policy.is_some() { 16 } else { 64 };
    jobs.tables
        .account()
        .hold(MemoryKind::Jobs, readahead_bytes + parts * (gathered + until_the_end))
}

/// Removes the files of a job whose result is not wanted any longer.
pub(in crate::db) fn discard(jobs: &Jobs, family: &Family, output: &JobOutput) {
    jobs.tables.uncache_blob_files(output.blob_files.iter().map(|blob| blob.number));
    for file in output.files(&family.paths) {
        if let ObsoleteFile::Table { number, .. } = &file {
            jobs.tables.forget_table(*number);
        }
        if let Err(error) = jobs.context.env.fs.remove(&file.path()) {
            tracing::warn!(%error, "cannot remove an unused file");
        } else {
            jobs.context.events.note_deleted(&file);
        }
    }
}

impl Job<'_> {
    /// Runs all parts, several at the same time as far as there are threads. Once one has failed
    /// the others stop.
    fn run_parts(&self, mut parts: Vec<Part>) -> Result<Written> {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return self.run_told(only, 0, 1);
        }
        let written = Mutex::new(parts.iter().map(|_| None).collect::<Vec<Option<Written>>>());
        let (failure, count) = (Mutex::new(None), parts.len());
        let task = |(index, part)| {
            let (written, failure) = (&written, &failure);
            let work = move || match self.inner.guarded("compaction", || {
                let _doing = tracking::begin_part(self.inner, self.spec);
                self.run_told(part, index, count)
            }) {
                Ok(done) => written.lock()[index] = Some(done),
                Err(error) => {
                    // The others' errors say no more than that they have stopped.
                    failure.lock().get_or_insert(error);
                    self.has_failed.store(true, Ordering::Release);
                }
            };
            Box::new(work) as Task<'_>
        };
        self.inner
            .context
            .env
            .spawner
            .run_all("flagstone-part", parts.into_iter().enumerate().map(task).collect());
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

    /// Runs a part, and tells those who listen of it if it is one of a compaction.
    fn run_told(&self, part: Part, index: usize, count: usize) -> Result<Written> {
        if !self.spec.is_flush {
            enter_stage(ThreadStage::CompactionProcess);
        }
        let Some(told) = self.spec.told.part(index, count) else { return self.run_part(part) };
        let events = &self.inner.context.events;
        events.note(|| Event::SubcompactionBegun(told.clone()));
        events.tell();
        let written = self.run_part(part);
        let entries_read = written.as_ref().map_or(0, |(output, _)| output.counts.entries_read);
        let outcome = written.as_ref().map(|_| ()).map_err(Clone::clone);
        events.note(|| Event::Subcompacted(SubcompactionInfo { entries_read, outcome, ..told }));
        events.tell();
        written
    }

    /// Reads, judges and writes one part.
    fn run_part(&self, part: Part) -> Result<Written> {
        self.check_others()?;
        let Self { inner, spec, options, .. } = self;
        let Part { range, sources, readahead_bytes: _, read_cache_hits, cuts, proximal_cuts } =
            part;
        let meter = Mutex::new(GarbageMeter::new());
        // What a flush reads may refer to blob files of memtables.
        let version = (!spec.is_flush).then_some(&*spec.version);
        let input = PartInput::new(spec.family.order.clone(), sources, &range, &meter, version)
            .followed_by(spec.pace.control.as_deref());
        let filter = self.choose_filter();
        let ahead = self.blob_readahead();
        let bytes = ahead.as_ref().map(|ahead| ahead.lock().windows_bytes_max());
        let _windows = bytes.map(|bytes| inner.tables.account().hold(MemoryKind::Jobs, bytes));
        let reads = BlobReads { ahead: ahead.as_ref(), own_files: self.blob_files.as_ref() };
        let placement = Placement::new(inner, spec, options, &self.unfinished, reads);
        let mut below = KeysBelow::new(&spec.version, spec.target.place.level);
        let bottommost = spec.target.place.bottommost && range.has_oldest();
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
        let mut outlets = Outlets::new(self, &range, &read_cache_hits, cuts, proximal_cuts);

        let mut entries = 0u64;
        let seats = (!spec.is_flush && spec.pace.gives_way).then(|| inner.background.seats());
        self.take_turns(|turn| {
            while stream.valid() {
                entries += 1;
                if entries.is_multiple_of(CANCEL_INTERVAL) {
                    check_wanted(inner, &spec.family)?;
                    self.check_others()?;
                }
                let (key, value) = (stream.key(), stream.value());
                let added = outlets.add(key, value, &meter);
                added.map_err(|error| self.trace(error, Some(key)))?;
                stream.next();
                seats.inspect(|seats| seats.make_room());
                if turn.is_over() {
                    return Ok(false);
                }
            }
            stream.status().map_err(|error| self.trace(error, None))?;
            outlets.finish()?;
            Ok(true)
        })?;
        let mut output = outlets.into_output();
        output.counts.entries_read = stream.input().entries();
        let counts = stream.counts();
        output.is_filtered = counts.dropped_by_filter > 0;
        inner.context.statistics.add(Ticker::FilterUnstorable, counts.unstorable_by_filter);
        (output.counts.key_faults, output.key_faults) = (counts.key_faults, stream.take_faults());
        let placement = stream.into_separator();
        placement.finish(&mut output)?;
        let meter = std::mem::take(&mut *meter.lock());
        Ok((output, meter))
    }

    /// Whether an entry goes to the level above, if the job writes there, too.
    #[inline]
    pub(super) fn is_young(&self, sequence: SequenceNumber) -> bool {
        sequence > self.spec.inherited.times.old_until
    }

    /// What reads blobs ahead, if anything does.
    fn blob_readahead(&self) -> Option<Mutex<BlobReadahead>> {
        match self.options.blob_compaction_readahead_size as usize {
            // The system reads nothing ahead of what goes around its cache.
            0 => self.blob_files.is_some().then(Mutex::default),
            bytes => Some(Mutex::new(BlobReadahead::of_size(bytes))),
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
        if !self.spec.pace.gives_way {
            while !work(&mut Turn::Only)? {}
            return Ok(());
        }
        let prompt = self.inner.background.giving_way().take_turns(work)?;
        self.inner.context.statistics.add(Ticker::PromptTurns, prompt);
        Ok(())
    }

    /// Damage that no checksum tells is met where nobody knows any longer which table an entry came
    /// from: that is found out, so that the table can be set aside, unless nobody wants it any
    /// longer. `key` is that of the entry which the output cannot take.
    #[cold]
    fn trace(&self, error: Error, key: Option<InternalKey<'_>>) -> Error {
        if !error.is_corruption() || error.path().is_some() {
            return error;
        }
        let tables =
            self.spec.inputs.iter().map(|file| self.inner.tables.open(&self.spec.family, file));
        let check = || {
            let tables = tables.collect::<Result<Vec<_>>>()?;
            let goes_on =
                || check_wanted(self.inner, &self.spec.family).and_then(|()| self.check_others());
            tables.iter().try_for_each(|table| table.check_entries(&goes_on))?;
            // Each by itself is in order: two have the same entry.
            let Some(key) = key else { return Ok(()) };
            let mut first = None;
            for table in tables {
                match (table.offset_of_entry(key)?, &first) {
                    (Some(offset), None) => first = Some((table, offset)),
                    // The newer of the two: when it was written the older had taken that sequence
                    // number.
                    (Some(_), Some((newer, offset))) => {
                        let message =
                            format!("{key:?} is also in table {}", table.path().display());
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
        if !self.spec.is_flush {
            let is_requested = self.spec.filtered.is_manual_compaction;
            paused_work::check_not_stopped(&self.inner.tree, is_requested)?;
        }
        check_not_canceled(self.spec.pace.control.as_deref())?;
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        Sometimes::SubcompactionGivenUp.reached();
        Err(Error::new(Code::Aborted, "another part of the compaction failed"))
    }
}
