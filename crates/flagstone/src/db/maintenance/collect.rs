//! A collection of the garbage in blob files that a caller asks for.

use std::sync::Arc;

use crate::base::Result;
use crate::compaction::pick::blob_bytes_allowed;
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::db::properties::garbage_bytes;
use crate::db::settings::compacts_by_itself;
use crate::db::space::blob_file_bytes;
use crate::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions, CompactionControl,
};

impl Db {
    /// Brings the blob files of a family down to `max_space_amplification`, and returns when that
    /// is done.
    ///
    /// Where compactions run by themselves, this waits for them. Otherwise, and if the blob files
    /// take more than is allowed, it moves all live values to new files. Without
    /// `max_space_amplification` nothing is moved.
    ///
    /// # Errors
    /// As [`Db::compact_range`] and [`Db::wait_for_compactions`].
    pub fn collect_blob_garbage(
        &self,
        family: &ColumnFamily,
        control: Option<Arc<CompactionControl>>,
    ) -> Result<()> {
        self.inner().disk.check_owner(&family.0)?;
        let options = family.0.options.load();
        if compacts_by_itself(&options) {
            return self.wait_for_compactions();
        }
        let most = options.max_space_amplification;
        let version = family.0.current.load().version.clone();
        let taken = blob_file_bytes(version.blob_files.values());
        let live = taken.saturating_sub(garbage_bytes(&version));
        if most <= 0.0 || taken <= blob_bytes_allowed(version.table_bytes(), live, most) {
            return Ok(());
        }
        drop(version);
        let all = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            blob_garbage_collection_policy: BlobGarbageCollectionPolicy::Force,
            blob_garbage_collection_age_cutoff: 1.0,
            control,
            ..CompactRangeOptions::default()
        };
        self.compact_range(family, None, None, &all)
    }
}
