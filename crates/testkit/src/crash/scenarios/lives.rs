//! What happens in each life after the creation of its database.

use super::super::ingested::ingest;
use super::super::life::{How, Life};
use super::super::side_by_side::Together;
use super::super::transactions::{abandon, commit, commit_prepared, conflict, prepare, roll_back};
use super::{THREE, TWO};
use crate::generate::Generator;
use crate::model::Edit;

pub(super) fn creation(life: &mut Life) {
    life.put(How::Synced, THREE);
    life.put(How::Logged, THREE);
    life.close();
}

pub(super) fn log(life: &mut Life) {
    life.writes(4, TWO);
    life.put(How::Synced, TWO);
    life.writes(5, TWO);
    life.sync();
    // Over several blocks of the WAL, in records and between them.
    for length in [20_000, 15_000, 70_000, 100] {
        let large = Edit::Put { key: b"large".to_vec(), value: vec![life.random.u8(..); length] };
        life.write(How::Logged, &[("default", large)]);
        life.put(How::Logged, TWO);
    }
    life.sync();
    life.writes(2, TWO);
}

pub(super) fn transactions(life: &mut Life) {
    commit(life, How::Logged, TWO);
    abandon(life, "default");
    commit(life, How::Synced, &["other"]);
    conflict(life, "other");
    commit(life, How::Logged, TWO);
    life.flush("default");
    commit(life, How::Unlogged, &["other"]);
    life.put(How::Logged, TWO);
    commit(life, How::Logged, TWO);
    life.kill();
    life.open();
    conflict(life, "default");
    commit(life, How::Logged, TWO);
    life.compact("other");
    commit(life, How::Synced, TWO);
    life.close();
}

pub(super) fn two_phase(life: &mut Life) {
    let first = prepare(life, How::Synced, "first", TWO);
    life.put(How::Logged, TWO);
    commit_prepared(life, How::Logged, first);
    let second = prepare(life, How::Logged, "second", TWO);
    // The WAL of the section is older than what is written from now on.
    life.flush_all();
    life.put(How::Logged, TWO);
    life.flush_all();
    let third = prepare(life, How::Logged, "third", &["other"]);
    commit_prepared(life, How::Logged, second);
    life.flush("other");
    life.put(How::Synced, TWO);
    life.kill();
    life.open();
    roll_back(life, &third);
    let fourth = prepare(life, How::Logged, "fourth", TWO);
    life.close();
    life.open();
    commit_prepared(life, How::Synced, fourth);
    life.flush("default");
    prepare(life, How::Logged, "fifth", TWO);
    life.put(How::Logged, TWO);
    life.close();
}

pub(super) fn by_hand(life: &mut Life) {
    life.put(How::Logged, TWO);
    life.flush_log();
    life.put(How::Logged, TWO);
    life.put(How::Synced, TWO);
    life.put(How::Logged, TWO);
    // More than waits in memory, and less; then both together.
    for length in [9_000, 3_000, 3_000] {
        let large = Edit::Put { key: b"large".to_vec(), value: vec![life.random.u8(..); length] };
        life.write(How::Logged, &[("default", large)]);
    }
    life.put(How::Logged, TWO);
    life.flush("other");
    life.put(How::Logged, TWO);
    life.put(How::Unlogged, &["other"]);
    life.flush("other");
    life.put(How::Logged, TWO);
    life.checkpoint("/copy");
    life.put(How::Logged, TWO);
    life.kill();
    life.open();
    life.put(How::Logged, TWO);
    life.flush_log();
    life.put(How::Logged, TWO);
    life.sync();
    life.close();
}

pub(super) fn flush(life: &mut Life) {
    life.writes(3, THREE);
    life.flush("first");
    life.put(How::Logged, THREE);
    life.put(How::Unlogged, &["second"]);
    life.put(How::Logged, &["default"]);
    life.flush("second");
    life.writes(3, TWO_OF_THREE);
    life.flush_all();
    life.put(How::Synced, &["second"]);
}

pub(super) fn together(life: &mut Life) {
    life.put(How::Unlogged, THREE);
    life.flush("second");
    life.put(How::Unlogged, THREE);
    life.put(How::Logged, &["first"]);
    life.put(How::Unlogged, TWO_OF_THREE);
    // More edits than are synced one by one.
    life.create_family("fourth");
    life.create_family("fifth");
    life.put(How::Unlogged, &["default", "first", "second", "fourth", "fifth"]);
    life.flush("fourth");
    life.put(How::Unlogged, &["default", "fifth"]);
    life.drop_family("fifth");
    if life.random.bool() {
        life.kill();
    } else {
        life.close();
    }
    life.open();
    life.put(How::Logged, TWO_OF_THREE);
    life.put(How::Unlogged, THREE);
    life.compact("first");
    life.put(How::Unlogged, TWO_OF_THREE);
}

