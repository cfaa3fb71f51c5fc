//! Every call of the file system fails, in every position of several lives of a database.
//!
//! - `past`: what was asked for and answered, and what may be found afterwards.
//! - `life`: an application that goes on whatever happens.
//! - [`scenarios`]: what it does; `two_phase`: how it prepares transactions, and what is listed.
//! - `judge`: what must hold when the fault is over, the power has failed, or the process has died.
//! - [`campaign`]: which call fails how.
//! - [`allowed`]: which failures nobody has to hear of.

pub mod allowed;
pub mod campaign;
mod ingested;
mod judge;
mod life;
mod past;
pub mod scenarios;
mod two_phase;

pub use campaign::{Campaign, Figures, from_text as plan_from_text, run_case};
pub use scenarios::{SCENARIOS, Scenario};

use std::path::PathBuf;

use crate::fault::{Call, Injection, Plan, Sort, sort_of};

/// One in so many ways to fail is tried by the tests, in a debug build; `FLAGSTONE_FAULT_STRIDE`
/// says otherwise.
const STRIDE: usize = 97;

const WRITING: &[&str] = &[
    "opening",
    "flushes",
    "wals",
    "syncs",
    "syncs_mapped",
    "unlogged",
    "blobs_at_commit",
    "direct",
    "transactions",
    "two_phases",
];
const LEAVING_LOGS: &[&str] = &["mixed"];
const BY_HAND: &[&str] = &["log_by_hand", "log_by_hand_plain"];
const COMPACTING: &[&str] = &[
    "compactions",
    "runs",
    "paths",
    "blobs",
    "remote",
    "holes",
    "space",
    "manual",
    "subcompactions",
    "readers",
    "info_logs",
    "full_levels",
];
const ADMINISTERING: &[&str] = &["families", "ingestion", "manifests", "options", "checkpoint"];
const RECOVERING: &[&str] = &["read_only", "recovery", "kept_in_memory"];

/// The lives that are about writing.
pub fn writing() {
    fill_disk_at_logs();
    leave_logs();
    live(WRITING);
}

/// The lives whose log waits in memory.
pub fn by_hand() {
    live(BY_HAND);
}

/// Those that are about compactions.
pub fn compacting() {
    fill_disk_at_tables();
    live(COMPACTING);
}

/// Those that are about families, options, MANIFESTs and checkpoints.
pub fn administering() {
    live(ADMINISTERING);
}

/// Those that are about what a process leaves behind.
pub fn recovering() {
    live(RECOVERING);
}

/// Lives these scenarios with some of their faults, half of them as they are, half with options
/// drawn at random.
fn live(names: &[&str]) {
    let asked = std::env::var("FLAGSTONE_FAULT_STRIDE").ok().and_then(|text| text.parse().ok());
    let stride = asked.unwrap_or(STRIDE);
    for name in names {
        let scenario = Scenario::find(name).expect("the tests name scenarios that exist");
        let mut figures = Figures::default();
        for seed in [0, 1] {
            figures.add(&Campaign { seed, stride: stride * 2 }.run(scenario));
        }
        println!("{name}: {} of the faults in {} calls", figures.faults(), figures.positions);
    }
}

/// Each write to a log finds the disk full, in a life of its own: among all ways to fail these are
/// few, and the stride passes by them.
fn fill_disk_at_logs() {
    let scenario = Scenario::find("syncs").expect("it exists");
    let calls = campaign::calls_of(scenario, 0);
    let is_write =
        |(call, path): &(Call, PathBuf)| *call == Call::Write && sort_of(path) == Sort::Wal;
    let at_writes: Vec<u64> =
        (0..).zip(&calls).filter(|(_, call)| is_write(call)).map(|(at, _)| at).collect();
    assert!(at_writes.len() > 10, "each record is a write: {at_writes:?}");
    for &at in &at_writes {
        run_case(scenario, 0, Plan::Once { at, injection: Injection::NoSpace });
    }
    println!("{}: a full disk at {} writes to logs", scenario.name, at_writes.len());
}

/// The same for each sync of a table: what a flush or compaction wrote finds no room.
fn fill_disk_at_tables() {
    let scenario = Scenario::find(COMPACTING[0]).expect("it exists");
    let calls = campaign::calls_of(scenario, 0);
    let is_sync =
        |(call, path): &(Call, PathBuf)| *call == Call::Sync && sort_of(path) == Sort::Table;
    let at_syncs: Vec<u64> =
        (0..).zip(&calls).filter(|(_, call)| is_sync(call)).map(|(at, _)| at).collect();
    assert!(at_syncs.len() > 5, "each table is synced: {at_syncs:?}");
    for &at in &at_syncs {
        run_case(scenario, 0, Plan::Once { at, injection: Injection::NoSpace });
    }
    println!("{}: a full disk at {} syncs of tables", scenario.name, at_syncs.len());
}

/// Each log that is begun can neither have a name that lasts nor be removed again, in a life of its
/// own: two faults that the stride passes by.
fn leave_logs() {
    // With which it was lost what came behind such a log.
    const SEED: u64 = 2;
    let scenario = Scenario::find(LEAVING_LOGS[0]).expect("it exists");
    let calls = campaign::calls_of(scenario, SEED);
    let is_name = |pair: &[(Call, PathBuf)]| {
        sort_of(&pair[0].1) == Sort::Wal && pair[1].0 == Call::SyncDirectory
    };
    let at_names: Vec<u64> =
        (1..).zip(calls.windows(2)).filter(|(_, pair)| is_name(pair)).map(|(at, _)| at).collect();
    assert!(at_names.len() > 3, "logs are begun: {at_names:?}");
    for &at in &at_names {
        run_case(scenario, SEED, Plan::Twice { at, injection: Injection::Io, gap: 1 });
    }
    println!("{}: {} logs that stay", scenario.name, at_names.len());
}

#[cfg(test)]
mod tests;
