//! WALs that are kept after recovery has no use for them.

use std::sync::Arc;
use std::time::Duration;

use flagstone::base::FileNumber;
use flagstone::db::{Db, WalFile};
use flagstone::env::IoMode;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::Options;
use flagstone::wal::{Event, Reader};
use testkit::fault::{Call, FaultFs, Injection, Plan, Sort};
use testkit::{CrashFs, settings, steps};

const PATH: &str = "/db";

fn options(changes: &[(&str, &str)]) -> Options {
    let mut options = settings::tiny(&steps::world(Arc::new(MemoryFileSystem::new()), 1));
    settings::set(&mut options, changes);
    options
}

fn write_and_flush(db: &Db, keys: std::ops::Range<u32>) {
    for n in keys {
        db.put(format!("key {n}"), [7; 2000]).expect("a write");
        db.flush_all().expect("a flush");
    }
}

fn archived(db: &Db) -> Vec<WalFile> {
    db.wal_files().into_iter().filter(|wal| wal.archived).collect()
}

fn records(options: &Options, wal: &WalFile) -> usize {
    let file = options.env.fs.open_random_access(&wal.path, IoMode::Buffered).expect("it is there");
    assert_eq!(file.size().expect("it is open"), wal.size);
    let mut reader = Reader::new(file, wal.number);
    let mut records = 0;
    while let Event::Record(_) = reader.next_event().expect("it can be read") {
        records += 1;
    }
    records
}

#[test]
fn what_was_flushed_can_still_be_read_along() {
    let options = options(&[("WAL_ttl_seconds", "100")]);
    let db = Db::open(PATH, &options).unwrap();
    write_and_flush(&db, 0..5);
    let kept = archived(&db);
    assert_eq!(kept.len(), 5);
    assert!(kept.is_sorted_by_key(|wal| wal.number));
    let starts = kept.iter().map(|wal| db.start_of_wal(wal).unwrap());
    assert!(starts.eq((1..=5).map(Some)), "each has one write");
    assert!(
        kept.iter().all(|wal| wal.path.starts_with("/db/archive") && records(&options, wal) >= 1)
    );
    db.close().unwrap();

    // Opening the database leaves them alone, as long as they are not too old.
    let db = Db::open(PATH, &options).unwrap();
    assert_eq!(archived(&db)[..5], kept);
    options.env.clock.sleep(Duration::from_secs(101));
    write_and_flush(&db, 5..6);
    assert_eq!(archived(&db).len(), 1, "the others are too old");
    assert!(db.get("key 0").unwrap().is_some());
}

/// It was listed, and handed out, behind the others: whoever read along was told that there was a
/// gap.
#[test]
fn a_wal_whose_move_a_power_loss_has_undone_takes_its_place_again() {
    let options = options(&[("WAL_ttl_seconds", "100"), ("recycle_log_file_num", "0")]);
    let db = Db::open(PATH, &options).unwrap();
    write_and_flush(&db, 0..4);
    let undone = archived(&db)[1].clone();
    db.close().unwrap();
    let before = format!("{PATH}/{}", undone.path.file_name().unwrap().display());
    options.env.fs.rename(&undone.path, before.as_ref()).unwrap();
    let db = Db::open(PATH, &options).unwrap();
    let kept = db.wal_files();
    assert!(kept.contains(&undone) && kept.is_sorted_by_key(|wal| wal.number), "{kept:?}");
    let mut updates = db.get_updates_since(1).unwrap();
    for n in 0..4 {
        let update = updates.next_update().unwrap().unwrap();
        assert_eq!(update.sequence, n + 1);
    }
}

