//! What workers write is what the database would have written.

use std::collections::BTreeMap;
use std::sync::Arc;

use flagstone::WriteBatch;
use flagstone::base::timestamp::from_u64;
use flagstone::base::{Comparator, SstPartitionerFixedPrefixFactory};
use flagstone::db::{Db, Ticker, TtlDb, TtlOptions};
use flagstone::options::{
    ColumnFamilyOptions, CompactionFilter, CompactionServiceJobStatus,
    CompactionServiceOptionsOverride, EventListener, FilterDecision, FilteredKind, JobInfo,
    Options, ReadOptions,
};
use parking_lot::Mutex;
use testkit::{Referee, Workers};

use crate::{World, check, compact, fill, remote_and_failed};

#[test]
fn a_worker_s_tables_are_installed() {
    for blobs in ["false", "true"] {
        let world = World::new(|options| {
            options.set("enable_blob_files", blobs).unwrap();
            options.set("min_blob_size", "1000").unwrap();
            options.set("file_checksum_gen_factory", "FileChecksumGenCrc32cFactory").unwrap();
        });
        let db = world.open();
        fill(&db);
        compact(&db).unwrap();
        assert_eq!(remote_and_failed(&db), (true, 0));
        assert_eq!(world.workers.ended(), [CompactionServiceJobStatus::Success]);
        assert!(db.statistics().get(Ticker::RemoteCompactReadBytes) > 0);
        check(&db);
        let files = db.live_files();
        assert!(files.iter().all(|file| file.level != Some(0) && file.checksum.is_some()));
        assert!(world.outputs().is_empty(), "{:?}", world.outputs());
        // Others follow, and find the files again.
        fill(&db);
        compact(&db).unwrap();
        db.close().unwrap();
        let db = world.open();
        check(&db);
        assert_eq!(db.statistics().get(Ticker::RemoteCompactionsFailed), 0);
    }
}

