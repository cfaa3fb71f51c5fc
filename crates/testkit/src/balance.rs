//! The books balance: once nobody reads, and nothing is left to be done, every account of a
//! database is at zero or at what is there. Called at the end of lives, whatever they consisted of.
//!
//! - Memory, of a database that was closed, so that no thread is about to give some back: nothing
//!   is held for readers, writers and jobs that are gone; as many tables are open as there are, at
//!   most.
//! - Pins and versions: no snapshot, no iterator, one version of each family.
//! - Space: what is said of files is what the directories hold, and nothing lies there that nothing
//!   names.
//! - Tables: they hold as many entries, deletions and range deletions as their properties and the
//!   MANIFEST say.
//! - Blob files: as garbage counts exactly what no table refers to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flagstone::base::file_name::FileKind;
use flagstone::base::{FileNumber, InternalIterator, ValueType};
use flagstone::blob::{BlobIndex, FOOTER_SIZE, HEADER_SIZE, visit_references};
use flagstone::db::{ColumnFamily, Db, LiveFile, MemoryUsage, TwoPhase};
use flagstone::env::{Env, IoMode};
use flagstone::options::{ColumnFamilyOptions, Options};
use flagstone::sst::{IterSettings, Table, TableReadSettings};

/// Looks at an open database that nobody reads from or writes to, once its background work is done.
///
/// # Panics
/// If an account is off.
pub fn check_open(env: &Env, db: &Db) {
    db.wait_for_compactions().expect("an end of the work");
    let pins = db.pins(1);
    assert_eq!((pins.num_snapshots, pins.num_iterators), (0, 0), "nobody reads:\n{pins}");
    let live = db.live_files();
    for family in db.column_families() {
        check_properties(db, &family, &live);
        check_entries(env, &family, &live);
    }
    let report = db.check().expect("a listing");
    assert!(report.faults.is_empty(), "files are not what the MANIFEST says: {:?}", report.faults);
    assert!(
        report.strays.is_empty(),
        "nothing names them, and they are there: {:?}",
        report.strays
    );
}

/// Closes the database, of which nobody has another handle, and looks at what is left of it.
/// `directories` are those in which it may have files.
///
/// # Panics
/// If an account is off, or the database cannot be closed.
pub fn close(db: Db, directories: &[PathBuf]) {
    let env = db.options().env.clone();
    db.close().expect("a clean close");
    let usage = db.memory_usage();
    check_memory(&db, &usage);
    let live = db.live_files();
    let needed =
        db.int_property(db.default_column_family(), "rocksdb.min-log-number-to-keep").unwrap_or(0);
    let archives = db.options().WAL_ttl_seconds > 0 || db.options().WAL_size_limit_MB > 0;
    drop(db);
    let mut count = Count::default();
    for directory in directories {
        // One that was never needed was never made.
        for name in env.fs.list(directory).unwrap_or_default() {
            count.add(&directory.join(&name), FileKind::parse(&name), &live, needed, archives);
        }
    }
    assert!(count.strays.is_empty(), "nothing names them, and they are there: {:?}", count.strays);
    assert!(
        count.manifests <= 1 && count.options <= 2,
        "{} MANIFESTs, {} OPTIONS files",
        count.manifests,
        count.options
    );
}

/// The directories in which a database with these options may have files.
pub fn directories<'a>(
    path: &Path,
    options: &Options,
    families: impl Iterator<Item = &'a ColumnFamilyOptions>,
) -> Vec<PathBuf> {
    let own = [path.to_path_buf(), PathBuf::from(&options.wal_dir)];
    let of_families = families.flat_map(|family| &family.cf_paths.0);
    let others =
        options.db_paths.0.iter().chain(of_families).map(|other| PathBuf::from(&other.path.0));
    let all = own.into_iter().chain(others).filter(|directory| !directory.as_os_str().is_empty());
    let mut directories: Vec<_> = all.collect();
    directories.sort();
    directories.dedup();
    directories
}

fn check_memory(db: &Db, usage: &MemoryUsage) {
    let prepared = TwoPhase::of(db).prepared();
    let in_memory: usize = prepared.iter().map(|one| one.operations().byte_size()).sum();
    // What is prepared stays there, with its names.
    let is_theirs = usage.writes >= in_memory as u64 && !prepared.is_empty();
    let zeros = [
        ("kept memtables", usage.kept_memtables),
        ("kept versions", usage.kept_versions),
        ("kept blocks", usage.kept_blocks),
        ("jobs", usage.jobs),
        ("writes", if is_theirs { 0 } else { usage.writes }),
        ("values", usage.values),
        ("log records", usage.wal_buffers),
        ("cursors", usage.cursors + usage.open_cursors),
        ("pinned blocks", usage.cache.pinned),
        ("pinned blobs", usage.blob_cache.pinned),
    ];
    for (what, bytes) in zeros {
        assert_eq!(bytes, 0, "{what}: nobody reads, and nothing is being done:\n{usage}");
    }
    assert!(usage.oldest_snapshot.is_none(), "{usage}");
    let tables = db.live_files().iter().filter(|file| file.level.is_some()).count() as u64;
    assert!(usage.open_tables <= tables, "{tables} tables are there:\n{usage}");
    assert!(usage.open_tables > 0 || usage.tables == 0, "no table is open:\n{usage}");
    assert!(usage.tables >= usage.table_indexes + usage.table_filters, "{usage}");
}

