//! Flagstone's turns.

use std::path::Path;

use flagstone::batch::WriteBatch;
use flagstone::db::{Db, TwoPhase};
use flagstone::options::{Options, ReadOptions, WriteOptions};

use super::Decider;
use super::life::{Edits, Step};
use crate::engine::Result;

pub struct Database {
    db: Db,
}

impl Database {
    pub fn open(directory: &Path) -> Result<Self> {
        let mut options = Options::default();
        options.create_if_missing = true;
        options.set("allow_2pc", "true")?;
        // All of a write is there for RocksDB without a clean close.
        options.set("wal_write_mode", "plain")?;
        options.set("enable_blob_files", "false")?;
        options.set("level0_file_num_compaction_trigger", "3")?;
        Ok(Self { db: Db::open(directory, &options)? })
    }
}

fn batch(edits: &Edits) -> Result<WriteBatch> {
    let mut batch = WriteBatch::new();
    for (key, value) in edits {
        match value {
            Some(value) => batch.put(key, value)?,
            None => batch.delete(key)?,
        }
    }
    Ok(batch)
}

impl Decider for Database {
    fn contents(&self) -> Result<Edits> {
        let mut contents = Edits::new();
        let mut iter = self.db.iter(&ReadOptions::default())?;
        iter.seek_to_first();
        while iter.valid() {
            contents.insert(iter.key().to_vec(), Some(iter.value()?.to_vec()));
            iter.next();
        }
        iter.status()?;
        Ok(contents)
    }

    fn prepared(&mut self) -> Result<Vec<Vec<u8>>> {
        let prepared = TwoPhase::of(&self.db).prepared();
        Ok(prepared.iter().map(|one| one.name().to_vec()).collect())
    }

    fn act(&mut self, step: &Step) -> Result<()> {
        let options = WriteOptions::default();
        let two_phase = TwoPhase::of(&self.db);
        match step {
            Step::Write(edits) => self.db.write(batch(edits)?)?,
            Step::Prepare(name, edits) => two_phase.prepare(&options, name, batch(edits)?)?,
            Step::Commit(name) => two_phase.commit(&options, name, &WriteBatch::new())?,
            Step::Rollback(name) => two_phase.rollback(&options, name)?,
            // It is in memory, and goes with the process.
            Step::Abandon(_) => {}
            Step::Flush => self.db.flush_all()?,
            Step::Compact => {
                let family = self.db.default_column_family();
                self.db.compact_range(family, None::<&[u8]>, None::<&[u8]>, &Default::default())?;
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.close()?)
    }
}
