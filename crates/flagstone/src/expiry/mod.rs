//! A time to live for every value, in the byte format of RocksDB's `DBWithTTL`, and its effect on
//! compactions and merges.
//!
//! - `stamp`: the grammar of the bytes, and when a value has expired
//! - `filter`: compactions drop expired values
//! - `merge`: the application's merge operator never sees a stamp
//!
//! The handle that adds and removes stamps is `ttl::TtlDb`.

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
