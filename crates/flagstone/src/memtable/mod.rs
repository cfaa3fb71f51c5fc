//! The sorted structures that hold what is not yet flushed.
//!
//! - `table`: [`MemTable`], the writes of one column family since its last switch
//! - `range_deletes`: its range tombstones, fragmented when first asked for
//! - `index`: what it asks of the structures that hold the entries, which are:
//! - `btree`: for the plain byte order
//! - `skiplist`: for any comparator
//! - `vector`: for bulk loads
//! - `prefix_hash`: for lookups and walks within prefixes
//! - `filter`: a Bloom filter over it
//! - `protection`: a checksum with each entry
//! - `record`: an entry in memory
//! - `key_prefix`: leading bytes as numbers, which spare most comparisons
//! - `arena`: where nodes and entries lie
//! - `shared_arena`: an arena that several threads allocate from
//! - `counts`: what was added

mod arena;
mod btree;
mod counts;
mod filter;
mod index;
mod key_prefix;
mod prefix_hash;
pub(crate) mod protection;
mod range_deletes;
mod record;
mod shared_arena;
mod skiplist;
mod table;
mod vector;

pub use arena::ArenaPool;
pub use filter::MemTableFilterSettings;
pub use range_deletes::{RangeLook, RangeQuestion};
pub use table::{MemTable, MemTableIterator, MemTableKind, MemTableSettings, MemTableWriter};

#[cfg(test)]
mod tests;
