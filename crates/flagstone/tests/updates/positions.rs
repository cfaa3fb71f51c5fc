//! Who goes on after a power loss of the primary is told whether what it holds is what the primary
//! holds.

use std::path::Path;
use std::sync::Arc;

use flagstone::base::{Code, Error, SequenceNumber, file_name};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, UpdatePosition};
use flagstone::env::FileSystem;
use flagstone::options::{FlushOptions, Options};
use flagstone::wal::{Event, PredecessorWal, Reader};
use testkit::crash::{Disk, State};
use testkit::{CrashFs, Survival, steps};

use crate::{PRIMARY, keys, open, options};

/// A primary that loses power, once it has been followed to its end, with all that was not synced.
struct Interrupted {
    options: Options,
    disk: CrashFs,
    db: Db,
}

impl Interrupted {
    fn new(changes: &[(&str, &str)]) -> Self {
        let disk = CrashFs::new();
        let mut options = options(changes);
        options.env = steps::world(Arc::new(disk.clone()), 1);
        let db = open(&options);
        Self { options, disk, db }
    }

    fn put(&self, keys: &[&str]) {
        keys.iter().for_each(|key| self.db.put(key, "value").expect("a write"));
    }

    /// Where whoever goes on from `sequence` is at the end.
    fn position_from(&self, sequence: SequenceNumber) -> UpdatePosition {
        let mut updates = self.db.get_updates_since(sequence).expect("updates");
        let positions = std::iter::from_fn(|| updates.next_update().expect("an update"));
        positions.last().expect("there is one").position
    }

    fn lose_power(self) -> Self {
        let left = State::of(&self.disk.after_crash(self.disk.changes(), Survival::Lost));
        self.go_on_with(CrashFs::on(Disk::holding(&left)))
    }

    fn reopen(self) -> Self {
        self.db.close().expect("closed");
        let disk = self.disk.clone();
        self.go_on_with(disk)
    }

    fn go_on_with(mut self, disk: CrashFs) -> Self {
        self.options.env = steps::world(Arc::new(disk.clone()), 1);
        drop(self.db);
        let db = open(&self.options);
        Self { options: self.options, disk, db }
    }

    fn error_after(&self, position: UpdatePosition) -> Error {
        self.db.get_updates_after(position).expect_err("it is refused")
    }
}

/// The replica was given the new `c` after the lost `b`, and nobody noticed.
#[test]
fn a_replica_of_what_a_power_loss_has_taken_is_told_so() {
    for keeps_wals in
        ["avoid_flush_during_recovery=true", "WAL_ttl_seconds=100", "recycle_log_file_num=0"]
    {
        let primary = Interrupted::new(&[keeps_wals.split_once('=').expect("an option")]);
        primary.put(&["a"]);
        primary.db.sync_wal().unwrap();
        let synced = primary.position_from(1);
        primary.put(&["b"]);
        let lost = primary.position_from(1);
        let primary = primary.lose_power();
        let ahead = primary.error_after(lost);
        assert_eq!(ahead.code(), Code::InvalidArgument, "{ahead}");
        primary.put(&["another b", "c"]);
        let error = primary.error_after(lost);
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(
            error.to_string().contains("the writes before sequence number 3 differ from those"),
            "{error}"
        );
        assert!(primary.db.get_updates_since(3).is_ok(), "the number alone does not tell");
        match primary.db.get_updates_after(synced) {
            Ok(mut updates) => assert_eq!(keys(&mut updates), ["another b", "c"]),
            Err(error) => {
                assert!(
                    error.code() == Code::NotFound && keeps_wals != "WAL_ttl_seconds=100",
                    "{error}"
                );
            }
        }
    }
}

/// Where the WALs that would tell are gone, that is said, and not guessed.
#[test]
fn what_wals_no_longer_tell_is_not_guessed() {
    let primary = Interrupted::new(&[("recycle_log_file_num", "0")]);
    primary.put(&["a"]);
    primary.db.sync_wal().unwrap();
    primary.put(&["b"]);
    let lost = primary.position_from(1);
    let primary = primary.lose_power();
    primary.put(&["another b"]);
    primary.db.flush_all().unwrap();
    let error = primary.error_after(lost);
    assert_eq!(error.code(), Code::NotFound, "{error}");
    primary.put(&["c"]);
    let error = primary.error_after(lost);
    assert_eq!(error.code(), Code::NotFound, "{error}");
    assert!(error.to_string().contains("nobody can tell"), "{error}");
}

/// What an application had written beside its operations was taken for the engine's note that
/// nothing is missing.
#[test]
fn log_data_of_an_application_does_not_say_what_precedes_it() {
    let primary = Interrupted::new(&[("recycle_log_file_num", "0")]);
    primary.put(&["a"]);
    let position = primary.position_from(1);
    let primary = primary.reopen();
    let noted = PredecessorWal { number: position.wal.0, size: 100, last_sequence: 1 };
    let mut batch = WriteBatch::new();
    batch.put_log_data(noted.to_note()).unwrap();
    batch.put(b"b", b"value").unwrap();
    primary.db.write(batch).unwrap();
    let error = primary.error_after(position);
    assert_eq!(error.code(), Code::NotFound, "{error}");
}

