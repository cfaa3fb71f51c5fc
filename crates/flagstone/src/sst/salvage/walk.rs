//! A walk over what is left of a table.

use std::sync::Arc;

use super::TableRemains;
use crate::base::{Error, InternalKey, InternalKeyBuf, Result};
use crate::sst::block::BlockIter;
use crate::sst::embedded::WholeValue;
use crate::sst::format::BlockHandle;

/// A walk over the intact entries of a table.
pub struct RemainingEntries {
    remains: Arc<TableRemains>,
    next: usize,
    block: Option<BlockIter>,
    /// The current entry, if its value lies beside the block.
    whole: Option<(InternalKeyBuf, WholeValue)>,
}

impl RemainingEntries {
    /// In front of the first.
    pub(super) fn new(remains: Arc<TableRemains>) -> Self {
        Self { remains, next: 0, block: None, whole: None }
    }

    /// [`RemainingEntries::advance`], also past blocks that cannot be read any longer. Of those in
    /// a row the first is told.
    pub fn advance_past(&mut self, on_error: &mut dyn FnMut(Error)) -> bool {
        let (mut first, mut count) = (None, 0u64);
        let is_there = loop {
            match self.advance() {
                Ok(is_there) => break is_there,
                Err(error) => drop(first.get_or_insert(error)),
            }
            count += 1;
        };
        if let Some(error) = first {
            on_error(match count {
                1 => error,
                _ => error.context(format!("the first of {count} blocks in a row")),
            });
        }
        is_there
    }

    /// Moves to the next entry; whether there is one. Entries whose values were found to be damaged
    /// are passed over. After an error, to the first of the next block, or behind the entry whose
    /// value it was about.
    ///
    /// # Errors
    /// `IoError`; `Corruption` if a block or a value is not what it was when the table was looked
    /// at.
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(block) = &mut self.block {
                block.next();
                if block.valid() {
                    if self.take_value()? {
                        return Ok(true);
                    }
                    continue;
                }
                let ended = block.status();
                self.block = None;
                ended.map_err(|error| error.at(self.remains.path()))?;
            }
            let Some(&handle) = self.remains.blocks.get(self.next) else { return Ok(false) };
            self.next += 1;
            let mut block = self.remains.read_data(handle)?;
            block.seek_to_first();
            if block.valid() {
                self.block = Some(block);
                if self.take_value()? {
                    return Ok(true);
                }
                continue;
            }
            block.status().map_err(|error| error.at(self.remains.path()))?;
        }
    }

    /// Reads the value of the current entry, where it lies beside the block; `false` if it is known
    /// to be lost.
    fn take_value(&mut self) -> Result<bool> {
        self.whole = None;
        let Some(block) = &self.block else { return Ok(false) };
        let key = block.key();
        if self.remains.lost.contains(key.as_bytes()) {
            return Ok(false);
        }
        if let Some(whole) = self.remains.whole_value(block)? {
            let shown = InternalKeyBuf::new(key.user_key(), key.sequence(), whole.kind);
            self.whole = Some((shown, whole));
        }
        Ok(true)
    }

    /// Where the entry's block lies.
    pub fn block(&self) -> Option<BlockHandle> {
        self.block.as_ref()?;
        self.remains.blocks.get(self.next.checked_sub(1)?).copied()
    }

    /// The entry's key and value.
    ///
    /// # Panics
    /// If the last [`RemainingEntries::advance`] did not come to one.
    pub fn entry(&self) -> (InternalKey<'_>, &[u8]) {
        let block = self.block.as_ref().expect("the walk stands on an entry");
        match &self.whole {
            Some((key, whole)) => (key.as_key(), whole.bytes()),
            None => (block.key(), block.value()),
        }
    }
}
