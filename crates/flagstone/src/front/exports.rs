//! Column families that leave a database, and what is clipped of them.

use std::path::PathBuf;

use crate::base::{Error, Result};
use crate::db::ExportedFamily;
use crate::front::family::Family;

impl Family {
    /// Flushes the family and copies it to the new directory `target`, mostly by hard links. The
    /// copy is a database with this family and an empty `default`, of which
    /// [`create_column_family_with_import`](crate::Db::create_column_family_with_import) makes a
    /// family again.
    ///
    /// # Errors
    /// `InvalidArgument` if `target` exists, or if the family's values expire; `NotSupported` if
    /// the database is open for reading and the family has entries in WALs; `Corruption` if a file
    /// is missing; `ColumnFamilyDropped`; `IoError`. What was made so far is then removed.
    #[doc(alias = "ExportColumnFamily")]
    pub fn export(&self, target: impl Into<PathBuf>) -> Result<ExportedFamily> {
        if self.view().expires {
            let name = self.engine_family().name();
            let message = format!("the values of column family '{name}' expire: make a checkpoint");
            return Err(Error::invalid_argument(message));
        }
        self.engine().export_column_family(self.engine_family(), target)
    }

    /// Removes all keys outside of a range. One durable write deletes them; then the tables that
    /// have some of them are compacted, so that only what snapshots see is left on the disk. FIFO
    /// compaction removes nothing from the disk, and `cf_allow_ingest_behind` keeps what lies in
    /// the last level. A call that fails has deleted all of the keys or none. Keys that are written
    /// outside of the range meanwhile may stay.
    ///
    /// # Errors
    /// `InvalidArgument` if the range is empty; `NotSupported` in a
    /// [`TransactionDb`](crate::TransactionDb), which cannot lock a range; `ColumnFamilyDropped`;
    /// `Corruption`, `IoError`.
    #[doc(alias = "ClipColumnFamily")]
    pub fn clip<K: AsRef<[u8]>>(&self, range: std::ops::Range<K>) -> Result<()> {
        self.view().engine.refuse_ranges()?;
        let (begin, end) = (range.start.as_ref(), range.end.as_ref());
        self.engine().clip_column_family(self.engine_family(), begin, end)
    }
}
