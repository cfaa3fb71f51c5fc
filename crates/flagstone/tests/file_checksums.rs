//! Checksums of whole files in the MANIFEST: of what writes files, and of what compares them.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use common::{create, dump, open_as_written, referee, temporary};
use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
use flagstone::base::checksum::crc32c;
use flagstone::base::{Code, FileChecksum, FileChecksumFactory, FileChecksumGenerator};
use flagstone::db::{Db, LiveFile};
use flagstone::ingest::{SstFileWriter, SstFileWriterOptions};
use flagstone::options::{FileChecksumGenFactory, IngestExternalFileOptions, Options};

/// Tables and blob files, compacted only on request.
fn options() -> Options {
    let mut options = create();
    options.file_checksum_gen_factory = FileChecksumGenFactory::Crc32c;
    options.cf.disable_auto_compactions = true;
    options.cf.enable_blob_files = Some(true);
    options.cf.min_blob_size = Some(1000);
    options
}

fn fill(db: &Db, round: u32) {
    for number in 0..50 {
        db.put(format!("small {number}"), format!("{round}")).expect("a put");
        db.put(format!("large {number}"), vec![b'x'; 2000 + round as usize]).expect("a put");
    }
    db.flush_all().expect("a flush");
}

/// The files of the database, each of which has the CRC32C that the MANIFEST says.
fn summed(db: &Db) -> Vec<LiveFile> {
    let files = db.live_files();
    for file in &files {
        let bytes = fs::read(&file.path).expect("a live file");
        let found = FileChecksum::crc32c(crc32c(&bytes));
        assert_eq!(file.checksum, Some(found), "{}", file.path.display());
    }
    files
}

/// Turns one bit around in the middle of a file.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).expect("the file");
    // Behind a blob file's header, and in a table's first block, not in its properties.
    let place = bytes.len() / 5;
    bytes[place] ^= 1;
    fs::write(path, bytes).expect("a write");
}

#[test]
fn every_new_file_has_one() {
    for (name, value) in [
        ("blob_write_mode", "flush"),
        ("blob_write_mode", "commit"),
        ("use_direct_io_for_flush_and_compaction", "true"),
        ("max_subcompactions", "3"),
    ] {
        let directory = tempfile::tempdir_in(".").expect("a directory");
        let path = directory.path().join("db");
        let mut options = options();
        options.set(name, value).expect("a setting");
        let db = Db::open(&path, &options).expect("a database");
        fill(&db, 1);
        fill(&db, 2);
        assert!(summed(&db).len() >= 4, "{name}={value}");
        let family = db.default_column_family();
        db.compact_range(family, None, None, &Default::default()).expect("a compaction");
        assert!(summed(&db).iter().any(|file| file.level > Some(0)), "{name}={value}");
        db.put("in the WAL", vec![b'y'; 3000]).expect("a put");
        db.sync_wal().expect("a sync");
        drop(db);
        let db = Db::open(&path, &options).expect("a database");
        summed(&db);
        db.verify_file_checksums().expect("sound files");
        assert!(db.verify(|_| {}).faults.is_empty());
    }
}

#[test]
fn a_database_without_the_option_has_none() {
    let directory = temporary();
    let mut options = options();
    options.file_checksum_gen_factory = FileChecksumGenFactory::None;
    let db = Db::open(directory.path().join("db"), &options).expect("a database");
    fill(&db, 1);
    assert!(db.live_files().iter().all(|file| file.checksum.is_none()));
    db.verify_file_checksums().expect("nothing to compare");
}

#[test]
fn another_file_is_found_by_each_that_compares() {
    for kind in ["sst", "blob"] {
        let directory = temporary();
        let path = directory.path().join("db");
        let db = Db::open(&path, &options()).expect("a database");
        fill(&db, 1);
        let files = db.live_files();
        let victim = files.iter().find(|file| file.path.extension().is_some_and(|end| end == kind));
        let victim = victim.expect("a file of each kind").path.clone();
        let backups = directory.path().join("backups");
        let engine = BackupEngine::open(BackupEngineOptions::new(&backups)).expect("backups");
        engine
            .create_new_backup(&db, &CreateBackupOptions::default())
            .expect("a backup of sound files");
        damage(&victim);
        let error = db.verify_file_checksums().expect_err("another file");
        assert_eq!((error.code(), error.path()), (Code::Corruption, Some(&*victim)));
        assert!(!db.verify(|_| {}).faults.is_empty());
        let elsewhere = directory.path().join("other backups");
        let engine = BackupEngine::open(BackupEngineOptions::new(&elsewhere)).expect("backups");
        let error = engine
            .create_new_backup(&db, &CreateBackupOptions::default())
            .expect_err("a backup of a damaged file");
        assert_eq!((error.code(), error.path()), (Code::Corruption, Some(&*victim)));
        assert!(error.to_string().contains("FileChecksumCrc32c"), "{error}");
    }
}

