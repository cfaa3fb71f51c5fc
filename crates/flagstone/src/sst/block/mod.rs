//! The sorted block.

use std::ops::Deref;
use std::sync::Arc;

/// The bytes of one block, uncompressed and checked.
#[derive(Debug)]
pub struct Block {
    data: Vec<u8>,
}

/// A piece of a block that keeps the block alive: a value without a copy.
#[derive(Debug, Clone)]
pub struct BlockSlice {
    block: Arc<Block>,
    start: u32,
    end: u32,
}

impl Deref for BlockSlice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.block.data[self.start as usize..self.end as usize]
    }
}
