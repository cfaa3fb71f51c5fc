//! A checksum with each data block in memory (`block_protection_bytes_per_key`), for memory that
//! changes by itself.
//!
//! A block is summed up when it comes into memory, and compared whenever a reader takes it from
//! there: by XXH3 over all its bytes, of which as many bytes are kept as the setting says. The
//! blocks of a file never change, so a sum stays when the cache lets go of its block, and is
//! compared when the block is read again. Block and sum go together when they do not match.
//!
//! **Thread safety.** The sums are behind a mutex, held for one look at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::block::Block;
use super::fetch::BlockSource;
use super::format::BlockHandle;
use crate::base::sync::Mutex;
use crate::base::{Code, Error, Result, SubCode};
use crate::cache::{Measured, MemoryAccount, MemoryKind};

/// About what the map has for one sum.
const SUM_BYTES: usize = 20;

/// The checksums of a table's blocks, by their offsets.
pub(super) struct BlockSums {
    mask: u64,
    sums: Mutex<Sums>,
}

struct Sums {
    by_offset: HashMap<u64, u64>,
    /// Blocks that did not match and were not read again.
    doubted: HashSet<u64>,
    memory: Option<Measured>,
}

impl BlockSums {
    /// `None` for 0 bytes. What they take is noted in `account`.
    ///
    /// # Panics
    /// For more than 8.
    pub fn new(bytes: usize, account: Option<&Arc<MemoryAccount>>) -> Option<Box<Self>> {
        assert!(bytes <= size_of::<u64>(), "a checksum has no more bytes");
        let mask = u64::MAX.checked_shr(64 - 8 * bytes as u32)?;
        let memory = account.map(|account| account.measured(MemoryKind::Tables));
        let sums = Sums { by_offset: HashMap::new(), doubted: HashSet::new(), memory };
        Some(Box::new(Self { mask, sums: Mutex::new(sums) }))
    }

    /// Compares a block that lies at `offset` of the file with its checksum, which it gets if it
    /// has none yet. A block that did not match, or its checksum, has changed: both are forgotten,
    /// and only a block that `is_read` from the file gets a new one.
    ///
    /// # Errors
    /// `Corruption` with subcode `MemoryChanged`, without file and offset.
    pub fn check(&self, offset: u64, block: &[u8], is_read: bool) -> Result<()> {
        let found = xxh3_64(block) & self.mask;
        let mut sums = self.sums.lock();
        let Sums { by_offset, doubted, memory } = &mut *sums;
        if is_read {
            doubted.remove(&offset);
        } else if doubted.contains(&offset) {
            return Err(changed());
        }
        #[cfg(test)]
        let found = if by_offset.contains_key(&offset) { flips::seen(found) } else { found };
        let expected = *by_offset.entry(offset).or_insert(found);
        if let Some(memory) = memory {
            memory.set(by_offset.capacity() * SUM_BYTES);
        }
        if expected == found {
            return Ok(());
        }
        // The sum may be what has changed. Others may still hold the block.
        by_offset.remove(&offset);
        doubted.insert(offset);
        Err(changed())
    }
}

fn changed() -> Error {
    let message = "a block in memory does not match its checksum (block_protection_bytes_per_key): \
                   memory has changed";
    Error::new(Code::Corruption, message).with_subcode(SubCode::MemoryChanged)
}

impl BlockSource {
    /// Compares a data block that comes from memory, or `is_read` into it, with its checksum, if
    /// blocks have some. One that has changed leaves the caches: the file may still have the right
    /// bytes.
    ///
    /// # Errors
    /// `Corruption` with subcode `MemoryChanged`, naming file and offset.
    #[inline]
    pub fn check_in_memory(&self, handle: BlockHandle, block: &Block, is_read: bool) -> Result<()> {
        match &self.sums {
            None => Ok(()),
            Some(sums) => self.compare(sums, handle, block, is_read),
        }
    }

    #[cold]
    fn compare(
        &self,
        sums: &BlockSums,
        handle: BlockHandle,
        block: &Block,
        is_read: bool,
    ) -> Result<()> {
        sums.check(handle.offset, block.data(), is_read).map_err(|error| {
            self.uncache(handle);
            self.locate(error, handle)
        })
    }
}

#[cfg(test)]
pub(crate) mod flips;
#[cfg(test)]
mod tests;