#[test]
fn a_replica_goes_on_behind_flushes_and_openings() {
    let primary = Interrupted::new(&[("recycle_log_file_num", "0")]);
    primary.put(&["a"]);
    let position = primary.position_from(1);
    primary.db.flush_all().unwrap();
    let mut updates = primary.db.get_updates_after(position).unwrap();
    assert!(
        updates.next_update().unwrap().is_none(),
        "though the WAL is gone, and the next one empty"
    );
    primary.put(&["b"]);
    assert_eq!(keys(&mut updates), ["b"]);
    assert_eq!(keys(&mut primary.db.get_updates_after(position).unwrap()), ["b"]);

    let mut primary = Interrupted::new(&[("WAL_ttl_seconds", "100")]);
    for key in ["a", "b", "c"] {
        primary.put(&[key]);
        let position = primary.position_from(1);
        primary = primary.reopen();
        assert!(primary.db.get_updates_after(position).unwrap().next_update().unwrap().is_none());
        primary.put(&["later"]);
        primary.db.flush_all().unwrap();
        assert_eq!(keys(&mut primary.db.get_updates_after(position).unwrap()), ["later"]);
    }
}

#[test]
fn a_copy_that_went_on_otherwise_is_another_database() {
    let original = Interrupted::new(&[("WAL_ttl_seconds", "100")]);
    original.put(&["a"]);
    original.db.sync_wal().unwrap();
    let copy = State::of(&original.disk.after_crash(original.disk.changes(), Survival::Kept));
    let original = original.reopen();
    original.put(&["b"]);
    let position = original.position_from(1);
    let options = original.options.clone();
    let world = Interrupted { options, disk: original.disk.clone(), db: original.db.clone() };
    let copy = world.go_on_with(CrashFs::on(Disk::holding(&copy)));
    copy.put(&["c"]);
    let same_place = copy.position_from(2);
    assert_eq!((same_place.next_sequence, same_place.wal), (position.next_sequence, position.wal));
    let error = copy.error_after(position);
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.to_string().contains("a different record ends there"), "{error}");
    // What the next WAL says of the one before is the same in both.
    copy.db.flush_all().unwrap();
    copy.put(&["d"]);
    let error = copy.error_after(position);
    assert!(error.to_string().contains("a different record ends there"), "{error}");
}

/// What the WAL says of the one before was nowhere to be seen, and the replica was to make a new
/// copy.
#[test]
fn a_replica_goes_on_while_the_next_writes_wait_in_memory() {
    let primary = Interrupted::new(&[("recycle_log_file_num", "0"), ("manual_wal_flush", "true")]);
    primary.put(&["a"]);
    primary.db.flush_wal(false).unwrap();
    let position = primary.position_from(1);
    primary.db.flush_all().unwrap();
    primary.put(&["b"]);
    let mut updates = primary.db.get_updates_after(position).unwrap();
    assert!(updates.next_update().unwrap().is_none(), "it is in memory");
    primary.db.flush_wal(false).unwrap();
    assert_eq!(keys(&mut updates), ["b"]);
}

/// Whoever asked for the next write was given the one that recovery had left out, as soon as
/// another one had its number.
#[test]
fn a_log_that_recovery_has_left_out_is_not_where_anybody_begins() {
    let primary = Interrupted::new(&[("WAL_ttl_seconds", "100"), ("recycle_log_file_num", "0")]);
    let other = primary.db.create_column_family("other", &primary.options.cf).unwrap();
    primary.db.put_cf(&other, "x", "value").unwrap();
    primary.put(&["a"]);
    let wal = primary.position_from(1).wal;
    let mut nothing = WriteBatch::new();
    nothing.put_log_data("no operation").unwrap();
    primary.db.write(nothing).unwrap();
    let waits_not = FlushOptions { wait: false, ..FlushOptions::default() };
    primary.db.flush(primary.db.default_column_family(), &waits_not).unwrap();
    primary.put(&["lost"]);

    let left = State::of(&primary.disk.after_crash(primary.disk.changes(), Survival::Kept));
    let disk = CrashFs::on(Disk::holding(&left));
    let file = disk.reopen_writable(&file_name::wal(Path::new(PRIMARY), wal)).unwrap();
    let mut log = Reader::new(file.clone(), wal);
    let mut last = 0;
    while let Event::Record(_) = log.next_event().unwrap() {
        last = log.record_offset();
    }
    file.truncate(last).unwrap();
    let primary = primary.go_on_with(disk);
    assert_eq!(primary.db.latest_sequence_number(), 2, "the log behind it does not count");
    let mut updates = primary.db.get_updates_since(3).unwrap();
    assert!(updates.next_update().unwrap().is_none());
    primary.put(&["b"]);
    for mut updates in [
        updates,
        primary.db.get_updates_since(2).unwrap(),
        primary.db.get_updates_since(3).unwrap(),
    ] {
        assert_eq!(keys(&mut updates).last().map(String::as_str), Some("b"));
        assert_eq!(updates.next_sequence(), 4);
    }
}

#[test]
fn positions_come_back_from_their_bytes() {
    let db = open(&options(&[]));
    db.put("a", "value").unwrap();
    let position = db.get_updates_since(1).unwrap().next_update().unwrap().unwrap().position;
    let bytes = position.to_bytes();
    assert_eq!(UpdatePosition::from_bytes(&bytes), Some(position));
    assert_eq!(UpdatePosition::from_bytes(&bytes[1..]), None);
    assert_eq!(UpdatePosition::from_bytes(&[&bytes[..], &[0]].concat()), None);
    for filler in [0, 1, 0x7f, 0xff] {
        let invented = UpdatePosition::from_bytes(&[filler; UpdatePosition::SIZE])
            .expect("the length is right");
        assert!(db.get_updates_after(invented).is_err(), "{invented:?}");
    }
}
