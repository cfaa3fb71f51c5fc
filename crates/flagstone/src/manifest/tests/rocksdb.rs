//! Databases that RocksDB wrote.

use std::path::{Path, PathBuf};

use super::*;
use crate::env::IoMode;

fn fixtures() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/rocksdb-7.8")).to_path_buf()
}

/// Opens a database that RocksDB wrote, all families, without writing.
fn open_fixture(directory: &Path) -> VersionSet {
    let env = Env::os();
    let spec = |listing: FamilyListing| FamilySpec {
        name: listing.name,
        persists_timestamps: true,
        comparator: listing
            .comparator
            .map_or_else(Comparator::default, |name| Comparator::from_name(&name).unwrap()),
        paths: DataPaths::single(directory),
        num_levels: 7,
    };
    let families = list_column_families(&env, directory).unwrap().into_iter().map(spec).collect();
    let options =
        RecoverOptions { families, read_only: true, settings: ManifestSettings::default() };
    VersionSet::recover(env, directory, options).unwrap()
}

#[test]
fn databases_of_rocksdb_have_the_files_that_it_says() {
    let mut seen = 0;
    for name in Env::os().fs.list(&fixtures()).unwrap() {
        let Some(name) = name.strip_suffix(".expected.props") else { continue };
        let versions = open_fixture(&fixtures().join(name));
        check_files(&versions, &mut || {}).unwrap();
        let path = fixtures().join(format!("{name}.expected.props"));
        let props = String::from_utf8(read_file(&*Env::os().fs, &path, 1 << 16).unwrap()).unwrap();
        let rows = props.lines().skip(3).map(|line| line.split_whitespace().nth(1).unwrap());
        let expected: Vec<usize> = rows.map(|count| count.parse().unwrap()).collect();
        let version = &versions.family(DEFAULT).unwrap().current;
        let counts: Vec<_> = version.levels.iter().map(Vec::len).collect();
        assert_eq!(counts[..expected.len()], expected, "{name}");
        seen += 1;
    }
    assert!(seen >= 40, "{seen} fixtures");
}

#[test]
fn a_full_state_written_anew_says_the_same() {
    for name in ["cfs", "blob-gc", "universal"] {
        let source = open_fixture(&fixtures().join(name));
        let specs: Vec<_> = source
            .families()
            .map(|family| FamilySpec {
                name: family.name.clone(),
                comparator: family.comparator.user.clone(),
                persists_timestamps: true,
                paths: DataPaths::single(Path::new(DB)),
                num_levels: 7,
            })
            .collect();
        let options = || RecoverOptions { families: specs.clone(), ..options(&[]) };
        let env = Env::memory();
        env.fs.create_directory(Path::new(DB)).unwrap();
        let manifest = read_current(&*Env::os().fs, &source.directory).unwrap();
        let file_name = manifest.file_name().unwrap();
        for copied in [Path::new("CURRENT"), Path::new(file_name)] {
            let bytes = read_file(&*Env::os().fs, &source.directory.join(copied), 1 << 20).unwrap();
            env.fs
                .create_writable(&Path::new(DB).join(copied), IoMode::Buffered)
                .unwrap()
                .write_at(0, &bytes)
                .unwrap();
        }
        let mut versions = VersionSet::recover(env.clone(), Path::new(DB), options()).unwrap();
        versions.log_and_apply(vec![VersionEdit::default()]).unwrap();
        let reread = VersionSet::recover(env, Path::new(DB), options()).unwrap();
        for (a, b) in source.families().zip(reread.families()) {
            let files = |family: &Family| {
                family
                    .current
                    .files()
                    .map(|(level, file)| (level, file.meta.clone()))
                    .collect::<Vec<_>>()
            };
            let blobs = |family: &Family| {
                let state = |b: &BlobFileState| {
                    (b.file.meta.clone(), b.garbage_count, b.linked_tables.clone())
                };
                family.current.blob_files.values().map(state).collect::<Vec<_>>()
            };
            assert_eq!((files(a), blobs(a)), (files(b), blobs(b)), "{name}");
            assert_eq!((a.log_number, &a.compact_cursors), (b.log_number, &b.compact_cursors));
        }
        assert_eq!(reread.last_sequence(), source.last_sequence());
    }
}
