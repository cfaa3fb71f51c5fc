//! Tables that RocksDB wrote are read exactly, in both directions.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{Comparator, InternalIterator, InternalKeyBuf};
use crate::env::{Env, IoMode};
use crate::sst::{
    IterSettings, ReadSettings, Table, TableIterator, TableReadSettings, read_table_properties,
};

type Entries = Vec<(InternalKeyBuf, Vec<u8>)>;

fn tables_in(env: &Env, directory: &Path, found: &mut Vec<PathBuf>) {
    for name in env.fs.list(directory).unwrap() {
        let path = directory.join(&name);
        let metadata = env.fs.metadata(&path).unwrap();
        if metadata.is_directory {
            tables_in(env, &path, found);
        } else if name.ends_with(".sst") && metadata.size > 0 {
            found.push(path);
        }
    }
    found.sort();
}

pub(super) fn open(path: &Path, settings: TableReadSettings) -> Arc<Table> {
    let file = Env::os().fs.open_random_access(path, IoMode::Buffered).unwrap();
    let size = file.size().unwrap();
    let properties = read_table_properties(file.clone(), size).unwrap();
    let comparator = Comparator::from_name(&properties.comparator).unwrap();
    Table::open(file, size, TableReadSettings { comparator, ..settings }).unwrap()
}

pub(super) fn forward(iter: &mut TableIterator) -> Entries {
    let mut entries = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        entries.push((iter.key().to_buf(), iter.value().to_vec()));
        iter.next();
    }
    iter.status().unwrap();
    entries
}

fn backward(iter: &mut TableIterator) -> Entries {
    let mut entries = Vec::new();
    iter.seek_to_last();
    while iter.valid() {
        entries.push((iter.key().to_buf(), iter.value().to_vec()));
        iter.prev();
    }
    iter.status().unwrap();
    entries.reverse();
    entries
}

/// Every way of reading a table gives the same entries.
pub(super) fn check_whole(table: &Arc<Table>) -> Entries {
    let mut iter = table.iter(IterSettings::default());
    let entries = forward(&mut iter);
    assert!(entries == backward(&mut iter), "{table:?}: backward differs");
    let properties = table.properties();
    assert_eq!(entries.len() as u64, properties.num_entries - properties.num_range_deletions);
    let mut faults = Vec::new();
    assert!(table.verify(&mut |fault| faults.push(fault)), "{faults:?}");
    let step = entries.len() / 300 + 1;
    for (at, (key, value)) in entries.iter().enumerate().step_by(step) {
        iter.seek(key.as_key());
        assert!(
            iter.valid() && iter.key() == key.as_key() && iter.value() == value,
            "{table:?}: seek {key:?}"
        );
        iter.seek_for_prev(key.as_key());
        assert!(iter.valid() && iter.key() == key.as_key(), "{table:?}: seek_for_prev {key:?}");
        let mut found = None;
        let sought = InternalKeyBuf::for_seek(key.user_key(), key.as_key().sequence());
        table
            .get(sought.as_key(), &ReadSettings::default(), |sequence, kind, value| {
                found = Some((
                    InternalKeyBuf::new(key.user_key(), sequence, kind),
                    value.bytes().to_vec(),
                ));
                Ok(ControlFlow::Break(()))
            })
            .unwrap();
        assert_eq!(found, Some(entries[at].clone()), "{table:?}: get {key:?}");
    }
    entries
}

fn read_all(directory: &Path) -> usize {
    let mut paths = Vec::new();
    tables_in(&Env::os(), directory, &mut paths);
    for path in &paths {
        check_whole(&open(path, TableReadSettings::default()));
    }
    paths.len()
}

#[test]
fn tables_of_rocksdb_7_8_are_read_exactly() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8");
    let only = std::env::var("ONLY_FIXTURE").unwrap_or_default();
    assert!(read_all(&directory.join(only)) > 0);
}

/// Went wrong: a table with a dictionary by RocksDB 11.8, which counts no block that it holds back
/// until the dictionary is made, was damaged to whoever verified it.
#[test]
fn a_table_of_rocksdb_11_8_may_count_fewer_blocks_than_it_has() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-11.8/dictionary.sst");
    let table = open(&path, TableReadSettings::default());
    assert_eq!(table.properties().num_data_blocks, 0);
    assert!(!check_whole(&table).is_empty());
}

/// For fixtures kept outside the repository: `TABLE_FIXTURES=directory cargo test -- --ignored`.
#[test]
#[ignore = "needs TABLE_FIXTURES"]
fn tables_of_a_given_directory_are_read_exactly() {
    let directory = std::env::var("TABLE_FIXTURES").expect("TABLE_FIXTURES names a directory");
    assert!(read_all(Path::new(&directory)) > 0);
}
