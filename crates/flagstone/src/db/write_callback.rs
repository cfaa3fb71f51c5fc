//! Writes that the application follows, and may refuse at the last moment.

use crate::base::Result;
use crate::batch::WriteBatch;
use crate::db::handle::Db;
use crate::db::writing::condition::{Condition, WriteCallback};
use crate::options::WriteOptions;

/// Writes a batch that a callback follows; it may refuse it at the last moment.
///
/// # Errors
/// That of [`WriteCallback::check`]; `Aborted` if that panics; as [`Db::write_with`].
pub fn write_with_callback(
    db: &Db,
    options: &WriteOptions,
    mut batch: WriteBatch,
    callback: &mut dyn WriteCallback,
) -> Result<()> {
    db.inner().pipeline.write_if(options, &mut batch, Condition::Callback(callback))
}
