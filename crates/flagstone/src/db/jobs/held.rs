//! Automatic compactions of a family that are held back for a time.

use crate::base::{ColumnFamilyId, Result};
use crate::db::family::ColumnFamily;
use crate::db::{Db, DbInner};

/// Keeps automatic compactions of a family from beginning until it is dropped: see [`Db::hold_automatic_compactions`].
#[must_use = "compactions begin again when it is dropped"]
pub struct HeldCompactions<'a> {
    inner: &'a DbInner,
    family: ColumnFamilyId,
}

impl Db {
    /// From now on no automatic compaction of the family begins, until what is returned is dropped; one that runs is not waited
    /// for. What is called for by name ([`Db::compact_range`], [`Db::compact_files`]) is done as ever, and so its result stays
    /// as it is: with `level_compaction_dynamic_level_bytes`, automatic compactions take tables down again that
    /// [`change_level`](crate::options::CompactRangeOptions::change_level) has moved up. Unlike `disable_auto_compactions` it is
    /// nothing that an OPTIONS file remembers, and writers of the family wait when level 0 is full.
    ///
    /// # Errors
    /// `ColumnFamilyDropped`; `InvalidArgument` for a handle of another database.
    pub fn hold_automatic_compactions(&self, family: &ColumnFamily) -> Result<HeldCompactions<'_>> {
        let inner = self.inner();
        family.0.check_owner(&inner.obsolete)?;
        family.0.check_alive()?;
        if let Some(known) = inner.state.lock().families.get_mut(&family.0.id) {
            known.held += 1;
        }
        Ok(HeldCompactions { inner, family: family.0.id })
    }
}

impl Drop for HeldCompactions<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.inner.state.lock().families.get_mut(&self.family) {
            known.held -= 1;
        }
        self.inner.family_changed(self.family);
    }
}
