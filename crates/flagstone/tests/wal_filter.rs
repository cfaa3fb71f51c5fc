//! WAL filters: what an opening leaves out or replaces, and what it refuses.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "it copies what a process leaves that is killed")]

use std::path::Path;
use std::sync::Arc;

use flagstone::base::{Code, Error, FileNumber};
use flagstone::db::Db;
use flagstone::options::{Options, ReplayedFamily, WalDecision, WalFilter};
use flagstone::{Operation, RecoveryMode, WriteBatch};
use parking_lot::Mutex;
use tempfile::TempDir;

type Decide = dyn Fn(&[u8]) -> WalDecision + Send + Sync;

/// Decides by the key of a record's first operation.
struct ByKey {
    families: Mutex<Vec<ReplayedFamily>>,
    records: Mutex<u32>,
    decide: Box<Decide>,
}

impl WalFilter for ByKey {
    fn name(&self) -> &str {
        "by key"
    }

    fn families(&self, families: &[ReplayedFamily]) {
        self.families.lock().extend_from_slice(families);
    }

    fn record(&self, wal: FileNumber, path: &Path, batch: &WriteBatch) -> WalDecision {
        assert!(path.ends_with(format!("{:06}.log", wal.0)) && path.exists(), "{path:?}");
        *self.records.lock() += 1;
        match batch.iter().next().unwrap().unwrap() {
            Operation::Put { key, .. } | Operation::BlobIndex { key, .. } => (self.decide)(key),
            _ => WalDecision::Replay,
        }
    }
}

fn by_key(decide: impl Fn(&[u8]) -> WalDecision + Send + Sync + 'static) -> Arc<ByKey> {
    let (families, records) = (Mutex::default(), Mutex::default());
    Arc::new(ByKey { families, records, decide: Box::new(decide) })
}

fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing = true;
    options.avoid_flush_during_recovery = true;
    options
}

/// What a process leaves that is killed: a WAL with the keys a to e, of which d has a large value
/// in a blob file.
fn written() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (source, copy) = (directory.path().join("source"), directory.path().join("db"));
    let db = Db::open(&source, &options()).unwrap();
    for key in ["a", "b", "c", "d", "e"] {
        let value = if key == "d" { vec![b'd'; 1 << 20] } else { b"old".to_vec() };
        db.put(key, value).unwrap();
    }
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(&source).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    directory
}

fn open(directory: &TempDir, options: &Options) -> flagstone::Result<Db> {
    Db::open(directory.path().join("db"), options)
}

/// The keys and the beginnings of their values after an opening with the filter, and after one
/// without it.
fn opened(directory: &TempDir, filter: &Arc<ByKey>) -> String {
    let filtered = Options { wal_filter: Some(filter.clone()), ..options() };
    let with = shown(&open(directory, &filtered).unwrap());
    assert_eq!(with, shown(&open(directory, &options()).unwrap()), "it lasts");
    with
}

fn shown(db: &Db) -> String {
    let key = |key: &&str| db.get(key).unwrap().is_some();
    let value = |key: &str| {
        let value = db.get(key).unwrap().unwrap();
        format!("{key}={}", String::from_utf8_lossy(&value[..value.len().min(3)]))
    };
    let keys = ["a", "b", "c", "d", "e"].into_iter().filter(key);
    keys.map(value).collect::<Vec<_>>().join(" ")
}

#[test]
fn records_are_left_out_or_replaced_for_good() {
    let directory = written();
    let filter = by_key(|key| match key {
        b"b" | b"d" => WalDecision::LeaveOut,
        b"c" => {
            let mut batch = WriteBatch::new();
            batch.put("c", "new").unwrap();
            WalDecision::Replace(batch)
        }
        _ => WalDecision::Replay,
    });
    assert_eq!(opened(&directory, &filter), "a=old c=new e=old");
    assert_eq!(*filter.records.lock(), 5);
    let families = filter.families.lock().clone();
    assert_eq!((families.len(), families[0].name.as_str()), (1, "default"));
}

#[test]
fn a_large_value_passes() {
    let directory = written();
    assert_eq!(
        opened(&directory, &by_key(|_| WalDecision::Replay)),
        "a=old b=old c=old d=ddd e=old"
    );
}

/// A filter sees that it is in a blob file, and has nothing to put in its place.
#[test]
fn a_record_with_a_large_value_is_not_replaced() {
    let directory = written();
    let replaced = by_key(|key| match key {
        b"d" => WalDecision::Replace(WriteBatch::new()),
        _ => WalDecision::Replay,
    });
    let mut filtered = options();
    filtered.wal_filter = Some(replaced);
    let refused = open(&directory, &filtered).unwrap_err();
    assert_eq!(refused.code(), Code::NotSupported, "{refused}");
    assert_eq!(shown(&open(&directory, &options()).unwrap()), "a=old b=old c=old d=ddd e=old");
}

