//! What a database and a worker of its compaction service tell each other.
//!
//! - `format`: the frame of both messages, and how their fields are read
//! - `order`: what is to be done; `plan`: the plan in it
//! - `result`: what was done
//!
//! The forms are this engine's own. RocksDB's are texts of its internal structures that change with
//! its releases, name a numbered OPTIONS file that may be gone, and have neither blob files nor
//! blob garbage nor checksums. A database and its workers are of one engine, so nothing would be
//! won by them.

mod format;
mod order;
mod plan;
mod result;
#[cfg(test)]
mod tests;

pub use order::CompactionOrder;
pub use plan::{OrderedFile, OrderedLevel, OrderedPlan};
pub use result::{CompactionResult, SummedOutput};
