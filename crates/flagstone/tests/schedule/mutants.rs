//! Deliberate breakages that only another order of threads shows: each is found by the story that
//! is named for it in `testkit::mutants`.

use std::process::Command;

use testkit::mutants::{By, CAUGHT, search_all};

#[test]
fn every_mutant_of_the_schedule_is_caught() {
    let rows = CAUGHT.iter().filter(|row| matches!(row.by, By::Story(_)));
    search_all(rows, "panicked at", |row| {
        let By::Story(name) = row.by else { unreachable!("only such rows are searched for") };
        let mut command = Command::new(std::env::current_exe().expect("this test's path"));
        command.args(["--exact", name]);
        command
    });
}
