//! Each fake and each switch of the engine is found by the experiment that is named for it in
//! `testkit::mutants`: `laboratory experiments EXPERIMENT` with `FLAGSTONE_MUTANT=NAME` reports a
//! fault, in the words that are expected. That the experiments find nothing in the engine as it is,
//! their own tests show. Patches are held against the tree; `laboratory mutants` builds them.
//!
//! `FLAGSTONE_MUTANTS=SkipBlobSync,ForgetSnapshots` searches for these only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use flagstone::base::mutant;
use flagstone::env::{Env, IoMode};
use testkit::fakes;
use testkit::laboratory::EXPERIMENTS;
use testkit::mutants::{By, CAUGHT, Caught, FINDING, patches, search_all};

/// More places of the engine would be in a reader's way.
const SWITCHED_PLACES_MAX: usize = 30;

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

/// A mutant's name, and what it breaks.
fn fakes_and_switches() -> Vec<(&'static str, &'static str)> {
    let fakes = fakes::ALL.iter().map(|(_, name, meaning)| (*name, meaning.trim()));
    fakes.chain(mutant::ALL.iter().map(|(_, name, meaning)| (*name, meaning.trim()))).collect()
}

/// The table is complete, and the documentation holds the same.
#[test]
fn the_tables_agree() {
    let all = fakes_and_switches();
    for (name, _) in &all {
        let finders: Vec<_> =
            CAUGHT.iter().filter(|row| row.mutant == *name).map(|row| row.by).collect();
        assert!(!finders.is_empty(), "{name} has no row");
        let is_new = |(at, by): (usize, &By<'_>)| !finders[..at].contains(by);
        assert!(finders.iter().enumerate().all(is_new), "{name} has a row twice");
    }
    for row in CAUGHT {
        assert!(all.iter().any(|(name, _)| *name == row.mutant), "no mutant is called {row:?}");
        check_finder(row);
    }
    let document = include_str!("../../../docs/reliability.md");
    let is_mutant =
        |line: &&str| all.iter().any(|(name, _)| line.starts_with(&format!("| `{name}` |")));
    let written: Vec<&str> = document.lines().filter(is_mutant).collect();
    let expected: Vec<String> = all.iter().map(|(name, meaning)| line(name, meaning)).collect();
    assert_eq!(written, expected, "docs/reliability.md should have:\n{}", expected.join("\n"));
}

fn check_finder(row: &Caught<'_>) {
    match row.by {
        By::Experiment(name) => {
            let is_known = EXPERIMENTS.iter().any(|known| known.name == name);
            assert!(is_known, "{row:?}: there is no such experiment");
        }
        By::Story(name) => {
            let (file, story) = name.split_once("::").expect("a module and a function");
            let path = format!("crates/flagstone/tests/schedule/{file}.rs");
            let is_known = read(&root().join(path)).contains(&format!("fn {story}("));
            assert!(is_known, "{row:?}: there is no such story");
        }
    }
}

fn line(name: &str, meaning: &str) -> String {
    let rows = CAUGHT.iter().filter(|row| row.mutant == name);
    let by: Vec<_> = rows
        .map(|row| match row.by {
            By::Experiment(name) => format!("`{name}`"),
            By::Story(name) => format!("schedule `{name}`"),
        })
        .collect();
    format!("| `{name}` | {meaning} | {} |", by.join(", "))
}

/// A change of the engine may leave a patch without its place: it is then to be made again.
#[test]
fn every_patch_applies_and_says_what_finds_it() {
    let mut names: BTreeSet<String> =
        fakes_and_switches().iter().map(|(name, _)| name.to_string()).collect();
    let mut refused = Vec::new();
    for patch in patches() {
        assert!(names.insert(patch.name.clone()), "two mutants are called {}", patch.name);
        assert!(patch.breaks().ends_with('.'), "{}: not a sentence", patch.name);
        patch.caught().iter().for_each(check_finder);
        let mut git = Command::new("git");
        // In a folder of a repository git leaves out what a patch changes elsewhere.
        git.env("GIT_CEILING_DIRECTORIES", root().parent().expect("a folder above"));
        let checked = git
            .args(["apply", "--check"])
            .arg(&patch.path)
            .current_dir(root())
            .output()
            .expect("git can be run");
        if !checked.status.success() {
            refused.push(format!("{}: {}", patch.name, String::from_utf8_lossy(&checked.stderr)));
        }
    }
    assert!(refused.is_empty(), "patches that do not apply:\n{}", refused.join("\n"));
}

#[test]
fn switches_are_few() {
    let mut places = Vec::new();
    note_switches(&root().join("crates/flagstone/src"), &mut places);
    assert!(!places.is_empty() && places.len() <= SWITCHED_PLACES_MAX, "{places:#?}");
}

/// Notes the lines below a folder where a switch is asked for.
fn note_switches(folder: &Path, places: &mut Vec<String>) {
    for name in Env::os().fs.list(folder).expect("a folder of the engine") {
        let path = folder.join(name);
        if path.is_dir() {
            note_switches(&path, places);
        } else {
            let text = read(&path);
            let switched = text.lines().filter(|line| {
                line.contains("Mutant::")
                    && (line.contains(".is_on()") || line.contains(".breaks("))
            });
            places.extend(switched.map(|line| format!("{}: {}", path.display(), line.trim())));
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn read(path: &Path) -> String {
    let file =
        Env::os().fs.open_random_access(path, IoMode::Buffered).expect("a file of the repository");
    let mut bytes = Vec::new();
    file.read_onto(0, file.size().expect("its size") as usize, &mut bytes).expect("its bytes");
    String::from_utf8(bytes).expect("plain text")
}
