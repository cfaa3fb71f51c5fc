//! redb: a B-tree on pages, one writer at a time.

use std::path::Path;

use redb::{Database, ReadableDatabase, TableDefinition};

use super::{Direction, Engine, Entry, Result};
use crate::cell::Durability;
use crate::tuning::Tuning;

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("default");

struct Redb(Database);

pub fn open(directory: &Path, tuning: &Tuning) -> Result<Box<dyn Engine>> {
    let mut builder = Database::builder();
    if let Some(cache) = tuning.cache_bytes {
        // It has no memtables; what others give to theirs goes to its cache.
        builder.set_cache_size(
            (cache + tuning.memtables.map_or(0, |(bytes, count)| bytes * count)) as usize,
        );
    }
    let db = builder.create(directory.join("db.redb"))?;
    let first = db.begin_write()?;
    first.open_table(TABLE)?;
    first.commit()?;
    Ok(Box::new(Redb(db)))
}

impl Engine for Redb {
    fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.write(&[(key, value)], durability)
    }

    fn write(&self, entries: &[Entry<'_>], durability: Durability) -> Result<()> {
        let mut transaction = self.0.begin_write()?;
        transaction.set_durability(match durability {
            Durability::None => redb::Durability::None,
            Durability::Process => {
                return Err("redb has no commits that survive only the process".into());
            }
            Durability::Synced => redb::Durability::Immediate,
        })?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for (key, value) in entries {
                table.insert(*key, *value)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let table = self.0.begin_read()?.open_table(TABLE)?;
        Ok(table.get(key)?.is_some_and(|value| {
            visit(value.value());
            true
        }))
    }

    fn multi_get(&self, keys: &[Vec<u8>], visit: &mut dyn FnMut(&[u8])) -> Result<usize> {
        let table = self.0.begin_read()?.open_table(TABLE)?;
        let mut found = 0;
        for key in keys {
            if let Some(value) = table.get(key.as_slice())? {
                visit(value.value());
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
        let table = self.0.begin_read()?.open_table(TABLE)?;
        let mut range = match direction {
            Direction::Forward => table.range(from..)?,
            Direction::Backward => table.range(..=from)?,
        };
        let mut seen = 0;
        while seen < count
            && let Some(entry) = match direction {
                Direction::Forward => range.next(),
                Direction::Backward => range.next_back(),
            }
        {
            let (key, value) = entry?;
            visit(key.value());
            visit(value.value());
            seen += 1;
        }
        Ok(seen)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.0.begin_write()?.commit()?)
    }

    fn compact(&mut self) -> Result<()> {
        self.0.compact()?;
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        // It has no background.
        self.flush()
    }

    fn statistics(&self) -> String {
        String::new()
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.0.close()?)
    }
}
