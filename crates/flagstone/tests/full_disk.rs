//! What a full disk must not leave behind.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flagstone::base::{Error, SubCode};
use flagstone::db::{Db, Ticker};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, IoMode};
use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions, FlushOptions,
    InfoLog, Options, WriteOptions, load_latest,
};
use parking_lot::Mutex;
use testkit::fault::{Call, FaultFs, Injection, OPTIONS_FILE_CALLS, Plan, Sort};
use testkit::full_disk::{Room, live};
use testkit::{QuotaFs, steps};
use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Level, Metadata, Subscriber};

/// A file that was to replace another (an OPTIONS file, CURRENT) stayed as `NNNNNN.dbtmp` when
/// there was no room for it, one more with every attempt, until the database was opened again.
#[test]
fn what_could_not_be_written_does_not_stay() {
    let memory = Arc::new(MemoryFileSystem::new());
    let path = Path::new("/db");
    let fs = QuotaFs::new(memory.clone(), path, u64::MAX).expect("an empty directory");
    let mut options =
        Options { env: Env::memory().with_fs(Arc::new(fs.clone())), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open(path, &options).expect("a database");
    fs.set_limit(fs.used() + 10);
    for size in ["1000000", "2000000", "3000000"] {
        let refused = db.set_options(db.default_column_family(), &[("write_buffer_size", size)]);
        assert_eq!(refused.expect_err("there is no room").subcode(), SubCode::NoSpace);
    }
    let names = memory.list(path).expect("a listing");
    assert!(!names.iter().any(|name| name.ends_with(".dbtmp")), "{names:?}");
}

/// Space is reserved ahead of what is written around the system's cache. Where there was not enough
/// for that, the attempt took what was left and kept it until the file was closed: a blob file,
/// until a flush that found no room any more.
#[test]
fn what_cannot_be_reserved_is_left_to_others() {
    let path = Path::new("/db");
    let fs = QuotaFs::new(Arc::new(MemoryFileSystem::new()), path, u64::MAX)
        .expect("an empty directory");
    let mut options =
        Options { env: Env::memory().with_fs(Arc::new(fs.clone())), ..Options::default() };
    let set = "create_if_missing=true;enable_blob_files=true;min_blob_size=100;blob_commit_min_size=100;\
               use_direct_io_for_flush_and_compaction=true";
    options.set_all(set).expect("options");
    let db = Db::open(path, &options).expect("a database");
    fs.set_limit(fs.used() + 200_000);
    db.put("large", vec![b'x'; 20_000]).expect("room for the value");
    assert!(fs.used() + 100_000 < fs.limit(), "{} of {} bytes are taken", fs.used(), fs.limit());
    db.flush_all().expect("room for a table");
}

/// The same of a MANIFEST: the database could not be opened where it could without
/// `manifest_preallocation_size`.
#[test]
fn what_cannot_be_reserved_for_a_manifest_is_left_to_others() {
    let path = Path::new("/db");
    let fs =
        QuotaFs::new(Arc::new(MemoryFileSystem::new()), path, 400_000).expect("an empty directory");
    let mut options =
        Options { env: Env::memory().with_fs(Arc::new(fs.clone())), ..Options::default() };
    let set = "create_if_missing=true;write_buffer_size=65536;manifest_preallocation_size=4194304";
    options.set_all(set).expect("options");
    for round in 0..2 {
        let db = Db::open(path, &options).expect("room for all that is written");
        assert!(fs.used() < 200_000, "{round}: {} of {} bytes are taken", fs.used(), fs.limit());
        db.put("key", "value").expect("room for a value");
        db.flush_all().expect("room for a table");
        db.close().expect("a clean close");
    }
}

/// It could not be opened: a WAL was to have space for all of the buffer at once. RocksDB's users
/// write "no limit" so.
#[test]
fn a_write_buffer_may_be_larger_than_the_disk() {
    let path = Path::new("/db");
    let fs =
        QuotaFs::new(Arc::new(MemoryFileSystem::new()), path, 1 << 30).expect("an empty directory");
    let mut options = Options { env: Env::memory().with_fs(Arc::new(fs)), ..Options::default() };
    options.set_all("create_if_missing=true;write_buffer_size=1024g").expect("options");
    let db = Db::open(path, &options).expect("a database");
    db.put("a", "1").expect("a put");
    db.flush_all().expect("a flush");
    assert_eq!(db.get("a").expect("a read").expect("a value")[..], b"1"[..]);
}

/// A small database on a small disk, whose background work is done by the callers.
struct Small {
    fs: QuotaFs,
    options: Options,
}

impl Small {
    fn new(settings: &str) -> (Self, Db) {
        let fs = QuotaFs::new(Arc::new(MemoryFileSystem::new()), Path::new("/db"), 400_000)
            .expect("no directory");
        let mut options =
            Options { env: steps::world(Arc::new(fs.clone()), 1), ..Options::default() };
        options.info_log = InfoLog::Off;
        options.create_if_missing = true;
        options
            .set_all(
                "write_buffer_size=20000;reserved_disk_space=100000;compression=kNoCompression",
            )
            .expect("options");
        options.set_all(settings).expect("options");
        let small = Self { fs, options };
        let db = small.open();
        (small, db)
    }

    fn open(&self) -> Db {
        Db::open("/db", &self.options).expect("a database")
    }
}

/// Puts new keys until there is no space; how many, and the refusal.
fn fill(db: &Db) -> (usize, Error) {
    for number in 0.. {
        if let Err(error) = db.put(format!("{number:06}"), vec![b'x'; 1000]) {
            return (number, error);
        }
        db.background_step().map(drop).unwrap_or_default();
    }
    unreachable!("a disk without an end")
}

#[test]
fn a_full_disk_is_emptied_with_what_was_reserved_and_the_database_goes_on() {
    for settings in [
        "",
        "wal_write_mode=plain;recycle_log_file_num=0",
        "enable_blob_files=true;blob_commit_min_size=100",
    ] {
        let (small, db) = Small::new(settings);
        let (written, refused) = fill(&db);
        assert_eq!(refused.subcode(), SubCode::NoSpace, "{refused}");
        let refused = db.put("another", "value").expect_err("space is for compactions now");
        for said in ["145000 bytes must be free in /db", "reserved_disk_space", "no space left"] {
            assert!(refused.to_string().contains(said), "{refused}");
        }
        assert!(db.get("000000").expect("reads go on").is_some());

        let family = db.default_column_family();
        db.delete_range("000000", format!("{:06}", written - 1))
            .expect("deletions have a part of the reserve");
        let options = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            blob_garbage_collection_policy: BlobGarbageCollectionPolicy::Force,
            blob_garbage_collection_age_cutoff: 1.0,
            ..CompactRangeOptions::default()
        };
        db.compact_range(family, None, None, &options).expect("compactions have it all");
        db.put("another", "value").expect("there is space, and nobody has reopened the database");
        assert!(small.fs.used() > 100_000, "the reserve is there again");
        assert_eq!(db.get("000000").expect("a lookup"), None);
        assert!(db.get(format!("{:06}", written - 1)).expect("a lookup").is_some());
    }
}

