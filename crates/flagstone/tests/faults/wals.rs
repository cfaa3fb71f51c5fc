//! WALs on a disk that fails.

use flagstone::db::TwoPhase;

use super::*;

/// Not every file system keeps what it reserves. Where one was full when a log that is flushed by
/// hand had to write, the database accepted nothing any more.
#[test]
fn a_log_by_hand_that_finds_the_disk_full_waits_on() {
    for mode in ["plain", "mapped"] {
        let mut world = World::new(&[
            ("manual_wal_flush", "true"),
            ("writable_file_max_buffer_size", "4096"),
            ("write_buffer_size", "1000000"),
            ("wal_write_mode", mode),
        ]);
        let db = world.open().unwrap();
        db.put("kept", [7; 3000]).unwrap();
        let full = |outcome: flagstone::base::Result<()>| {
            outcome.unwrap_err().subcode() == SubCode::NoSpace
        };
        world.fs.plan(Plan::Lasting { at: 0, injection: Injection::NoSpace });
        assert!(full(db.put("refused", [7; 3000])) && full(db.flush_wal(false)), "{mode}");
        world.fs.heal();
        db.put("later", [7; 3000]).unwrap();
        db.flush_wal(false).unwrap();
        world.die(db);
        let db = world.open().unwrap();
        let found = ["kept", "refused", "later"].map(|key| db.get(key).unwrap().is_some());
        assert_eq!(found, [true, false, true], "{mode}");
    }
}

/// A read that stops short of the end, without an error, was taken for the end of the log: writes
/// and tables were gone.
#[test]
fn a_short_read_is_not_the_end_of_a_log() {
    for sort in [Sort::Wal, Sort::Manifest, Sort::Current, Sort::Identity] {
        let mut world = World::new(&[]);
        let db = world.open().unwrap();
        db.put("flushed", "value").unwrap();
        db.flush_all().unwrap();
        for number in 0..50 {
            db.put(format!("{number}"), "value").unwrap();
        }
        world.die(db);
        world.fail_next(Call::Read, sort, Injection::Short);
        let db = world.open().unwrap();
        assert_eq!(world.fs.failed().len(), 1, "{sort:?} was read");
        assert_eq!(
            compare::scan(&db, db.default_column_family(), &Default::default()).unwrap().len(),
            51
        );
    }
}

/// Each write on a disk whose directory could not be synced left a WAL behind.
#[test]
fn a_wal_whose_name_is_not_durable_does_not_stay() {
    let world = World::new(&[]);
    let db = world.open().unwrap();
    db.put("key", "value").unwrap();
    let before = world.files(".log");
    for _ in 0..10 {
        world.fail_next(Call::SyncDirectory, Sort::Directory, Injection::Io);
        db.flush_all().unwrap_err();
    }
    world.fs.heal();
    assert_eq!(world.files(".log"), before);
    db.flush_all().unwrap();
}

/// After a sync that failed, the system takes the file's pages for clean. The next process read
/// them, kept them in memory and synced the file: nothing was written, and a power loss took what
/// had been there, and all that was synced after it.
#[test]
fn wals_that_recovery_keeps_are_written_again() {
    let mut world = World::new(&[("avoid_flush_during_recovery", "true")]);
    let db = world.open().unwrap();
    db.put("older", "value").unwrap();
    world.fail_next(Call::Sync, Sort::Wal, Injection::Io);
    db.sync_wal().unwrap_err();
    world.die(db);
    let db = world.open().unwrap();
    assert_eq!(db.get("older").unwrap().unwrap(), "value");
    put_synced(&db, "newer").unwrap();

    let db = world.open_after_power_loss(Survival::Lost).unwrap();
    assert_eq!(db.get("newer").unwrap().unwrap(), "value");
    assert_eq!(db.get("older").unwrap().unwrap(), "value", "what follows it is there");
}

