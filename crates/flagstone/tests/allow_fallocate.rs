//! Whether space is reserved before it is written to: `allow_fallocate`.

use std::path::Path;
use std::sync::Arc;

use flagstone::db::{Db, Severity};
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{
    BottommostLevelCompaction, CompactRangeOptions, EventListener, Options, ReadOptions,
    WalReserveInfo,
};
use parking_lot::Mutex;
use testkit::{Call, CrashFs, FaultFs, QuotaFs, settings};

/// Each way to write for which space is reserved reserves none if that is not wanted, and writes
/// the same.
#[test]
fn nothing_is_reserved_if_that_is_not_wanted() {
    let ways: [&[(&str, &str)]; 4] = [
        &[("wal_write_mode", "mapped")],
        &[("wal_write_mode", "plain")],
        &[("wal_write_mode", "plain"), ("manual_wal_flush", "true")],
        &[("use_direct_io_for_flush_and_compaction", "true")],
    ];
    for way in ways {
        for allowed in [true, false] {
            let faults = FaultFs::new(Arc::new(CrashFs::new()));
            let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(faults.clone())));
            settings::set(&mut options, way);
            options.allow_fallocate = allowed;
            faults.record();
            let db = Db::open("/db", &options).unwrap();
            for round in 0..3u8 {
                for number in 0..100 {
                    db.put(format!("{number:03}"), [round; 100]).unwrap();
                }
                db.flush_wal(round == 2).unwrap();
            }
            db.flush_all().unwrap();
            let calls = faults.recorded();
            let reserves = calls.iter().any(|(call, _)| *call == Call::Allocate);
            let maps = calls.iter().any(|(call, _)| *call == Call::Map);
            assert!(reserves == allowed && (allowed || !maps), "{way:?}");
            drop(db);
            let db = Db::open("/db", &options).unwrap();
            assert_eq!(db.get("099").unwrap().as_deref(), Some(&[2; 100][..]), "{way:?}");
        }
    }
}

/// As in RocksDB, whose files say 4 MiB; what is left of it is given back.
#[test]
fn a_manifest_has_its_space_reserved_as_much_at_a_time_as_is_wanted() {
    for (size, allowed, is_reserved) in
        [("65536", true, true), ("65536", false, false), ("0", true, false)]
    {
        let faults = FaultFs::new(Arc::new(CrashFs::new()));
        let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(faults.clone())));
        settings::set(&mut options, &[("manifest_preallocation_size", size)]);
        options.allow_fallocate = allowed;
        faults.record();
        let db = Db::open("/db", &options).unwrap();
        for round in 0..3u8 {
            db.put("key", [round]).unwrap();
            db.flush_all().unwrap();
        }
        db.close().unwrap();
        // Before the handle is dropped, when the directory may be another's.
        let calls = faults.recorded();
        drop(db);
        let count = |call: Call| {
            let of_manifest = |path: &std::path::Path| path.to_string_lossy().contains("MANIFEST");
            calls.iter().filter(|(made, path)| *made == call && of_manifest(path)).count()
        };
        let expected = usize::from(is_reserved);
        assert_eq!(
            (count(Call::Allocate), count(Call::Truncate)),
            (expected, expected),
            "{size} {allowed}"
        );
        let db = Db::open("/db", &options).unwrap();
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&[2][..]));
    }
}

/// What a listener is told of short reserves: wanted and missing bytes.
#[derive(Default)]
struct Reserves(Mutex<Vec<(u64, u64)>>);

impl EventListener for Reserves {
    fn on_wal_reserve_short(&self, reserve: &WalReserveInfo) {
        self.0.lock().push((reserve.wanted, reserve.missing));
    }
}

