//! Blocks of blob files that are to be given back, once it is known that they are dead (see
//! [`super::punch`]).
//!
//! They go as soon as the last reader has gone who may need what lies there. Where holes turn out
//! to be slow, nobody waits for them any longer: what is due is moved. The others are put off. They
//! go at rest, while the database does no other work, and for a tenth of the time, whatever
//! families they are of (`hole_speed.rs`).

use std::sync::{Arc, Weak};

use crate::base::Sometimes;
use crate::blob::BlockMap;
use crate::cache::Held;
use crate::manifest::BlobFile;

/// Writers who fill up the disk wait for readers who stand in the way of holes, but no longer: one
/// who stays may do so for hours.
const READERS_PASS_US: u64 = 1_000_000;

/// Blocks that go when the last reader of an older version does.
pub(in crate::db) struct Promise {
    /// A file that leaves the tree meanwhile goes from the disk as a whole: it is not kept for the
    /// sake of its holes.
    files: Vec<(Weak<BlobFile>, BlockMap)>,
    /// Where to go on in the last of them.
    pub(in crate::db) offset: u64,
    /// Whether the readers are gone.
    pub(in crate::db) has_begun: bool,
    /// The version that was surveyed.
    pub(in crate::db) installed: u64,
    pub(in crate::db) made_at_us: u64,
    /// Whether readers are in the way for so long that nobody waits for them.
    pub(in crate::db) is_kept: bool,
    /// Whether nobody waits for these holes.
    is_put_off: bool,
    _memory: Held,
}

impl Promise {
    /// Of these files, as they are dead in the version of that number.
    pub(in crate::db) fn new(
        files: Vec<(Weak<BlobFile>, BlockMap)>,
        installed: u64,
        made_at_us: u64,
        memory: Held,
    ) -> Self {
        Self {
            files,
            offset: 0,
            has_begun: false,
            installed,
            made_at_us,
            is_kept: false,
            is_put_off: false,
            _memory: memory,
        }
    }

    /// Whether readers have been in the way for so long by now that nobody waits for them any
    /// longer; said once.
    pub(in crate::db) fn note_readers_who_stay(&mut self, now_us: u64) -> bool {
        let is_new = !(self.is_kept || self.has_begun)
            && now_us.saturating_sub(self.made_at_us) >= READERS_PASS_US;
        self.is_kept |= is_new;
        is_new
    }

    /// Whether nothing is left to do.
    pub(in crate::db) fn is_fulfilled(&self) -> bool {
        self.files.is_empty()
    }

    /// From now on what is on the disk counts: it goes as fast as the disk lets it.
    pub(in crate::db) fn begin(&mut self) {
        (self.has_begun, self.is_kept) = (true, false);
        self.live_files().for_each(|file| file.holes.promise(0));
    }

    /// The file at hand, the last; those behind it that are gone are taken off the list.
    pub(in crate::db) fn at_hand(&mut self) -> Option<(Arc<BlobFile>, &BlockMap)> {
        let live = self.files.iter().rposition(|(file, _)| file.strong_count() > 0);
        let left = live.map_or(0, |at| at + 1);
        if left < self.files.len() {
            self.files.truncate(left);
            self.offset = 0;
        }
        let (file, map) = self.files.last()?;
        Some((file.upgrade()?, map))
    }

    /// The file at hand is done with.
    pub(in crate::db) fn next_file(&mut self) {
        self.files.pop();
        self.offset = 0;
    }

    /// Whether nobody waits for these holes.
    pub(in crate::db) fn is_put_off(&self) -> bool {
        self.is_put_off
    }

    /// The holes are slow: what they would give back is not left to them.
    pub(in crate::db) fn put_off(&mut self) {
        Sometimes::HolesTooSlow.reached();
        self.is_put_off = true;
        self.live_files().for_each(|file| file.holes.expect(0));
    }

    /// They are slow no longer, or nobody knows: what they give back is left to them again.
    pub(in crate::db) fn take_up(&mut self) {
        if std::mem::take(&mut self.is_put_off) {
            for (file, map) in &self.files {
                if let Some(file) = file.upgrade() {
                    file.holes.expect(bytes_of(map));
                }
            }
        }
    }

    fn live_files(&self) -> impl Iterator<Item = Arc<BlobFile>> {
        self.files.iter().filter_map(|(file, _)| file.upgrade())
    }
}

/// What all holes of a file give back.
pub(in crate::db) fn bytes_of(map: &BlockMap) -> u64 {
    map.holes(0).map(|hole| hole.end - hole.start).sum()
}

/// How far a family is with its holes.
#[derive(Default)]
pub(in crate::db) enum Punching {
    /// Nothing is under way.
    #[default]
    Idle,
    /// Tables are being read.
    Surveying,
    /// What is dead is known; readers may still be at it.
    Promised(Promise),
    /// Some holes are being punched.
    Begun,
}

impl Punching {
    pub(in crate::db) fn waits_for_readers(&self) -> bool {
        matches!(self, Self::Promised(promise) if !promise.has_begun)
    }

    /// Whether readers have kept garbage on the disk for so long that nobody waits for it.
    pub(in crate::db) fn is_kept_by_readers(&self) -> bool {
        matches!(self, Self::Promised(promise) if promise.is_kept)
    }
}