#[test]
fn a_filter_can_fail_the_opening() {
    let directory = written();
    let mut filtered = options();
    filtered.wal_filter = Some(by_key(|_| WalDecision::Fail(Error::incomplete("not yet"))));
    let refused = open(&directory, &filtered).unwrap_err();
    assert_eq!(refused.code(), Code::Incomplete, "{refused}");
    assert_eq!(shown(&open(&directory, &options()).unwrap()), "a=old b=old c=old d=ddd e=old");
}

#[test]
fn a_filter_ends_the_replay() {
    let directory = written();
    let stop = |key: &[u8]| if key == b"c" { WalDecision::Stop } else { WalDecision::Replay };
    let filter = by_key(stop);
    assert_eq!(opened(&directory, &filter), "a=old b=old");
    assert_eq!(*filter.records.lock(), 3, "it is not asked any longer");
    let db = open(&directory, &options()).unwrap();
    db.put("e", "later").unwrap();
    assert_eq!(shown(&db), "a=old b=old e=lat");
}

#[test]
fn damage_counts_as_the_recovery_mode_says() {
    let damage = |key: &[u8]| if key == b"c" { WalDecision::Damaged } else { WalDecision::Replay };
    for (mode, left) in [
        (RecoveryMode::PointInTimeRecovery, Some("a=old b=old")),
        (RecoveryMode::SkipAnyCorruptedRecords, Some("a=old b=old d=ddd e=old")),
        (RecoveryMode::AbsoluteConsistency, None),
        (RecoveryMode::TolerateCorruptedTailRecords, None),
    ] {
        let directory = written();
        let mut filtered = options();
        filtered.wal_filter = Some(by_key(damage));
        filtered.wal_recovery_mode = mode;
        match (open(&directory, &filtered), left) {
            (Ok(db), Some(left)) => assert_eq!(shown(&db), left, "{mode:?}"),
            (Err(error), None) => {
                assert_eq!(error.code(), Code::Corruption, "{mode:?}");
                assert!(error.to_string().contains("WAL filter 'by key'"), "{error}");
                let db = open(&directory, &options()).unwrap();
                assert_eq!(shown(&db), "a=old b=old c=old d=ddd e=old", "nothing was lost");
            }
            (outcome, _) => panic!("{mode:?}: {:?}", outcome.map(|db| shown(&db))),
        }
    }
}

#[test]
fn a_record_grows_no_larger() {
    let directory = written();
    let more = by_key(|_| {
        let mut batch = WriteBatch::new();
        batch.put("a", "1").unwrap();
        batch.put("b", "2").unwrap();
        WalDecision::Replace(batch)
    });
    let filtered = Options { wal_filter: Some(more), ..options() };
    let error = open(&directory, &filtered).map(|db| shown(&db)).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[test]
fn a_reader_leaves_out_what_the_files_keep() {
    let directory = written();
    let filtered = Options { wal_filter: Some(by_key(|_| WalDecision::LeaveOut)), ..options() };
    assert_eq!(shown(&Db::open_read_only(directory.path().join("db"), &filtered).unwrap()), "");
    assert_eq!(shown(&open(&directory, &options()).unwrap()), "a=old b=old c=old d=ddd e=old");
}

#[test]
fn the_decision_of_a_prepared_transaction_stays() {
    let directory = tempfile::tempdir().unwrap();
    let opened = |filter: Option<Arc<ByKey>>| {
        let mut options = options();
        options.wal_filter = filter.map(|filter| filter as Arc<dyn WalFilter>);
        options.allow_2pc = true;
        open(&directory, &options)
    };
    let db = opened(None).unwrap();
    let locking = flagstone::TransactionDb::around(&db, &Default::default()).unwrap();
    let mut transaction = locking.begin();
    transaction.set_name("one").unwrap();
    transaction.put(&locking, "a", "1").unwrap();
    transaction.prepare().unwrap();
    transaction.commit().unwrap();
    drop((transaction, locking, db));
    struct Nothing;
    impl WalFilter for Nothing {
        fn name(&self) -> &str {
            "nothing"
        }
        fn record(&self, _wal: FileNumber, _path: &Path, _batch: &WriteBatch) -> WalDecision {
            WalDecision::LeaveOut
        }
    }
    let mut refused = options();
    refused.wal_filter = Some(Arc::new(Nothing));
    refused.allow_2pc = true;
    let error = open(&directory, &refused).map(|db| shown(&db)).unwrap_err();
    assert_eq!(error.code(), Code::NotSupported);
    assert_eq!(shown(&opened(Some(by_key(|_| WalDecision::Replay))).unwrap()), "a=1");
}