#[test]
fn the_oldest_make_room() {
    let options = options(&[("WAL_size_limit_MB", "1"), ("write_buffer_size", "1000000")]);
    let db = Db::open(PATH, &options).unwrap();
    for n in 0..8 {
        db.put(format!("key {n}"), vec![7; 200_000]).unwrap();
        db.flush_all().unwrap();
    }
    let kept = archived(&db);
    assert_eq!(kept.len(), 5);
    let numbers: Vec<FileNumber> = db.wal_files().iter().map(|wal| wal.number).collect();
    assert!(
        numbers.is_sorted() && numbers.len() == 6,
        "the active one is listed last: {numbers:?}"
    );
}

/// Whoever removed the directory to free space had all WALs from then on, which were not moved, nor
/// ever removed.
#[test]
fn an_archive_that_somebody_removed_is_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.create_if_missing = true;
    settings::set(&mut options, &[("WAL_ttl_seconds", "1000")]);
    let db = Db::open(directory.path(), &options).unwrap();
    write_and_flush(&db, 0..2);
    let archive = directory.path().join("archive");
    assert_eq!(options.env.fs.list(&archive).unwrap().len(), 2);
    for wal in archived(&db) {
        options.env.fs.remove(&wal.path).unwrap();
    }
    options.env.fs.remove_directory(&archive).unwrap();
    write_and_flush(&db, 2..3);
    assert!(archived(&db).last().unwrap().path.starts_with(&archive));
    assert_eq!(options.env.fs.list(&archive).unwrap().len(), 1);
    // One that is gone from the WALs' directory keeps those behind it from nothing.
    let active = db.wal_files().pop().unwrap();
    options.env.fs.remove(&active.path).unwrap();
    write_and_flush(&db, 3..5);
    assert_eq!(options.env.fs.list(&archive).unwrap().len(), 2);
    assert!(archived(&db).iter().all(|wal| wal.number != active.number));
}

/// WALs gathered behind one that could not be moved, and the database, to whose recovery they are
/// nothing, did not open.
#[test]
fn a_wal_that_cannot_be_moved_holds_up_no_others() {
    let fs = FaultFs::above(&CrashFs::new());
    let mut options = settings::tiny(&steps::world(Arc::new(fs.clone()), 0));
    settings::set(&mut options, &[("WAL_ttl_seconds", "100"), ("recycle_log_file_num", "0")]);
    let move_fails =
        || fs.plan(Plan::Next { call: Call::Move, sort: Sort::Wal, injection: Injection::Io });
    let moved = |db: &Db| {
        archived(db).iter().map(|wal| wal.path.starts_with("/db/archive")).collect::<Vec<_>>()
    };
    let db = Db::open(PATH, &options).unwrap();
    for expected in [vec![false], vec![false, true]] {
        move_fails();
        db.put("key", "value").unwrap();
        db.flush_all().unwrap();
        assert_eq!(moved(&db), expected);
    }
    assert!(archived(&db).is_sorted_by_key(|wal| wal.number));
    db.close().unwrap();
    drop(db);
    move_fails();
    let db = Db::open(PATH, &options).unwrap();
    write_and_flush(&db, 0..1);
    assert!(moved(&db).iter().all(|is_moved| *is_moved));
}

/// What was too old was forgotten with the first of it that could not be removed, and stayed.
#[test]
fn a_wal_that_cannot_be_removed_is_tried_again() {
    let fs = FaultFs::above(&CrashFs::new());
    let mut options = settings::tiny(&steps::world(Arc::new(fs.clone()), 0));
    settings::set(&mut options, &[("WAL_ttl_seconds", "100"), ("recycle_log_file_num", "0")]);
    let db = Db::open(PATH, &options).unwrap();
    write_and_flush(&db, 0..4);
    options.env.clock.sleep(Duration::from_secs(101));
    fs.plan(Plan::Next { call: Call::Remove, sort: Sort::Wal, injection: Injection::Io });
    write_and_flush(&db, 4..5);
    assert_eq!(archived(&db).len(), 5);
    write_and_flush(&db, 5..6);
    assert_eq!(archived(&db).len(), 2);
    assert_eq!(options.env.fs.list("/db/archive".as_ref()).unwrap().len(), 2);
}
