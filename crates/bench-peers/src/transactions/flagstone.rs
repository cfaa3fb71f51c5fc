//! Flagstone.

use std::path::Path;

use flagstone::transactions::WriteBatchWithIndex;
use flagstone::{Code, Db, ReadOptions, SubCode, TransactionDbOptions, WriteBatch, WriteOptions};

use super::{Batch, CACHE_BYTES, Database, Key, Kind, MEMTABLE_BYTES, Worker};
use crate::engine::Result;

/// A database, with locks or without.
pub struct Opened {
    db: Db,
}

struct Thread<'d> {
    db: &'d Db,
}

struct Indexed<'d> {
    db: &'d Db,
    batch: WriteBatchWithIndex,
    reads: ReadOptions,
}

impl Opened {
    pub fn open(directory: &Path, kind: Kind) -> Result<Self> {
        let builder = Db::builder(directory).options(|options| {
            options.create_if_missing = true;
            options.block_cache_size = Some(CACHE_BYTES);
            options.cf.write_buffer_size = MEMTABLE_BYTES;
            options.set("table.filter_policy", "bloomfilter:10:false").expect("an option");
        });
        let db = match kind {
            Kind::Optimistic => builder.open()?,
            Kind::Pessimistic => {
                (*builder.open_transaction_db(&TransactionDbOptions::default())?).clone()
            }
        };
        Ok(Self { db })
    }
}

impl Database for Opened {
    fn fill(&self, rows: &mut dyn Iterator<Item = Key>, value: &[u8]) -> Result<()> {
        loop {
            let mut batch = WriteBatch::new();
            rows.take(1000).try_for_each(|row| batch.put(row, value))?;
            if batch.is_empty() {
                break;
            }
            self.db.write(batch)?;
        }
        self.db.flush()?;
        Ok(self.db.wait_for_compactions()?)
    }

    fn worker(&self) -> Result<Box<dyn Worker + '_>> {
        Ok(Box::new(Thread { db: &self.db }))
    }

    fn batch(&self) -> Result<Box<dyn Batch + '_>> {
        let (batch, reads) = (WriteBatchWithIndex::new(), ReadOptions::default());
        Ok(Box::new(Indexed { db: &self.db, batch, reads }))
    }

    fn hold(&self, keys: &mut dyn Iterator<Item = Key>, then: &mut dyn FnMut()) -> Result<()> {
        let mut transaction = self.db.begin();
        for key in keys {
            transaction.get_for_update(&self.db, key)?;
        }
        then();
        Ok(transaction.rollback()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.close()?)
    }
}

impl Worker for Thread<'_> {
    fn update(&mut self, keys: &[Key], value: &[u8]) -> Result<bool> {
        let mut transaction = self.db.begin();
        let mut update = || {
            for key in keys {
                transaction.get_for_update(self.db, key)?;
            }
            keys.iter().try_for_each(|key| transaction.put(self.db, key, value))?;
            transaction.commit_with(&WriteOptions::default())
        };
        match update() {
            Ok(()) => Ok(true),
            Err(error)
                if matches!(error.code(), Code::Busy | Code::TryAgain)
                    || error.subcode() == SubCode::LockTimeout =>
            {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Batch for Indexed<'_> {
    fn put(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        let family = self.db.engine().default_column_family();
        Ok(self.batch.put(family, key, value)?)
    }

    fn reads(&self, key: &Key) -> Result<bool> {
        let db = self.db.engine();
        let family = db.default_column_family();
        Ok(self.batch.get_from_batch_and_db(db, family, key, &self.reads)?.is_some())
    }

    fn iterate(&self) -> Result<u64> {
        let db = self.db.engine();
        let mut iter = self.batch.iter_over(db, db.default_column_family(), &self.reads)?;
        iter.seek_to_first();
        let mut count = 0;
        while iter.valid() {
            std::hint::black_box((iter.key().len(), iter.value()?.len()));
            count += 1;
            iter.next();
        }
        iter.status()?;
        Ok(count)
    }
}
