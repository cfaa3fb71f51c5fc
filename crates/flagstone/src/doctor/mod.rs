//! What is wrong with a database, why writes are slow, and what to change, in words.
//!
//! `diagnose` is a pure function from facts ([`Facts`]) to findings, tested as text in, text out
//! (`testdata`); its rules for families stand in `trees` and `blobs`. The engine gathers the facts.
//! `told` reads what a running database has told of itself, where another process has it open.
//!
//! [`Facts`]: crate::db::Facts

mod blobs;
mod diagnose;
#[cfg(test)]
mod tests;
mod told;
mod trees;

pub use diagnose::{Finding, Severity, diagnose};