const TWO_OF_THREE: &[&str] = &["default", "second"];

pub(super) fn compaction(life: &mut Life) {
    for round in 0..4 {
        life.writes(4, TWO);
        if round == 2 {
            let range = Edit::DeleteRange { begin: b"k03".to_vec(), end: b"k07".to_vec() };
            life.write(How::Logged, &[("default", range)]);
        }
        life.flush_all();
        life.work();
    }
    // More than the first level takes: tables move down as they are.
    for round in 0..2 {
        let wide = (0..9).map(|at| {
            let key = format!("m{at}").into_bytes();
            ("other", Edit::Put { key, value: vec![b'a' + round; 500] })
        });
        life.write(How::Logged, &wide.collect::<Vec<_>>());
        life.flush("other");
        life.work();
    }
    life.compact("default");
    life.writes(2, TWO);
    life.compact("other");
    life.close();
}

pub(super) fn blobs(life: &mut Life) {
    for _ in 0..3 {
        life.writes(4, TWO);
        life.flush_all();
        life.work();
    }
    life.put(How::Synced, TWO);
    life.compact("default");
    life.writes(2, TWO);
    life.compact("other");
    life.writes(1, TWO);
}

pub(super) fn holes(life: &mut Life) {
    for round in 0..4 {
        life.writes(5, TWO);
        life.flush_all();
        life.work();
        if round == 1 {
            life.checkpoint("/copy");
        }
    }
    life.put(How::Synced, TWO);
    life.kill();
    life.open();
    life.writes(4, TWO);
    life.flush_all();
    life.work();
    life.close();
    life.open();
    life.writes(2, TWO);
    life.flush_all();
    life.work();
}

pub(super) fn at_commit(life: &mut Life) {
    life.writes(4, TWO);
    life.put(How::Synced, TWO);
    life.put(How::Logged, TWO);
    life.put(How::Unlogged, &["other"]);
    life.sync();
    life.writes(3, TWO);
    life.flush("default");
    life.writes(3, TWO);
    life.kill();
    life.open();
    life.writes(3, TWO);
    life.checkpoint("/copy");
    life.writes(2, TWO);
    life.compact("other");
    life.put(How::Logged, TWO);
    life.close();
    life.open();
    life.put(How::Synced, TWO);
}

pub(super) fn streams(life: &mut Life) {
    life.put(How::Logged, TWO);
    life.stream(How::Synced, "default");
    life.stream(How::Logged, "other");
    life.put(How::Logged, TWO);
    life.give_up_stream("other");
    life.stream(How::Logged, "default");
    life.kill();
    life.open();
    life.stream(How::Logged, "other");
    life.flush("other");
    life.put(How::Logged, TWO);
    life.stream(How::Synced, "other");
    life.kill();
    life.open();
    life.compact("other");
    life.stream(How::Logged, "default");
    life.close();
}

pub(super) fn families(life: &mut Life) {
    life.writes(2, TWO);
    life.create_family("extra");
    life.writes(3, &["default", "extra"]);
    life.flush("other");
    life.drop_family("extra");
    life.put(How::Logged, TWO);
    life.create_family("extra");
    life.writes(2, &["default", "extra", "other"]);
    if life.random.bool() {
        life.flush("extra");
    }
    life.drop_family("other");
    life.writes(2, &["default", "extra"]);
    life.flush_all();
    life.put(How::Logged, &["extra"]);
    life.drop_family("extra");
    life.close();
    life.open();
    life.put(How::Synced, &["default"]);
}

pub(super) fn recycled(life: &mut Life) {
    for count in [5, 2, 6, 1] {
        life.writes(count, TWO);
        if life.random.bool() { life.flush_all() } else { life.flush("default") }
    }
    life.put(How::Logged, TWO);
    life.flush_all();
    life.writes(3, TWO);
}

pub(super) fn unlogged(life: &mut Life) {
    for count in [4, 1, 3] {
        life.writes(count, TWO);
        life.put(How::Unlogged, &["default"]);
        if life.random.bool() {
            life.put(How::Unlogged, &["other"]);
        }
        life.writes(2, TWO);
        if life.random.bool() { life.flush_all() } else { life.flush("default") }
    }
    life.put(How::Unlogged, &["other"]);
    life.put(How::Synced, &["default"]);
    life.kill();
    life.open();
    life.put(How::Unlogged, &["other"]);
    life.put(How::Logged, TWO);
    life.close();
}

