//! What the engine's integration tests share.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

use std::io::Write;
use std::path::{Path, PathBuf};

use flagstone::base::{FileNumber, checksum};
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::{Env, IoMode};
use flagstone::manifest::{VersionEdit, read_current};
use flagstone::options::{self, ColumnFamilyOptions, Options, ReadOptions};
use flagstone::wal::{Event, Reader, Writer, WriterOptions};

/// A directory that is removed at the end of the test.
pub fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Options that make a new database.
pub fn create() -> Options {
    let mut options = Options::default();
    options.db.create_if_missing = true;
    options
}

/// Opens a database with the components and settings that its OPTIONS file names.
pub fn open_as_written(path: &Path, read_only: bool) -> Db {
    let mut base = Options::default();
    let loaded = options::load_latest(&base.env, path).expect("a readable OPTIONS file");
    let names = Db::list_column_families(path, &base).expect("a database");
    let families: Vec<(String, ColumnFamilyOptions)> = names
        .into_iter()
        .map(|name| {
            let known = loaded.as_ref().and_then(|loaded| loaded.family(&name)).cloned();
            (name, known.unwrap_or_default())
        })
        .collect();
    if let Some(loaded) = loaded {
        base = loaded.options;
    }
    let listed: Vec<(&str, ColumnFamilyOptions)> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    let opened = if read_only {
        Db::open_read_only_with_families(path, &base, &listed)
    } else {
        Db::open_with_families(path, &base, &listed)
    };
    opened.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The records of the MANIFEST of the database in `/db`.
pub fn manifest_records(env: &Env) -> Vec<Vec<u8>> {
    records_of(&read_current(&*env.fs, Path::new("/db")).expect("a MANIFEST"), env)
}

fn records_of(manifest: &Path, env: &Env) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(
        env.fs.open_random_access(manifest, IoMode::Buffered).expect("a file"),
        FileNumber(0),
    );
    let mut records = Vec::new();
    loop {
        match reader.next_event().expect("a readable file") {
            Event::Record(record) => records.push(record.to_vec()),
            Event::End => return records,
            Event::Damage(damage) => panic!("{damage:?}"),
        }
    }
}

/// The physical record of a WAL that says that keys of this family end in timestamps of so many
/// bytes.
pub fn timestamp_sizes(family: u32, size: u16) -> Vec<u8> {
    let record = [&[10][..], &family.to_le_bytes(), &size.to_le_bytes()].concat();
    let crc = checksum::mask(checksum::crc32c(&record));
    [&crc.to_le_bytes()[..], &6u16.to_le_bytes(), &record].concat()
}

/// Bytes that the process has of its own in memory, counted page by page. (`RssAnon` in `status` is
/// put together of what each processor has counted so far: before Linux 6.16 it may be off by
/// megabytes where there are many.)
pub fn resident() -> usize {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").expect("a kernel that tells");
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"))
        .expect("a kernel that tells");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

/// Whether what is not touched takes no memory; otherwise a visible word says that the test was
/// skipped.
pub fn pages_are_small() -> bool {
    // A kernel that has no huge pages has no such file.
    let mode =
        std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let are_small = !mode.contains("[always]");
    if !are_small {
        let word = b"SKIPPED: the kernel makes huge pages unasked, of which megabytes stay for a few bytes\n";
        std::io::stderr().write_all(word).expect("stderr is open");
    }
    are_small
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All entries of a database in the form of the fixtures' `.expected` files.
pub fn dump(db: &Db) -> String {
    db.column_families().iter().map(|family| dump_family(db, family)).collect()
}

pub fn dump_family(db: &Db, family: &ColumnFamily) -> String {
    let mut text = String::new();
    for (key, value) in entries(db, family) {
        text.push_str(&format!("{} {} {}\n", family.name(), hex(&key), hex(&value)));
    }
    text
}

/// All entries of a family, forwards.
pub fn entries(db: &Db, family: &ColumnFamily) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut iter = db.iter_cf(family, &ReadOptions::default()).expect("an iterator");
    let mut found = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        let value = iter.value().expect("a value").to_vec();
        found.push((iter.key().to_vec(), value));
        iter.next();
    }
    iter.status().expect("no error");
    found
}

/// All entries of a family, backwards, then turned round.
pub fn entries_backwards(db: &Db, family: &ColumnFamily) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut iter = db.iter_cf(family, &ReadOptions::default()).expect("an iterator");
    let mut found = Vec::new();
    iter.seek_to_last();
    while iter.valid() {
        let value = iter.value().expect("a value").to_vec();
        found.push((iter.key().to_vec(), value));
        iter.prev();
    }
    iter.status().expect("no error");
    found.reverse();
    found
}

