//! A time to live for every value, byte for byte as RocksDB's `DBWithTTL`: what a compaction and a
//! merge make of it.
//!
//! - `stamp`: the grammar of the bytes, and when a value is stale
//! - `filter`: compactions drop what is stale
//! - `merge`: the application's merge operator never sees a stamp
//!
//! The handle that adds and takes off stamps is `ttl::TtlDb`.

mod filter;
mod merge;
mod stamp;
#[cfg(test)]
mod tests;

pub use filter::TtlCompactionFilterFactory;
pub use merge::TtlMergeOperator;
pub use stamp::{
    Lifetime, STAMP_ETERNAL, STAMP_MAX, STAMP_MIN, STAMP_SIZE, StampUnderWay, TTL_MAX, no_stamp,
    split, stamped, unstamped,
};
