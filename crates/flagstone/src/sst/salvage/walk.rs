//! A walk over what is left of a table.

use std::sync::Arc;

use super::TableRemains;
use crate::base::{Error, InternalKey, Result};
use crate::sst::block::BlockIter;
use crate::sst::format::BlockHandle;

/// A walk over the intact entries of a table.
pub struct RemainingEntries {
    remains: Arc<TableRemains>,
    next: usize,
    block: Option<BlockIter>,
}

impl RemainingEntries {
    /// In front of the first.
    pub(super) fn new(remains: Arc<TableRemains>) -> Self {
        Self { remains, next: 0, block: None }
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

    /// Moves to the next entry; whether there is one. After an error, to the first of the next
    /// block.
    ///
    /// # Errors
    /// `IoError`; `Corruption` if a block is not what it was when the table was looked at.
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(block) = &mut self.block {
                block.next();
                if block.valid() {
                    return Ok(true);
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
                return Ok(true);
            }
            block.status().map_err(|error| error.at(self.remains.path()))?;
        }
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
        (block.key(), block.value())
    }
}
