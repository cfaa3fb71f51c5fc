//! Block-based tables: format, blocks, index, builder, reader.
//!
//! - [`format`]: handles, footer, names; shared by reader and builder
//! - [`block`]: the sorted block that data, index and meta blocks are made of
//! - [`Table`]: an open file: point lookups, iteration, verification
//! - [`TableBuilder`]: writes one file from sorted entries

pub mod block;
mod builder;
pub mod filter;
pub mod format;
mod iter;
mod properties;
mod settings;
mod table;

pub use block::{Block, BlockSlice};
pub use builder::{TableBuilder, TableSummary};
pub use format::{BlockHandle, IndexType};
pub use iter::TableIterator;
pub use properties::TableProperties;
pub use settings::{IndexShortening, IterSettings, ReadSettings, TableBuilderSettings, TableReadSettings};
pub use table::{BlockFault, Lookup, Table, TableAnchor, ValueRef};
