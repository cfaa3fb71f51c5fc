//! Batches that can be read, and what transactions are made of.
//!
//! - `indexed_batch`: [`WriteBatchWithIndex`], a batch with an index over its operations
//! - `indexed_default`: the same without a database at hand, for the default family
//! - `ingested`: batches that become tables
//! - `delta`: what a batch says of one key, and a cursor from key to key
//! - `overlay`: [`Overlay`], what a batch said of one family, and reads through it
//! - `overlaid`: a cursor over the database with a batch laid over it
//! - `streamed`: values of a batch that were written piece by piece
//!
//! - `locks`: locks on keys, and owners that wait for them
//! - `tracked`: the keys that a transaction uses
//! - `options`: how transactions behave
//!
//! They stand on the handles of `db` and on a memtable, which is the index; the locks stand alone.

mod delta;
mod indexed_batch;
mod indexed_default;
mod indexed_entities;
mod ingested;
pub mod locks;
mod options;
mod overlaid;
mod overlay;
mod streamed;
mod tracked;

pub use indexed_batch::{BatchEntries, BatchEntry, InBatch, WriteBatchWithIndex};
pub use options::{TransactionDbOptions, TransactionOptions};
pub use overlaid::OverlaidIter;
pub use overlay::Overlay;
pub use tracked::{Tracked, TrackedKeys, Use};