/// A sync that failed had not made durable either that a blob file was cut off behind its value,
/// where zeros had been written ahead. The next process kept the file as it found it, wrote its
/// bytes again and named it in the MANIFEST; after a power loss the zeros were there again, and no
/// footer at the file's end.
#[test]
fn a_blob_file_that_recovery_keeps_gets_its_size_again() {
    let mut world = World::new(&[
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("blob_commit_min_size", "100"),
        ("blob_commit_synced_min_size", "100"),
    ]);
    let db = world.open().unwrap();
    db.put("large", [7; 500]).unwrap();
    db.sync_wal().unwrap();
    world.fail_next(Call::Sync, Sort::Blob, Injection::NoSpace);
    db.close().unwrap_err();
    world.die(db);
    let db = world.open().unwrap();
    db.flush_all().unwrap();

    let db = world.open_after_power_loss(Survival::Lost).unwrap();
    assert_eq!(db.get("large").unwrap().as_deref(), Some(&[7; 500][..]));
}

/// What a file holds is read up to its size, or it is an error.
#[test]
fn a_wal_that_cannot_be_archived_goes_along_with_the_next() {
    let world = World::new(&[("WAL_ttl_seconds", "100"), ("recycle_log_file_num", "0")]);
    let db = world.open().unwrap();
    let archived = || {
        let kept = db.wal_files().into_iter().filter(|wal| wal.archived);
        kept.map(|wal| wal.path.parent().unwrap().ends_with("archive")).collect::<Vec<_>>()
    };
    for (injection, expected) in
        [(Injection::Io, vec![false]), (Injection::Late, vec![true, true, false])]
    {
        world.fail_next(Call::Move, Sort::Wal, injection);
        put_synced(&db, "a").unwrap();
        db.flush_all().unwrap();
        assert_eq!(archived(), expected);
        put_synced(&db, "b").unwrap();
        db.flush_all().unwrap();
        assert!(archived().iter().all(|is_there| *is_there));
    }
    assert_eq!(archived().len(), 4);
}

/// Two threads synced the same WAL; the first was told that its data is lost, the second that all
/// is well, as the system tells of such a failure only once. The second acknowledged its write.
#[test]
fn of_two_who_sync_a_wal_none_succeeds_after_the_other_failed() {
    let world = World::new(&[]);
    let db = world.open().unwrap();
    let other = db.create_column_family("other", &world.options.cf).unwrap();
    db.put("older", "value").unwrap();
    db.put_cf(&other, "key", "value").unwrap();
    let (done, outcome) = std::sync::mpsc::channel();
    let mine = db.clone();
    let (tell, told) = std::sync::mpsc::channel();
    world.fs.when_one_fails(move || {
        let write = Box::new(move || done.send(put_synced(&mine, "newer")).unwrap());
        let writer = Env::os().spawner.spawn("writer", write).unwrap();
        // As long as it would take it; it must not come to an end before this sync has failed.
        tell.send(outcome.recv_timeout(std::time::Duration::from_millis(200)).ok()).unwrap();
        drop(writer);
    });
    world.fail_next(Call::Sync, Sort::Wal, Injection::Io);
    // Of one family of several: it must first sync what the others have in older WALs.
    db.flush(&other, &Default::default()).unwrap_err();
    assert!(told.recv().unwrap().is_none(), "the second sync went on beside the first");
    assert_eq!(put_synced(&db, "newest").unwrap_err().subcode(), SubCode::Poisoned);
}

/// A decision whose sync failed is logged, perhaps: the next opening tells. Who tried once more
/// heard that nothing of that name is prepared, as if it had never been.
#[test]
fn behind_a_failed_sync_nobody_hears_that_nothing_is_prepared() {
    let world = World::new(&[("allow_2pc", "true")]);
    let db = world.open().unwrap();
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    let mut batch = WriteBatch::new();
    batch.put(b"key", b"value").unwrap();
    let two_phase = TwoPhase::of(&db);
    two_phase.prepare(&synced, "one", batch.clone()).unwrap();
    world.fail_next(Call::Sync, Sort::Wal, Injection::Io);
    two_phase.commit(&synced, "one", &WriteBatch::new()).unwrap_err();
    for again in [
        two_phase.commit(&synced, "one", &WriteBatch::new()),
        two_phase.rollback(&synced, "one"),
        two_phase.prepare(&synced, "one", batch),
    ] {
        assert_eq!(again.unwrap_err().subcode(), SubCode::Poisoned);
    }
}