/// What a worker counted was lost with it.
#[test]
fn what_a_worker_counted_can_be_received() {
    let world = World::new(|_| ());
    let received = Arc::new(Mutex::new(Vec::new()));
    let mut components = CompactionServiceOptionsOverride::of(&world.options);
    let notes = received.clone();
    components.statistics = Some(Arc::new(move |counted: &[(&'static str, u64)]| {
        notes.lock().extend(counted.iter().map(|(name, count)| ((*name).to_string(), *count)));
    }));
    let mut options = world.options.clone();
    options.compaction_service = Some(Workers::new(move |_| components.clone()));
    let db = Db::open("/db", &options).unwrap();
    fill(&db);
    compact(&db).unwrap();
    assert_eq!(remote_and_failed(&db), (true, 0));
    let read =
        received.lock().iter().find(|(name, _)| name == "rocksdb.compact.read.bytes").cloned();
    assert!(read.unwrap().1 > 0, "{received:?}");
}

/// Writes much of all kinds; what readers find is compared with a database without a service.
fn compare_lives(set: impl Fn(&mut Options), write: impl Fn(&Db, u32)) -> World {
    let world = World::new(&set);
    let alone = World::new(&set);
    let mut options = alone.options.clone();
    options.compaction_service = None;
    let (remote, local) = (world.open(), Db::open("/db", &options).unwrap());
    let mut snapshots = Vec::new();
    for round in 0..4 {
        write(&remote, round);
        write(&local, round);
        if round % 2 == 0 {
            snapshots.push((remote.snapshot(), local.snapshot()));
        }
        remote.flush_all().unwrap();
        local.flush_all().unwrap();
        if round % 2 == 1 {
            compact(&remote).unwrap();
            compact(&local).unwrap();
        }
        assert_eq!(contents(&remote), contents(&local), "{round}");
        for (of_remote, of_local) in &snapshots {
            let at = |db: &Db, snapshot| {
                let options = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
                scan(db, &options)
            };
            let (found, expected) = (at(&remote, of_remote.clone()), at(&local, of_local.clone()));
            assert_eq!(found, expected, "{round}");
        }
    }
    drop(snapshots);
    let tables = |db: &Db| -> BTreeMap<_, usize> {
        db.live_files().iter().fold(BTreeMap::new(), |mut counts, file| {
            *counts.entry(file.level).or_default() += 1;
            counts
        })
    };
    assert_eq!(tables(&remote), tables(&local));
    assert_eq!(remote_and_failed(&remote), (true, 0));
    let report = remote.verify(|_| {});
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    let before = contents(&remote);
    remote.close().unwrap();
    assert_eq!(contents(&world.open()), before);
    world
}

fn contents(db: &Db) -> Vec<(Vec<u8>, String)> {
    scan(db, &ReadOptions::default())
}

/// All keys, with their columns.
fn scan(db: &Db, options: &ReadOptions) -> Vec<(Vec<u8>, String)> {
    let mut cursor = db.iter(options).unwrap();
    cursor.seek_to_first();
    let mut found = Vec::new();
    while cursor.valid() {
        found.push((cursor.key().to_vec(), format!("{:?}", cursor.columns().unwrap())));
        cursor.next();
    }
    cursor.status().unwrap();
    found
}

fn write_all_kinds(db: &Db, round: u32) {
    for number in 0..120u32 {
        let key = format!("key {:04}", number * 37 % 200 + round);
        match (number + round) % 6 {
            0 => db.delete(&key).unwrap(),
            1 => db.merge(&key, format!("{round}")).unwrap(),
            2 => db.put(&key, vec![b'a' + round as u8; 1500]).unwrap(),
            3 => {
                let large = vec![b'z'; 1200];
                let columns = [("", &b"default"[..]), ("large", &large), ("small", b"1")];
                let mut batch = WriteBatch::new();
                batch.put_entity(&key, columns).unwrap();
                db.write(batch).unwrap();
            }
            _ => db.put(&key, format!("{number} {round}")).unwrap(),
        }
    }
    let mut batch = WriteBatch::new();
    batch
        .delete_range(format!("key {:04}", 20 * round), format!("key {:04}", 20 * round + 9))
        .unwrap();
    db.write(batch).unwrap();
}

#[test]
fn merges_deletions_and_columns_come_out_alike() {
    compare_lives(|_| {}, write_all_kinds);
}

#[test]
fn blob_files_are_written_and_collected() {
    let set = |options: &mut Options| {
        for (name, value) in [
            ("enable_blob_files", "true"),
            ("min_blob_size", "500"),
            ("blob_file_size", "60000"),
            ("enable_blob_garbage_collection", "true"),
            ("blob_garbage_collection_age_cutoff", "1.0"),
        ] {
            options.set(name, value).unwrap();
        }
    };
    let world = compare_lives(set, write_all_kinds);
    let db = world.open();
    // What the MANIFEST knows as garbage the next compaction leaves behind.
    for round in 1..4 {
        write_all_kinds(&db, round);
        db.flush_all().unwrap();
        compact(&db).unwrap();
    }
    assert!(db.statistics().get(Ticker::BlobGcRelocatedKeys) > 0);
    assert_eq!(remote_and_failed(&db), (true, 0));
}

#[test]
fn compactions_in_parts_and_between_partitions() {
    let set = |options: &mut Options| {
        options.set("max_subcompactions", "4").unwrap();
        options.set("target_file_size_base", "2000").unwrap();
        options.cf.sst_partitioner_factory =
            Some(Arc::new(SstPartitionerFixedPrefixFactory::new(6)));
    };
    compare_lives(set, write_all_kinds);
}

#[test]
fn other_styles_and_directories() {
    for style in ["kCompactionStyleUniversal", "kCompactionStyleLevel"] {
        let set = |options: &mut Options| {
            options.set("compaction_style", style).unwrap();
            options.set("db_paths", "{path=/db;target_size=10}:/db/more").unwrap();
        };
        compare_lives(set, write_all_kinds);
    }
}

#[test]
fn a_family_with_timestamps_loses_what_is_too_old() {
    for persists in [true, false] {
        let world = World::new(|options| {
            options.cf.comparator = Comparator::BytewiseU64Ts;
            options.cf.merge_operator = None;
            options.cf.persist_user_defined_timestamps = persists;
        });
        let db = world.open();
        let family = db.default_column_family().clone();
        for time in 1..=4u64 {
            for number in 0..20 {
                let mut batch = WriteBatch::new();
                let (key, value) = (format!("key {number}"), format!("{time}"));
                batch.put_with_timestamp(&family, key, from_u64(time), value).unwrap();
                db.write(batch).unwrap();
            }
            if !persists {
                db.increase_full_history_ts_low(&family, from_u64(time + 1)).unwrap();
            }
            db.flush_all().unwrap();
        }
        if persists {
            db.increase_full_history_ts_low(&family, from_u64(3)).unwrap();
        }
        compact(&db).unwrap();
        assert_eq!(remote_and_failed(&db), (true, 0), "{persists}");
        let newest = from_u64(100).into();
        let options = ReadOptions { timestamp: Some(newest), ..ReadOptions::default() };
        for number in 0..20 {
            let value = db.get_with(&options, &family, format!("key {number}")).unwrap();
            assert_eq!(value.unwrap(), b"4"[..], "{persists}");
        }
        // That of tables with timestamps and a filter found none of the keys in the filter.
        let report = db.verify(|_| {});
        assert!(report.faults.is_empty(), "{:?}", report.faults);
        db.close().unwrap();
        let db = world.open();
        let value = db.get_with(&options, db.default_column_family(), "key 3").unwrap();
        assert_eq!(value.unwrap(), b"4"[..], "{persists}");
    }
}

/// Removes what begins with `drop`.
struct Dropping;

impl CompactionFilter for Dropping {
    fn name(&self) -> &str {
        "Dropping"
    }

    fn filter(&self, _: u32, key: &[u8], _: FilteredKind, _: &[u8]) -> FilterDecision {
        if key.starts_with(b"drop") { FilterDecision::Remove } else { FilterDecision::Keep }
    }
}

#[test]
fn filters_of_the_worker_decide() {
    let world = World::new(|options| options.cf.compaction_filter = Some(Arc::new(Dropping)));
    let db = world.open();
    fill(&db);
    db.put("drop me", "now").unwrap();
    db.flush_all().unwrap();
    compact(&db).unwrap();
    assert_eq!(remote_and_failed(&db), (true, 0));
    assert!(db.get("drop me").unwrap().is_none());
    check(&db);
}

#[test]
fn values_that_expire_are_compacted_at_home() {
    let world = World::new(|_| {});
    let ttl = TtlOptions { ttl_seconds: 1000, ..TtlOptions::default() };
    let db = TtlDb::open("/db", &world.options, ttl).unwrap();
    for round in ["1", "2"] {
        db.put("key", round).unwrap();
        db.base().flush_all().unwrap();
    }
    compact(db.base()).unwrap();
    assert_eq!(db.get("key").unwrap().unwrap(), b"2"[..]);
    assert_eq!(remote_and_failed(db.base()), (false, 0));
    assert!(world.workers.ended().is_empty(), "none was offered");
}

/// Remembers what it is told of compactions that have ended.
#[derive(Default)]
struct Told(Mutex<Vec<(bool, usize)>>);

impl EventListener for Told {
    fn on_compaction_completed(&self, job: &JobInfo) {
        let with_properties = job.tables.iter().filter(|table| table.properties.is_some());
        self.0.lock().push((job.stats.is_remote, with_properties.count()));
    }
}

#[test]
fn listeners_hear_that_a_compaction_was_remote() {
    let told = Arc::new(Told::default());
    let mut world = World::new(|_| {});
    world.options.listeners = vec![told.clone()];
    let db = world.open();
    fill(&db);
    compact(&db).unwrap();
    world.workers.answer(CompactionServiceJobStatus::UseLocal);
    fill(&db);
    compact(&db).unwrap();
    db.close().unwrap();
    let told = told.0.lock();
    assert!(told[0].0 && told[0].1 > 0, "{told:?}");
    assert!(!told.last().unwrap().0, "{told:?}");
}

#[test]
fn another_family_is_compacted_with_its_own_options() {
    let world = World::new(|_| {});
    let db = world.open();
    let mut options = ColumnFamilyOptions::default();
    options.disable_auto_compactions = true;
    options.set("compression", "kLZ4Compression").unwrap();
    options.merge_operator.clone_from(&world.options.cf.merge_operator);
    let photos = db.create_column_family("photos \"and\" films", &options).unwrap();
    for round in ["1", "2"] {
        db.put_cf(&photos, "key", round).unwrap();
        db.flush_all().unwrap();
    }
    db.compact_range(&photos, None, None, &Default::default()).unwrap();
    assert_eq!(remote_and_failed(&db), (true, 0));
    assert_eq!(db.get_cf(&photos, "key").unwrap().unwrap(), b"2"[..]);
}

#[test]
fn rocksdb_reads_what_workers_have_written() {
    let Some(referee) = Referee::find() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let mut options = Options::default();
    options.set_all("create_if_missing=true;enable_blob_files=true;min_blob_size=1000").unwrap();
    options.cf.disable_auto_compactions = true;
    let workers = testkit::Workers::new(|_| Default::default());
    options.compaction_service = Some(workers.clone());
    let db = Db::open(&path, &options).unwrap();
    fill(&db);
    compact(&db).unwrap();
    assert_eq!(workers.ended(), [CompactionServiceJobStatus::Success]);
    check(&db);
    db.close().unwrap();
    assert!(referee.verify_tables(&path).unwrap() > 0);
    let scanned = referee.ldb(&path, &["scan"]).unwrap();
    assert_eq!(scanned.lines().count(), 99, "{scanned}");
    referee.ldb(&path, &["checkconsistency"]).unwrap();
}
