//! fjall.

use std::path::Path;

use fjall::config::{BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{Direction, Engine, Entry, Result};
use crate::cell::{Compression, Durability};
use crate::measure;
use crate::tuning::{FILTER_BITS, Tuning};

struct Fjall {
    db: Database,
    keyspace: Keyspace,
}

pub fn open(directory: &Path, tuning: &Tuning, durability: Durability) -> Result<Box<dyn Engine>> {
    // It has no way to write without its journal; what it does not persist stays in the journal's
    // buffer.
    let is_manual = durability == Durability::None;
    let mut builder = Database::builder(directory).manual_journal_persist(is_manual);
    if let Some(bytes) = tuning.cache_bytes {
        builder = builder.cache_size(bytes);
    }
    if let Some(jobs) = tuning.jobs {
        builder = builder.worker_threads(jobs as usize);
    }
    let db = builder.open()?;
    let keyspace =
        db.keyspace("default", || keyspace_options(tuning).manual_journal_persist(is_manual))?;
    Ok(Box::new(Fjall { db, keyspace }))
}

fn keyspace_options(tuning: &Tuning) -> KeyspaceCreateOptions {
    let mut options = KeyspaceCreateOptions::default();
    if let Some((bytes, _)) = tuning.memtables {
        let bits = BloomConstructionPolicy::BitsPerKey(FILTER_BITS as f32);
        options = options
            .max_memtable_size(bytes)
            .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(bits)));
    }
    match tuning.compression {
        None => options,
        Some(Compression::None) => {
            options.data_block_compression_policy(CompressionPolicy::disabled())
        }
        Some(Compression::Lz4) => {
            options.data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
        }
    }
}

impl Fjall {
    fn sync(&self, durability: Durability) -> Result<()> {
        match durability {
            // As opened: left in the buffer, or handed to the operating system by the write itself.
            Durability::None | Durability::Process => Ok(()),
            Durability::Synced => Ok(self.db.persist(PersistMode::SyncData)?),
        }
    }
}

impl Engine for Fjall {
    fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.keyspace.insert(key, value)?;
        self.sync(durability)
    }

    fn write(&self, entries: &[Entry<'_>], durability: Durability) -> Result<()> {
        let mut batch = self.db.batch();
        for (key, value) in entries {
            batch.insert(&self.keyspace, *key, *value);
        }
        batch.commit()?;
        self.sync(durability)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.keyspace.get(key)?.is_some_and(|value| {
            visit(&value);
            true
        }))
    }

    fn scan(
        &self,
        from: &[u8],
        direction: Direction,
        count: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<usize> {
        let mut seen = 0;
        let mut show = |guard: fjall::Guard| -> Result<()> {
            let (key, value) = guard.into_inner()?;
            visit(&key);
            visit(&value);
            seen += 1;
            Ok(())
        };
        match direction {
            Direction::Forward => {
                self.keyspace.range(from..).take(count).try_for_each(&mut show)?
            }
            Direction::Backward => {
                self.keyspace.range(..=from).rev().take(count).try_for_each(&mut show)?
            }
        }
        Ok(seen)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.keyspace.rotate_memtable_and_wait()?)
    }

    fn compact(&mut self) -> Result<()> {
        self.flush()?;
        Ok(self.keyspace.major_compact()?)
    }

    fn settle(&self) -> Result<()> {
        // It tells what it does, but not what it is about to do.
        while self.db.outstanding_flushes() > 0 || self.db.active_compactions() > 0 {
            measure::wait_until_idle();
        }
        measure::wait_until_idle();
        Ok(())
    }

    fn statistics(&self) -> String {
        format!(
            "{} tables, {} in level 0",
            self.keyspace.table_count(),
            self.keyspace.l0_table_count()
        )
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.persist(PersistMode::Buffer)?)
    }
}