/// A process died before it synced what it had prepared. The next one committed that, synced; a
/// power loss then took the section from the older WAL, and the commit had nothing to commit.
#[test]
fn what_was_prepared_is_durable_before_it_is_committed() {
    for (is_flushed, sync_fails) in [(false, false), (false, true), (true, false)] {
        let mut world = World::new(&[("allow_2pc", "true")]);
        let db = world.open().unwrap();
        let mut batch = WriteBatch::new();
        batch.put(b"key", b"value").unwrap();
        TwoPhase::of(&db).prepare(&WriteOptions::default(), "one", batch).unwrap();
        if is_flushed {
            db.put("other", "value").unwrap();
            db.flush_all().unwrap();
        }
        if sync_fails {
            world.fail_next(Call::Sync, Sort::Wal, Injection::Io);
            db.sync_wal().unwrap_err();
        }
        world.die(db);
        let db = world.open().unwrap();
        let synced = WriteOptions { sync: true, ..WriteOptions::default() };
        TwoPhase::of(&db).commit(&synced, "one", &WriteBatch::new()).unwrap();

        let db = world.open_after_power_loss(Survival::Lost).unwrap();
        assert_eq!(
            db.get("key").unwrap().as_deref(),
            Some(&b"value"[..]),
            "{is_flushed} {sync_fails}"
        );
    }
}

/// Ten lives that ended with something prepared left 775 MiB of WALs: each kept what it had
/// reserved.
#[test]
fn wals_that_stay_for_what_is_prepared_reserve_nothing() {
    let mut world = World::new(&[
        ("allow_2pc", "true"),
        ("write_buffer_size", "1000000"),
        ("wal_write_mode", "mapped"),
    ]);
    for life in 0..3 {
        let db = world.open().unwrap();
        let mut batch = WriteBatch::new();
        batch.put(b"key", b"value").unwrap();
        let name = format!("life {life}");
        TwoPhase::of(&db).prepare(&WriteOptions::default(), name, batch).unwrap();
        world.die(db);
    }
    let db = world.open().unwrap();
    assert_eq!(TwoPhase::of(&db).prepared().len(), 3);
    let mut wals = db.wal_files();
    wals.pop();
    assert_eq!(wals.len(), 3, "all but the active one hold something prepared");
    for wal in wals {
        let size = world.disk.metadata(&wal.path).unwrap().size;
        assert!(size < 1000, "{} has {size} bytes", wal.path.display());
    }
}

/// A flush lets go of the WAL that holds a prepared section, and nobody had synced that.
#[test]
fn a_synced_commit_syncs_what_was_prepared_before_a_flush() {
    let world = World::new(&[("allow_2pc", "true")]);
    let db = world.open().unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"key", b"value").unwrap();
    TwoPhase::of(&db).prepare(&WriteOptions::default(), "one", batch).unwrap();
    db.put("other", "value").unwrap();
    db.flush_all().unwrap();
    let synced = WriteOptions { sync: true, ..WriteOptions::default() };
    TwoPhase::of(&db).commit(&synced, "one", &WriteBatch::new()).unwrap();
    let db = world.open_after_power_loss(Survival::Lost).unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// A WAL that stays for what is prepared ended with a torn record. The database opened; when it was
/// opened again, the same record was taken for damage that hides something.
#[test]
fn a_torn_record_that_was_accepted_once_does_not_come_back() {
    let mut world = World::new(&[("allow_2pc", "true")]);
    let db = world.open().unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"key", b"value").unwrap();
    TwoPhase::of(&db).prepare(&WriteOptions::default(), "one", batch).unwrap();
    db.put("torn", "value").unwrap();
    let wal = db.wal_files().pop().unwrap();
    world.die(db);
    let file = world.disk.reopen_writable(&wal.path).unwrap();
    file.write_at(wal.size - 1, b"?").unwrap();
    for _ in 0..3 {
        let db = world.open().unwrap();
        assert_eq!(TwoPhase::of(&db).prepared().len(), 1);
        assert!(db.get("torn").unwrap().is_none());
        db.put("later", "value").unwrap();
        world.die(db);
    }
}