fn check_properties(db: &Db, family: &ColumnFamily, live: &[LiveFile]) {
    let of_family = || live.iter().filter(|file| file.column_family == family.name());
    let table_bytes: u64 =
        of_family().filter(|file| file.level.is_some()).map(|file| file.size).sum();
    let blobs: Vec<_> = of_family().filter(|file| file.level.is_none()).collect();
    let blob_bytes: u64 =
        blobs.iter().map(|file| file.size + (HEADER_SIZE + FOOTER_SIZE) as u64).sum();
    let garbage: u64 = blobs.iter().map(|file| file.garbage_bytes).sum();
    let expected = [
        ("rocksdb.num-live-versions", 1),
        ("rocksdb.num-snapshots", 0),
        ("rocksdb.num-running-flushes", 0),
        ("rocksdb.num-running-compactions", 0),
        ("rocksdb.num-running-compaction-sorted-runs", 0),
        ("rocksdb.obsolete-sst-files-size", 0),
        ("rocksdb.is-file-deletions-enabled", 1),
        ("rocksdb.live-sst-files-size", table_bytes),
        ("rocksdb.total-sst-files-size", table_bytes),
        ("rocksdb.num-blob-files", blobs.len() as u64),
    ];
    for (name, value) in expected {
        assert_eq!(
            db.int_property(family, name),
            Some(value),
            "{name} of family {}",
            family.name()
        );
    }
    // Holes lie in garbage, and take no space.
    let names = ["live-blob-file-size", "total-blob-file-size", "live-blob-file-garbage-size"];
    let said =
        names.map(|name| db.int_property(family, &format!("rocksdb.{name}")).expect("a figure"));
    let holes = blob_bytes.checked_sub(said[0]);
    assert!(
        said[0] == said[1] && holes.is_some_and(|holes| holes + said[2] == garbage),
        "blob files of family {} have {blob_bytes} bytes with {garbage} of garbage, and {names:?} are {said:?}",
        family.name()
    );
}

/// Reads all tables of a family: what they say of themselves, and what they refer to.
fn check_entries(env: &Env, family: &ColumnFamily, live: &[LiveFile]) {
    let mut referred: BTreeMap<FileNumber, u64> = BTreeMap::new();
    let of_family = || live.iter().filter(|file| file.column_family == family.name());
    for file in of_family().filter(|file| file.level.is_some()) {
        let opened = env.fs.open_random_access(&file.path, IoMode::Buffered).expect("a table");
        let comparator = family.options().comparator.clone();
        let settings = TableReadSettings { comparator, ..TableReadSettings::default() };
        let table = Table::open(opened, file.size, settings).expect("a table");
        let (mut entries, mut deletions) = (0, 0);
        let mut cursor = table.iter(IterSettings::default());
        cursor.seek_to_first();
        while cursor.valid() {
            entries += 1;
            let kind = cursor.key().value_type();
            deletions += u64::from(matches!(
                kind,
                Some(
                    ValueType::Deletion
                        | ValueType::SingleDeletion
                        | ValueType::DeletionWithTimestamp
                )
            ));
            let count = |index: BlobIndex| {
                *referred.entry(index.file).or_default() +=
                    index.record_bytes(cursor.key().user_key().len());
                Ok(())
            };
            visit_references(kind, cursor.value(), count).expect("blobs that can be read");
            cursor.next();
        }
        cursor.status().expect("a sound table");
        check_counts(file, &table, entries, deletions);
    }
    for blob in of_family().filter(|file| file.level.is_none()) {
        let found = referred.remove(&blob.number).unwrap_or(0);
        assert_eq!(
            blob.size - blob.garbage_bytes,
            found,
            "{}: what counts as live is on the left, what tables refer to is on the right",
            blob.path.display()
        );
    }
    assert!(referred.is_empty(), "tables refer to blob files that are gone: {referred:?}");
}

fn check_counts(file: &LiveFile, table: &Table, entries: u64, deletions: u64) {
    let properties = table.properties();
    let said = (properties.num_entries, properties.num_deletions);
    let ranges = properties.num_range_deletions;
    let path = file.path.display();
    let found = (entries + ranges, deletions + ranges);
    assert_eq!(
        said, found,
        "{path}: entries and deletions as its properties count them, and as they are"
    );
    if let Some((entries, _)) = file.entries {
        assert_eq!(entries, said.0, "{path}: entries as the MANIFEST counts them, and as they are");
    }
}

/// The files that are there when the database is not open.
#[derive(Default)]
struct Count {
    strays: Vec<PathBuf>,
    manifests: usize,
    options: usize,
}

impl Count {
    fn add(
        &mut self,
        path: &Path,
        kind: Option<FileKind>,
        live: &[LiveFile],
        needed: u64,
        archives: bool,
    ) {
        let is_stray = match kind {
            Some(FileKind::Table(number) | FileKind::Blob(number)) => {
                live.iter().all(|file| file.number != number)
            }
            Some(FileKind::Wal(number)) => number.0 < needed && !archives,
            Some(FileKind::Temporary(_)) => true,
            Some(FileKind::Manifest(_)) => {
                self.manifests += 1;
                false
            }
            Some(FileKind::Options(_)) => {
                self.options += 1;
                false
            }
            _ => false,
        };
        if is_stray {
            self.strays.push(path.to_path_buf());
        }
    }
}
