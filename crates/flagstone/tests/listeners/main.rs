//! Every callback of a listener: when it comes, what it is told, and what a listener may do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conduct;
mod diary;
mod files;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use diary::Diary;
use flagstone::base::SubCode;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::ingest::{SstFileWriter, SstFileWriterOptions};
use flagstone::options::{CompactRangeOptions, IngestExternalFileOptions, Options};
use testkit::{Call, FaultFs, Injection, Plan, Sort, steps};

/// A database in one thread, which works when it is waited for.
struct World {
    fs: FaultFs,
    options: Options,
    diary: Arc<Diary>,
}

impl World {
    fn new(settings: &str) -> Self {
        let fs = FaultFs::new(Arc::new(MemoryFileSystem::new()));
        let diary = Arc::new(Diary::default());
        let env = steps::world(Arc::new(fs.clone()), 1);
        let mut options = Options { env, ..Options::default() };
        options.set_all("create_if_missing=true;level0_file_num_compaction_trigger=10").unwrap();
        options.set_all(settings).unwrap();
        options.listeners = vec![diary.clone()];
        Self { fs, options, diary }
    }

    fn open(&self) -> Db {
        Db::open("/db", &self.options).unwrap()
    }
}

fn compact(db: &Db) -> flagstone::Result<()> {
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
}

#[test]
fn a_flush_and_a_compaction_are_told_from_beginning_to_end() {
    let world = World::new("");
    let db = world.open();
    db.put("a", "1").unwrap();
    db.delete("b").unwrap();
    db.flush_all().unwrap();
    db.put("a", "2").unwrap();
    db.flush_all().unwrap();
    let expected = [
        "sealed default: 2 entries, 1 deletions, from 1, for Manual",
        "manual flush of [\"default\"]",
        "flush 2 begins: Flush(Manual)",
        "table begun: 000005.sst of job 2 by Flush",
        "table created: 000005.sst of job 2 by Flush",
        "flush 2 completed: 2 entries read, [2] written, 0 blob files",
        "pressure 5%, 0 jobs run",
    ];
    let told = world.diary.read();
    assert_eq!(told[..7], expected, "{told:?}");
    compact(&db).unwrap();
    let told = world.diary.read();
    let expected = [
        "compaction 4 begins: Compaction(Manual) of 2 (2 known) from level 0 to 6",
        "part 0 of 1 of 4 begins",
        "table begun: 000008.sst of job 4 by Compaction",
        "part 0 of 1 of 4 completed",
        "table created: 000008.sst of job 4 by Compaction",
        "compaction 4 wrote 1 tables",
        "compaction 4 completed: 0 blobs are garbage",
        "pressure 0%, 0 jobs run",
    ];
    assert_eq!(told[..8], expected, "{told:?}");
    let mut deleted = told[8..].to_vec();
    deleted.sort();
    assert_eq!(deleted, ["table deleted: 000005.sst", "table deleted: 000007.sst"]);
    db.close().unwrap();
    assert_eq!(world.diary.read(), ["shutdown"]);
}

#[test]
fn a_move_has_no_parts_and_writes_nothing() {
    let world = World::new("");
    let db = world.open();
    db.put("a", "1").unwrap();
    db.flush_all().unwrap();
    world.diary.read();
    compact(&db).unwrap();
    let expected = [
        "compaction 3 begins: Compaction(Manual) of 1 (1 known) from level 0 to 6",
        "compaction 3 wrote 0 tables",
        "compaction 3 completed: 0 blobs are garbage",
    ];
    assert_eq!(world.diary.read_about("compaction"), expected);
}

#[test]
fn each_part_of_a_compaction_is_told() {
    let world = World::new(
        "max_subcompactions=4;target_file_size_base=10000;write_buffer_size=100000;compression=kNoCompression",
    );
    let db = world.open();
    for round in 0..2 {
        (0..400).for_each(|n| db.put(format!("{n:04}"), vec![round; 100]).unwrap());
        db.flush_all().unwrap();
    }
    world.diary.read();
    compact(&db).unwrap();
    let told = world.diary.read_about("part");
    let all: BTreeSet<_> = told.iter().collect();
    assert!(told.len() >= 4 && told.len().is_multiple_of(2), "{told:?}");
    assert_eq!(all.len(), told.len(), "{told:?}");
    for part in 0..told.len() / 2 {
        let at = |how| {
            told.iter()
                .position(|line| *line == format!("part {part} of {} of 4 {how}", told.len() / 2))
        };
        assert!(at("begins").unwrap() < at("completed").unwrap(), "{told:?}");
    }
}

