//! Looking for faults by histories.

use std::collections::BTreeSet;
use std::path::PathBuf;

use flagstone::base::Result;
use flagstone::env::{Env, IoMode};
use parking_lot::Mutex;

use super::case::{Case, commented};
use super::{Tally, live, shrink};
use crate::caught::catch;
use crate::choices::CHOICES;
use crate::laboratory;

/// Histories of one size, each lived with several choices of options.
pub struct Campaign {
    /// Operations a history.
    pub operations: usize,
    /// Choices of options a history.
    pub option_sets: usize,
    /// Seconds that a failure may be shrunk for; 0 leaves it as it is.
    pub shrink_seconds: u64,
    /// Where failures are written.
    pub directory: PathBuf,
    totals: Mutex<Totals>,
}

/// What a campaign did.
#[derive(Debug, Clone, Default)]
struct Totals {
    histories: u64,
    lives: u64,
    tally: Tally,
    /// Every name and value of an option that was set at first.
    settings: BTreeSet<(String, String)>,
}

impl Campaign {
    /// One that has done nothing yet.
    pub fn new(
        operations: usize,
        option_sets: usize,
        shrink_seconds: u64,
        directory: PathBuf,
    ) -> Self {
        Self { operations, option_sets, shrink_seconds, directory, totals: Mutex::default() }
    }

    /// Lives the history of this seed with all its choices of options.
    ///
    /// # Errors
    /// What went wrong first: the shrunk case, what it says, and how to repeat it.
    pub fn explore(&self, seed: u64) -> std::result::Result<(), String> {
        for case in Case::draw(seed, self.operations, self.option_sets) {
            let tally = catch(|| live(&case)).map_err(|said| self.report(seed, &case, said))?;
            self.totals.lock().add(&case, tally);
        }
        self.totals.lock().histories += 1;
        Ok(())
    }

    fn report(&self, seed: u64, case: &Case, said: String) -> String {
        let fails = |case: &Case| catch(|| live(case)).err();
        let (short, said) = match self.shrink_seconds {
            0 => (case.clone(), said),
            seconds => shrink(case, said, seconds, fails),
        };
        let path = self.directory.join(format!("failure-{seed}.history"));
        let head = format!(
            "Seed {seed}, {} operations, shrunk to {}. It says:\n{said}",
            case.operations.len(),
            short.operations.len()
        );
        let text = format!("{}{short}", commented(&head));
        let written = match write(&path, &text) {
            Ok(()) => format!(
                "to repeat: cargo run --release -p testkit --bin laboratory -- histories --replay {}",
                path.display()
            ),
            Err(error) => format!("it could not be written to {}: {error}", path.display()),
        };
        format!("{text}{written}")
    }

    /// What was done, in lines.
    pub fn figures(&self) -> String {
        let Totals { histories, lives, tally, settings } = self.totals.lock().clone();
        let operations: u64 = tally.operations.values().sum();
        let kinds: Vec<_> =
            tally.operations.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let known = CHOICES
            .iter()
            .flat_map(|choice| choice.values.iter().map(|value| (choice.name, *value)));
        let known: BTreeSet<_> = known.collect();
        format!(
            "{histories} histories, {lives} lives with different options, {operations} operations, {} changes of disks\n\
             operations: {}\n\
             values of options: {} of {} were set at first",
            tally.changes,
            kinds.join(", "),
            settings.len(),
            known.len()
        )
    }
}

impl Totals {
    fn add(&mut self, case: &Case, tally: Tally) {
        self.lives += 1;
        self.tally.changes += tally.changes;
        for (kind, count) in tally.operations {
            *self.tally.operations.entry(kind).or_default() += count;
        }
        self.settings.extend(case.settings.iter().map(|set| (set.name.clone(), set.value.clone())));
    }
}

fn write(path: &std::path::Path, text: &str) -> Result<()> {
    let file = Env::os().fs.create_writable(path, IoMode::Buffered)?;
    file.write_at(0, text.as_bytes())
}

/// The size that the tests use: these seeds, each with two choices of options.
///
/// # Panics
/// At the first failure, with all about it.
pub fn experiment(seeds: std::ops::Range<u64>) {
    // A deliberate fault need not be understood, and is to be found however rare what it takes is
    // drawn.
    let (shrink_seconds, patience) = if laboratory::is_broken() { (0, 10) } else { (30, 1) };
    let seeds = seeds.start..seeds.end * patience;
    let campaign = Campaign::new(300, 2, shrink_seconds, std::env::temp_dir());
    for seed in seeds {
        if let Err(report) = campaign.explore(seed) {
            panic!("history {seed} fails:\n{report}");
        }
    }
}
