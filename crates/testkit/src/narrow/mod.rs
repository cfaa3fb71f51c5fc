//! Narrow experiments: each looks at one promise that random lives rarely put to the test.
//!
//! - `books`: what is recorded of files is what they hold; `copies`: a checkpoint of a database
//!   that cannot be flushed
//! - `failed_syncs`: what no reader may see; `versions`: what a snapshot saw it goes on seeing
//! - `lost_names`: which tables may not be counted on; `doubtful_drops`: which families may be
//!   written to
//! - `conflicts`: which writes a transaction must not commit over
//! - `queues`: what is found where scans leap over what was deleted
//! - `moved_levels`: over what a level may be moved
//! - `interruptions`: what may happen in the middle of a flush or a compaction

mod books;
mod conflicts;
mod copies;
mod doubtful_drops;
mod failed_syncs;
mod interruptions;
mod lost_names;
mod moved_levels;
mod queues;
mod versions;

pub use books::{books, check_books};
pub use conflicts::conflicts;
pub use copies::copies;
pub use doubtful_drops::doubtful_drops;
pub use failed_syncs::failed_syncs;
pub use interruptions::interruptions;
pub use lost_names::lost_names;
pub use moved_levels::moved_levels;
pub use queues::queues;
pub use versions::straddling_versions;
