//! Write batches: several operations that take effect together, in RocksDB's representation.

mod format;
mod markers;
mod operation;
pub(crate) mod protection;
mod stamps;
#[cfg(test)]
mod tests;
mod view;
mod write_batch;

pub use format::{HEADER_SIZE, MAX_ENTRY_SIZE};
pub use markers::TRANSACTION_NAME_MAX;
pub use stamps::{StampChange, StampSize, change_stamps, commit_stamps};
pub use view::{BatchIter, BatchSummary, BatchView, Operation, TransactionPolicy};
pub use write_batch::timed::TimedValue;
pub use write_batch::{WriteBatch, encode_header};
