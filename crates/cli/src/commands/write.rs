//! What the writing commands share.

use flagstone::base::Result;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::options::WriteOptions;

use crate::failure::{Outcome, Verdict};

/// Writes one batch so that it survives a power loss, and closes the database.
pub fn write_synced(db: &Db, fill: impl FnOnce(&mut WriteBatch) -> Result<()>) -> Outcome {
    let mut batch = WriteBatch::new();
    fill(&mut batch)?;
    db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch)?;
    db.close()?;
    Ok(Verdict::Sound)
}
