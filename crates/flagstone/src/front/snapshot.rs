//! Reads as of one moment.

use std::fmt;
use std::ops::{Deref, RangeBounds};

use crate::base::{Error, Result, Snapshot as Moment};
use crate::db::{self, Iter, Value, ValuePart};
use crate::front::family::Family;
use crate::front::range::Range;
use crate::front::view::View;
use crate::options::ReadOptions;

/// A database as of one moment: made by [`Db::snapshot`](crate::Db::snapshot).
///
/// It dereferences to family `default`; [`Snapshot::family`] is any other, as of the same moment.
/// Cheap to clone. What it sees stays on the disk until the last clone is dropped.
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = flagstone::Db::open(directory.path())?;
/// db.put("stone", "flag")?;
/// let before = db.snapshot();
/// db.put("stone", "mile")?;
/// assert_eq!(before.get("stone")?.unwrap(), "flag");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    default: SnapshotFamily,
}

/// A column family as of one moment: see [`Snapshot`].
#[derive(Clone)]
pub struct SnapshotFamily {
    view: View,
}

impl Snapshot {
    pub(super) fn of(engine: &db::Db, moment: Moment) -> Self {
        let (db, family) = (engine.clone(), engine.default_column_family().clone());
        Self { default: SnapshotFamily { view: View { db, family, moment: Some(moment) } } }
    }

    /// A column family as of this moment.
    ///
    /// # Errors
    /// `InvalidArgument` if it is of another database.
    pub fn family(&self, family: &Family) -> Result<SnapshotFamily> {
        let View { db, family: handle, .. } = family.view();
        self.default.view.db.check_family(handle)?;
        let moment = self.default.view.moment.clone();
        Ok(SnapshotFamily { view: View { db: db.clone(), family: handle.clone(), moment } })
    }

    /// The engine's own handle, for [`ReadOptions::snapshot`].
    pub fn engine_snapshot(&self) -> Option<&Moment> {
        self.default.view.moment.as_ref()
    }
}

impl Deref for Snapshot {
    type Target = SnapshotFamily;

    fn deref(&self) -> &SnapshotFamily {
        &self.default
    }
}

impl SnapshotFamily {
    /// As [`Family::get`].
    ///
    /// # Errors
    /// As there.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.view.get(key.as_ref())
    }

    /// As [`Family::get_part`].
    ///
    /// # Errors
    /// As there.
    pub fn get_part(
        &self,
        key: impl AsRef<[u8]>,
        part: std::ops::Range<u64>,
    ) -> Result<Option<ValuePart>> {
        self.view.get_part(key.as_ref(), part)
    }

    /// As [`Family::get_many`].
    ///
    /// # Errors
    /// As there.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.view.get_many(keys)
    }

    /// As [`Family::contains_key`].
    ///
    /// # Errors
    /// As there.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// As [`Family::range`].
    pub fn range<K: AsRef<[u8]>>(&self, bounds: impl RangeBounds<K>) -> Range {
        self.view.range(&bounds)
    }

    /// As [`Family::prefix`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        self.view.prefix(prefix.as_ref())
    }

    /// As [`Family::iter`].
    pub fn iter(&self) -> Range {
        self.range::<&[u8]>(..)
    }

    /// As [`Family::cursor`].
    ///
    /// # Errors
    /// As there; `InvalidArgument` if `options` name a snapshot, too.
    #[track_caller]
    pub fn cursor(&self, options: &ReadOptions) -> Result<Iter> {
        if options.snapshot.is_some() {
            return Err(Error::invalid_argument("a snapshot is read as of another snapshot"));
        }
        self.view.cursor(options)
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.default.view.moment).finish()
    }
}

impl fmt::Debug for SnapshotFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SnapshotFamily").field(&self.view.family.name()).finish()
    }
}