/// A value in pieces went on filling what the reserve had given back for compactions; and what had
/// been written before could not be synced, though it had its space.
#[test]
fn on_a_full_disk_no_value_in_pieces_goes_on_and_what_was_written_is_synced() {
    let (_small, db) = Small::new("");
    let mut writer = db
        .put_stream(db.default_column_family(), "large", &WriteOptions::default())
        .expect("a database")
        .with_buffer(1000);
    writer.append(&[7; 20_000]).expect("there is space");
    fill(&db);
    let refused = writer.append(&[7; 1000]).expect_err("space is for compactions now");
    assert_eq!(refused.subcode(), SubCode::NoSpace, "{refused}");
    writer.commit().expect_err("a piece is missing");
    db.sync_wal().expect("what was written is there");
    db.flush_wal(true).expect("as well");
}

/// What makes space at once, and needs next to none, was refused for want of space.
#[test]
fn whole_tables_are_removed_from_a_full_disk() {
    let (small, db) = Small::new("level0_file_num_compaction_trigger=2");
    let (_, refused) = fill(&db);
    assert_eq!(refused.subcode(), SubCode::NoSpace, "{refused}");
    let family = db.default_column_family();
    db.delete_files_in_ranges(family, &[(None, None)], true).expect("it needs no space");
    db.put("another", "value").expect("there is space, and nobody has reopened the database");
    assert!(small.fs.used() > 100_000, "the reserve is there again");
    assert_eq!(db.get("000000").expect("a lookup"), None);
}

