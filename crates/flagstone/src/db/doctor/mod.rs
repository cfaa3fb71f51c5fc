//! What is wrong with a database, why writes are slow, and what to change, in words.
//!
//! `gather` collects facts, of a database opened for reading or of a running one; `diagnose` is a pure function from facts to
//! findings, tested as text in, text out (`testdata`); its rules for families stand in `trees` and `blobs`. `logs` replays WALs
//! for it, and applies nothing. `told` reads what a running database has told of itself, where another process has it open.

mod blobs;
mod diagnose;
mod facts;
mod gather;
mod logs;
#[cfg(test)]
mod tests;
mod told;
mod trees;

pub use diagnose::{Finding, Severity, diagnose};
pub use facts::{DatabaseFacts, Facts, FamilyFacts, LogFacts, LogFate};
