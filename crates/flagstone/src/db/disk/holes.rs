//! Holes in blob files: whether a file may be given any, and punching them.

use std::path::Path;

use crate::base::sync::Ordering;
use crate::base::{Error, Result, Sometimes};
use crate::blob::{BlockMap, FOOTER_SIZE, HEADER_SIZE};
use crate::compaction::pick::holes_are_slow;
use crate::db::disk::Disk;
use crate::db::family::Family;
use crate::db::statistics::Ticker;
use crate::manifest::BlobFile;

/// A file with a second name, or that a read-only handle holds, is left alone for so many seconds.
pub(in crate::db) const HELD_FOR_S: u64 = 60;

/// So many holes are punched, or for so many microseconds, before the thread looks for other work.
/// Most file systems take some microseconds for one; where each tells the device at once it may be
/// a millisecond.
pub(in crate::db) const HOLES_AT_ONCE: usize = 256;

pub(in crate::db) const TIME_AT_ONCE_US: u64 = 5000;

impl Disk {
    /// Whether a file has a second name. What cannot be told, [`Self::has_its_size`] says.
    pub(in crate::db) fn is_linked(&self, blob: &BlobFile) -> bool {
        self.context.env.fs.metadata(&blob.path()).is_ok_and(|found| found.links > 1)
    }

    /// Whether a read-only handle, here or in another process, holds a file. What cannot be told,
    /// the punch says.
    pub(in crate::db) fn is_read_elsewhere(&self, blob: &BlobFile) -> bool {
        let claimed =
            self.context.env.fs.open_reclaimable(&blob.path()).and_then(|file| file.claim());
        claimed.is_ok_and(|is_free| !is_free)
    }

    /// A file with a second name, or with readers that have no other, is looked at again in a
    /// while.
    pub(in crate::db) fn leave(&self, blob: &BlobFile) {
        Sometimes::HeldFileKeptWhole.reached();
        blob.holes.leave_until(self.context.env.clock.unix_seconds().saturating_add(HELD_FOR_S));
    }

    /// Whether a file is as large as the MANIFEST says. What cannot be told gets no holes.
    pub(in crate::db) fn has_its_size(&self, blob: &BlobFile) -> bool {
        let (path, recorded) = (blob.path(), file_size(blob));
        match self.context.env.fs.metadata(&path) {
            Ok(found) if found.size == recorded => true,
            found => {
                tracing::warn!(
                    ?path,
                    ?found,
                    recorded,
                    "a blob file's size is not as recorded; no holes are punched in it"
                );
                false
            }
        }
    }

    /// Punches some of a file's holes, from `offset` on; where to go on, if there are more.
    pub(in crate::db) fn punch(
        &self,
        path: &Path,
        file: &BlobFile,
        map: &BlockMap,
        offset: u64,
    ) -> Result<Option<u64>> {
        let before = self.context.env.fs.metadata(path)?;
        let size = file_size(file);
        if before.size != size {
            let message = format!("file has {} bytes, the MANIFEST says {size}", before.size);
            return Err(Error::corruption(message).at(path));
        }
        if before.links > 1 {
            self.leave(file);
            return Ok(None);
        }
        let opened = self.context.env.fs.open_reclaimable(path)?;
        if !opened.claim()? {
            self.leave(file);
            return Ok(None);
        }
        let mut holes = map.holes(offset);
        let (mut end, mut asked) = (offset, 0);
        let begun = self.context.env.clock.now_us();
        for hole in holes.by_ref().take(HOLES_AT_ONCE) {
            end = hole.end;
            asked += hole.end - hole.start;
            if !opened.punch_hole(hole)? {
                // Nobody asks again while the database is open.
                self.hole_size.store(0, Ordering::Relaxed);
                let message =
                    "the file system does not support holes; blob files are compacted instead";
                return Err(Error::not_supported(message).at(path));
            }
            if self.context.env.clock.now_us().saturating_sub(begun) >= TIME_AT_ONCE_US {
                break;
            }
        }
        let after = self.context.env.fs.metadata(path)?;
        Sometimes::HolePunched.reached();
        let given_back = before.allocated.saturating_sub(after.allocated);
        self.context.statistics.add(Ticker::BlobPunchedBytes, given_back);
        self.hole_speed.note(asked, given_back, begun, self.context.env.clock.now_us());
        file.holes.set_punched(size.saturating_sub(after.allocated));
        Ok(holes.next().map(|_| end))
    }

    pub(in crate::db) fn has_slow_holes(&self, family: &Family) -> bool {
        holes_are_slow(family.options.load().max_space_amplification, self.recent_hole_speed())
    }

    /// Bytes of the smallest hole that gives space back; 0 where files can have none.
    pub(in crate::db) fn hole_size(&self) -> u64 {
        self.hole_size.load(Ordering::Relaxed)
    }

    /// Sets what [`Self::hole_size`] returns.
    pub(in crate::db) fn set_hole_size(&self, bytes: u64) {
        self.hole_size.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that holes have lately given back in a second; 0 if that is not known.
    pub(in crate::db) fn recent_hole_speed(&self) -> u64 {
        self.hole_speed.lately(self.context.env.clock.now_us())
    }

    /// After slow holes that took so long the disk is left alone for a while.
    pub(in crate::db) fn rest_from_holes(&self, took_us: u64) {
        self.hole_speed.rest(self.context.env.clock.now_us(), took_us);
    }

    /// Whether slow holes may go on.
    pub(in crate::db) fn has_rested_from_holes(&self) -> bool {
        self.hole_speed.has_rested(self.context.env.clock.now_us())
    }
}

/// What a sealed file's size has to be.
pub(in crate::db) fn file_size(file: &BlobFile) -> u64 {
    file.meta.total_bytes.saturating_add((HEADER_SIZE + FOOTER_SIZE) as u64)
}
