//! Flagstone, through its Rust interface.

use std::path::Path;

use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Ticker};
use flagstone::options::{CompactRangeOptions, Options, ReadOptions, WriteOptions};

use super::{Direction, Engine, Entry, Result, batch_bytes};
use crate::amplification::Written;
use crate::cell::Durability;
use crate::tuning::Tuning;

struct Flagstone {
    db: Db,
    read: ReadOptions,
}

pub fn open(directory: &Path, tuning: &Tuning) -> Result<Box<dyn Engine>> {
    let mut options = Options::default();
    options.set("create_if_missing", "true")?;
    if let Some(bytes) = tuning.cache_bytes {
        options.block_cache_size = Some(bytes);
    }
    for (name, value) in &tuning.options {
        options.set(name, value)?;
    }
    let db = if tuning.is_read_only {
        Db::open_read_only(directory, &options)?
    } else {
        Db::open(directory, &options)?
    };
    Ok(Box::new(Flagstone { db, read: ReadOptions::default() }))
}

fn how(durability: Durability) -> WriteOptions {
    WriteOptions {
        sync: durability == Durability::Synced,
        disable_wal: durability == Durability::None,
        ..WriteOptions::default()
    }
}

impl Engine for Flagstone {
    fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        if durability == Durability::Process {
            return Ok(self.db.put(key, value)?);
        }
        self.write(&[(key, value)], durability)
    }

    fn write(&self, entries: &[Entry<'_>], durability: Durability) -> Result<()> {
        let mut batch = WriteBatch::with_capacity(batch_bytes(entries));
        for (key, value) in entries {
            batch.put(key, value)?;
        }
        Ok(self.db.write_ref(&how(durability), &mut batch)?)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.db.get_with(&self.read, self.db.default_column_family(), key)?;
        Ok(value.is_some_and(|value| {
            visit(&value);
            true
        }))
    }

    fn multi_get(&self, keys: &[Vec<u8>], visit: &mut dyn FnMut(&[u8])) -> Result<usize> {
        let mut found = 0;
        for value in self.db.multi_get(keys) {
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
        let mut iter = self.db.iter(&self.read)?;
        match direction {
            Direction::Forward => iter.seek(from),
            Direction::Backward => iter.seek_for_prev(from),
        }
        let mut seen = 0;
        while seen < count && iter.valid() {
            visit(iter.key());
            visit(iter.value()?);
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
        Ok(self.db.flush_all()?)
    }

    fn compact(&mut self) -> Result<()> {
        let options = CompactRangeOptions::default();
        Ok(self.db.compact_range(self.db.default_column_family(), None, None, &options)?)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.db.wait_for_compactions()?)
    }

    fn written(&self) -> Result<Written> {
        let count = |ticker| self.db.statistics().get(ticker);
        let (relocated, compacted) =
            (count(Ticker::BlobGcRelocatedBytes), count(Ticker::CompactWriteBytes));
        // Values that were moved are bytes of blob files, too.
        let values = count(Ticker::BlobWriteBytes).saturating_sub(relocated);
        let given_back = relocated + count(Ticker::BlobPunchedBytes);
        Ok(Written {
            flushed: count(Ticker::FlushWriteBytes) + values,
            compacted: compacted + relocated,
            collected: if count(Ticker::BlobWriteBytes) > 0 { given_back } else { compacted },
        })
    }

    fn statistics(&self) -> String {
        self.db.property(self.db.default_column_family(), "rocksdb.stats").unwrap_or_default()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.close()?)
    }
}
