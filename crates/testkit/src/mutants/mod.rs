//! Which experiment finds which deliberate fault, and the search for it.
//!
//! A mutant is one of three things, by what can reach the place:
//!
//! - a fake: a component that breaks its promise ([`crate::fakes`])
//! - a switch in the engine, which test builds can turn on (`base/mutant.rs`)
//! - a patch, with which the engine is built anew (`crates/testkit/mutants`)
//!
//! `table` says what finds fakes and switches; the ordinary tests search for all of these. The head
//! of a patch says what finds it; `laboratory mutants` builds and searches.

mod patches;
mod search;
mod table;

pub use patches::{Patch, patches};
pub use search::{search, search_all};
pub use table::CAUGHT;

/// What finds a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By<'a> {
    /// An experiment of [`crate::laboratory::EXPERIMENTS`].
    Experiment(&'a str),
    /// A story told under the scheduler, in `crates/flagstone/tests/schedule`.
    Story(&'a str),
}

/// What finds one mutant.
#[derive(Debug, Clone, Copy)]
pub struct Caught<'a> {
    /// The mutant's name.
    pub mutant: &'a str,
    /// What finds it.
    pub by: By<'a>,
    /// Words that the finding contains, or one of several between bars: that something is found is
    /// not enough.
    pub words: &'a str,
}

/// What precedes the words of a finding.
pub const FINDING: &str = ": FAULT\n";

/// Signs of contents that are not what they should be; which comes first depends on the seeds.
const WRONG: &str = ": found|; found|is missing|get: family|is too much|is lost|no point in history|which is damaged|\
     where an iterator stands";

/// A full disk was more than that.
const POISONED: &str = "a full disk poisons|stopped accepting writes after a failure";

/// Histories draw so much that a mutant shows itself in one way or another; instead of by words it
/// is told apart by living the same history without it.
const REPLAYED: &str = REPLAY;

/// What stands before the file with the history of a finding.
const REPLAY: &str = "--replay ";