/// The same of a whole family.
#[test]
fn a_family_is_dropped_on_a_full_disk() {
    let (small, db) = Small::new("level0_file_num_compaction_trigger=2");
    let family = db.create_column_family("other", &small.options.cf).expect("a family");
    for number in 0..100 {
        db.put_cf(&family, format!("{number:06}"), vec![b'x'; 1000]).expect("there is space");
        db.background_step().expect("a flush or compaction");
    }
    let (_, refused) = fill(&db);
    assert_eq!(refused.subcode(), SubCode::NoSpace, "{refused}");
    db.drop_column_family(&family).expect("it needs next to no space");
    drop(family);
    while db.background_step().expect("a flush or compaction") {}
    db.put("another", "value").expect("there is space, and nobody has reopened the database");
    assert!(small.fs.used() > 100_000, "the reserve is there again");
    assert!(db.get("000000").expect("a lookup").is_some());
}

/// It was refused where a flush had found no room even in the reserve, for which the family may
/// take all that there is.
#[test]
fn a_family_is_dropped_and_tables_are_removed_where_the_reserve_is_not_enough() {
    let (small, db) = Small::new("write_buffer_size=80000");
    let [first, second] = ["first", "second"]
        .map(|name| db.create_column_family(name, &small.options.cf).expect("a family"));
    for number in 0..100 {
        db.put_cf(&first, format!("{number:06}"), vec![b'x'; 1000]).expect("there is space");
        db.background_step().expect("a flush or compaction");
    }
    let (_, refused) = fill(&db);
    assert_eq!(refused.subcode(), SubCode::NoSpace, "{refused}");
    small.fs.set_limit(small.fs.used() + 50_000);
    let refused = db.flush_all().expect_err("no room in the reserve");
    assert_eq!(refused.subcode(), SubCode::NoSpace, "{refused}");
    db.delete_files_in_ranges(&second, &[(None, None)], true).expect("it needs next to no space");
    db.drop_column_family(&first).expect("it needs next to no space");
    drop(first);
    // One more may find no room: what nobody uses any longer is removed then.
    let _ = db.background_step();
    while db.background_step().expect("there is space") {}
    assert!(db.get("000000").expect("a lookup").is_some());
}

/// Where no writer had met the full disk the reserve was kept, and the drop failed again and again.
#[test]
fn who_drops_a_family_has_the_reserve_given_up() {
    let (small, db) = Small::new("");
    let family = db.create_column_family("other", &small.options.cf).expect("a family");
    db.put_cf(&family, "key", "value").expect("there is space");
    db.flush_all().expect("there is space");
    small.fs.set_limit(small.fs.used());
    let refused = db.drop_column_family(&family).expect_err("no space for a record");
    assert_eq!(refused.subcode(), SubCode::NoSpace, "{refused}");
    db.drop_column_family(&family).expect("there is what was reserved");
}

/// The drop was durable, and told as failed. So was a new family, which nobody had, and whose name
/// was taken.
#[test]
fn families_come_and_go_where_there_is_no_room_for_an_options_file() {
    for closes in [false, true] {
        let (small, db) = Small::new("reserved_disk_space=0");
        let gone = db.create_column_family("gone", &small.options.cf).expect("there is space");
        let names = || {
            let loaded = load_latest(&small.options.env, Path::new("/db")).expect("it reads");
            loaded
                .expect("there is one")
                .families
                .into_iter()
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };
        let limit = small.fs.limit();
        // For the MANIFEST's records there is room.
        small.fs.set_limit(small.fs.used() + 1000);
        let _made = db.create_column_family("made", &small.options.cf).expect("it is made");
        db.drop_column_family(&gone).expect("it is dropped");
        assert!(!db.background_step().expect("nothing to do"));
        assert_eq!(names(), ["default", "gone"]);
        small.fs.set_limit(limit);
        if closes {
            // Also when it was tried only just now.
            db.close().expect("a clean close");
        } else {
            small.options.env.clock.sleep(Duration::from_secs(30));
            assert!(!db.background_step().expect("nothing to do, but to look"));
        }
        assert_eq!(names(), ["default", "made"]);
    }
}