#[test]
fn a_compaction_that_fails_is_told_to_have_ended() {
    let world = World::new("");
    let db = world.open();
    for value in ["1", "2"] {
        db.put("a", value).unwrap();
        db.flush_all().unwrap();
    }
    world.diary.read();
    let next = |call| Plan::Next { call, sort: Sort::Table, injection: Injection::NoSpace };
    world.fs.plan(next(Call::Sync));
    assert_eq!(compact(&db).unwrap_err().subcode(), SubCode::NoSpace);
    let told = world.diary.read();
    let expected = [
        "part 0 of 1 of 4 begins",
        "table begun: 000008.sst of job 4 by Compaction",
        "part 0 of 1 of 4 completed",
        "table created: 000008.sst of job 4 by Compaction failed",
        "compaction 4 completed: IoError",
        "pressure 10%, 0 jobs run",
    ];
    assert_eq!(told[1..7], expected, "{told:?}");
    world.fs.plan(next(Call::Create));
    assert_eq!(compact(&db).unwrap_err().subcode(), SubCode::NoSpace);
    let told = world.diary.read();
    assert!(
        told.contains(&"table created: 000009.sst of job 5 by Compaction failed".to_string()),
        "{told:?}"
    );
    compact(&db).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap().as_ref(), b"2");
}

#[test]
fn errors_and_the_attempts_to_recover_are_told() {
    let world = World::new("");
    let db = world.open();
    db.put("key", "value").unwrap();
    let next = |call, injection| Plan::Next { call, sort: Sort::Table, injection };
    world.fs.plan(next(Call::Create, Injection::NoSpace));
    db.flush_all().unwrap_err();
    db.resume().unwrap();
    let expected = [
        "error in Flush, NoSpace, fatal: false",
        "error recovery in Flush begins",
        "error recovery completed",
        "error recovery ends, recovered: true",
    ];
    assert_eq!(world.diary.read_about("error"), expected);
    db.put("key", "newer").unwrap();
    world.fs.plan(next(Call::Create, Injection::NoSpace));
    db.flush_all().unwrap_err();
    world.fs.plan(next(Call::Sync, Injection::Io));
    db.resume().unwrap_err();
    let expected = [
        "error in Flush, NoSpace, fatal: false",
        "error recovery in Flush begins",
        "error in Flush, None, fatal: true",
        "error recovery ends, recovered: false",
    ];
    assert_eq!(world.diary.read_about("error"), expected);
}

#[test]
fn why_a_memtable_is_flushed_is_told() {
    let world = World::new("write_buffer_size=20000;max_total_wal_size=100000");
    let db = world.open();
    let reasons = || {
        // The step that flushes it tells of it.
        while db.background_step().unwrap() {}
        let told = world.diary.read_about("sealed");
        told.iter().map(|line| line.rsplit(' ').next().unwrap().to_string()).collect::<Vec<_>>()
    };
    let mut full = Vec::new();
    for n in 0..100u8 {
        db.put([n], vec![n; 1000]).unwrap();
        full.extend(reasons());
    }
    assert!(full.iter().all(|reason| reason == "WriteBufferFull") && full.len() > 1, "{full:?}");
    compact(&db).unwrap();
    assert_eq!(reasons(), ["ManualCompaction"]);
    db.put("key", "value").unwrap();
    db.checkpoint("/copy").unwrap();
    db.put("key", "value").unwrap();
    let table = Path::new("/table.sst");
    let env = world.options.env.clone();
    let options = SstFileWriterOptions { env, ..SstFileWriterOptions::default() };
    let mut writer = SstFileWriter::create(table, &options).unwrap();
    writer.put("key", "ingested").unwrap();
    writer.finish().unwrap();
    assert_eq!(reasons(), ["Copy"]);
    db.put("key", "value").unwrap();
    let family = db.default_column_family();
    db.ingest_external_files(family, &[table], &IngestExternalFileOptions::default()).unwrap();
    let told = world.diary.read();
    assert!(told.contains(&"ingested 1 entries".to_string()), "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("sealed") && line.ends_with("Ingestion")));
    let unlogged = flagstone::options::WriteOptions { disable_wal: true, ..Default::default() };
    let mut batch = flagstone::WriteBatch::new();
    batch.put("key", "unlogged").unwrap();
    db.write_with(&unlogged, batch).unwrap();
    db.close().unwrap();
    let told = world.diary.read_about("sealed");
    assert!(told.len() == 1 && told[0].ends_with("Close"), "{told:?}");
}

#[test]
fn blob_files_and_their_garbage_are_told() {
    let world = World::new("enable_blob_files=true;min_blob_size=100;blob_write_mode=flush");
    let db = world.open();
    for round in 0..2 {
        (0..3u8).for_each(|n| db.put([n], vec![round; 1000]).unwrap());
        db.flush_all().unwrap();
    }
    compact(&db).unwrap();
    let told = world.diary.read();
    let about = |what: &str| told.iter().filter(|line| line.starts_with(what)).count();
    assert_eq!((about("blob file begun"), about("blob file created")), (2, 2), "{told:?}");
    assert!(told.iter().any(|line| line.ends_with("by Flush, 3 values")), "{told:?}");
    assert!(told.contains(&"compaction 4 completed: 3 blobs are garbage".to_string()), "{told:?}");
    assert_eq!(about("blob file deleted"), 1, "{told:?}");
}