/// Writes one more edit to the MANIFEST of the database in `/db`, which is not open.
pub fn add_to_manifest(env: &Env, edit: &VersionEdit) {
    add_to_manifest_of(Path::new("/db"), env, edit);
}

/// Writes one more edit to the MANIFEST of the database in this directory, which is not open.
pub fn add_to_manifest_of(directory: &Path, env: &Env, edit: &VersionEdit) {
    let mut encoded = Vec::new();
    edit.encode(&mut encoded);
    add_record(directory, env, encoded);
}

/// Writes one more edit to the MANIFEST of the database in `/db`, which is not open; it is encoded
/// already.
pub fn add_record_to_manifest(env: &Env, edit: Vec<u8>) {
    add_record(Path::new("/db"), env, edit);
}

fn add_record(directory: &Path, env: &Env, edit: Vec<u8>) {
    let path = read_current(&*env.fs, directory).expect("a MANIFEST");
    let mut records = records_of(&path, env);
    records.push(edit);
    let file = env.fs.create_writable(&path, IoMode::Buffered).expect("a file");
    let mut writer = Writer::new(file, FileNumber(0), WriterOptions::default()).expect("a log");
    records.iter().for_each(|record| writer.add_record(record).expect("room"));
}

/// Copies a directory of plain files.
pub fn copy_directory(source: &Path, target: &Path) {
    std::fs::create_dir_all(target).expect("a directory");
    for entry in std::fs::read_dir(source).expect("a directory") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), target.join(entry.file_name())).expect("a copy");
    }
}

/// The databases written by RocksDB 7.8.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8")
}

/// RocksDB's tools, or `None` with a visible word that the test was skipped.
///
/// Where `FLAGSTONE_REQUIRE_REFEREE` is set, their absence is a failure.
pub fn referee() -> Option<Referee> {
    let found = testkit::Referee::find().map(Referee);
    if found.is_none() {
        assert!(
            std::env::var_os("FLAGSTONE_REQUIRE_REFEREE").is_none(),
            "ldb and sst_dump are required: install rocksdb-tools"
        );
        // Not by eprintln, whose output is kept back where a test passes.
        let word = b"SKIPPED: ldb and sst_dump are not installed (Debian package rocksdb-tools)\n";
        std::io::stderr().write_all(word).expect("stderr is open");
    }
    found
}

/// RocksDB's own tools; what they do not like fails the test.
pub struct Referee(testkit::Referee);

impl Referee {
    pub fn ldb(&self, db: &Path, arguments: &[&str]) -> String {
        self.0.ldb(db, arguments).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn ldb_ttl(&self, db: &Path, arguments: &[&str]) -> String {
        self.0.ldb_ttl(db, arguments).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn verify_tables(&self, db: &Path) -> usize {
        self.0.verify_tables(db).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn table_properties(&self, db: &Path) -> String {
        self.0.table_properties(db).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn scan(&self, db: &Path, family: &str) -> String {
        self.0.scan(db, family).unwrap_or_else(|error| panic!("{error}"))
    }

    /// See [`testkit::crash::compare_with_rocksdb`].
    pub fn compare_states(&self, scenario: &str, seed: u64, count: usize) -> usize {
        testkit::crash::compare_with_rocksdb(&self.0, scenario, seed, count)
    }
}

/// The newest of batches that are numbered from 1 on; 0 if there is none. Each puts its number, as
/// text, as `last` and as one of 60 keys, into `default` and into `blue`.
///
/// # Panics
/// When the state is not one that there was between two of them.
pub fn newest_batch(state: &Db) -> u64 {
    let blue = state.column_family("blue").expect("family 'blue'");
    let number_in = |family: &ColumnFamily, key: &str| {
        let value = state.get_cf(family, key).expect("a lookup");
        value.map_or(0, |value| {
            let text = std::str::from_utf8(&value).expect("a text");
            text.parse::<u64>().expect("a number")
        })
    };
    let default = state.default_column_family();
    let newest = number_in(default, "last");
    assert_eq!(number_in(&blue, "last"), newest);
    for back in 0..60.min(newest) {
        let number = newest - back;
        let key = format!("key{}", number % 60);
        assert_eq!(number_in(default, &key), number);
        assert_eq!(number_in(&blue, &key), number);
    }
    newest
}
