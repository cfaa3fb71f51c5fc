//! Every deliberate breakage of the engine (`base/mutant.rs`) is found by the experiment that is
//! named for it in `testkit::mutants`: `laboratory experiments EXPERIMENT` with
//! `FLAGSTONE_MUTANT=NAME` reports a fault, in the words that are expected. That the experiments
//! find nothing in the engine as it is, their own tests show.
//!
//! `FLAGSTONE_MUTANTS=SkipBlobSync,ForgetDrop` searches for these only.

use std::process::Command;

use flagstone::base::mutant::ALL;
use testkit::laboratory::EXPERIMENTS;
use testkit::mutants::{By, CAUGHT, FINDING, search_all};

#[test]
fn every_mutant_is_caught() {
    let rows = CAUGHT.iter().filter(|row| matches!(row.by, By::Experiment(_)));
    search_all(rows, FINDING, |row| {
        let By::Experiment(name) = row.by else { unreachable!("only such rows are searched for") };
        let mut command = Command::new(env!("CARGO_BIN_EXE_laboratory"));
        command.args(["experiments", name]);
        command
    });
}

/// The table is complete, and the documentation holds the same.
#[test]
fn the_tables_agree() {
    for (_, name, _) in ALL {
        let finders: Vec<_> =
            CAUGHT.iter().filter(|row| row.mutant == *name).map(|row| row.by).collect();
        assert!(!finders.is_empty(), "{name} has no row");
        let is_new = |(at, by): (usize, &By)| !finders[..at].contains(by);
        assert!(finders.iter().enumerate().all(is_new), "{name} has a row twice");
    }
    for row in CAUGHT {
        assert!(
            ALL.iter().any(|(_, name, _)| *name == row.mutant),
            "there is no mutant {}",
            row.mutant
        );
        let By::Experiment(name) = row.by else { continue };
        assert!(
            EXPERIMENTS.iter().any(|known| known.name == name),
            "there is no experiment {name}"
        );
    }
    let document = include_str!("../../../docs/reliability.md");
    let is_mutant =
        |line: &&str| ALL.iter().any(|(_, name, _)| line.starts_with(&format!("| `{name}` |")));
    let written: Vec<&str> = document.lines().filter(is_mutant).collect();
    let expected: Vec<String> = ALL.iter().map(|(_, name, meaning)| line(name, meaning)).collect();
    assert_eq!(written, expected, "docs/reliability.md should have:\n{}", expected.join("\n"));
}

fn line(name: &str, meaning: &str) -> String {
    let rows = CAUGHT.iter().filter(|row| row.mutant == name);
    let by: Vec<_> = rows
        .map(|row| match row.by {
            By::Experiment(name) => format!("`{name}`"),
            By::Story(name) => format!("schedule `{name}`"),
        })
        .collect();
    format!("| `{name}` | {} | {} |", meaning.trim(), by.join(", "))
}
