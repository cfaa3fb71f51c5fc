//! `stress`, a little of it: that it runs through, and that it does find faults.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Few keys, so that they are written often; short rounds, so that there are many.
const SMALL: &str = "--threads 3 --keys 300 --value-size 4K --round-time 700ms --json";

/// In memory, if that is possible: what dies with a process does not depend on syncs, which cost
/// most of the time.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

fn command(work: &Path, line: &str, mutant: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stress"));
    command.args(SMALL.split_whitespace()).args(line.split_whitespace());
    command.arg("--work").arg(work).env_remove("FLAGSTONE_MUTANT");
    if let Some(mutant) = mutant {
        command.env("FLAGSTONE_MUTANT", mutant);
    }
    command
}

fn stress(work: &Path, line: &str, mutant: Option<&str>) -> Output {
    command(work, line, mutant).output().unwrap()
}

fn summary(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// What a run that must be sound did.
fn sound(line: &str) -> serde_json::Value {
    let scratch = scratch();
    let output = stress(scratch.path(), line, None);
    let done = summary(&output);
    assert!(done["failure"].is_null(), "{:#}", done["failure"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(scratch.path().read_dir().unwrap().next().is_none(), "nothing is left");
    done
}

#[test]
fn processes_are_killed_and_nothing_acknowledged_is_lost() {
    let done = sound("--seed 11 --rounds 7 --memory-limit 512M");
    let count = |name: &str| done["counts"][name].as_u64().unwrap_or(0);
    assert_eq!(count("rounds"), 7);
    assert!(count("kills") >= 3 && count("clean closes") >= 2, "{done:#}");
    assert_eq!(count("kills") + count("clean closes"), 7);
    assert!(count("keys verified after opening") >= 4 * 3 * 300, "{done:#}");
    assert!(done["operations"]["put"].as_u64() > Some(0), "{done:#}");
}

/// Whether writers go on before their process is killed is a matter of moments, so there are
/// several tries to see it.
#[test]
fn a_full_disk_is_survived_and_resumed_from() {
    let is_resumed_from = (5..25).any(|seed| {
        let done = sound(&format!("--seed {seed} --rounds 4 --disk-limit 600K --referee never"));
        let count = |name: &str| done["counts"][name].as_u64().unwrap_or(0);
        count("operations that found the disk full") > 0 && count("full disks resumed from") > 0
    });
    assert!(is_resumed_from, "no writer went on after the disk had been full in 20 runs");
}

/// Each of these loses or brings back something when a process is killed, or shows what nobody may
/// see.
#[test]
fn broken_engines_are_found_and_the_round_is_kept() {
    for mutant in ["LogNumberTooHigh", "ForgetOneEdit", "SearchOldestFirst"] {
        let scratch = scratch();
        let output = stress(scratch.path(), "--seed 7 --rounds 300 --referee never", Some(mutant));
        let failure = &summary(&output)["failure"];
        assert_eq!(output.status.code(), Some(1), "{mutant}: {output:?}");
        assert!(!failure["fault"]["found"].as_str().unwrap().is_empty(), "{mutant}: {failure:#}");
        let again = failure["repeat"].as_str().unwrap();
        let round = failure["round"].as_u64().unwrap();
        assert!(
            again.contains("--seed 7 ") && again.ends_with(&format!(" --repeat {round}")),
            "{again}"
        );
        for kept in failure["kept"].as_object().unwrap().values() {
            assert!(Path::new(kept.as_str().unwrap()).exists(), "{mutant}: {kept}");
        }
    }
}

/// The process that kept a log was gone: a run that had found a fault ended as one that had not.
#[test]
fn a_fault_keeps_its_exit_code_where_nobody_reads_of_it() {
    let scratch = scratch();
    let mut command =
        command(scratch.path(), "--seed 7 --rounds 300 --referee never", Some("SearchOldestFirst"));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

/// What a process that was killed had left does not open: the same is found again, from the files
/// that were kept.
#[test]
fn a_failed_round_is_repeated() {
    // It may be found earlier, in the process that goes wrong, and is then not there for a sound
    // engine.
    let is_repeated = (0..10).any(|seed| {
        let scratch = scratch();
        let line = format!("--seed {seed} --referee never");
        let output = stress(scratch.path(), &format!("{line} --rounds 300"), Some("ForgetOneEdit"));
        let first = &summary(&output)["failure"];
        if first["fault"]["place"] != "the opening of the database" {
            return false;
        }
        let output = stress(scratch.path(), &format!("{line} --repeat {}", first["round"]), None);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(summary(&output)["failure"]["fault"], first["fault"]);
        true
    });
    assert!(is_repeated);
}

#[test]
fn a_directory_with_something_in_it_is_left_alone() {
    let scratch = scratch();
    let (directory, work) = (scratch.path().join("mine"), scratch.path().join("work"));
    std::fs::create_dir(&directory).unwrap();
    std::fs::create_dir(directory.join("db")).unwrap();
    let output = stress(&work, &format!("--rounds 1 --dir {}", directory.display()), None);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(directory.join("db").exists());
    // Whoever named what is none read the number of the system's error.
    let file = work.join("flagstone-stress");
    let output = stress(&work, &format!("--rounds 1 --dir {}/below", file.display()), None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot use the directory: Not a directory"), "{said}");
}
