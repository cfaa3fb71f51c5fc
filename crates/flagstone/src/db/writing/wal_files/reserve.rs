//! Space that a WAL reserves before it is written to: fewer extents, and a full disk shows then and
//! not in the middle of a write.
//!
//! Where the disk has no room for all of it, the WAL reserves as much as there is room for, so that
//! a program can open its database and delete. The database says that it is short: an event, a
//! property, the doctor.

use std::path::Path;

use crate::base::sync::Ordering;
use crate::base::{Error, Result, Sometimes};
use crate::db::budget::memtable_bytes_max;
use crate::db::events::Event;
use crate::db::writing::wal_files::WalFiles;
use crate::options::WalReserveInfo;
use crate::wal;

/// Bytes of a WAL that are reserved at a time: a write buffer may be set to more than it will ever
/// hold, and than the disk has.
const RESERVED_AT_MOST: u64 = 256 << 20;

/// A smaller reserve is not worth a call of the system.
const RESERVED_AT_LEAST: u64 = 128 << 10;

/// The part of what is free that a WAL takes which cannot have all that it wants. The rest is for
/// what makes space: flushes, compactions, and the MANIFEST.
const PART_OF_FREE: u64 = 4;

impl WalFiles {
    /// Bytes that a WAL is to reserve: the largest write buffer and a tenth, and no more than ends
    /// a WAL otherwise.
    pub(in crate::db::writing) fn reserve_size(&self) -> u64 {
        let settings = self.context.settings.load();
        let largest = self.limits.largest_write_buffer();
        let largest =
            memtable_bytes_max(&settings).map_or(largest, |together| largest.min(together));
        let largest = match settings.max_total_wal_size {
            0 => largest,
            limit => largest.min(limit),
        };
        // Whole blocks: the rest of one at the file's end, too short for a header, is damage to
        // RocksDB.
        let reserved = largest.saturating_add(largest / 10).min(RESERVED_AT_MOST);
        reserved.next_multiple_of(wal::BLOCK_SIZE as u64)
    }

    /// Has `reserve` take `wanted` bytes for the WAL in `path`, or fewer where there is no room for
    /// all. A call that fails must give back what it took.
    ///
    /// # Errors
    /// Those of `reserve`, but for a lack of room.
    pub(super) fn reserve(
        &self,
        path: &Path,
        wanted: u64,
        mut reserve: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = wanted;
        while bytes > 0 {
            match reserve(bytes) {
                Err(error) if error.lacks_room() => {
                    self.check_may_be_short(error)?;
                    bytes = self.less_than(bytes);
                }
                outcome => {
                    outcome?;
                    break;
                }
            }
        }
        let missing = wanted - bytes;
        self.space.reserve_missing.store(missing, Ordering::Relaxed);
        if missing > 0 {
            Sometimes::WalUnreserved.reached();
            tracing::warn!(path = %path.display(), wanted, missing, "not enough space for what a WAL reserves");
            self.context.events.note(|| {
                Event::WalReserveShort(WalReserveInfo { path: path.into(), wanted, missing })
            });
        }
        Ok(())
    }

    /// Where a reserve is kept for when the disk is full, the lack of room is told, and the reserve
    /// given up for it.
    fn check_may_be_short(&self, error: Error) -> Result<()> {
        let is_kept = self.context.settings.load().reserved_disk_space > 0
            && !self.disk.is_reserve_released();
        if is_kept { Err(error) } else { Ok(()) }
    }

    /// What to reserve where `bytes` were too much.
    fn less_than(&self, bytes: u64) -> u64 {
        // What a full disk's reserve gave up is for others.
        if self.disk.is_reserve_released() {
            return 0;
        }
        let free = self
            .context
            .env
            .fs
            .free_space(&self.context.wal_directory)
            .ok()
            .flatten()
            .unwrap_or(bytes);
        let less =
            (bytes / 2).min(free / PART_OF_FREE) / wal::BLOCK_SIZE as u64 * wal::BLOCK_SIZE as u64;
        if less < RESERVED_AT_LEAST { 0 } else { less }
    }
}

/// Where an attempt to reserve space failed, the space that it took is given back; if it cannot be,
/// the next write says why.
pub(super) fn give_back(outcome: Result<()>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "cannot release space reserved for a WAL");
    }
}
