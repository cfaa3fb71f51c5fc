//! What a flush or compaction is told, and what it hands back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::sync::Mutex;
use crate::base::{
    Code, CompactionFilter, CompactionFilterContext, Error, FileChecksum, FileNumber, Result,
    SequenceNumber, TableFileCreationReason, Temperature, TruncatedRangeTombstones, WriteTimes,
    file_name,
};
use crate::compaction::pick::OutputCompression;
use crate::compaction::{FlushedTimes, History, StreamSettings};
use crate::db::background::io_limit::Limit;
use crate::db::events::{Event, thread_id};
use crate::db::family::Family;
use crate::db::jobs::Jobs;
use crate::db::settings::strips_timestamps;
use crate::db::tree::output::JobOutput;
use crate::db::writing::direct_blob::DirectInputs;
use crate::env::{IoMode, IoPriority, SummedFile, WritableFile, WriteBehind};
use crate::manifest::{TableFile, Version};
use crate::options::{
    ColumnFamilyOptions, CompactionControl, FileCreationInfo, JobInfo, JobReason, SubcompactionInfo,
};

/// What a flush or compaction is about: all but what each of its parts reads.
pub(in crate::db) struct JobSpec {
    pub(in crate::db) family: Arc<Family>,
    /// The tables that are read, newest first.
    pub(in crate::db) inputs: Vec<Arc<TableFile>>,
    /// The range tombstones of all inputs.
    pub(in crate::db) tombstones: Vec<TruncatedRangeTombstones>,
    /// The version whose files are read; blobs are looked up in it, and deeper levels.
    pub(in crate::db) version: Arc<Version>,
    /// The level that it writes to.
    pub(in crate::db) target: Target,
    /// Where young entries go, if not there.
    pub(in crate::db) proximal: Option<Target>,
    pub(in crate::db) is_flush: bool,
    /// Whether a filter over the keys is to be kept in memory, where none is written.
    pub(in crate::db) wants_key_filter: bool,
    /// What a compaction filter is told of the job.
    pub(in crate::db) filtered: CompactionFilterContext,
    pub(in crate::db) inherited: Inherited,
    pub(in crate::db) pace: JobPace,
    /// References to these blob files are relocated.
    pub(in crate::db) blob_gc: BTreeSet<FileNumber>,
    /// The blob files of the memtables.
    pub(in crate::db) direct: DirectInputs,
    /// What listeners know of it.
    pub(in crate::db) told: ToldJob,
    /// Where keys have timestamps, what is kept of them.
    pub(in crate::db) history: Option<History>,
}

/// What is kept now of a family's timestamps; `None` where keys have none.
pub(in crate::db) fn history_of(family: &Family) -> Option<History> {
    let low = || family.current.load().history_low.as_deref().map(<[u8]>::to_vec);
    let is_stripped = || strips_timestamps(&family.options.load());
    (family.order.timestamp_size() > 0).then(|| History {
        low: low(),
        is_stripped: is_stripped(),
        trim: None,
    })
}

/// What listeners know of a job that runs.
#[derive(Clone, Default)]
pub(in crate::db) struct ToldJob {
    /// Its id; 0 if they were not told that it began.
    pub(in crate::db) id: u64,
    /// Of a compaction, what they were told then.
    pub(in crate::db) begun: Option<JobInfo>,
}

impl ToldJob {
    /// A part of it.
    pub(in crate::db) fn part(&self, part: usize, parts: usize) -> Option<SubcompactionInfo> {
        let JobInfo { family, job, start_level, output_level, .. } = *self.begun.as_ref()?;
        let begun = self.begun.as_ref()?;
        let JobReason::Compaction(reason) = begun.reason else { return None };
        Some(SubcompactionInfo {
            family,
            family_name: begun.family_name.clone(),
            job,
            part,
            parts,
            thread: thread_id(),
            reason,
            start_level,
            output_level,
            compression: begun.compression,
            blob_compression: begun.blob_compression,
            entries_read: 0,
            outcome: Ok(()),
        })
    }
}

/// Where a job's tables go.
#[derive(Clone, Copy)]
pub(in crate::db) struct OutputPlace {
    pub(in crate::db) level: usize,
    /// The family's directory.
    pub(in crate::db) path_id: u32,
    /// Whether nothing older lies below the output.
    pub(in crate::db) bottommost: bool,
    /// How often the tables are expected to be read.
    pub(in crate::db) temperature: Temperature,
}

impl OutputPlace {
    /// Level 0 of the family's first directory.
    fn level0(temperature: Temperature) -> Self {
        Self { level: 0, path_id: 0, bottommost: false, temperature }
    }
}

