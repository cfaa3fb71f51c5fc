//! RocksDB, through the crate `rocksdb`.

use std::path::Path;

use rocksdb::statistics::{StatsLevel, Ticker};
use rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions, DB, DBRawIterator, Env,
    Options, ReadOptions, WaitForCompactOptions, WriteBatch, WriteOptions,
};

use super::{Direction, Engine, Entry, Result, batch_bytes};
use crate::amplification::Written;
use crate::cell::Durability;
use crate::tuning::Tuning;

const FAMILY: &str = "default";

struct RocksDb {
    db: DB,
    read: ReadOptions,
    write: [WriteOptions; 3],
    /// These hold its counters, if it has any.
    statistics: Option<Options>,
    is_read_only: bool,
}

pub fn open(directory: &Path, tuning: &Tuning) -> Result<Box<dyn Engine>> {
    let mut options = Options::default();
    options.create_if_missing(true);
    // Its fastest cache; 0 lets it find the entries' size by itself.
    let cache = tuning.cache_bytes.map(|bytes| Cache::new_hyper_clock_cache(bytes as usize, 0));
    if let Some(cache) = &cache {
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(cache);
        options.set_block_based_table_factory(&table);
        // One cache for blocks and blobs; without blob files it has no effect.
        options.set_blob_cache(cache);
    }
    let text: Vec<String> =
        tuning.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if !text.is_empty() {
        options = options.get_options_from_string(text.join(";"))?;
    }
    if tuning.background_gives_way {
        let mut env = Env::new()?;
        env.lower_thread_pool_cpu_priority();
        env.lower_high_priority_thread_pool_cpu_priority();
        options.set_env(&env);
    }
    if tuning.counts_writes {
        options.enable_statistics();
        options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    }
    let write = [Durability::None, Durability::Process, Durability::Synced].map(how);
    // Naming the family gives a handle for the batched lookups.
    let families = [(FAMILY, options.clone())];
    let db = if tuning.is_read_only {
        DB::open_cf_with_opts_for_read_only(&options, directory, families, false)?
    } else {
        DB::open_cf_with_opts(&options, directory, families)?
    };
    let statistics = tuning.counts_writes.then_some(options);
    let is_read_only = tuning.is_read_only;
    Ok(Box::new(RocksDb { db, read: ReadOptions::default(), write, statistics, is_read_only }))
}

fn how(durability: Durability) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(durability == Durability::Synced);
    options.disable_wal(durability == Durability::None);
    options
}

impl RocksDb {
    fn how(&self, durability: Durability) -> &WriteOptions {
        &self.write[durability as usize]
    }
}

impl Engine for RocksDb {
    fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        Ok(self.db.put_opt(key, value, self.how(durability))?)
    }

    fn write(&self, entries: &[Entry<'_>], durability: Durability) -> Result<()> {
        let mut batch = WriteBatch::with_capacity_bytes(batch_bytes(entries));
        for (key, value) in entries {
            batch.put(key, value);
        }
        Ok(self.db.write_opt(batch, self.how(durability))?)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.db.get_pinned_opt(key, &self.read)?;
        Ok(value.is_some_and(|value| {
            visit(&value);
            true
        }))
    }

    fn multi_get(&self, keys: &[Vec<u8>], visit: &mut dyn FnMut(&[u8])) -> Result<usize> {
        let family = self.db.cf_handle(FAMILY).ok_or("no default column family")?;
        let mut found = 0;
        for value in self.db.batched_multi_get_cf_opt(family, keys, false, &self.read) {
            if let Some(value) = value? {
                visit(&value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn scan(
        &self,
        from: &[u8],
        direction: Direction,
        count: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<usize> {
        let mut iter: DBRawIterator<'_> = self.db.raw_iterator();
        match direction {
            Direction::Forward => iter.seek(from),
            Direction::Backward => iter.seek_for_prev(from),
        }
        let mut seen = 0;
        while seen < count
            && let Some((key, value)) = iter.item()
        {
            visit(key);
            visit(value);
            seen += 1;
            match direction {
                Direction::Forward => iter.next(),
                Direction::Backward => iter.prev(),
            }
        }
        iter.status()?;
        Ok(seen)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn compact(&mut self) -> Result<()> {
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::IfHaveCompactionFilter);
        self.db.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        let mut options = WaitForCompactOptions::default();
        options.set_flush(false);
        Ok(self.db.wait_for_compact(&options)?)
    }

    fn written(&self) -> Result<Written> {
        let options = self.statistics.as_ref().ok_or("RocksDB was not told to count")?;
        let count = |ticker| options.get_ticker_count(ticker);
        // Both count all that their threads write, blob files as well as tables.
        let (flushed, compacted) =
            (count(Ticker::FlushWriteBytes), count(Ticker::CompactWriteBytes));
        let collected = match count(Ticker::BlobDbBlobFileBytesWritten) {
            0 => compacted,
            _ => count(Ticker::BlobDbGcBytesRelocated),
        };
        Ok(Written { flushed, compacted, collected })
    }

    fn statistics(&self) -> String {
        self.db.property_value("rocksdb.stats").ok().flatten().unwrap_or_default()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
