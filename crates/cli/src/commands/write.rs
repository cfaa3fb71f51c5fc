//! What the writing commands share.

use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::options::WriteOptions;

use crate::failure::{Failure, Outcome, Verdict};
use crate::pieces::PIECE_SIZE;
use crate::stamped::Writer;

/// Writes one batch so that it survives a power loss, and closes the database.
pub fn write_synced(
    db: &Db,
    fill: impl FnOnce(&mut WriteBatch) -> flagstone::base::Result<()>,
) -> Outcome {
    let mut batch = WriteBatch::new();
    fill(&mut batch)?;
    db.write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, batch)?;
    db.close()?;
    Ok(Verdict::Sound)
}

/// Commits a value of the pieces that `read` puts into a buffer until there are no more; its size.
pub fn store_pieces(
    mut writer: Writer,
    read: &mut dyn FnMut(&mut [u8]) -> Result<usize, Failure>,
) -> Result<u64, Failure> {
    let mut piece = vec![0; PIECE_SIZE];
    loop {
        match read(&mut piece)? {
            0 => break,
            length => writer.append(&piece[..length])?,
        }
    }
    let size = writer.size();
    writer.commit()?;
    Ok(size)
}
