//! Batches that can be read.
//!
//! - `indexed_batch`: [`WriteBatchWithIndex`], a batch with an index over its operations
//! - `delta`: what a batch says of one key, and a cursor from key to key
//! - `overlay`: [`Overlay`], what a batch said of one family, and reads through it
//! - `overlaid`: a cursor over the database with a batch laid over it
//! - `locks`: locks on keys, and owners that wait for them
//!
//! The first four stand on the handles of `db` and on a memtable, which is the index.

mod delta;
mod indexed_batch;
pub mod locks;
mod overlaid;
mod overlay;

pub use indexed_batch::{BatchEntries, BatchEntry, InBatch, WriteBatchWithIndex};
pub use overlaid::OverlaidIter;
pub use overlay::Overlay;
