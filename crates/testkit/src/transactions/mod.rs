//! Threads that run transactions against a real database, and a judge of what they saw.
//!
//! A life is a number of rounds on one directory. In each round a process opens the database,
//! notes what all lists hold, and lets threads run transactions until it is killed or closes the
//! database.
//!
//! - `plan`: what is drawn from the seed: options, the number of transactions, how a round ends
//! - `lists`: lists as keys and values of the database
//! - `worker`: one thread's transactions: locked reads, reads in a snapshot, plain reads, scans,
//!   appends by put and by merge, save points, rollbacks, plain writes, flushes, compactions
//! - `journal`: what a thread did, written down so that it survives the process
//! - `round`: one round in this process
//! - `judgement`: the history of a round, between what was found before it and after it
//!
//! **Scenarios.** Transactions that read some lists and append to others cover what is usually
//! tried one by one: lost updates (a read and an append of the same list), write skew (a read of
//! one list and an append to another), read skew (reads of lists that are appended to together),
//! and a bank (an audit that finds another sum has seen half of a transfer, which is read skew).

mod journal;
mod judgement;
mod lists;
mod plan;
mod round;
mod worker;

pub use judgement::{Figures, judge_round};
pub use plan::{Ending, Kind, Life};
pub use round::{ENOUGH, NOTED, look, play};

/// Lives `lives` short lives in this process, without kills.
///
/// # Panics
/// With what is wrong.
pub fn experiment(kind: Kind, lives: std::ops::Range<u64>) {
    for seed in lives {
        let directory = tempfile::tempdir().expect("a directory for a life");
        let directory = directory.path().to_path_buf();
        let life = Life { kind, seed, directory, threads: 4, transactions_max: 1000 };
        for round in 0..3 {
            let end = |_: &str| {};
            let played = play(&life, round, Ending::Closed, &end);
            played.unwrap_or_else(|error| panic!("seed {seed}, round {round}: {error}"));
            look(&life, round + 1).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            if let Err(error) = judge_round(&life, round, &mut Figures::default()) {
                panic!("seed {seed}, round {round}: {error}");
            }
        }
    }
}