/// A database that made a family on a full disk, so that an OPTIONS file is due.
struct Watched {
    small: Small,
    disk: FaultFs,
    db: Db,
    /// How many OPTIONS files were begun since there was no room.
    tries: Arc<AtomicUsize>,
    /// Of the disk while there was room.
    limit: u64,
}

impl Watched {
    fn new() -> Self {
        let (mut small, db) = Small::new("reserved_disk_space=0");
        db.close().expect("a clean close");
        let disk = FaultFs::new(small.options.env.fs.clone());
        small.options.env = small.options.env.with_fs(Arc::new(disk.clone()));
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = tries.clone();
        disk.before_each(move |call, path| {
            let is_one = call == Call::Create
                && path.extension().is_some_and(|extension| extension == "dbtmp");
            counted.fetch_add(usize::from(is_one), Ordering::Relaxed);
        });
        let db = small.open();
        let limit = small.fs.limit();
        small.fs.set_limit(small.fs.used() + 1000);
        tries.store(0, Ordering::Relaxed);
        db.create_column_family("made", &small.options.cf).expect("it is made");
        Self { small, disk, db, tries, limit }
    }

    /// Half a minute, and what the background does then.
    fn later(&self) {
        self.small.options.env.clock.sleep(Duration::from_secs(30));
        self.db.background_step().expect("nothing to do, but to look");
    }

    fn options_files(&self) -> usize {
        let names = self.small.fs.list(Path::new("/db")).expect("a listing");
        names.iter().filter(|name| name.starts_with("OPTIONS-")).count()
    }
}

/// It was tried every time that the background looked for work, twice a second: each time a file, a
/// number and a warning.
#[test]
fn an_options_file_that_has_no_room_is_not_tried_again_and_again() {
    let Watched { small, db, tries, limit, .. } = Watched::new();
    for _half_second in 0..600 {
        db.background_step().expect("nothing to do, but to look");
        small.options.env.clock.sleep(Duration::from_millis(500));
    }
    let tried = tries.load(Ordering::Relaxed);
    assert!((8..20).contains(&tried), "{tried} times in 5 minutes");
    small.fs.set_limit(limit);
    small.options.env.clock.sleep(Duration::from_secs(30));
    db.background_step().expect("nothing to do, but to look");
    assert_eq!(tries.load(Ordering::Relaxed), tried + 1);
    let loaded =
        load_latest(&small.options.env, Path::new("/db")).expect("it reads").expect("there is one");
    assert_eq!(loaded.families.len(), 2);
}

/// It was due for ever: one more was written every half minute. And a family passed for refused
/// that was made.
#[test]
fn an_options_file_is_written_where_an_older_one_cannot_be_removed() {
    let watched = Watched::new();
    let Watched { small, disk, db, tries, .. } = &watched;
    small.fs.set_limit(watched.limit);
    let unremovable =
        Plan::Next { call: Call::Remove, sort: Sort::Options, injection: Injection::Io };
    disk.plan(unremovable);
    let before = tries.load(Ordering::Relaxed);
    watched.later();
    assert_eq!((disk.failed().len(), watched.options_files()), (1, 3));
    watched.later();
    assert_eq!(tries.load(Ordering::Relaxed) - before, 1, "it was written");
    assert_eq!(db.statistics().get(Ticker::RemovalsPutOff), 1);

    disk.plan(unremovable);
    db.create_column_family("another", &small.options.cf).expect("it is made");
    assert_eq!((disk.failed().len(), watched.options_files()), (2, 4));
    watched.later();
    assert_eq!(tries.load(Ordering::Relaxed) - before, 2);
    db.create_column_family("last", &small.options.cf).expect("it is made");
    assert_eq!(watched.options_files(), 2, "all are removed with the next");
}

