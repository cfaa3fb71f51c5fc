//! What opening makes of logs: where history ends, and which logs it must not touch.

mod common;

use std::path::Path;

use common::create;
use flagstone::base::Code;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::{Env, read_file};
use flagstone::options::{Options, WriteOptions};

/// The logs in a database's directory, byte by byte.
fn logs(env: &Env) -> Vec<(String, Vec<u8>)> {
    let directory = Path::new("/db");
    let mut names = env.fs.list(directory).expect("a listing");
    names.retain(|name| name.ends_with(".log"));
    names.sort();
    names
        .into_iter()
        .map(|name| (name.clone(), read_file(&*env.fs, &directory.join(name), u64::MAX).expect("a log")))
        .collect()
}

/// Who forgot the merge operator opened the database, and lost the log from the first merge on; of that merge's batch, what stood
/// before it was there after the next write.
#[test]
fn a_log_that_wants_a_merge_operator_stays_as_it_is_without_one() {
    let modes = [
        "kTolerateCorruptedTailRecords",
        "kAbsoluteConsistency",
        "kPointInTimeRecovery",
        "kSkipAnyCorruptedRecords",
    ];
    for mode in modes {
        let env = Env::memory();
        let options = |operator: &[&str]| {
            let mut options = Options { env: env.clone(), ..create() };
            options.set("wal_recovery_mode", mode).unwrap();
            operator.iter().for_each(|operator| options.set("merge_operator", operator).unwrap());
            options
        };
        let db = Db::open("/db", &options(&["stringappend"])).unwrap();
        db.put("before", "1").unwrap();
        let mut batch = WriteBatch::new();
        batch.put(b"half", b"2").unwrap();
        batch.merge(b"other", b"3").unwrap();
        db.write_with(&WriteOptions::default(), batch).unwrap();
        db.put("after", "4").unwrap();
        db.close().unwrap();
        drop(db);

        let written = logs(&env);
        for open in [Db::open, Db::open_read_only] {
            let refused = open("/db", &options(&[])).map(|_| ()).unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{mode}: {refused}");
            assert!(refused.message().contains("has no merge operator"), "{mode}: {refused}");
            assert!(logs(&env) == written, "{mode}");
        }

        let db = Db::open("/db", &options(&["stringappend"])).unwrap();
        for (key, value) in [("before", "1"), ("half", "2"), ("other", "3"), ("after", "4")] {
            assert_eq!(db.get(key).unwrap().unwrap(), value, "{mode}");
        }
    }
}
