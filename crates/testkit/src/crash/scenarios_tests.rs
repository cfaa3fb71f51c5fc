//! The scenarios are enough of them, the same again for the same seed, and can be asked for.

use std::collections::BTreeSet;
use std::path::Path;

use flagstone::base::file_name::FileKind;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{FileSystem, IoMode};
use flagstone::manifest::{VersionEdit, dump};

use super::*;
use crate::crash::record::Change;

fn kind(path: &Path) -> &'static str {
    match path.file_name().and_then(|name| FileKind::parse(name.to_str()?)) {
        Some(FileKind::Wal(_)) => "WAL",
        Some(FileKind::Table(_)) => "table",
        Some(FileKind::Blob(_)) => "blob file",
        Some(FileKind::Manifest(_)) => "MANIFEST",
        Some(FileKind::Options(_)) => "OPTIONS",
        Some(FileKind::Temporary(_)) => "temporary",
        Some(FileKind::Current) => "CURRENT",
        Some(FileKind::Identity) => "IDENTITY",
        Some(FileKind::Owner) => "OWNER",
        _ => "other",
    }
}

/// What a MANIFEST edit does.
fn deeds(edit: &VersionEdit) -> Vec<&'static str> {
    let moves =
        |(_, number): &(usize, _)| edit.new_files.iter().any(|(_, file)| file.number == *number);
    let all = [
        ("identity", edit.db_id.is_some()),
        ("comparator", edit.comparator.is_some()),
        ("log number", edit.log_number.is_some()),
        ("next file number", edit.next_file_number.is_some()),
        ("last sequence", edit.last_sequence.is_some()),
        ("oldest WAL to keep", edit.min_log_number_to_keep.is_some()),
        ("largest family number", edit.max_column_family.is_some()),
        ("compaction cursor", !edit.compact_cursors.is_empty()),
        ("new table", !edit.new_files.is_empty()),
        ("deleted table", !edit.deleted_files.is_empty()),
        ("moved table", edit.deleted_files.iter().any(moves)),
        ("new blob file", !edit.blob_file_additions.is_empty()),
        ("blob garbage", !edit.blob_file_garbages.is_empty()),
        ("new family", edit.family_added.is_some()),
        ("dropped family", edit.family_dropped),
    ];
    all.iter().filter(|(_, does)| *does).map(|(deed, _)| *deed).collect()
}

#[test]
fn every_kind_of_file_and_of_edit_is_written() {
    let (mut kinds, mut done, mut removed) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    // Of encrypted files nothing is to be read from the changes.
    let is_plain = |scenario: &&Scenario| !scenario.settings.contains(&("encryption", "on"));
    for scenario in SCENARIOS.iter().filter(is_plain) {
        let (_, changes) = Life::live(scenario, 1).fs.recorded();
        let manifests = MemoryFileSystem::new();
        manifests.create_directory(Path::new("/")).unwrap();
        for change in &changes {
            match change {
                Change::Create { path, inode } | Change::Rename { target: path, inode, .. } => {
                    kinds.insert(kind(path));
                    if kind(path) == "MANIFEST" {
                        manifests
                            .create_writable(Path::new(&format!("/{inode}")), IoMode::Buffered)
                            .unwrap();
                    }
                }
                Change::Remove(path) => drop(removed.insert(kind(path))),
                Change::Link { target, .. } => drop(kinds.insert(kind(target))),
                Change::Write { inode, offset, data } => {
                    if let Ok(file) = manifests.reopen_writable(Path::new(&format!("/{inode}"))) {
                        file.write_at(*offset, data).unwrap();
                    }
                }
                _ => {}
            }
        }
        for (path, _) in manifests.files() {
            dump(&manifests, &path)
                .unwrap()
                .for_each(|(_, edit)| done.extend(deeds(&edit.unwrap())));
        }
    }
    let every = [
        "WAL",
        "table",
        "blob file",
        "MANIFEST",
        "OPTIONS",
        "temporary",
        "CURRENT",
        "IDENTITY",
        "OWNER",
    ];
    assert_eq!(kinds, every.into_iter().collect());
    // The temporary one asks whether there is direct I/O.
    let removable = ["WAL", "table", "blob file", "MANIFEST", "OPTIONS", "temporary"];
    assert_eq!(removed, removable.into_iter().collect());
    assert_eq!(done.len(), 15, "{done:?}");
}

#[test]
fn the_same_seed_makes_the_same_changes() {
    for scenario in SCENARIOS {
        if !Life::live(scenario, 3).is_repeatable {
            continue;
        }
        let tell = || {
            let fs = Life::live(scenario, 3).fs;
            (0..=fs.changes()).map(|at| fs.describe(at)).collect::<Vec<_>>()
        };
        assert_eq!(tell(), tell(), "{}", scenario.name);
    }
}

#[test]
fn all_scenarios_are_experiments() {
    for scenario in SCENARIOS {
        let name = format!("crashes-{}", scenario.name);
        assert!(crate::laboratory::EXPERIMENTS.iter().any(|known| known.name == name), "{name}");
    }
}