pub(super) fn rollover(life: &mut Life) {
    life.create_family("extra");
    for _ in 0..3 {
        life.writes(2, TWO);
        life.flush_all();
        life.work();
    }
    life.drop_family("extra");
    life.writes(1, TWO);
    life.flush_all();
}

pub(super) fn options(life: &mut Life) {
    life.put(How::Logged, TWO);
    life.set_option(2_000_000_000);
    life.put(How::Logged, TWO);
    life.set_option(3_000_000_000);
    life.set_db_option("max_background_jobs", "3");
    life.create_family("extra");
    life.set_option(4_000_000_000);
    life.put(How::Synced, &["extra"]);
    life.close();
    life.open();
}

pub(super) fn checkpoint(life: &mut Life) {
    life.writes(3, TWO);
    life.flush_all();
    life.writes(3, TWO);
    life.checkpoint("/copies/one");
    life.writes(2, TWO);
    life.compact("default");
    life.put(How::Unlogged, &["other"]);
    life.checkpoint("/two");
    life.writes(2, TWO);
}

pub(super) fn reopen(life: &mut Life) {
    life.writes(4, TWO);
    life.close();
    life.open();
    life.writes(3, TWO);
    life.kill();
    life.open();
    life.writes(2, TWO);
    life.flush("other");
    life.writes(2, TWO);
    life.kill();
    life.open();
    life.put(How::Synced, TWO);
    life.close();
    life.open();
    life.close();
}

pub(super) fn wal_limit(life: &mut Life) {
    life.put(How::Logged, &["second"]);
    for _ in 0..4 {
        life.writes(4, TWO_OF_THREE);
        life.work();
    }
    life.put(How::Logged, &["first"]);
    life.writes(6, &["default"]);
    life.work();
}

pub(super) fn updates(life: &mut Life) {
    life.writes(3, TWO);
    life.follow();
    life.sync();
    life.writes(2, TWO);
    life.follow();
    life.flush("default");
    life.writes(2, TWO);
    life.follow();
    life.flush_all();
    life.follow();
    life.writes(1, TWO);
    life.follow();
    life.kill();
    life.open();
    life.writes(2, TWO);
    life.follow();
    life.close();
    life.open();
    life.writes(2, TWO);
    life.follow();
    life.flush_all();
    life.writes(1, TWO);
    life.follow();
}

pub(super) fn two_writers(life: &mut Life) {
    life.side_by_side(TWO, Together { threads: 2, writes: 12, flushed: None, is_free: false });
    life.put(How::Logged, TWO);
    life.side_by_side(
        TWO,
        Together { threads: 2, writes: 12, flushed: Some("other"), is_free: false },
    );
    life.work();
    life.put(How::Synced, TWO);
}

pub(super) fn three_writers(life: &mut Life) {
    life.side_by_side(
        TWO,
        Together { threads: 3, writes: 20, flushed: Some("default"), is_free: false },
    );
    life.work();
    life.kill();
    life.open();
    life.side_by_side(TWO, Together { threads: 3, writes: 12, flushed: None, is_free: false });
    life.close();
}

pub(super) fn three_writers_with_blobs(life: &mut Life) {
    life.side_by_side(
        TWO,
        Together { threads: 3, writes: 12, flushed: Some("default"), is_free: false },
    );
    life.put(How::Synced, TWO);
}

pub(super) fn free_writers(life: &mut Life) {
    for flushed in TWO {
        let flushed = Some(*flushed);
        life.side_by_side(TWO, Together { threads: 3, writes: 20, flushed, is_free: true });
        life.work();
    }
    life.kill();
    life.open();
    life.side_by_side(TWO, Together { threads: 2, writes: 8, flushed: None, is_free: true });
}

pub(super) fn long(life: &mut Life) {
    let mut generator = Generator::new(life.random.u64(..));
    for round in 0..6 {
        life.generated(&mut generator, 12);
        match life.random.u8(..6) {
            0 => life.flush("first"),
            1 => life.compact("default"),
            2 => {
                life.kill();
                life.open();
            }
            3 => {
                life.close();
                life.open();
            }
            4 => life.create_family(&format!("extra{round}")),
            _ => life.sync(),
        }
        life.work();
    }
    life.close();
}

pub(super) fn ingestion(life: &mut Life) {
    life.writes(5, TWO);
    ingest(life, &["default"]);
    life.writes(2, TWO);
    ingest(life, TWO);
    life.work();
    life.flush("other");
    life.writes(1, TWO);
    ingest(life, &["other"]);
    life.kill();
    life.open();
    ingest(life, TWO);
    life.compact("default");
    ingest(life, &["default"]);
    life.work();
    life.close();
}
