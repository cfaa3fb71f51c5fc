//! Facts about a database, for a diagnosis to go by: the engine reports, and judges nothing.
//!
//! - `types`: what is told.
//! - `gather`: the facts of a database opened for reading, or of a running one.
//! - `logs`: what an opening would make of damage in WALs; it replays them, and applies nothing.

mod gather;
pub(super) mod logs;
mod types;

pub use types::{DatabaseFacts, Facts, FamilyFacts, LogFacts, LogFate};