/// When entries were written, as far as that is kept.
#[derive(Clone)]
pub(in crate::db) struct KeptTimes {
    /// What tables are to say of it; `None` if nothing.
    pub(in crate::db) known: Option<Arc<WriteTimes>>,
    /// Larger sequence numbers do not become 0.
    pub(in crate::db) zeroed_until: SequenceNumber,
    /// Entries with larger sequence numbers are too young for the last level.
    pub(in crate::db) old_until: SequenceNumber,
}

/// One of the levels that a job writes to.
#[derive(Clone, Copy)]
pub(in crate::db) struct Target {
    pub(in crate::db) place: OutputPlace,
    pub(in crate::db) compression: OutputCompression,
    /// The oldest age of what is in the tables, in seconds since 1970; 0 for now.
    pub(in crate::db) oldest_ancestor_time: u64,
    /// Whether it is the level above that of the compaction, which gets the young entries.
    pub(in crate::db) is_proximal: bool,
}

impl Target {
    pub(in crate::db) fn oldest_ancestor_time_or(&self, now: u64) -> u64 {
        if self.oldest_ancestor_time == 0 { now } else { self.oldest_ancestor_time }
    }
}

/// What a job's tables take over from its inputs.
#[derive(Clone, Default)]
pub(in crate::db) struct Inherited {
    /// The smallest rank in level 0 of the inputs; 0 lets the version set choose.
    pub(in crate::db) epoch_number: u64,
    /// When the tables are said to have been created, in seconds since 1970; 0 for now.
    pub(in crate::db) file_creation_time: u64,
    /// Up to which sequence number the inputs say that tables had all writes of the family.
    pub(in crate::db) flushed_until: SequenceNumber,
    /// In a worker, the database's own figure, from the order.
    pub(in crate::db) ordered_flushed_until: Option<SequenceNumber>,
    /// When the entries were written.
    pub(in crate::db) times: KeptTimes,
}

/// Up to which sequence number a version's tables have all writes of the family. One that was taken
/// in may have a larger number than what is in memory, as far as that was replayed; what was
/// written since then has larger ones than the version's tables.
pub(in crate::db) fn flushed_until(family: &Family, version: &Version) -> SequenceNumber {
    let now = family.current.load();
    let in_memory = now.generations().filter_map(|mem| mem.first_sequence()).min();
    let largest = version.largest_seqno();
    in_memory.map_or(largest, |oldest| largest.min(oldest.saturating_sub(1)))
}

impl Inherited {
    pub(in crate::db) fn file_creation_time_or(&self, now: u64) -> u64 {
        if self.file_creation_time == 0 { now } else { self.file_creation_time }
    }
}

/// How a job shares the machine with others.
#[derive(Clone)]
pub(in crate::db) struct JobPace {
    /// How urgent its reads and writes are.
    pub(in crate::db) priority: IoPriority,
    /// Whether it gives way to other threads that want the processor: no caller waits for it.
    pub(in crate::db) gives_way: bool,
    /// Whether at least one more thread compresses the blocks of its tables.
    pub(in crate::db) compresses_in_parallel: bool,
    /// Bytes of an entry in the mean; 0 where that is not known.
    pub(in crate::db) entry_size: usize,
    /// Reports progress, and may cancel the job.
    pub(in crate::db) control: Option<Arc<CompactionControl>>,
}

impl JobSpec {
    pub(in crate::db) fn flush(
        family: Arc<Family>,
        tombstones: Vec<TruncatedRangeTombstones>,
        direct: DirectInputs,
        reason: TableFileCreationReason,
    ) -> Self {
        let version = family.current.load().version.clone();
        let history = history_of(&family);
        let options = family.options.load();
        let codec = crate::db::settings::leveled_settings(&options, &version.paths)
            .compression_of(0, 1, false);
        let compression = OutputCompression { codec, is_bottommost: false };
        let filtered = CompactionFilterContext {
            is_full_compaction: false,
            is_manual_compaction: false,
            input_start_level: None,
            output_level: 0,
            column_family_id: family.id,
            reason,
        };
        Self {
            family,
            inputs: Vec::new(),
            tombstones,
            version,
            target: Target {
                place: OutputPlace::level0(options.default_write_temperature),
                compression,
                oldest_ancestor_time: 0,
                is_proximal: false,
            },
            proximal: None,
            is_flush: true,
            wants_key_filter: false,
            filtered,
            inherited: Inherited::default(),
            pace: JobPace {
                priority: IoPriority::High,
                gives_way: reason == TableFileCreationReason::Flush,
                compresses_in_parallel: false,
                entry_size: 0,
                control: None,
            },
            blob_gc: direct.recovered.clone(),
            direct,
            told: ToldJob::default(),
            history,
        }
    }

