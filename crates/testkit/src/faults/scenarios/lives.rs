//! What happens in each life: before anything may fail, and while it may.

use flagstone::db::Db;
use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions,
};

use super::super::ingested::ingest;
use super::super::life::{DATABASE, Life};
use super::super::past::{LASTING, Unlogged};
use super::super::two_phase::{Known, Way, roll_back_all, stand_by};

pub(super) fn nothing(_life: &mut Life) {}

pub(super) fn open(life: &mut Life) {
    assert!(life.open(), "a new database");
}

pub(super) fn open_unlogged(life: &mut Life) {
    life.past.unlogged = Unlogged::All;
    open(life);
}

pub(super) fn open_mixed(life: &mut Life) {
    life.past.unlogged = Unlogged::Some;
    open(life);
}

pub(super) fn open_for_transactions(life: &mut Life) {
    life.way = Way::Transactions;
    open(life);
}

pub(super) fn open_for_two_phases(life: &mut Life) {
    life.way = Way::TwoPhases(Known::new(&life.options));
    open(life);
}

/// Transactions that are prepared and committed, beside some that are not decided while the
/// database is flushed, closed, or its process dies.
pub(super) fn two_phases(life: &mut Life) {
    life.writes(6, 300);
    stand_by(life, "first");
    life.writes(6, 300);
    life.flush();
    life.settle();
    life.read();
    life.give_up();
    life.open_twice();
    life.writes(4, 300);
    stand_by(life, "second");
    life.flush();
    life.close();
    life.open_twice();
    roll_back_all(life);
    life.writes(4, 300);
    life.flush();
    life.give_up();
    life.open_twice();
    life.writes(2, 300);
    life.read();
}

/// Transactions, whose commits look for conflicts in memtables and in tables.
pub(super) fn transactions(life: &mut Life) {
    for round in 0..3 {
        life.writes(8, 300);
        if round > 0 {
            life.flush();
            life.settle();
        }
        life.read();
    }
    life.close();
    life.open_twice();
    life.writes(4, 300);
    life.read();
}

/// A database with several levels and something in memory.
pub(super) fn a_tree(life: &mut Life) {
    open(life);
    for _ in 0..3 {
        life.writes(12, 300);
        life.flush();
    }
    life.settle();
    life.writes(6, 300);
}

/// One whose process died.
pub(super) fn an_end(life: &mut Life) {
    a_tree(life);
    life.create("passing");
    life.writes(4, 300);
    life.flush();
    life.writes(14, 300);
    life.give_up();
}

/// Opening a new database, an empty one and one with contents.
pub(super) fn opening(life: &mut Life) {
    for round in 0..3 {
        if life.open_twice() {
            life.writes(3 * round, 100);
            life.close();
        }
    }
    life.open_twice();
    life.read();
}

/// Several memtables, one after the other, and several at once.
pub(super) fn flushes(life: &mut Life) {
    life.open_twice();
    for _ in 0..3 {
        life.writes(10, 300);
        life.flush();
    }
    for _ in 0..14 {
        life.write(false, 300);
    }
    life.settle();
    life.read();
    life.close();
    life.open_twice();
    life.read();
}

/// Tables that overlap are merged, others moved.
pub(super) fn compactions(life: &mut Life) {
    for _ in 0..5 {
        life.writes(10, 300);
        life.flush();
        life.settle();
    }
    life.read();
    life.write(true, 300);
}