/// Whoever made a family was told that it failed where the device did, or the directory could not
/// be synced, and had none: its name was taken. Of a drop it was the same, and the next one met a
/// family that is gone.
#[test]
fn families_come_and_go_where_an_options_file_cannot_be_written() {
    for (call, sort) in OPTIONS_FILE_CALLS {
        let watched = Watched::new();
        let Watched { small, disk, db, .. } = &watched;
        small.fs.set_limit(watched.limit);
        watched.later();
        let fails = Plan::Next { call, sort, injection: Injection::Io };
        disk.plan(fails);
        let another = db.create_column_family("another", &small.options.cf).expect("it is made");
        assert_eq!(disk.failed().len(), 1, "{call:?}");
        disk.plan(fails);
        db.drop_column_family(&db.column_family("made").expect("it was made"))
            .expect("it is dropped");
        assert_eq!(
            (disk.failed().len(), db.statistics().get(Ticker::OptionsFilesPutOff)),
            (2, 3),
            "{call:?}"
        );
        db.put_cf(&another, "key", "value").expect("a write");
        watched.later();
        let loaded = load_latest(&small.options.env, Path::new("/db"))
            .expect("it reads")
            .expect("there is one");
        let names: Vec<_> = loaded.families.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["default", "another"], "{call:?}");
    }
}

/// Each attempt whose name a power loss might have taken left a file, and those that had lasted
/// went as the third newest.
#[test]
fn options_files_whose_names_may_be_lost_do_not_pile_up() {
    let watched = Watched::new();
    let Watched { small, disk, tries, .. } = &watched;
    small.fs.set_limit(watched.limit);
    let before = tries.load(Ordering::Relaxed);
    for _ in 0..20 {
        disk.plan(Plan::Next {
            call: Call::SyncDirectory,
            sort: Sort::Directory,
            injection: Injection::Io,
        });
        watched.later();
    }
    assert_eq!((tries.load(Ordering::Relaxed) - before, disk.failed().len()), (20, 20));
    assert_eq!(watched.options_files(), 2, "those that last");
    watched.later();
    assert_eq!(watched.options_files(), 2);
    let loaded =
        load_latest(&small.options.env, Path::new("/db")).expect("it reads").expect("there is one");
    assert_eq!(loaded.families.len(), 2);
}

/// What this thread warns of.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut said = String::new();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            said += &format!("{field}: {value:?}; ")
        });
        self.0.lock().push(said);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// Only other reasons than a full disk were told, and not that the database was poisoned.
#[test]
fn who_closes_without_an_options_file_is_warned_once() {
    for reason in ["no space left", "Sync (injected)", "close and reopen it"] {
        let Watched { small, disk, db, limit, .. } = Watched::new();
        match reason {
            "no space left" => {}
            "Sync (injected)" => {
                small.fs.set_limit(limit);
                disk.plan(Plan::Next {
                    call: Call::Sync,
                    sort: Sort::Temporary,
                    injection: Injection::Io,
                });
            }
            _ => {
                small.fs.set_limit(limit);
                disk.plan(Plan::Next {
                    call: Call::Create,
                    sort: Sort::Table,
                    injection: Injection::Io,
                });
                db.put("key", "value").expect("a write");
                db.flush_all().expect_err("no table");
            }
        }
        let warnings = Warnings::default();
        let _whatever_it_says = with_default(warnings.clone(), || db.close());
        let said = warnings.0.lock();
        let said: Vec<_> = said.iter().filter(|said| said.contains("OPTIONS")).collect();
        assert!(
            said.len() == 1 && said[0].contains("closed without") && said[0].contains(reason),
            "{said:?}"
        );
    }
}