    /// Up to which sequence number tables have all writes of the family. What the inputs say stays
    /// true, also where nothing in the version has such a number any longer.
    pub(in crate::db) fn flushed_until(&self) -> SequenceNumber {
        // A worker has no memtables.
        let ordered = self.inherited.ordered_flushed_until;
        let in_version = ordered.unwrap_or_else(|| flushed_until(&self.family, &self.version));
        in_version.max(self.inherited.flushed_until)
    }

    /// Whether its tables may be marked for compaction. Not those that a compaction rewrites in
    /// place, at the bottom or next to it: it has dropped what it can, and the next would mark its
    /// own again, without end.
    pub(in crate::db) fn may_mark(&self, target: &Target) -> bool {
        let level = target.place.level;
        let is_in_place = self.filtered.input_start_level == Some(level as u32)
            && (level > 0 || self.inputs.len() == 1);
        self.is_flush || !target.is_proximal && !target.place.bottommost && !is_in_place
    }

    /// What the drop rules go by, if `snapshots` are live.
    pub(in crate::db) fn stream_settings(
        &self,
        options: &ColumnFamilyOptions,
        snapshots: Vec<SequenceNumber>,
    ) -> StreamSettings {
        StreamSettings {
            snapshots,
            bottommost: self.target.place.bottommost,
            level: self.filtered.input_start_level.unwrap_or(0),
            merge_operator: options.merge_operator.clone(),
            ingest_behind: options.cf_allow_ingest_behind,
            zeroed_until: self.inherited.times.zeroed_until,
            times: self.is_flush.then(|| FlushedTimes(self.inherited.times.known.clone())),
            history: self.history.clone(),
            ..StreamSettings::new(self.family.comparator().clone())
        }
    }
}

/// The filter of one part of a job.
pub(in crate::db) enum PartFilter<'a> {
    Shared(&'a dyn CompactionFilter),
    Own(Box<dyn CompactionFilter>),
}

impl<'a> PartFilter<'a> {
    /// What the options have for tables of this kind.
    pub(in crate::db) fn choose(
        options: &'a ColumnFamilyOptions,
        context: &CompactionFilterContext,
    ) -> Option<Self> {
        match (&options.compaction_filter, &options.compaction_filter_factory) {
            (Some(shared), _) if context.reason == TableFileCreationReason::Compaction => {
                Some(Self::Shared(&**shared))
            }
            (None, Some(factory)) if factory.should_filter_table_file_creation(context.reason) => {
                factory.create_compaction_filter(context).map(Self::Own)
            }
            _ => None,
        }
    }

    pub(in crate::db) fn get(&self) -> &dyn CompactionFilter {
        match self {
            Self::Shared(filter) => *filter,
            Self::Own(filter) => &**filter,
        }
    }
}

/// Files made by a job that has not finished: removed unless it does.
pub(in crate::db) struct Unfinished<'a> {
    inner: &'a Jobs,
    family: Arc<Family>,
    priority: IoPriority,
    limit: Option<Limit>,
    files: Mutex<Vec<(Made, FileNumber, PathBuf)>>,
    /// Those whose checksums are being computed.
    summed: Mutex<BTreeMap<FileNumber, Arc<SummedFile>>>,
    /// What listeners are told of each file, but for which it is; `None` where nobody listens.
    told: Option<FileCreationInfo>,
}

/// What kind of file a job makes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::db) enum Made {
    Table,
    BlobFile,
}

impl<'a> Unfinished<'a> {
    pub(in crate::db) fn new(inner: &'a Jobs, spec: &JobSpec) -> Self {
        let priority = spec.pace.priority;
        let told = inner.context.events.has_listeners().then(|| FileCreationInfo {
            family: spec.family.id,
            family_name: spec.family.name.clone(),
            job: spec.told.id,
            reason: spec.filtered.reason,
            number: FileNumber(0),
            path: PathBuf::new(),
            size: 0,
            count: 0,
            properties: None,
            seqnos: (0, 0),
            oldest_blob_file: None,
            checksum: None,
            outcome: Ok(()),
        });
        Self {
            told,
            inner,
            family: spec.family.clone(),
            priority,
            limit: inner.background.write_limit(priority),
            files: Mutex::default(),
            summed: Mutex::default(),
        }
    }