/// Large values are separated, and their files collected.
pub(super) fn blobs(life: &mut Life) {
    for _ in 0..4 {
        life.writes(8, 800);
        life.flush();
        life.settle();
        life.read();
    }
    let options = CompactRangeOptions {
        blob_garbage_collection_policy: BlobGarbageCollectionPolicy::Force,
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    life.compact(LASTING[0], [None, None], &options);
    life.read();
}

/// Large values are overwritten, and their place is given back.
pub(super) fn holes(life: &mut Life) {
    for _ in 0..5 {
        life.writes(8, 800);
        life.flush();
        life.settle();
        life.read();
    }
    life.checkpoint("/copy");
    life.writes(8, 800);
    life.flush();
    life.settle();
    life.read();
    life.close();
    life.open_twice();
    life.writes(8, 800);
    life.flush();
    life.settle();
    life.read();
}

/// Large values lie in blob files before the WAL names them, and their process dies.
pub(super) fn blobs_at_commit(life: &mut Life) {
    for round in 0..3 {
        life.writes(6, 800);
        life.write(true, 800);
        life.writes(3, 800);
        if round != 1 {
            life.flush();
        }
        life.settle();
        life.read();
    }
    life.sync_wal();
    life.checkpoint("/copy");
    life.writes(3, 800);
    life.give_up();
    life.open_twice();
    life.read();
    life.writes(4, 800);
    life.close();
    life.open_twice();
    life.write(true, 800);
    life.read();
}

/// Families come and go, with something in memory and in tables.
pub(super) fn families(life: &mut Life) {
    for (name, previous) in
        [("first", ""), ("second", ""), ("third", "first"), ("fourth", "second")]
    {
        life.create(name);
        life.writes(5, 200);
        if previous == "first" {
            life.flush();
        }
        life.drop_family(previous);
        life.writes(3, 200);
        life.step();
    }
    life.read();
    life.close();
    life.open_twice();
    life.drop_family("third");
    life.create("fifth");
    life.writes(5, 200);
    life.read();
}

/// WALs that are recycled, synced now and then.
pub(super) fn wals(life: &mut Life) {
    for _ in 0..4 {
        life.writes(9, 300);
        life.write(true, 300);
        life.flush();
    }
    life.writes(4, 300);
    life.sync_wal();
    life.write(false, 40_000);
    life.read();
    life.close();
    life.open_twice();
    life.writes(9, 300);
    life.flush();
    life.writes(2, 300);
}

/// A log whose records wait in memory until they are asked for, are synced, or are too many.
pub(super) fn log_by_hand(life: &mut Life) {
    life.writes(9, 300);
    life.flush_log();
    life.writes(4, 300);
    for length in [40_000, 3_000, 3_000] {
        life.write(false, length);
    }
    life.flush_log();
    life.writes(3, 300);
    life.checkpoint("/copy");
    life.writes(3, 300);
    life.give_up();
    life.open_twice();
    life.writes(5, 300);
    life.sync_wal();
    life.writes(2, 300);
    life.flush();
    life.writes(2, 300);
    life.read();
    life.close();
    life.open_twice();
    life.writes(2, 300);
    life.flush_log();
    life.read();
}

/// MANIFESTs that are soon too large.
pub(super) fn manifests(life: &mut Life) {
    for round in 0..6 {
        life.writes(4, 200);
        life.flush();
        if round % 2 == 1 {
            life.settle();
        }
    }
    life.create("passing");
    life.writes(2, 200);
    life.drop_family("passing");
    life.read();
}

/// Options that change while the database is open.
pub(super) fn options(life: &mut Life) {
    life.writes(6, 200);
    life.set_options(&[("enable_blob_files", "true"), ("min_blob_size", "50")]);
    life.writes(6, 200);
    life.flush();
    life.set_options(&[("write_buffer_size", "2000")]);
    life.call("set options of the database", |db, _| {
        db.set_db_options(&[("max_background_jobs", "4")])
    });
    life.writes(6, 200);
    life.flush();
    life.read();
    life.close();
    life.open_twice();
    life.set_options(&[("enable_blob_files", "false")]);
    life.writes(3, 200);
}

/// Copies of a database that goes on.
pub(super) fn checkpoint(life: &mut Life) {
    for copy in ["/copy1", "/copy2"] {
        life.checkpoint(copy);
        life.writes(6, 300);
        life.flush();
        life.settle();
    }
    life.read();
}

/// Compactions that were asked for.
pub(super) fn manual(life: &mut Life) {
    let forced = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    life.compact(LASTING[0], [Some("k010"), Some("k030")], &CompactRangeOptions::default());
    life.read();
    life.compact(LASTING[0], [None, None], &forced);
    life.compact(LASTING[1], [None, None], &forced);
    life.writes(4, 300);
    life.compact(LASTING[0], [Some("k020"), None], &CompactRangeOptions::default());
    life.read();
}

/// Writes that are synced one by one, and all together.
pub(super) fn syncs(life: &mut Life) {
    for round in 0..12 {
        life.write(round % 2 == 0, 400);
        if round % 5 == 4 {
            life.sync_wal();
        }
        life.step();
    }
    life.close();
    life.open_twice();
    life.write(true, 100);
    life.sync_wal();
}

/// Cursors and snapshots that are held while their files become obsolete.
pub(super) fn readers(life: &mut Life) {
    for _ in 0..3 {
        life.hold();
        life.writes(5, 300);
        life.walk(7);
        life.flush();
        life.settle();
        life.read();
    }
    life.compact(LASTING[0], [None, None], &CompactRangeOptions::default());
    life.walk(1000);
    life.read();
}

/// Looking at a database whose process died, without changing it.
pub(super) fn read_only(life: &mut Life) {
    for _ in 0..2 {
        let names = Db::list_column_families(DATABASE, &life.options);
        if let Some(names) = life.hear("list the families", names) {
            assert_eq!(names, ["default", "other", "passing"]);
        }
        let opened = Db::open_read_only(DATABASE, &life.options);
        if let Some(db) = life.hear("open for reading", opened) {
            life.look_at(&db);
        }
    }
    life.open_twice();
}

/// Opening a database whose process died, again and again.
pub(super) fn recovery(life: &mut Life) {
    life.open_twice();
    life.read();
    life.writes(5, 300);
    life.give_up();
    life.open_twice();
    life.writes(5, 300);
    life.sync_wal();
    life.flush();
    life.read();
}

/// Writes without the WAL, which a flush makes durable, and a close.
pub(super) fn unlogged(life: &mut Life) {
    life.writes(10, 300);
    life.flush();
    life.writes(10, 300);
    life.close();
    life.open_twice();
    life.read();
    life.writes(7, 300);
    life.give_up();
    life.open_twice();
    life.read();
    life.writes(3, 300);
}

/// Writes with the WAL and without it, in memtables that nobody flushes before their process dies.
pub(super) fn mixed(life: &mut Life) {
    life.writes(9, 300);
    life.flush();
    for index in 0..24 {
        life.write(index % 6 == 5, 300);
    }
    life.give_up();
    life.open_twice();
    life.read();
    life.writes(5, 300);
}

/// More tables in level 0 than writers may pass.
pub(super) fn full_levels(life: &mut Life) {
    for _ in 0..60 {
        life.write(false, 400);
    }
    life.read();
}

/// Tables from outside, beside writes, flushes and compactions.
pub(super) fn ingestion(life: &mut Life) {
    life.writes(5, 200);
    ingest(life);
    life.writes(3, 200);
    ingest(life);
    life.hold();
    life.settle();
    life.flush();
    ingest(life);
    life.read();
    life.settle();
    life.give_up();
    life.open_twice();
    ingest(life);
    life.writes(3, 200);
    life.read();
}
