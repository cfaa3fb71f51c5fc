//! Families whose keys end in timestamps.
#![expect(clippy::unwrap_used, reason = "a failure is a failed test")]

mod damaged;
mod forgetting;
mod memory_only;
mod model;
mod moving;
mod referee;
mod salvaged;
mod stories;
mod two_phase;
