//! Databases rebuilt from what is left of them.

mod common;

use std::path::Path;

use common::*;
use flagstone::db::{SalvageReport, salvage};
use flagstone::env::Env;
use flagstone::options::{self, ColumnFamilyOptions, Options};

/// Rebuilds `source` in `target`, with its own options as far as they can be read.
fn rebuild(source: &Path, target: &Path) -> SalvageReport {
    let env = Env::os();
    let loaded = options::load_latest(&env, source).ok().flatten();
    let families = loaded.as_ref().map(|loaded| loaded.families.clone()).unwrap_or_default();
    let options = loaded.map(|loaded| loaded.options).unwrap_or_default();
    rebuild_with(source, target, &options, &families)
}

fn rebuild_with(
    source: &Path,
    target: &Path,
    options: &Options,
    families: &[(String, ColumnFamilyOptions)],
) -> SalvageReport {
    let listed: Vec<(&str, ColumnFamilyOptions)> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    salvage(source, target, options, &listed, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"))
}

fn remove(directory: &Path, unwanted: impl Fn(&str) -> bool) {
    let fs = Env::os().fs;
    for name in fs.list(directory).expect("a directory").into_iter().filter(|name| unwanted(name)) {
        fs.remove(&directory.join(name)).expect("a file");
    }
}

fn fixture_names() -> Vec<String> {
    let names = Env::os().fs.list(&fixtures()).expect("the fixtures");
    names.iter().filter_map(|name| name.strip_suffix(".expected")).map(str::to_string).collect()
}

#[test]
fn a_healthy_database_comes_out_the_same() {
    for name in fixture_names() {
        let scratch = temporary();
        let source = fixtures().join(&name);
        let target = scratch.path().join("db");
        let report = rebuild(&source, &target);
        assert!(report.is_complete(), "{name}: {:?} {:?}", report.losses, report.lost_values);
        assert!(report.harmless.is_empty(), "{name}: {:?}", report.harmless);
        let (old, new) = (open_as_written(&source, true), open_as_written(&target, false));
        assert_eq!(dump(&old), dump(&new), "{name}");
        assert!(new.verify(|_| {}).faults.is_empty(), "{name}");
    }
}

#[test]
fn without_manifest_current_and_options_all_records_come_out() {
    for name in fixture_names() {
        let scratch = temporary();
        let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
        copy_directory(&fixtures().join(&name), &source);
        let loaded = options::load_latest(&Env::os(), &source).expect("a readable file");
        let needs_options = loaded
            .is_some_and(|loaded| loaded.families.iter().any(|(_, family)| family.merge_operator.is_some()));
        remove(&source, |file| {
            file.starts_with("MANIFEST")
                || file == "CURRENT"
                || (file.starts_with("OPTIONS") && !needs_options)
        });
        let report = rebuild(&source, &target);
        // One fixture has a table that was never begun; the MANIFEST alone could tell.
        let is_empty = |path: Option<&Path>| {
            path.is_some_and(|path| std::fs::metadata(path).is_ok_and(|file| file.len() == 0))
        };
        let losses: Vec<_> = report.losses.iter().filter(|loss| !is_empty(loss.error.path())).collect();
        assert!(
            losses.is_empty() && report.lost_values.is_empty(),
            "{name}: {losses:?} {:?}",
            report.lost_values
        );
        let old = open_as_written(&fixtures().join(&name), true);
        let new = open_as_written(&target, false);
        // Of a family that has nothing, the MANIFEST alone knew; and the order of creation.
        let lines = |text: String| {
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(dump(&old)), lines(dump(&new)), "{name}");
    }
}
