//! Block-based tables: format, blocks, index, filter, builder, reader.
//!
//! - [`mod@format`]: handles, footer, names; shared by reader and builder
//! - [`block`]: the sorted block that data, index and meta blocks are made of
//! - [`filter`]: small sets of key hashes that rule out most keys that a file does not hold
//! - [`Table`]: an open file: point lookups, iteration, verification
//! - [`TableBuilder`]: writes one file from sorted entries

pub mod block;
mod builder;
mod cached;
mod cursor;
mod embedded;
mod fetch;
mod fetch_meta;
pub mod filter;
pub mod format;
mod heap;
mod index;
mod inspect;
mod iter;
mod many;
mod open;
mod properties;
pub(crate) mod protection;
mod read_cache_hits;
mod readahead;
mod rows;
mod salvage;
mod second_tier;
mod settings;
mod shown;
mod table;
#[cfg(test)]
mod tests;
mod verify;

pub use block::{Block, BlockSlice, ValueRef};
pub use builder::{
    RANGE_DELETION_BYTES_MAX, TableBuilder, TableSummary, parallel_compression_memory,
    range_deletion_bytes,
};
pub use cached::{BlockCache, CachedBlock, IndexPartition, Slim};
pub use embedded::EmbeddedStats;
pub use filter::{Filter, FilterPolicy};
pub use format::{BlockHandle, Footer, IndexType, TableKind};
pub use inspect::{IndexedBlock, TableAnchor};
pub use iter::TableIterator;
pub use many::{Part, Planned, RangeLimits, plan, read_missing};
pub use open::{global_sequence_offset, read_table_properties};
pub use properties::{ExternalForm, TableProperties};
pub use read_cache_hits::{Prepopulate, ReadCacheHits};
pub use readahead::OwnFile;
pub use rows::{FoundRow, Row, TableRows};
pub use salvage::{RemainingEntries, SalvageSettings, TableRemains};
pub use second_tier::CompressedCache;
pub use settings::{
    AutoReadahead, BesideBlocks, IndexShortening, IterSettings, ReadSettings, SuperBlock,
    TableBuilderSettings, TableReadSettings,
};
pub use table::{CandidateBlock, LookupKey, Table, Visit};
pub use verify::BlockFault;
