//! Reads as of one moment.

use std::fmt;
use std::ops::Deref;

use crate::base::{Result, Snapshot as Moment};
use crate::front::family::Family;
use crate::front::locking::Engine;
use crate::front::view::View;

/// A database as of one moment: made by [`Db::snapshot`](crate::Db::snapshot).
///
/// It dereferences to the [`View`] of family `default`; [`Snapshot::family`] is the view of any
/// other, as of the same moment. Cheap to clone. What it sees stays on the disk until the last
/// clone is dropped.
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
    default: View,
}

impl Snapshot {
    pub(super) fn of(engine: &Engine, moment: Moment) -> Self {
        let family = engine.base().default_column_family().clone();
        Self { default: View::of(engine, family, Some(moment)) }
    }

    /// A column family as of this moment.
    ///
    /// # Errors
    /// `InvalidArgument` if it is of another database.
    pub fn family(&self, family: &Family) -> Result<View> {
        self.default.db().check_family(family.engine_family())?;
        Ok(View { moment: self.default.moment.clone(), ..View::clone(family) })
    }

    /// The engine's own handle, for [`ReadOptions::snapshot`](crate::ReadOptions::snapshot).
    #[doc(hidden)]
    pub fn engine_snapshot(&self) -> Option<&Moment> {
        self.default.moment.as_ref()
    }

    pub(super) fn moment(&self) -> &Moment {
        self.default.moment.as_ref().expect("a snapshot's view has a moment")
    }
}

impl Deref for Snapshot {
    type Target = View;

    fn deref(&self) -> &View {
        &self.default
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.default.moment).finish()
    }
}