/// A file system with a limit, and options to open a database on it.
fn cramped(limit: u64, set: &str) -> (QuotaFs, Options, Arc<Reserves>) {
    let fs = QuotaFs::new(Arc::new(MemoryFileSystem::new()), Path::new("/db"), limit)
        .expect("it is empty");
    let mut options =
        Options { env: Env::memory().with_fs(Arc::new(fs.clone())), ..Options::default() };
    options
        .set_all("create_if_missing=true;compression=kNoCompression;enable_blob_files=false")
        .expect("options");
    options.set_all(set).expect("options");
    let told = Arc::new(Reserves::default());
    options.listeners = vec![told.clone()];
    (fs, options, told)
}

/// The opening was refused for what would be reserved, where next to nothing was to be written.
#[test]
fn a_log_reserves_what_there_is_room_for_and_the_database_says_that_it_is_short() {
    const MISSING: &str = "flagstone.wal-reserve-missing";
    // A write buffer and a tenth, in whole blocks.
    const WANTED: u64 = 73_826_304;
    for mode in ["wal_write_mode=mapped", "wal_write_mode=plain"] {
        let (fs, options, told) = cramped(20 << 20, mode);
        let db = Db::open("/db", &options).expect(mode);
        let family = db.default_column_family();
        let missing = db.int_property(family, MISSING).expect("a number");
        let reserved = fs.used();
        assert!(((4 << 20)..(6 << 20)).contains(&reserved), "{mode}: {reserved}");
        db.put("key", "value").expect(mode);
        assert_eq!(told.0.lock().as_slice(), [(WANTED, missing)], "{mode}");
        assert!(((4 << 20)..(6 << 20)).contains(&(WANTED - missing)), "{mode}: {missing}");
        let found = db.doctor().expect("it looks");
        let short = found.iter().find(|finding| finding.what.contains("reserve"));
        assert!(short.is_some_and(|short| short.severity == Severity::Slow), "{mode}: {found:?}");

        // With room the next WAL has all of it.
        fs.set_limit(1 << 30);
        db.flush_all().expect("a flush");
        db.put("key", "newer").expect(mode);
        assert_eq!(db.int_property(family, MISSING), Some(0), "{mode}");
        assert!(db.doctor().expect("it looks").is_empty(), "{mode}");
    }
    for less in ["write_buffer_size=8m", "allow_fallocate=false"] {
        let (_fs, options, told) = cramped(40 << 20, less);
        Db::open("/db", &options).expect(less).put("a", "1").expect(less);
        assert!(told.0.lock().is_empty(), "{less}");
    }
}

/// A program that opens its database to delete, since the disk is full, could not.
#[test]
fn a_nearly_full_disk_is_emptied_by_a_program_that_opens_its_database_on_it() {
    for mode in ["wal_write_mode=mapped", "wal_write_mode=plain", "manual_wal_flush=true"] {
        let (fs, options, told) = cramped(u64::MAX, mode);
        let db = Db::open("/db", &options).expect(mode);
        (0..40_000).for_each(|key| db.put(format!("{key:05}"), [b'v'; 500]).expect(mode));
        db.compact_range(db.default_column_family(), None, None, &forced()).expect(mode);
        db.close().expect(mode);
        drop(db);
        let before = fs.used();
        assert!(before > 10 << 20, "{before}");
        fs.set_limit(before + (600 << 10));
        let db = Db::open("/db", &options).expect(mode);
        assert_eq!(told.0.lock().len(), 1, "{mode}");
        // More than the short reserve holds.
        for key in 0..10_000 {
            db.delete(format!("{key:05}")).expect(mode);
        }
        db.delete_range("10000", "99999").expect(mode);
        db.flush_all().expect(mode);
        db.compact_range(db.default_column_family(), None, None, &forced()).expect(mode);
        let mut all = db.iter(&ReadOptions::default()).expect("an iterator");
        all.seek_to_first();
        assert!(all.next_entry().expect("a read").is_none(), "{mode}");
        drop(all);
        db.close().expect(mode);
        drop(db);
        assert!(fs.used() < 1 << 20, "{mode}: {}", fs.used());
    }
}

fn forced() -> CompactRangeOptions {
    let bottommost_level_compaction = BottommostLevelCompaction::Force;
    CompactRangeOptions { bottommost_level_compaction, ..CompactRangeOptions::default() }
}