    pub(in crate::db) fn create(
        &self,
        made: Made,
        number: FileNumber,
        path: PathBuf,
    ) -> Result<(FileNumber, Arc<dyn WritableFile>)> {
        if let Some(told) = &self.told {
            let begun = FileCreationInfo { number, path: path.clone(), ..told.clone() };
            self.inner.context.events.note(|| match made {
                Made::Table => Event::TableBegun(begun),
                Made::BlobFile => Event::BlobFileBegun(begun),
            });
        }
        let created = self.create_file(number, &path);
        if created.is_err() && self.told.is_some() {
            self.note_failure(made, number, path.clone());
        }
        let file = created?;
        self.files.lock().push((made, number, path));
        Ok((number, file))
    }

    fn create_file(&self, number: FileNumber, path: &Path) -> Result<Arc<dyn WritableFile>> {
        let env = &self.inner.context.env;
        let directly = self.inner.context.settings.load().use_direct_io_for_flush_and_compaction;
        let mut file = if directly {
            self.inner.background.reserved_ahead(env.fs.create_writable(path, IoMode::Direct)?)
        } else {
            self.inner
                .background
                .written_back(env.fs.create_writable(path, IoMode::Buffered)?, self.priority)
        };
        if let Some(limit) = &self.limit {
            file = limit.limit_writes(file);
        }
        if directly && self.inner.tree.has_workers() {
            // The device is waited for: meanwhile the job goes on.
            Ok(Arc::new(WriteBehind::new(file, env.spawner.clone())))
        } else if let Some(running) = self.inner.context.checksums().for_new_file()? {
            let file = Arc::new(SummedFile::new(file, running));
            self.summed.lock().insert(number, file.clone());
            Ok(file)
        } else {
            Ok(file)
        }
    }

    /// The checksum of a file that is complete with `size` bytes, if new files get one.
    pub(in crate::db) fn checksum_of(
        &self,
        number: FileNumber,
        file: &dyn WritableFile,
        size: u64,
    ) -> Result<Option<FileChecksum>> {
        let summed = self.summed.lock().remove(&number);
        match summed.and_then(|summed| summed.take_checksum(size)) {
            Some(checksum) => Ok(Some(checksum)),
            None => self.inner.context.checksum_of_new_file(file.path(), size),
        }
    }

    /// All files are complete and synced: these, and the blob files that writes had filled.
    pub(in crate::db) fn keep(self, output: &JobOutput) {
        self.files.lock().clear();
        let Some(told) = &self.told else { return };
        let (events, paths) = (&self.inner.context.events, &self.family.paths);
        for meta in output.blob_files.iter().chain(&output.direct_files) {
            events.note(|| {
                Event::BlobFileCreated(FileCreationInfo {
                    number: meta.number,
                    path: paths.blob(meta.number),
                    size: meta.total_bytes,
                    count: meta.total_count,
                    checksum: meta.checksum(),
                    ..told.clone()
                })
            });
        }
        for meta in &output.tables {
            let written = output.properties.iter().find(|(number, _)| *number == meta.number);
            let properties = written.map(|(_, properties)| properties.clone());
            events.note(|| {
                Event::TableCreated(FileCreationInfo {
                    number: meta.number,
                    path: file_name::table(paths.directory(meta.path_id), meta.number),
                    size: meta.size,
                    seqnos: (meta.smallest_seqno, meta.largest_seqno),
                    oldest_blob_file: meta.oldest_blob_file,
                    checksum: meta.checksum(),
                    count: properties.as_ref().map_or(0, |properties| properties.num_entries),
                    properties,
                    ..told.clone()
                })
            });
        }
    }

    /// A file was begun and will not be completed.
    fn note_failure(&self, made: Made, number: FileNumber, path: PathBuf) {
        let Some(told) = &self.told else { return };
        let error = Error::new(Code::Aborted, "the job that wrote the file failed").at(&path);
        let failed = FileCreationInfo { number, path, outcome: Err(error), ..told.clone() };
        self.inner.context.events.note(|| match made {
            Made::Table => Event::TableCreated(failed),
            Made::BlobFile => Event::BlobFileCreated(failed),
        });
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let files = std::mem::take(self.files.get_mut());
        // Those of tables say nothing to it.
        self.inner.tables.uncache_blob_files(files.iter().map(|(_, number, _)| *number));
        for (made, number, path) in files {
            self.inner.tables.forget_table(number);
            // The error that led here matters more; what stays is removed when the database is
            // opened next.
            let _ = self.inner.context.env.fs.remove(&path);
            self.note_failure(made, number, path);
        }
    }
}
