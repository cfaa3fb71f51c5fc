//! What a command leaves out while it does the rest.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::arguments::Common;
use crate::failure::say;

/// How many are named where `--json` does not ask for all.
const NAMED_MAX: u64 = 10;

/// Files, keys or lines that a command leaves out. Each is counted; the first few are named on
/// stderr, with `--json` all.
pub struct LeftOut {
    /// The word for one of them.
    what: &'static str,
    named_max: u64,
    count: AtomicU64,
}

impl LeftOut {
    /// None yet.
    pub fn new(what: &'static str, common: &Common) -> Self {
        let named_max = if common.json { u64::MAX } else { NAMED_MAX };
        Self { what, named_max, count: AtomicU64::new(0) }
    }

    /// Counts one, and says which it is and why it is left out.
    pub fn add(&self, which_and_why: impl Display) {
        if self.count.fetch_add(1, Ordering::Relaxed) < self.named_max {
            say(which_and_why);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// Says how many were not named, also where the command ends early.
impl Drop for LeftOut {
    fn drop(&mut self) {
        let more = self.count().saturating_sub(self.named_max);
        if more > 0 {
            let end = if more == 1 { " is" } else { "s are" };
            say(format_args!("and {more} more {}{end} left out; --json names each", self.what));
        }
    }
}
