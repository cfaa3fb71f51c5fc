//! What batches, transactions and ranges of keys make of timestamps.
#![expect(clippy::unwrap_used, reason = "a failure is a failed test")]

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use flagstone::base::timestamp::from_u64;
use flagstone::{
    Builder, Code, ColumnFamilyId, CompactRangeOptions, Comparator, Db, Error, Family, ReadOptions,
    Result, TransactionDbOptions, WriteBatch,
};

fn builder(path: &Path) -> Builder {
    Db::builder(path)
        .column_family("stamped", |family| {
            family.comparator = Comparator::BytewiseU64Ts;
            family.set("merge_operator", "stringappend").unwrap();
        })
        .column_family("other", |family| family.comparator = Comparator::BytewiseU64Ts)
        .column_family("plain", |_| {})
}

fn open(path: &Path) -> (Db, Family) {
    let db = builder(path).open().unwrap();
    let stamped = db.column_family("stamped").unwrap();
    (db, stamped)
}

fn as_of(timestamp: u64) -> ReadOptions {
    ReadOptions { timestamp: Some(from_u64(timestamp).into()), ..ReadOptions::default() }
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>, code: Code, said: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(said), "{error}");
}

fn of_bytes(batch: &WriteBatch) -> WriteBatch {
    WriteBatch::from_bytes(batch.data().to_vec()).unwrap()
}

fn stamped_batch(family: &Family, key: &str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put_with_timestamp(family, key, from_u64(1), "v").unwrap();
    batch
}

/// Batches whose keys have no timestamp of 8 bytes.
fn unfit(family: &Family) -> Vec<WriteBatch> {
    let fill = |fill: &dyn Fn(&mut WriteBatch) -> Result<()>| {
        let mut batch = WriteBatch::new();
        fill(&mut batch).unwrap();
        batch
    };
    vec![
        fill(&|batch| batch.put_cf(family, "short", "v")),
        fill(&|batch| batch.put_cf(family, "long enough for one", "v")),
        fill(&|batch| batch.delete_cf(family, "short")),
        fill(&|batch| batch.delete_range_cf(family, "a", "b")),
        fill(&|batch| batch.put_entity_cf(family, "short", [("a", "b")])),
        fill(&|batch| batch.put_with_timestamp(family, "short", b"four", "v")),
    ]
}

#[test]
fn batches_that_do_not_fit_are_not_appended() {
    let directory = tempfile::tempdir().unwrap();
    let (_db, stamped) = open(directory.path());
    let good = stamped_batch(&stamped, "k");
    for unfit in unfit(&stamped) {
        let mut both = good.clone();
        refused(both.append(&unfit), Code::InvalidArgument, "of one size only");
        assert_eq!(both, good, "it is as it was");
        let mut both = unfit.clone();
        refused(both.append(&good), Code::InvalidArgument, "of one size only");
        assert_eq!(both, unfit, "it is as it was");
    }
}

#[test]
fn batches_that_fit_are_appended() {
    let directory = tempfile::tempdir().unwrap();
    let (db, stamped) = open(directory.path());
    let (other, plain) = (db.column_family("other").unwrap(), db.column_family("plain").unwrap());
    let mut all = stamped_batch(&stamped, "a");
    all.append(&stamped_batch(&stamped, "b")).unwrap();
    all.append(&stamped_batch(&other, "c")).unwrap();
    let mut bare = WriteBatch::new();
    bare.put_cf(&plain, "p", "v").unwrap();
    all.append(&bare).unwrap();
    bare.append(&stamped_batch(&other, "d")).unwrap();
    all.append(&bare).unwrap();
    db.write(all).unwrap();
    let count = |family: &Family| family.as_of(from_u64(1)).iter().count();
    assert_eq!((count(&stamped), count(&other), plain.iter().count()), (2, 2, 1));
}

