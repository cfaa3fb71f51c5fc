//! What a table file consists of.

/// Where a block lies in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BlockHandle {
    /// The first byte.
    pub offset: u64,
    /// Bytes, without the trailer.
    pub size: u64,
}

/// How data blocks are found; the numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum IndexType {
    /// One sorted block of separators.
    #[default]
    BinarySearch = 0,
    /// The same with a hash over prefixes beside it; read as [`IndexType::BinarySearch`], never written.
    HashSearch = 1,
    /// A sorted block over index partitions.
    TwoLevel = 2,
    /// [`IndexType::BinarySearch`] with the first key of each block.
    BinarySearchWithFirstKey = 3,
}
