//! On what a write depends that is decided under the commit lock.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::base::{Code, Error, Result};
use crate::db::reading::unchanged::Unchanged;

/// Follows one write; see [`Db::write_with_callback`](crate::Db::write_with_callback).
///
/// Other writers wait for the calls, the first two of which come under the commit lock. Each may
/// get keys and iterate, but must neither write nor flush, ask for memory usage or WALs, or wait
/// for another writer, a flush or a compaction: it would wait for ever.
///
/// ```
/// use flagstone::{Db, Error, Result, WriteBatch, WriteCallback, WriteOptions};
///
/// /// Refuses to write if there is stock.
/// struct OnlyIfEmpty(Db);
///
/// impl WriteCallback for OnlyIfEmpty {
///     fn check(&mut self) -> Result<()> {
///         match self.0.get("stock")? {
///             None => Ok(()),
///             Some(_) => Err(Error::invalid_argument("there is stock")),
///         }
///     }
/// }
///
/// # fn main() -> Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// let db = Db::open(directory.path())?;
/// let mut batch = WriteBatch::new();
/// batch.put("stock", "1")?;
/// let mut callback = OnlyIfEmpty(db.clone());
/// db.write_with_callback(batch.clone(), &mut callback, &WriteOptions::new())?;
/// db.write_with_callback(batch, &mut callback, &WriteOptions::new()).unwrap_err();
/// # Ok(())
/// # }
/// ```
pub trait WriteCallback: Send {
    /// The write comes next. Reads see all earlier writes, and no other write takes place before
    /// this one.
    ///
    /// # Errors
    /// Any error: nothing is written, and the caller of the write gets it.
    fn check(&mut self) -> Result<()> {
        Ok(())
    }

    /// The write has its place behind all earlier ones, and is about to be logged.
    fn on_write_enqueued(&mut self) {}

    /// The write is in the WAL, though not necessarily synced, and nobody can read it yet. Not
    /// called with `disable_wal`, or if logging it fails.
    fn on_wal_write_finish(&mut self) {}
}

/// On what a write depends.
pub(in crate::db) enum Condition<'a> {
    /// On nothing.
    Nothing,
    /// That keys were not written.
    Unchanged(&'a Unchanged<'a>),
    /// What the application says.
    Callback(&'a mut dyn WriteCallback),
}

impl Condition<'_> {
    /// Asks the application, if it has a say.
    ///
    /// # Errors
    /// Its own; `Aborted` if it panics.
    pub(in crate::db::writing) fn check(&mut self) -> Result<()> {
        let Self::Callback(callback) = self else { return Ok(()) };
        let asked = || {
            callback.check()?;
            callback.on_write_enqueued();
            Ok(())
        };
        catch_unwind(AssertUnwindSafe(asked)).unwrap_or_else(|_| {
            Err(Error::new(Code::Aborted, "the callback of the write panicked; nothing is written"))
        })
    }

    /// The write is logged.
    pub(in crate::db::writing) fn note_logged(&mut self) {
        let Self::Callback(callback) = self else { return };
        if catch_unwind(AssertUnwindSafe(|| callback.on_wal_write_finish())).is_err() {
            tracing::error!("the callback of a write panicked after the write was logged");
        }
    }
}
