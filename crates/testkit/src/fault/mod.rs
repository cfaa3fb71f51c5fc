//! A file system whose calls fail when told to.
//!
//! - `plan`: which calls fail, and how.
//! - `file_system`: the calls themselves, on top of another file system.
//! - `files`: what each file has been through, so that a sync after a failed one is noticed.
//!
//! What a failed call did is the worst that is allowed: a write leaves half of its bytes behind, a
//! rename did nothing (or, failing [late](Injection::Late), everything), and what a failed sync did
//! not make durable never will be.

mod file_system;
mod files;
mod plan;

pub use file_system::FaultFs;
pub use files::{Sort, sort_of};
pub use plan::{Call, Failure, Injection, OPTIONS_FILE_CALLS, Plan};