#[test]
fn what_came_as_bytes_is_looked_at_when_it_was_appended() {
    let directory = tempfile::tempdir().unwrap();
    let (db, stamped) = open(directory.path());
    let good = stamped_batch(&stamped, "k");
    for unfit in unfit(&stamped) {
        // A key that is long enough may have a timestamp.
        if unfit.data().windows(4).any(|found| found == b"long" || found == b"four") {
            continue;
        }
        let mut appended = good.clone();
        appended.append(&of_bytes(&unfit)).unwrap();
        let mut begun = of_bytes(&unfit);
        begun.append(&good).unwrap();
        for batch in [appended, begun] {
            let error = db.write(batch).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        }
    }
    assert_eq!(stamped.as_of(from_u64(1)).get("k").unwrap(), None);
    // What is taken back is as if it had not been there.
    let mut batch = good.clone();
    batch.set_save_point();
    batch.append(&of_bytes(&stamped_batch(&stamped, "gone"))).unwrap();
    batch.rollback_to_save_point().unwrap();
    batch.put_with_timestamp(&stamped, "k2", from_u64(1), "v").unwrap();
    batch.append(&of_bytes(&stamped_batch(&stamped, "k3"))).unwrap();
    db.write(batch).unwrap();
    stamped.flush().unwrap();
    drop((stamped, db));
    let (_db, stamped) = open(directory.path());
    assert_eq!(stamped.as_of(from_u64(1)).iter().count(), 3);
}

#[test]
fn bytes_do_not_get_a_second_timestamp() {
    let directory = tempfile::tempdir().unwrap();
    let (db, stamped) = open(directory.path());
    let id: ColumnFamilyId = (&stamped).into();
    let size_of = |family| if family == id { 8 } else { 0 };
    let mut batch = of_bytes(&stamped_batch(&stamped, "k"));
    let before = batch.clone();
    refused(batch.set_timestamps(from_u64(2), size_of), Code::NotSupported, "came as bytes");
    assert_eq!(batch, before);
    // Another family's keys stay as they are, and as little known.
    batch.set_timestamps(from_u64(2), |_| 0).unwrap();
    db.write(batch).unwrap();
    let mut known = stamped_batch(&stamped, "k2");
    known.set_timestamps(from_u64(2), |_| 0).unwrap();
    refused(known.put_cf(&stamped, "k3", "v"), Code::InvalidArgument, "of one size only");
    known.set_timestamps(from_u64(3), size_of).unwrap();
    db.write(known).unwrap();
    assert_eq!(stamped.as_of(from_u64(2)).iter().count(), 1);
    assert_eq!(stamped.as_of(from_u64(3)).iter().count(), 2);
}

#[test]
fn families_with_timestamps_are_scanned_together_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let (db, stamped) = open(directory.path());
    let other = db.column_family("other").unwrap();
    let keys = ["a", "key 1", "key 10", "key 10 and more", "key 2", "z"];
    for (at, key) in keys.iter().enumerate() {
        if at % 2 == 0 || at == 3 {
            stamped.put_with_timestamp(key, from_u64(1), "1").unwrap();
        }
        if at % 2 == 1 {
            other.put_with_timestamp(key, from_u64(2), "2").unwrap();
        }
    }
    let mut cursor = db.cursor_of_families(&[&stamped, &other], &as_of(2)).unwrap();
    let mut seen = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        seen.push(String::from_utf8(cursor.key().to_vec()).unwrap());
        cursor.next();
    }
    cursor.status().unwrap();
    assert_eq!(seen, keys);
    cursor.seek_to_last();
    while let Some(key) = seen.pop() {
        assert_eq!(cursor.key(), key.as_bytes());
        cursor.prev();
    }
    assert!(!cursor.valid());
    let over_history = ReadOptions { iter_start_ts: Some(from_u64(1).into()), ..as_of(2) };
    let refusal = db.cursor_of_families(&[&stamped, &other], &over_history);
    refused(refusal, Code::NotSupported, "unset iter_start_ts");
}

#[test]
fn tables_are_found_by_the_keys_of_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let (_db, stamped) = open(directory.path());
    for key in ["a long key", "m long key", "z long key"] {
        stamped.put_with_timestamp(key, from_u64(7), "v").unwrap();
        stamped.flush().unwrap();
    }
    let found = |from: &'static str, to: &'static str| {
        stamped.properties_of_tables_in_range(&[from..=to]).unwrap().len()
    };
    assert_eq!(found("a long key", "a long key"), 1);
    assert_eq!(found("a long key", "m long key"), 2);
    assert_eq!(found("m long kex", "m long kez"), 1);
    assert_eq!(found("m long kez", "z"), 0);
    assert_eq!(found("m", "z"), 1);
}

