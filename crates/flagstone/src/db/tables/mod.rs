//! Open tables and blob files.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::base::perf::{self, PerfMetric};
use crate::base::sync::{AtomicBool, Mutex};
use crate::base::{Error, FileNumber, FragmentedRangeTombstones, Remedy, Result};
use crate::blob::BlobFileReader;
use crate::cache::{MemoryAccount, MemoryKind};
use crate::db::budget::{Budget, BudgetRule};
use crate::db::family::Family;
use crate::db::statistics::Statistics;
use crate::db::tables::caches::Caches;
use crate::db::tables::damage_reports::DamageReports;
use crate::db::tables::level_files::ReadThrough;
use crate::db::tables::live_cursors::LiveCursors;
use crate::db::tables::shared_files::SharedFiles;
use crate::env::{Clock, FilePool, IoMode, RandomAccessFile, RateLimiter, ReadLimits};
use crate::manifest::{TableFile, Version};
use crate::options::{ColumnFamilyOptions, DbSettings, Options, ReadOptions};
use crate::sst::{
    BesideBlocks, Filter, IterSettings, OwnFile, Prepopulate, ReadCacheHits, Table, TableIterator,
    TableReadSettings, TableRows,
};

/// `max_open_files` is never taken for less (RocksDB's `SanitizeOptions`).
const OPEN_FILES_AT_LEAST: usize = 20;

/// Of `max_open_files`, those left to WALs, MANIFEST and the like (RocksDB's
/// `kNumberReservedFiles`).
const OPEN_FILES_RESERVED: usize = 10;

/// The error of a file that the MANIFEST names; where that is missing, with what helps.
pub(in crate::db) fn of_named_file(error: Error) -> Error {
    if !error.is_not_found() {
        return error;
    }
    error
        .context("the MANIFEST names this file, but it is missing")
        .advise(Remedy::RestoreOrSalvage)
}

/// Opens tables and blob files, each once, and holds the caches that they share.
pub(crate) struct Tables {
    /// Opens all files that readers share.
    files: SharedFiles,
    caches: Caches,
    /// All families keep values from blob files in a cache, and not only those with `cache_blobs`.
    pub(in crate::db) caches_all_blobs: bool,
    /// Some are in the cache, or were.
    pub(in crate::db) has_cached_blobs: AtomicBool,
    account: Arc<MemoryAccount>,
    budget: BudgetRule,
    pub(in crate::db) clock: Arc<dyn Clock>,
    rate_limiter: Option<Arc<RateLimiter>>,
    verify_unique_ids: bool,
    blob_files: Mutex<HashMap<FileNumber, Arc<BlobFileReader>>>,
    suspects: DamageReports,
    live_cursors: Arc<LiveCursors>,
    /// The numbers in the cache of tables whose blocks went there as they were written.
    prepopulated: Mutex<HashMap<FileNumber, u64>>,
    /// Filters of new tables that have none in their files, until these are opened.
    key_filters: Mutex<HashMap<FileNumber, Filter>>,
}

impl Tables {
    pub(in crate::db) fn new(
        options: &Options,
        account: Arc<MemoryAccount>,
        budget: BudgetRule,
        statistics: &Arc<Statistics>,
    ) -> Self {
        let caches = Caches::new(options, &account, &budget);
        Self {
            files: SharedFiles::new(
                FilePool::new(options.env.fs.clone()),
                statistics.clone(),
                read_mode(options),
            ),
            caches,
            caches_all_blobs: options.blob_cache.is_some() || options.blob_cache_size > 0,
            has_cached_blobs: AtomicBool::new(false),
            account,
            budget,
            clock: options.env.clock.clone(),
            rate_limiter: options.rate_limiter.clone(),
            verify_unique_ids: options.db.verify_sst_unique_id_in_manifest,
            blob_files: Mutex::default(),
            suspects: DamageReports::default(),
            live_cursors: LiveCursors::new(),
            prepopulated: Mutex::default(),
            key_filters: Mutex::default(),
        }
    }

    /// What cursors have met of damage.
    pub(in crate::db) fn suspects(&self) -> &DamageReports {
        &self.suspects
    }

    /// The cursors that there are.
    pub(in crate::db) fn live_cursors(&self) -> &Arc<LiveCursors> {
        &self.live_cursors
    }

    /// What limits the reads of a call with these options, if anything does.
    #[inline]
    pub(in crate::db) fn read_limits(&self, options: &ReadOptions) -> Option<Arc<ReadLimits>> {
        if options.limits_reads() { Some(self.new_read_limits(options)) } else { None }
    }

