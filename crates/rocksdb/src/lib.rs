//! The names, types and behaviour of the `rocksdb` crate 0.25, over Flagstone.

mod c_text;
mod cache;
pub mod compaction_filter;
pub mod compaction_filter_factory;
mod comparator;
mod env;
mod error;
mod iter_range;
pub mod merge_operator;
mod options;
mod prop_name;
pub mod properties;
mod slice_transform;
pub mod statistics;

pub use c_text::CStrLike;
pub use compaction_filter::Decision as CompactionDecision;
pub use error::{Error, ErrorKind};
pub use iter_range::{IterateBounds, PrefixRange};
pub use merge_operator::MergeOperands;
pub use slice_transform::SliceTransform;
