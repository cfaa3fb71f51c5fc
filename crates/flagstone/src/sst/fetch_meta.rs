//! Fetches the blocks that lead to data: indexes and filters that the cache holds.

use std::sync::Arc;

use super::cached::{CachedBlock, IndexPartition, Slim};
use super::fetch::{BlockSource, FILTER_OVERHEAD};
use super::filter::Filter;
use super::format::BlockHandle;
use super::index::{IndexBlock, IndexFlavor};
use super::settings::ReadSettings;
use crate::base::perf::{self, BlockKind, PerfLevelMetric, PerfMetric};
use crate::base::{Comparator, Result};

impl BlockSource {
    /// A partition of the index, or all of it.
    ///
    /// # Errors
    /// `Corruption` or `IoError` naming file and offset, or `Incomplete`.
    pub fn index_partition(
        &self,
        handle: BlockHandle,
        flavor: IndexFlavor,
        comparator: &Comparator,
        settings: &ReadSettings,
    ) -> Result<Arc<IndexPartition>> {
        let _time = perf::time(PerfMetric::ReadIndexBlockNanos);
        let _kind = perf::reading(BlockKind::Index);
        if let Some(CachedBlock::Slim(Slim::Index(partition))) = self.cached(handle) {
            perf::hit(BlockKind::Index, || partition.memory_usage());
            return Ok(partition);
        }
        perf::count_at_level(PerfLevelMetric::BlockCacheMissCount, 1);
        let _miss = self.begin_miss(settings);
        self.refuse_if_cache_only(handle, settings)?;
        let block = self.read_block(handle, settings.verify_checksums, false)?;
        let decoded = IndexBlock::decode(&block, flavor, comparator, self.file_size);
        let partition =
            Arc::new(IndexPartition::new(decoded.map_err(|error| self.locate(error, handle))?));
        let charge = partition.memory_usage();
        self.keep(handle, CachedBlock::Slim(Slim::Index(partition.clone())), charge, settings);
        Ok(partition)
    }

    /// Puts an index that was read already into the cache.
    pub fn keep_index(&self, handle: BlockHandle, index: IndexBlock) {
        let charge = index.memory_usage();
        let index = CachedBlock::Slim(Slim::Index(Arc::new(IndexPartition::new(index))));
        self.keep(handle, index, charge, &ReadSettings::default());
    }

    /// A partition of the filter, or all of it.
    ///
    /// # Errors
    /// `Corruption` or `IoError` naming file and offset, or `Incomplete`.
    pub fn filter_partition(
        &self,
        handle: BlockHandle,
        settings: &ReadSettings,
    ) -> Result<Arc<Filter>> {
        let _time = perf::time(PerfMetric::ReadFilterBlockNanos);
        let _kind = perf::reading(BlockKind::Filter);
        if let Some(CachedBlock::Slim(Slim::Filter(partition))) = self.cached(handle) {
            perf::hit(BlockKind::Filter, || handle.size as usize + FILTER_OVERHEAD);
            return Ok(partition);
        }
        perf::count_at_level(PerfLevelMetric::BlockCacheMissCount, 1);
        let _miss = self.begin_miss(settings);
        self.refuse_if_cache_only(handle, settings)?;
        let partition = Arc::new(Filter::new(self.read_raw(handle, settings.verify_checksums)?));
        let charge = handle.size as usize + FILTER_OVERHEAD;
        self.keep(handle, CachedBlock::Slim(Slim::Filter(partition.clone())), charge, settings);
        Ok(partition)
    }
}