    #[cold]
    fn new_read_limits(&self, options: &ReadOptions) -> Arc<ReadLimits> {
        let timeout_us =
            options.io_timeout.map(|limit| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX));
        let deadline_us = options.deadline_us.unwrap_or(u64::MAX);
        let limits =
            ReadLimits::new(self.clock.clone(), deadline_us, timeout_us.unwrap_or(u64::MAX));
        let limiter = self.rate_limiter.clone().filter(|limiter| limiter.limits_reads());
        Arc::new(match limiter.zip(options.rate_limiter_priority) {
            Some((limiter, priority)) => limits.limited_by(limiter, priority),
            None => limits,
        })
    }

    /// How late it is, about.
    pub(in crate::db) fn coarse_us(&self) -> u64 {
        self.clock.coarse_us()
    }

    /// Where the memory beside the cache is noted.
    pub(in crate::db) fn account(&self) -> &Arc<MemoryAccount> {
        &self.account
    }

    /// How often a file was opened again that had been closed for others (`max_open_files`).
    pub(in crate::db) fn file_reopens(&self) -> u64 {
        self.files.pool().reopens()
    }

    /// Bytes of the caches that nobody else has, and the most that the account has known of: what
    /// jobs had, and memtables, is free for long when the database goes, and with the allocator.
    pub(in crate::db) fn freed_at_end(&self) -> usize {
        self.account.most() + self.caches.own_usage()
    }

    /// The caches of blocks and values.
    #[inline]
    pub(in crate::db) fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The table of a file; opened at its first use and then kept with the file.
    #[inline]
    pub(in crate::db) fn open<'a>(
        &self,
        family: &Family,
        file: &'a TableFile,
    ) -> Result<&'a Arc<Table>> {
        match file.table.get() {
            Some(table) => Ok(table),
            None => self.open_slow(family, file),
        }
    }

    /// [`Self::open`]; with `cache_only` a table that is not open stays so.
    ///
    /// # Errors
    /// Those of opening, or `Incomplete`.
    #[inline]
    pub(in crate::db) fn open_for<'a>(
        &self,
        family: &Family,
        file: &'a TableFile,
        cache_only: bool,
    ) -> Result<&'a Arc<Table>> {
        match file.table.get() {
            Some(table) => Ok(table),
            None if cache_only => Err(Error::incomplete(
                "the table is not open, and cache_only does not allow opening it",
            )
            .at(file.path())),
            None => self.open_slow(family, file),
        }
    }

    #[cold]
    fn open_slow<'a>(&self, family: &Family, file: &'a TableFile) -> Result<&'a Arc<Table>> {
        let _time = perf::time(PerfMetric::FindTableNanos);
        // Whoever comes second would read all of it again, and have no filter where one waits.
        let _one_at_a_time = file.opening.lock();
        if let Some(table) = file.table.get() {
            return Ok(table);
        }
        let table = ReadLimits::without_limiter(|| self.read_table(family, file))?;
        self.key_filters.lock().remove(&file.number());
        Ok(file.opened(table))
    }

    /// Reads of a table what is in memory while it is open.
    fn read_table(&self, family: &Family, file: &TableFile) -> Result<Arc<Table>> {
        let opened = self.open_table_file(family, file, self.files.mode())?;
        let options = family.options.load();
        let cache_index_and_filter = self.leaves_index_to_cache(family, file);
        // An opening that fails keeps the filter for the next one.
        let key_filter = if cache_index_and_filter {
            None
        } else {
            self.key_filters.lock().get(&file.number()).cloned()
        };
        let settings = TableReadSettings {
            comparator: family.comparator().clone(),
            is_stripped: !file.meta.user_timestamps_persisted,
            cache: (!options.table.no_block_cache).then(|| self.caches.blocks().clone()),
            second_tier: self
                .caches
                .second_tier()
                .filter(|_| !options.table.no_block_cache)
                .cloned(),
            cache_id: self.cache_id(file.number()),
            prefix_extractor: options.prefix_extractor.clone(),
            largest_sequence: Some(file.meta.largest_seqno),
            unique_id: file.meta.unique_id.filter(|_| self.verify_unique_ids),
            cache_index_and_filter,
            key_filter,
            high_priority: options.table.cache_index_and_filter_blocks_with_high_priority,
            beside_blocks: self.beside_blocks(&options),
            account: Some(self.account.clone()),
            ..TableReadSettings::default()
        };
        Table::open(opened, file.meta.size, settings)
    }

    /// What a table has in memory beside its blocks.
    fn beside_blocks(&self, options: &ColumnFamilyOptions) -> BesideBlocks {
        let rows = self.caches.rows();
        BesideBlocks {
            rows: rows.map(|(rows, owner)| TableRows::new(rows.clone(), owner.next_file())),
            checksum_bytes: options.block_protection_bytes_per_key.bytes(),
        }
    }

    /// Whether index and filter of a table that is opened now go to the cache.
    fn leaves_index_to_cache(&self, family: &Family, file: &TableFile) -> bool {
        let options = family.options.load();
        let is_in_level0 = || {
            let level0 = &family.current.load().version.levels[0];
            level0.iter().any(|other| other.number() == file.number())
        };
        let is_pinned = options.table.pin_l0_filter_and_index_blocks_in_cache && is_in_level0();
        let has_budget =
            |budget: Budget| self.account.held(MemoryKind::Tables) as u64 <= budget.tables;
        let is_wanted = options.table.cache_index_and_filter_blocks && !is_pinned;
        is_wanted || !self.budget.now().is_none_or(has_budget)
    }

    fn cache_id(&self, number: FileNumber) -> u64 {
        let known = self.prepopulated.lock().get(&number).copied();
        known.unwrap_or_else(|| self.caches.owner().next_file())
    }

    /// How the blocks of a table that is about to be written get into the cache: all, or following
    /// what the job reads.
    pub(in crate::db) fn prepopulate(
        &self,
        number: FileNumber,
        read_cache_hits: Option<Arc<ReadCacheHits>>,
    ) -> Prepopulate {
        let cache_id = self.cache_id(number);
        self.prepopulated.lock().insert(number, cache_id);
        let (second_tier, account) = (self.caches.second_tier().cloned(), self.account.clone());
        Prepopulate {
            cache: self.caches.blocks().clone(),
            second_tier,
            cache_id,
            read_cache_hits,
            account,
        }
    }

    /// Keeps the filter of a new table until that is opened.
    pub(in crate::db) fn keep_key_filter(&self, number: FileNumber, filter: Filter) {
        self.key_filters.lock().insert(number, filter);
    }

    /// A table is gone, or about to be.
    pub(in crate::db) fn forget_table(&self, number: FileNumber) {
        self.key_filters.lock().remove(&number);
        self.prepopulated.lock().remove(&number);
    }

    /// Opens a file that the MANIFEST names.
    fn open_table_file(
        &self,
        family: &Family,
        file: &TableFile,
        mode: IoMode,
    ) -> Result<Arc<dyn RandomAccessFile>> {
        let path = file.path();
        let temperatures = (file.meta.temperature, family.options.load().default_temperature);
        match self.files.open_table(&path, mode, temperatures) {
            // LevelDB's name for the same thing.
            Err(error) if error.is_not_found() => {
                let ldb = path.with_extension("ldb");
                let opened = self.files.open_table(&ldb, mode, temperatures);
                let opened = opened.map_err(|_| of_named_file(error))?;
                file.note_leveldb_name();
                Ok(opened)
            }
            opened => opened,
        }
    }

    /// Takes over options of the database that have changed; whether the caches are to hear of it,
    /// through the account.
    pub(in crate::db) fn note_settings(&self, settings: &DbSettings) -> bool {
        if let Some(auto) = self.caches.auto() {
            auto.set_rules(settings);
        }
        self.budget.set(settings)
    }

    /// A block cache that sizes itself looks whether it should have another size.
    pub(in crate::db) fn size_cache(&self) {
        if let Some(auto) = self.caches.auto() {
            auto.look(self.clock.now_us());
        }
    }

    /// How many table and blob files readers may hold open, as `max_open_files` says.
    pub(in crate::db) fn limit_open_files(&self, max_open_files: i32) {
        let files = usize::try_from(max_open_files).ok();
        self.files
            .pool()
            .set_capacity(files.map(|files| files.max(OPEN_FILES_AT_LEAST) - OPEN_FILES_RESERVED));
    }

    /// A cursor over a table, which may read ahead through a file of its own.
    pub(in crate::db) fn iterate(
        &self,
        family: &Family,
        file: &TableFile,
        settings: &IterSettings,
        through: Option<&ReadThrough>,
    ) -> Result<TableIterator> {
        let table = self.open_for(family, file, settings.read.cache_only)?;
        let Some(ReadThrough { directly, limit, ahead }) = through else {
            return Ok(table.iter(settings.clone()));
        };
        let shared = self.files.mode();
        let mode = if *directly { IoMode::Direct } else { shared };
        if mode == shared && limit.is_none() && ahead.is_none() {
            return Ok(table.iter(settings.clone()));
        }
        let own = self.open_table_file(family, file, mode)?;
        let file = match limit {
            Some(limit) => limit.limit_reads(own),
            None => own,
        };
        Ok(table.iter_through(OwnFile { file, ahead: ahead.clone() }, settings.clone()))
    }

    /// Whether all reads go around the system's cache.
    pub(in crate::db) fn reads_directly(&self) -> bool {
        self.files.mode().is_direct()
    }

    /// Whether the file that a blob file was written through may stay open for its readers.
    pub(in crate::db) fn may_read_through_writers_file(
        &self,
        written: &dyn RandomAccessFile,
    ) -> bool {
        // One written around the system's cache has to be read so, too.
        !self.files.pool().is_limited() && (!written.is_direct() || self.reads_directly())
    }

    /// Opens a blob file that is complete for reading.
    pub(in crate::db) fn open_file(&self, path: &Path) -> Result<Arc<dyn RandomAccessFile>> {
        self.files.open(path, self.files.mode())
    }

    /// The reader of a blob file; opened at its first use.
    pub(in crate::db) fn blob_file(
        &self,
        family: &Family,
        number: FileNumber,
    ) -> Result<Arc<BlobFileReader>> {
        if let Some(reader) = self.blob_files.lock().get(&number) {
            return Ok(reader.clone());
        }
        let file = self.open_file(&family.paths.blob(number)).map_err(of_named_file)?;
        let reader =
            Arc::new(BlobFileReader::open(file, family.id)?.with_order(family.order.keys()));
        Ok(self.blob_files.lock().entry(number).or_insert(reader).clone())
    }

    /// A reader of a complete blob file for whoever reads around the system's cache, and keeps it.
    pub(in crate::db) fn blob_file_around_cache(
        &self,
        family: &Family,
        number: FileNumber,
    ) -> Result<BlobFileReader> {
        let path = family.paths.blob(number);
        let opened = self.files.open(&path, IoMode::Direct);
        let file = opened.map_err(of_named_file)?;
        Ok(BlobFileReader::open(file, family.id)?.with_order(family.order.keys()))
    }

    /// The reader of a blob file that may not be sealed, and that the MANIFEST need not name; kept
    /// from now on.
    pub(in crate::db) fn unsealed_blob_file(
        &self,
        family: &Family,
        number: FileNumber,
    ) -> Result<Arc<BlobFileReader>> {
        if let Some(reader) = self.blob_files.lock().get(&number) {
            return Ok(reader.clone());
        }
        let file = self.files.open(&family.paths.blob(number), IoMode::Buffered)?;
        let reader = Arc::new(
            BlobFileReader::open_unsealed(file, family.id)?.with_order(family.order.keys()),
        );
        Ok(self.blob_files.lock().entry(number).or_insert(reader).clone())
    }

    /// Reads of a file go through this reader until it is removed: memtables name files that no
    /// version has yet.
    pub(in crate::db) fn keep_blob_file(&self, number: FileNumber, reader: Arc<BlobFileReader>) {
        self.blob_files.lock().insert(number, reader);
    }

    /// The reader of a blob file that a memtable or `version` names.
    pub(in crate::db) fn named_blob_file(
        &self,
        family: &Family,
        version: &Version,
        number: FileNumber,
    ) -> Result<Arc<BlobFileReader>> {
        let known = self.blob_files.lock().get(&number).cloned();
        match known {
            Some(reader) => Ok(reader),
            None if version.blob_files.contains_key(&number) => self.blob_file(family, number),
            None => {
                let message =
                    format!("invalid blob file number {number}: the MANIFEST does not name it");
                Err(Error::corruption(message).at(family.paths.blob(number)))
            }
        }
    }

    /// Closes the blob files of other numbers.
    pub(in crate::db) fn retain_blob_files(&self, is_kept: impl Fn(FileNumber) -> bool) {
        self.blob_files.lock().retain(|number, _| is_kept(*number));
    }

    /// A blob file is about to be removed.
    pub(in crate::db) fn forget_blob_file(&self, number: FileNumber) {
        self.blob_files.lock().remove(&number);
    }
}

/// How tables and blob files are opened for reading.
pub(in crate::db) fn read_mode(options: &Options) -> IoMode {
    if options.allow_mmap_reads {
        IoMode::Mapped
    } else {
        IoMode::direct_if(options.use_direct_reads)
    }
}

/// A table's range tombstones, if it has any.
pub(in crate::db) fn tombstones_of(table: &Table) -> Option<&Arc<FragmentedRangeTombstones>> {
    Some(table.range_tombstones()).filter(|tombstones| !tombstones.is_empty())
}

pub(in crate::db) mod auto_cache;
pub(in crate::db) mod auto_size;
pub(in crate::db) mod caches;
pub(in crate::db) mod damage_reports;
pub(in crate::db) mod level_files;
pub(in crate::db) mod live_cursors;
mod shared_files;
#[cfg(test)]
mod tests;
