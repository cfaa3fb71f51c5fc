//! The sorted structures that hold what is not yet flushed.
//!
//! - `table`: [`MemTable`], the writes of one column family since its last switch
//! - `range_deletes`: its range tombstones, fragmented when first asked for
//! - `btree`: the index for the plain byte order
//! - `skiplist`: the index for any comparator
//! - `key_prefix`: leading bytes as numbers, which spare most comparisons
//! - `arena`: where the indexes' nodes, keys and values lie

mod arena;
mod btree;
mod key_prefix;
mod range_deletes;
mod skiplist;
mod table;

pub use arena::ArenaPool;
pub use table::{MemTable, MemTableIterator, MemTableKind, MemTableSettings, MemTableWriter};

#[cfg(test)]
mod tests;