/// The sum of all bytes.
struct Sums;

struct Sum(u8);

impl FileChecksumGenerator for Sum {
    fn update(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| sum.wrapping_add(*byte));
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        vec![self.0]
    }
}

impl FileChecksumFactory for Sums {
    fn function(&self) -> &str {
        "Sum"
    }

    fn generator(&self, function: &str) -> Option<Box<dyn FileChecksumGenerator>> {
        (function == "Sum").then(|| Box::new(Sum(0)) as _)
    }
}

#[test]
fn a_factory_of_the_programs_own() {
    let directory = temporary();
    let path = directory.path().join("db");
    let mut own = options();
    own.file_checksum_factory = Some(Arc::new(Sums));
    let db = Db::open(&path, &own).expect("a database");
    fill(&db, 1);
    for file in db.live_files() {
        let bytes = fs::read(&file.path).expect("a live file");
        let sum = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        let known = FileChecksum { function: "Sum".to_string(), value: vec![sum] };
        assert_eq!(file.checksum, Some(known));
    }
    db.verify_file_checksums().expect("sound files");
    drop(db);
    // Without the factory its checksums cannot be compared, but new files get others.
    let db = Db::open(&path, &options()).expect("a database");
    let error = db.verify_file_checksums().expect_err("an unknown function");
    assert_eq!(error.code(), Code::InvalidArgument);
    let report = db.verify(|_| {});
    assert!(report.faults.is_empty() && !report.notes.is_empty());
    let family = db.default_column_family();
    fill(&db, 2);
    db.compact_range(family, None, None, &Default::default()).expect("a compaction");
    let tables = db.live_files().into_iter().filter(|file| file.level.is_some());
    assert!(tables.map(|table| table.checksum).all(|sum| sum.unwrap().as_crc32c().is_some()));
}

#[test]
fn tables_that_are_ingested_get_one() {
    let directory = temporary();
    let db = Db::open(directory.path().join("db"), &options()).expect("a database");
    let table = directory.path().join("outside.sst");
    for write_global_seqno in [false, true] {
        let mut writer =
            SstFileWriter::create(&table, &SstFileWriterOptions::default()).expect("a writer");
        writer.put("key", "value").expect("a put");
        writer.finish().expect("a table");
        let how = IngestExternalFileOptions {
            write_global_seqno,
            ..IngestExternalFileOptions::default()
        };
        let family = db.default_column_family();
        db.ingest_external_files(family, &[&table], &how).expect("an ingestion");
        summed(&db);
    }
}

/// RocksDB's tool reads our checksums from the MANIFEST, writes files with its own, and we read
/// those.
#[test]
fn rocksdb_reads_ours_and_we_read_its() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let db = Db::open(&path, &options()).expect("a database");
    fill(&db, 1);
    fill(&db, 2);
    let files = summed(&db);
    db.close().expect("a clean close");
    drop(db);
    let dumped = referee.ldb(&path, &["file_checksum_dump", "--hex"]);
    for file in &files {
        let sum = file.checksum.as_ref().expect("a checksum");
        let digits: String = sum.value.iter().map(|byte| format!("{byte:02X}")).collect();
        let line = format!("{}, {}, 0x{digits}", file.number.0, sum.function);
        assert!(dumped.contains(&line), "{line} is missing:\n{dumped}");
    }
    referee.ldb(&path, &["checkconsistency"]);
    referee.ldb(&path, &["put", "--try_load_options", "of rocksdb", "1"]);
    referee.ldb(&path, &["compact", "--try_load_options"]);
    let db = open_as_written(&path, false);
    assert!(!dump(&db).is_empty());
    let files = summed(&db);
    assert!(files.iter().any(|file| file.level > Some(0)), "RocksDB has compacted");
    db.verify_file_checksums().expect("sound files");
}
