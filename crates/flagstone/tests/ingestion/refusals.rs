//! What is refused names the file and the reason, and changes nothing.

use std::path::{Path, PathBuf};

use flagstone::base::{Code, Error};
use flagstone::db::{Db, ExternalFiles, FileChecksum};
use flagstone::env::{IoMode, read_file};
use flagstone::ingest::{SstFileWriter, SstFileWriterOptions};
use flagstone::options::{ColumnFamilyOptions, IngestExternalFileOptions};

use super::{World, all, ingest};

fn refused(world: &World, db: &Db, file: &Path, options: &IngestExternalFileOptions) -> Error {
    let before = (all(db), world.own_tables(), db.latest_sequence_number());
    let error = db
        .ingest_external_files(db.default_column_family(), &[file], options)
        .expect_err("it is refused");
    assert_eq!(error.path(), Some(file), "{error}");
    assert_eq!((all(db), world.own_tables(), db.latest_sequence_number()), before);
    error
}

fn bytes_of(world: &World, path: &Path) -> Vec<u8> {
    read_file(&*world.options.env.fs, path, 1 << 20).expect("a file")
}

fn write(world: &World, path: &str, bytes: &[u8]) -> PathBuf {
    let file = world.options.env.fs.create_writable(Path::new(path), IoMode::Buffered);
    file.expect("a file").write_at(0, bytes).expect("its bytes");
    PathBuf::from(path)
}

#[test]
fn files_that_are_no_tables() {
    let mut world = World::new();
    let good = world.table(&["a", "b"], "1");
    let db = world.open();
    let options = IngestExternalFileOptions::default();
    let error = refused(&world, &db, Path::new("/tables/missing.sst"), &options);
    assert_eq!(error.code(), Code::IoError);
    for (name, bytes) in [("empty", vec![]), ("text", b"no table at all".repeat(20))] {
        let file = write(&world, &format!("/tables/{name}.sst"), &bytes);
        assert_eq!(refused(&world, &db, &file, &options).code(), Code::Corruption, "{name}");
    }
    let bytes = bytes_of(&world, &good);
    for length in (1..bytes.len()).step_by(41) {
        let file = write(&world, &format!("/tables/cut-{length}.sst"), &bytes[..length]);
        assert_eq!(refused(&world, &db, &file, &options).code(), Code::Corruption, "{length}");
    }
    // The magic number of a plain table.
    let mut plain = bytes;
    let end = plain.len() - 8;
    plain[end..].copy_from_slice(&0x8242_2296_63bf_9564_u64.to_le_bytes());
    let file = write(&world, "/tables/plain.sst", &plain);
    assert_eq!(refused(&world, &db, &file, &options).code(), Code::NotSupported);
}

#[test]
fn damaged_blocks_if_all_are_read() {
    let mut world = World::new();
    let info = world.info(|writer| {
        for key in 0..1000 {
            writer.put(format!("{key:05}"), "value").expect("a put");
        }
    });
    let mut bytes = bytes_of(&world, &info.path);
    bytes[2000] ^= 1;
    let file = write(&world, "/tables/damaged.sst", &bytes);
    let db = world.open();
    let options = IngestExternalFileOptions {
        verify_checksums_before_ingest: true,
        ..IngestExternalFileOptions::default()
    };
    assert_eq!(refused(&world, &db, &file, &options).code(), Code::Corruption);
}

#[test]
fn another_file_than_its_checksum_says() {
    let mut world = World::new();
    let options = SstFileWriterOptions {
        env: world.options.env.clone(),
        file_checksum: true,
        ..SstFileWriterOptions::default()
    };
    let mut writer = SstFileWriter::create("/tables/sum.sst", &options).expect("a writer");
    writer.put("a", "1").expect("a put");
    let info = writer.finish().expect("a table");
    let checksum = info.file_checksum.and_then(|sum| sum.as_crc32c()).expect("it was asked for");
    let db = world.open();
    let group = |checksum: u32| ExternalFiles {
        file_checksums: vec![FileChecksum::crc32c(checksum)],
        ..ExternalFiles::new(db.default_column_family(), [&info.path])
    };
    let error = db.ingest_together(&[group(checksum ^ 1)]).expect_err("another checksum");
    assert_eq!((error.code(), error.path()), (Code::Corruption, Some(&*info.path)));
    let mut unverified = group(checksum ^ 1);
    unverified.options.verify_file_checksum = false;
    db.ingest_together(&[group(checksum)]).expect("its checksum");
    db.ingest_together(&[unverified]).expect("nobody looks");
    let two = [1, 2].map(FileChecksum::crc32c).to_vec();
    let two = ExternalFiles { file_checksums: two, ..group(checksum) };
    let error = db.ingest_together(&[two]).expect_err("two checksums of one file");
    assert_eq!(error.code(), Code::InvalidArgument);
    let other = world.table(&["b"], "1");
    ingest(&db, &[&other]);
}

