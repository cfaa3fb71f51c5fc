//! LMDB: a B+tree in a mapped file, one writer at a time. A reader has a transaction, opened for
//! each call or once by each thread.

use std::cell::RefCell;
use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithoutTls};

use super::{Direction, Engine, Entry, Result};
use crate::cell::Durability;

/// Bytes of addresses, which the file may not outgrow; it takes only what it holds.
const MAP_BYTES: usize = 1 << 38;
/// Threads that read at once, at most.
const READERS: u32 = 256;

/// When a transaction that reads begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// With each call: the call sees all that was written before.
    EachCall,
    /// With a thread's first call; the thread sees nothing that is written later.
    Once,
}

struct Lmdb {
    env: Env<WithoutTls>,
    database: Database<Bytes, Bytes>,
    reads: Reads,
    durability: Durability,
}

thread_local! {
    /// What [`Reads::Once`] keeps. A process opens one environment.
    static KEPT: RefCell<Option<RoTxn<'static, WithoutTls>>> = const { RefCell::new(None) };
}

pub fn open(directory: &Path, durability: Durability, reads: Reads) -> Result<Box<dyn Engine>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(MAP_BYTES).max_readers(READERS);
    if durability != Durability::Synced {
        // Commits write to the file, so they survive the process.
        // SAFETY: the flag lets a loss of power damage the file. No run outlives one.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
    }
    // SAFETY: only this process uses the directory, and opens it once: nobody else changes the
    // mapped file.
    let env = unsafe { options.open(directory)? };
    let mut first = env.write_txn()?;
    let database = env.create_database(&mut first, None)?;
    first.commit()?;
    Ok(Box::new(Lmdb { env, database, reads, durability }))
}

impl Lmdb {
    /// Calls `read` with the transaction that is due.
    fn reading<T>(&self, read: impl FnOnce(&RoTxn<'_, WithoutTls>) -> Result<T>) -> Result<T> {
        if self.reads == Reads::EachCall {
            return read(&self.env.read_txn()?);
        }
        KEPT.with_borrow_mut(|kept| {
            if kept.is_none() {
                *kept = Some(self.env.clone().static_read_txn()?);
            }
            read(kept.as_ref().ok_or("no transaction")?)
        })
    }
}

impl Engine for Lmdb {
    fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.write(&[(key, value)], durability)
    }

    fn write(&self, entries: &[Entry<'_>], durability: Durability) -> Result<()> {
        if durability == Durability::Synced && self.durability != Durability::Synced {
            return Err("LMDB was opened without syncs".into());
        }
        let mut transaction = self.env.write_txn()?;
        for (key, value) in entries {
            self.database.put(&mut transaction, key, value)?;
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.reading(|transaction| {
            let value = self.database.get(transaction, key)?;
            value.into_iter().for_each(&mut *visit);
            Ok(value.is_some())
        })
    }

    fn multi_get(&self, keys: &[Vec<u8>], visit: &mut dyn FnMut(&[u8])) -> Result<usize> {
        self.reading(|transaction| {
            let mut found = 0;
            for key in keys {
                if let Some(value) = self.database.get(transaction, key)? {
                    visit(value);
                    found += 1;
                }
            }
            Ok(found)
        })
    }

    fn scan(
        &self,
        from: &[u8],
        direction: Direction,
        count: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<usize> {
        let mut seen = 0;
        let mut show = |entry: heed::Result<(&[u8], &[u8])>| -> Result<()> {
            let (key, value) = entry?;
            visit(key);
            visit(value);
            seen += 1;
            Ok(())
        };
        self.reading(|transaction| match direction {
            Direction::Forward => {
                // LMDB knows no empty key.
                let first = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
                let range = (first, Bound::Unbounded);
                self.database.range(transaction, &range)?.take(count).try_for_each(&mut show)
            }
            Direction::Backward => {
                let range = (Bound::Unbounded, Bound::Included(from));
                self.database.rev_range(transaction, &range)?.take(count).try_for_each(&mut show)
            }
        })?;
        Ok(seen)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    fn compact(&mut self) -> Result<()> {
        // A compacted copy leaves out free pages, but fills none: readers gain nothing.
        self.flush()
    }

    fn settle(&self) -> Result<()> {
        // It has no background.
        self.flush()
    }

    fn statistics(&self) -> String {
        let tree = self.env.stat();
        format!("{} levels, {} pages of leaves", tree.depth, tree.leaf_pages)
    }

    fn close(self: Box<Self>) -> Result<()> {
        KEPT.take();
        Ok(self.env.force_sync()?)
    }
}
