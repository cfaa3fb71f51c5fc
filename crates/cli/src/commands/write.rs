//! What the writing commands share.

use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db};
use flagstone::options::WriteOptions;

use crate::failure::{Failure, Outcome, Verdict};
use crate::marks::Stamp;
use crate::pieces::PIECE_SIZE;
use crate::stamped::Writer;

/// Adds the setting of a key to a batch, as of a timestamp where keys have some.
pub fn put_into(
    batch: &mut WriteBatch,
    family: &ColumnFamily,
    stamp: Option<Stamp>,
    (key, value): (&[u8], &[u8]),
) -> flagstone::base::Result<()> {
    match stamp {
        Some(stamp) => batch.put_with_timestamp(family, key, stamp, value),
        None => batch.put_cf(family, key, value),
    }
}

/// Adds the deletion of a key to a batch, as of a timestamp where keys have some.
pub fn delete_into(
    batch: &mut WriteBatch,
    family: &ColumnFamily,
    stamp: Option<Stamp>,
    key: &[u8],
) -> flagstone::base::Result<()> {
    match stamp {
        Some(stamp) => batch.delete_with_timestamp(family, key, stamp),
        None => batch.delete_cf(family, key),
    }
}

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
