//! How the cursor finds a key.

use std::cmp::Ordering;

use super::super::guide::Start;
use super::super::hash_index::Bucket;
use super::super::scan::scan;
use super::super::{Damage, EntryHeader, entry_header};
use super::{BlockIter, KeyAt, SCANNED};
use crate::base::{InternalKey, PACKED_SIZE};

impl BlockIter {
    /// Moves to the first entry at or after `target`, from where a scan forward is to begin.
    pub fn seek(&mut self, target: InternalKey<'_>) {
        self.search(target, 0, SCANNED);
    }

    /// The same for who wants the bytes around the place, too: so many before it and so many after.
    fn search(&mut self, target: InternalKey<'_>, before: usize, after: usize) {
        self.invalidate();
        if self.block.is_empty() {
            return;
        }
        if self.comparator.is_bytewise()
            && let Some(guide) = self.block.guide_for_search()
        {
            match guide.start(self.block.data(), target.user_key()) {
                Start::Before => self.seek_to_first(),
                Start::Behind => {}
                Start::At { offset, common } => {
                    if before == 0 || !self.block.prefetch_few_before(offset) {
                        self.block.prefetch(offset.saturating_sub(before), offset + after);
                    }
                    let end = self.block.entries_end();
                    self.run(|iter| iter.walk_bytewise(offset, common, target, end));
                }
            }
            return;
        }
        self.run(|iter| {
            let restart = iter.last_restart_below(target)?;
            iter.walk_from(restart, target, usize::MAX)
        });
    }

    /// Moves to the entry at `offset`, whose user key is that of `target`, and which leaves out
    /// `shared` bytes of it.
    pub(in crate::sst) fn move_to(
        &mut self,
        offset: usize,
        shared: usize,
        target: InternalKey<'_>,
    ) {
        self.invalidate();
        self.run(|iter| {
            iter.offset = offset;
            let header = entry_header(&iter.block.data()[..iter.block.entries_end()], offset)
                .ok_or(Damage)?;
            iter.stand_on(&header, &target.user_key()[..shared])
        });
    }

    /// Moves to the last entry at or before `target`.
    pub fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        // Where the restarts are, by which the walk back goes.
        self.block.prefetch(self.block.layout().restarts_offset as usize, self.block.data().len());
        self.search(target, SCANNED, 0);
        if !self.valid {
            if self.damage.is_none() {
                self.seek_to_last();
            }
        } else if self.compare(self.key(), target).is_gt() {
            self.prev();
        }
    }

    /// Like [`BlockIter::seek`], through the hash index if there is one. The cursor then stands on
    /// the target's user key, on another (the key is neither in this block nor in the next), or
    /// nowhere (it may be in the next block).
    pub fn seek_for_get(&mut self, target: InternalKey<'_>) {
        let by_hash =
            self.block.layout().hash_index.filter(|_| self.comparator.tells_bytes_apart());
        let Some(index) = by_hash else { return self.search(target, 0, 0) };
        let restart = match index.lookup(self.block.data(), target.user_key()) {
            Bucket::Unknown => return self.search(target, 0, 0),
            Bucket::Empty => self.block.layout().num_restarts.saturating_sub(1),
            Bucket::Restart(restart) => restart,
        };
        if restart >= self.block.layout().num_restarts || self.block.is_empty() {
            return self.search(target, 0, 0);
        }
        let limit = if restart + 1 < self.block.layout().num_restarts {
            self.block.restart(restart + 1)
        } else {
            usize::MAX
        };
        self.invalidate();
        self.run(|iter| iter.walk_from(restart, target, limit));
        if !self.valid() && limit != usize::MAX {
            // A key of another interval hashed alike, or all entries of the key are too new.
            self.search(target, 0, 0);
        }
    }

    /// The last restart whose key is below `target`; the first if none is.
    fn last_restart_below(&self, target: InternalKey<'_>) -> Result<u32, Damage> {
        let (mut low, mut high) = (0, self.block.layout().num_restarts - 1);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let key = self.restart_key(middle)?;
            let order = self.comparator.compare(key.user_key(), target.user_key());
            let below = match order {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => self.effective_packed(key.packed())? > target.packed(),
            };
            if below {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Ok(low)
    }

    /// The key at a restart, as stored.
    #[inline]
    fn restart_key(&self, restart: u32) -> Result<InternalKey<'_>, Damage> {
        let (header, _) = self.header(self.block.restart(restart), true)?;
        if header.shared != 0 || (header.non_shared as usize) < PACKED_SIZE {
            return Err(Damage);
        }
        let start = header.suffix as usize;
        let bytes = self.block.data()[..self.block.entries_end()]
            .get(start..start + header.non_shared as usize);
        Ok(InternalKey::from_checked(bytes.ok_or(Damage)?))
    }

    /// Stands on the first entry from a restart on that is not below `target`; nowhere if there is
    /// none before `limit`.
    fn walk_from(
        &mut self,
        restart: u32,
        target: InternalKey<'_>,
        limit: usize,
    ) -> Result<(), Damage> {
        let start = self.block.restart(restart);
        let limit = limit.min(self.block.entries_end());
        if self.comparator.is_bytewise() && self.block.layout().values_offset.is_none() {
            self.offset = start;
            let (header, _) = self.header(start, true)?;
            return if header.shared == 0 {
                self.walk_bytewise(start, 0, target, limit)
            } else {
                Err(Damage)
            };
        }
        self.step_to(start, true)?;
        self.walk_on(target, limit)
    }

    /// Goes on from the current entry to the first that is not below `target`.
    fn walk_on(&mut self, target: InternalKey<'_>, limit: usize) -> Result<(), Damage> {
        while self.compare(self.key(), target).is_lt() {
            if self.next >= limit {
                self.valid = false;
                return Ok(());
            }
            let at_restart =
                self.block.layout().values_offset.is_some() && self.is_restart(self.next);
            self.step_to(self.next, at_restart)?;
        }
        Ok(())
    }

    /// Step 2 of the file's head, in byte order: from `start`, where the key before has `common`
    /// bytes of the target.
    fn walk_bytewise(
        &mut self,
        start: usize,
        common: usize,
        target: InternalKey<'_>,
        limit: usize,
    ) -> Result<(), Damage> {
        self.offset = start;
        let entries = &self.block.data()[..self.block.entries_end()];
        let Some(stop) = scan(entries, &mut self.offset, common, target.user_key(), limit)? else {
            return Ok(());
        };
        self.stand_on(&stop.header, &target.user_key()[..stop.header.shared as usize])?;
        // Where the key may still be below the target, it is the target's user key, only newer, or
        // a prefix of it. What follows may share a part of its packed number, so the walk goes on
        // key by key.
        if stop.starts_target { self.walk_on(target, limit) } else { Ok(()) }
    }

    /// Stands on the entry at `self.offset` whose first `shared` bytes are given.
    #[inline]
    fn stand_on(&mut self, header: &EntryHeader, shared: &[u8]) -> Result<(), Damage> {
        self.set_value_and_next(header, None)?;
        let end = header.suffix + header.non_shared;
        if shared.is_empty() && self.global_sequence.is_none() {
            self.key_at = KeyAt::Block { start: header.suffix, end };
        } else {
            self.buffer.splice(0, shared);
            self.buffer.splice(shared.len(), self.block.slice(header.suffix, end));
            self.key_at = KeyAt::Buffer;
        }
        self.check_key()
    }
}
