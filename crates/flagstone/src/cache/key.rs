//! What entries are found by.

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheKey {
    /// The open file, from [`super::CacheOwner`].
    pub file: u64,
    /// Where in it the block or value begins.
    pub offset: u64,
}

impl CacheKey {
    /// Spreads keys over shards and buckets. Offsets and file ids are no attacker's to choose, so
    /// that one folded product is enough.
    #[inline]
    pub(crate) fn hash(self) -> u64 {
        let a = self.file.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.offset ^ 0x2d35_8dcc_aa6c_78a5;
        let product = u128::from(a) * 0x8bb8_4b93_962e_acc9;
        (product as u64) ^ ((product >> 64) as u64)
    }
}