#[test]
fn a_claim_meets_newer_operands_and_deletions_of_ranges() {
    for flushes in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let db = builder(directory.path())
            .open_transaction_db(&TransactionDbOptions::default())
            .unwrap();
        let stamped = db.column_family("stamped").unwrap();
        let mut batch = WriteBatch::new();
        for key in ["b", "deleted", "f"] {
            batch.put_with_timestamp(&stamped, key, from_u64(5), "v").unwrap();
        }
        batch.merge_with_timestamp(&stamped, "old operand", from_u64(10), "+").unwrap();
        batch.merge_with_timestamp(&stamped, "operand", from_u64(20), "+").unwrap();
        batch.delete_range_with_timestamp(&stamped, "c", "e", from_u64(20)).unwrap();
        db.write_without_locks(batch, &Default::default()).unwrap();
        if flushes {
            stamped.flush().unwrap();
        }
        for (read, newer) in [(10, true), (20, false)] {
            for (key, is_newer) in [
                ("b", false),
                ("c", newer),
                ("deleted", newer),
                ("e", false),
                ("f", false),
                ("not there", false),
                ("old operand", false),
                ("operan", false),
                ("operand", newer),
                ("operand2", false),
            ] {
                let mut claim = db.begin();
                claim.set_read_timestamp(from_u64(read));
                match claim.put(&stamped, key, "mine") {
                    Ok(()) => assert!(!is_newer, "{key} as of {read}, {flushes}"),
                    Err(error) => {
                        assert_eq!(error.code(), Code::Busy, "{error}");
                        assert!(is_newer, "{key} as of {read}, {flushes}");
                    }
                }
            }
        }
        stamped.increase_full_history_ts_low(from_u64(15)).unwrap();
        let mut claim = db.begin();
        claim.set_read_timestamp(from_u64(10));
        // What was newer may be gone.
        refused(claim.put(&stamped, "b", "mine"), Code::InvalidArgument, "full_history_ts_low");
    }
}

#[test]
fn a_compaction_that_is_refused_raises_no_mark() {
    let directory = tempfile::tempdir().unwrap();
    let (_db, stamped) = open(directory.path());
    let low = Some(from_u64(5).to_vec());
    let options = CompactRangeOptions {
        full_history_ts_low: low.clone(),
        target_path_id: 9,
        ..CompactRangeOptions::default()
    };
    let refusal = stamped.compact_range::<&[u8]>(.., &options);
    refused(refusal, Code::InvalidArgument, "target_path_id");
    assert_eq!(stamped.full_history_ts_low().unwrap(), None);
    let options = CompactRangeOptions { target_path_id: 0, ..options };
    stamped.compact_range::<&[u8]>(.., &options).unwrap();
    assert_eq!(stamped.full_history_ts_low().unwrap(), low);
}

fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("all of it is in memory"),
    }
}

#[test]
fn tasks_do_not_scan_over_history() {
    let directory = tempfile::tempdir().unwrap();
    let (db, stamped) = open(directory.path());
    for timestamp in 1..=3 {
        stamped.put_with_timestamp("k", from_u64(timestamp), "v").unwrap();
    }
    let over_history = ReadOptions { iter_start_ts: Some(from_u64(1).into()), ..as_of(3) };
    let mut entries = db.engine().iter_async(stamped.engine_family(), &over_history);
    refused(at_once(entries.next_batch(1)), Code::NotSupported, "unset iter_start_ts");
    let mut entries = db.engine().iter_async(stamped.engine_family(), &as_of(2));
    assert_eq!(at_once(entries.next_batch(1)).unwrap(), [(b"k".to_vec(), b"v".to_vec())]);
    assert_eq!(at_once(entries.next_batch(1)).unwrap(), []);
}

#[test]
fn an_entity_in_a_log_gets_no_timestamp() {
    let directory = tempfile::tempdir().unwrap();
    let open = |comparator: Comparator| {
        Db::builder(directory.path())
            .column_family("f", move |family| {
                family.comparator = comparator;
                family.settings.persist_user_defined_timestamps = false;
            })
            .open()
    };
    let db = open(Comparator::Bytewise).unwrap();
    let family = db.column_family("f").unwrap();
    family.put_entity("k", [("a", "b")]).unwrap();
    drop((family, db));
    let refusal = open(Comparator::BytewiseU64Ts).map(drop);
    refused(refusal, Code::NotSupported, "flush before you change the comparator");
    let db = open(Comparator::Bytewise).unwrap();
    assert!(db.column_family("f").unwrap().get_entity("k").unwrap().is_some());
}
