//! Making a case that fails as short as it can.
//!
//! 1. Leave out operations: halves, quarters, and so on down to single ones (delta debugging); then
//!    settings.
//! 2. Replace each operation by a simpler one, as long as that still fails.
//! 3. Begin again while anything became shorter and there is time.
//!
//! Any failure counts as the same one. With real threads a case is tried several times, and first
//! without them.

use flagstone::env::Env;

use super::case::{Case, World};
use super::simplify::simpler;
use crate::settings::Chosen;

/// Trials of a case that depends on real threads.
const TRIALS: usize = 5;

/// The shortest case found within so many seconds that still fails, and what it says. `fails` tells
/// what goes wrong with a case, if anything does.
pub fn shrink(
    case: &Case,
    said: String,
    seconds: u64,
    fails: impl Fn(&Case) -> Option<String>,
) -> (Case, String) {
    let clock = Env::os().clock;
    let end = clock.now_us() + seconds * 1_000_000;
    let is_over = || clock.now_us() >= end;
    let mut shrinking = Shrinking { case: case.clone(), said, fails: &fails, is_over: &is_over };
    if case.world == World::Threads {
        (0..TRIALS as u64).any(|seed| {
            let world = World::Steps { seed, eagerness: 4 * seed as u8 };
            shrinking.accepts(Case { world, ..case.clone() })
        });
    }
    while !is_over() && shrinking.round() {}
    (shrinking.case, shrinking.said)
}

struct Shrinking<'a> {
    case: Case,
    said: String,
    fails: &'a dyn Fn(&Case) -> Option<String>,
    is_over: &'a dyn Fn() -> bool,
}

impl Shrinking<'_> {
    /// Takes a case in place of the one before if it fails; one with impossible options does not
    /// count.
    fn accepts(&mut self, case: Case) -> bool {
        if (self.is_over)() || Chosen::new(&Env::memory(), &case.settings).is_err() {
            return false;
        }
        let trials = if case.world == World::Threads { TRIALS } else { 1 };
        let said = (0..trials).find_map(|_| (self.fails)(&case));
        match said {
            Some(said) => {
                (self.case, self.said) = (case, said);
                true
            }
            None => false,
        }
    }

    /// Whether anything became shorter.
    fn round(&mut self) -> bool {
        let before = self.case.clone();
        self.leave_out_operations();
        self.leave_out_settings();
        self.simplify();
        if let World::Steps { seed, eagerness } = self.case.world {
            let _ = [(0, 0), (0, eagerness), (seed, 0)].into_iter().any(|(seed, eagerness)| {
                let world = World::Steps { seed, eagerness };
                world != self.case.world && self.accepts(Case { world, ..self.case.clone() })
            });
        }
        self.case != before
    }

    fn leave_out_operations(&mut self) {
        let mut chunk = self.case.operations.len().div_ceil(2).max(1);
        loop {
            // From behind: what comes after the failure goes first.
            let mut end = self.case.operations.len();
            while end > 0 {
                let start = end.saturating_sub(chunk);
                let mut fewer = self.case.clone();
                fewer.operations.drain(start..end);
                self.accepts(fewer);
                end = start.min(self.case.operations.len());
            }
            if chunk == 1 {
                return;
            }
            chunk = chunk.div_ceil(2);
        }
    }

    fn leave_out_settings(&mut self) {
        if !self.accepts(Case { settings: Vec::new(), ..self.case.clone() }) {
            for index in (0..self.case.settings.len()).rev() {
                let mut fewer = self.case.clone();
                fewer.settings.remove(index);
                self.accepts(fewer);
            }
        }
    }

    fn simplify(&mut self) {
        for index in (0..self.case.operations.len()).rev() {
            let with = |case: &Case, operation| {
                let mut plainer = case.clone();
                plainer.operations[index] = operation;
                plainer
            };
            // The first that still fails takes the operation's place, and is made simpler in turn.
            while !(self.is_over)() {
                let tried = simpler(&self.case.operations[index]);
                if !tried.into_iter().any(|operation| self.accepts(with(&self.case, operation))) {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
