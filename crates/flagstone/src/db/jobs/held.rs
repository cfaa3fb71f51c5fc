//! Automatic compactions of a family that are held back for a time.

use std::sync::Arc;

use crate::base::Result;
use crate::db::family::{ColumnFamily, Family};
use crate::db::{Db, DbInner};

/// Keeps automatic compactions of a family from beginning until it is dropped: see [`Db::hold_automatic_compactions`].
#[must_use = "compactions begin again when it is dropped"]
pub struct HeldCompactions<'a> {
    inner: &'a DbInner,
    family: Arc<Family>,
}

impl Db {
    /// From now on no automatic compaction of the family begins, until what is returned is dropped; one that runs is not waited
    /// for. What is called for by name ([`Db::compact_range`], [`Db::compact_files`]) is done as ever, and so its result stays
    /// as it is: with `level_compaction_dynamic_level_bytes`, automatic compactions take tables down again that
    /// [`change_level`](crate::options::CompactRangeOptions::change_level) has moved up. As with `disable_auto_compactions`,
    /// writers are not held up meanwhile, however much there is to compact; afterwards they may be, until that is done. Unlike
    /// it, it is nothing that an OPTIONS file remembers.
    ///
    /// # Errors
    /// `ColumnFamilyDropped`; `InvalidArgument` for a handle of another database.
    pub fn hold_automatic_compactions(&self, family: &ColumnFamily) -> Result<HeldCompactions<'_>> {
        let inner = self.inner();
        family.0.check_owner(&inner.disk.obsolete)?;
        family.0.check_alive()?;
        inner.tree.hold_compactions(&family.0);
        Ok(HeldCompactions { inner, family: family.0.clone() })
    }
}

impl Drop for HeldCompactions<'_> {
    fn drop(&mut self) {
        self.inner.tree.let_compactions_go(&self.family);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Code;
    use crate::batch::WriteBatch;
    use crate::env::Env;
    use crate::options::{Options, WriteOptions};

    fn put(db: &Db, family: &ColumnFamily, low_pri: bool) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.put_cf(family, b"key", b"value")?;
        db.write_with(&WriteOptions { no_slowdown: true, low_pri, ..WriteOptions::default() }, batch)
    }

    /// Writers of all families waited for what did not come: for ever, if the one who held the compactions was among them.
    #[test]
    fn nobody_waits_for_compactions_that_are_held() {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        let stops = "level0_slowdown_writes_trigger=3;level0_stop_writes_trigger=3";
        let eager = format!("create_if_missing=true;level0_file_num_compaction_trigger=2;{stops}");
        options.set_all(&eager).unwrap();
        let db = Db::open("/db", &options).unwrap();
        let family = db.default_column_family();
        let other = db.create_column_family("other", &options.cf).unwrap();
        let outcomes =
            || [false, true].map(|low_pri| put(&db, &other, low_pri).map_err(|error| error.code()));
        // None begins that is not held either.
        db.inner().tree.lock().paused.compactions = 1;
        for _ in 0..3 {
            put(&db, family, false).unwrap();
            db.flush_all().unwrap();
        }
        assert_eq!(outcomes(), [Err(Code::Incomplete); 2], "writers are stopped");
        let first = db.hold_automatic_compactions(family).unwrap();
        let last = db.hold_automatic_compactions(family).unwrap();
        assert_eq!(outcomes(), [Ok(()); 2]);
        assert!(db.facts().unwrap().families[0].compactions_are_held);
        put(&db, family, false).unwrap();
        db.flush_all().unwrap();
        assert_eq!(outcomes(), [Ok(()); 2]);
        drop(first);
        assert_eq!(outcomes(), [Ok(()); 2], "one holds them still");
        drop(last);
        assert!(!db.facts().unwrap().families[0].compactions_are_held);
        assert_eq!(outcomes(), [Err(Code::Incomplete); 2], "they are behind");
        db.inner().tree.lock().paused.compactions = 0;
        db.wait_for_compactions().unwrap();
        assert_eq!(outcomes(), [Ok(()); 2]);
        let mut tables = db.live_files();
        tables.retain(|table| table.column_family == family.name());
        assert!(tables.iter().all(|table| table.level > Some(0)), "{tables:?}");
    }
}