/// With direct I/O, which is tried with a block of its own before the reserve is given up, it did
/// not.
#[test]
fn a_database_opens_on_a_full_disk_and_goes_on_when_there_is_space() {
    for settings in ["", "use_direct_io_for_flush_and_compaction=true"] {
        let (small, db) = Small::new(settings);
        db.put("key", "value").expect("a write");
        db.close().expect("a clean close");
        small.fs.set_limit(small.fs.used());
        // Somebody takes what the reserve gives up for the recovery.
        let path = Path::new("/db/of_another_program");
        let other = small.fs.create_writable(path, IoMode::Buffered).expect("a file");
        let db = {
            let limit = small.fs.limit();
            small.fs.set_limit(limit - 50_000);
            let db = small.open();
            small.fs.set_limit(limit);
            db
        };
        drop(other);
        assert_eq!(db.get("key").expect("a lookup").as_deref(), Some(&b"value"[..]));
        let refused = db.put("key", "newer").expect_err("the reserve is not complete");
        assert_eq!(refused.subcode(), SubCode::NoSpace);
        small.fs.set_limit(1_000_000);
        db.background_step().expect("nothing to do, but to look");
        db.put("key", "newer").expect("there is space");
    }
}

#[test]
fn without_the_option_nothing_is_reserved_any_longer() {
    let (mut small, db) = Small::new("");
    assert!(small.fs.used() > 100_000);
    assert!(db.check().expect("a check").strays.is_empty());
    db.close().expect("a clean close");
    small.options.set_all("reserved_disk_space=0").expect("an option");
    let _db = small.open();
    assert!(small.fs.used() < 100_000 && small.fs.metadata(Path::new("/db/RESERVE")).is_err());
}

/// The limit of all WALs asks for flushes once. Where the disk had no room for the next WAL just
/// then, nobody tried again.
#[test]
fn what_the_limit_of_wals_asked_for_is_done_when_there_is_space() {
    let faults = FaultFs::new(Arc::new(MemoryFileSystem::new()));
    let mut options =
        Options { env: steps::world(Arc::new(faults.clone()), 1), ..Options::default() };
    options
        .set_all("create_if_missing=true;write_buffer_size=1000000;max_total_wal_size=30000")
        .expect("options");
    let db = Db::open("/db", &options).expect("a database");
    let other = db.create_column_family("other", &options.cf).expect("a family");
    db.put_cf(&other, "key", "value").expect("a write");
    db.put("key", "value").expect("a write");
    db.flush(db.default_column_family(), &FlushOptions::default()).expect("a flush");
    let oldest = db.wal_files()[0].number;
    while db.wal_files().iter().map(|wal| wal.size).sum::<u64>() <= 30_000 {
        db.put("key", vec![b'x'; 1000]).expect("a write");
    }
    faults.plan(Plan::Next { call: Call::Create, sort: Sort::Wal, injection: Injection::NoSpace });
    assert_eq!(db.put("key", "value").expect_err("no room for a WAL").subcode(), SubCode::NoSpace);
    assert_eq!(db.wal_files()[0].number, oldest);
    db.put("key", "value").expect("there is space");
    db.wait_for_compactions().expect("flushes");
    assert!(db.wal_files()[0].number > oldest);
}

/// A MANIFEST that was replaced stayed until the database was opened again. On a full disk each
/// attempt at a change begins a new one.
#[test]
fn a_manifest_that_was_replaced_does_not_stay() {
    let (small, db) = Small::new("max_manifest_file_size=1");
    for number in 0..5 {
        db.put("key", format!("{number}")).expect("a write");
        db.flush_all().expect("a flush");
    }
    let names = small.fs.list(Path::new("/db")).expect("a listing");
    let manifests = names.iter().filter(|name| name.starts_with("MANIFEST-")).count();
    assert_eq!(manifests, 1, "{names:?}");
}

/// What `laboratory full-disk` does on a real file system.
#[test]
fn lives_on_a_disk_that_is_full_now_and_then_lose_nothing_and_go_on() {
    testkit::for_each_seed(2, |seed| {
        let room = Room::in_memory(48 << 20).expect("memory");
        live(&room, seed).unwrap_or_else(|fault| panic!("{fault}"));
    });
}
