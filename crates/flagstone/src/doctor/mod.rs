//! Explains in words what is wrong with a database, why writes are slow, and what to change.
//!
//! `diagnose` is a pure function from facts ([`Facts`]) to findings, tested as text in, text out
//! (`testdata`). Its rules for families are in `trees` and `blobs`, those for transactions in
//! `transactions`. The engine gathers the facts. `told` parses reports of a running
//! database for a doctor in another process.
//!
//! [`Facts`]: crate::db::Facts

mod blobs;
mod diagnose;
#[cfg(test)]
mod tests;
mod told;
mod transactions;
mod trees;

pub use diagnose::{Finding, Severity, diagnose};
