//! `laboratory transactions`, a little of it: real threads, processes that are killed, and a judge
//! of what transactions saw. That it finds faults, the mutants show.

use std::process::Command;

use testkit::laboratory;
use testkit::transactions::{Kind, experiment};

#[test]
fn what_threads_see_of_optimistic_transactions_is_isolated() {
    laboratory::begin();
    experiment(Kind::Optimistic, 0..2);
}

#[test]
fn what_threads_see_of_pessimistic_transactions_is_isolated() {
    laboratory::begin();
    experiment(Kind::Pessimistic, 0..2);
}

#[test]
fn what_processes_leave_that_are_killed_is_isolated() {
    for kind in Kind::ALL {
        let output = Command::new(env!("CARGO_BIN_EXE_laboratory"))
            .args(["transactions", "--count", "2", "--rounds", "4", "--transactions", "1000"])
            .args(["--kind", kind.name()])
            .env_remove("FLAGSTONE_MUTANT")
            .output()
            .expect("a child");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        let figures = said.lines().find(|line| line.starts_with("transactions, "));
        let figures = figures.unwrap_or_else(|| panic!("no figures: {said}"));
        let count = |what: &str| -> u64 {
            let before = figures.split(what).next().and_then(|text| text.rsplit(' ').next());
            before.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        assert_eq!(count(" rounds"), 8, "{figures}");
        assert!(count(" killed,") > 2 && count(" transactions committed") > 500, "{figures}");
    }
}