#[test]
fn tables_for_others() {
    let world = World::new();
    let db = world.open();
    let options = IngestExternalFileOptions::default();
    let write = |path: &str, options: SstFileWriterOptions| {
        let mut writer = SstFileWriter::create(path, &options).expect("a writer");
        writer.merge("a", "1").expect("an operand");
        writer.finish().expect("a table").path
    };
    let of_world = |family: &ColumnFamilyOptions| SstFileWriterOptions {
        env: world.options.env.clone(),
        ..SstFileWriterOptions::new(family)
    };
    let mut reverse = ColumnFamilyOptions::default();
    reverse.comparator = flagstone::base::Comparator::ReverseBytewise;
    let file = write("/tables/reverse.sst", of_world(&reverse));
    let error = refused(&world, &db, &file, &options);
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("rocksdb.ReverseBytewiseComparator"), "{error}");

    let file = write("/tables/merge.sst", of_world(&ColumnFamilyOptions::default()));
    let error = refused(&world, &db, &file, &options);
    assert!(error.to_string().contains("has no merge operator"), "{error}");

    let named = Some((flagstone::base::ColumnFamilyId(7), "other".to_string()));
    let file = "/tables/named.sst";
    let named =
        SstFileWriterOptions { named_family: named, ..of_world(&ColumnFamilyOptions::default()) };
    let mut writer = SstFileWriter::create(file, &named).expect("a writer");
    writer.put("a", "1").expect("a put");
    writer.finish().expect("a table");
    let error = refused(&world, &db, Path::new(file), &options);
    assert!(error.to_string().contains("the column family with id 7"), "{error}");
}

#[test]
fn tables_that_do_not_fit_as_asked() {
    let mut world = World::new();
    let (below, above) = (world.table(&["a", "c"], "1"), world.table(&["b"], "2"));
    let db = world.open();
    let options = IngestExternalFileOptions {
        fail_if_not_bottommost_level: true,
        ..IngestExternalFileOptions::default()
    };
    db.ingest_external_files(db.default_column_family(), &[&below], &options)
        .expect("nothing is there");
    let error = db
        .ingest_external_files(db.default_column_family(), &[&above], &options)
        .expect_err("it overlaps the last level");
    assert_eq!(error.code(), Code::TryAgain);
    assert_eq!(all(&db), "a=1 c=1");

    let none: [&Path; 0] = [];
    let error = db
        .ingest_external_files(db.default_column_family(), &none, &Default::default())
        .expect_err("no files");
    assert_eq!(error.code(), Code::InvalidArgument);
    let own = db.live_files()[0].path.clone();
    let error = refused(&world, &db, &own, &Default::default());
    assert!(error.to_string().contains("among the database's own"), "{error}");
}

#[test]
fn databases_that_cannot_be_changed() {
    let mut world = World::new();
    let table = world.table(&["a"], "1");
    let db = world.open();
    let dropped =
        db.create_column_family("dropped", &ColumnFamilyOptions::default()).expect("a family");
    db.drop_column_family(&dropped).expect("it is dropped");
    let error = db
        .ingest_external_files(&dropped, &[&table], &Default::default())
        .expect_err("there is no such family");
    assert_eq!(error.code(), Code::ColumnFamilyDropped);
    db.close().expect("a clean close");
    let error = db
        .ingest_external_files(db.default_column_family(), &[&table], &Default::default())
        .expect_err("the database is closed");
    assert_eq!(error.code(), Code::ShutdownInProgress);
    drop(db);
    let reader = Db::open_read_only(super::DB, &world.options).expect("a database");
    let error = reader
        .ingest_external_files(reader.default_column_family(), &[&table], &Default::default())
        .expect_err("it is open for reading");
    assert_eq!(error.code(), Code::NotSupported);
}
