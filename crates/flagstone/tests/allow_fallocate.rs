//! Whether space is reserved before it is written to: `allow_fallocate`.

use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::Env;
use testkit::{Call, CrashFs, FaultFs, settings};

/// Each way to write for which space is reserved reserves none if that is not wanted, and writes the same.
#[test]
fn nothing_is_reserved_if_that_is_not_wanted() {
    let ways: [&[(&str, &str)]; 5] = [
        &[("wal_write_mode", "mapped")],
        &[("wal_write_mode", "plain")],
        &[("wal_write_mode", "plain"), ("manual_wal_flush", "true")],
        &[("use_direct_io_for_flush_and_compaction", "true")],
        &[("enable_blob_files", "true"), ("blob_commit_min_size", "1"), ("blob_commit_direct_min_size", "1")],
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
