//! Every deliberate breakage of the engine (`base/mutant.rs`) is found by the experiment that is named for it in
//! `testkit::mutants`: `laboratory experiments EXPERIMENT` with `FLAGSTONE_MUTANT=NAME` reports a fault, in the words that are
//! expected. That the experiments find nothing in the engine as it is, their own tests show.
//!
//! `FLAGSTONE_MUTANTS=SkipBlobSync,ForgetDrop` searches for these only.

use std::process::Command;

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
