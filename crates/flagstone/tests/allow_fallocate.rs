//! Whether space is reserved before it is written to: `allow_fallocate`.

use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::Env;
use testkit::{Call, CrashFs, FaultFs, settings};

/// Each way to write for which space is reserved reserves none if that is not wanted, and writes the same.
#[test]
fn nothing_is_reserved_if_that_is_not_wanted() {
    let ways: [&[(&str, &str)]; 4] = [
        &[("wal_write_mode", "mapped")],
        &[("wal_write_mode", "plain")],
        &[("wal_write_mode", "plain"), ("manual_wal_flush", "true")],
        &[("use_direct_io_for_flush_and_compaction", "true")],
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

/// As in RocksDB, whose files say 4 MiB; what is left of it is given back.
#[test]
fn a_manifest_has_its_space_reserved_as_much_at_a_time_as_is_wanted() {
    for (size, allowed, is_reserved) in [("65536", true, true), ("65536", false, false), ("0", true, false)] {
        let faults = FaultFs::new(Arc::new(CrashFs::new()));
        let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(faults.clone())));
        settings::set(&mut options, &[("manifest_preallocation_size", size)]);
        options.allow_fallocate = allowed;
        faults.record();
        let db = Db::open("/db", &options).unwrap();
        for round in 0..3u8 {
            db.put("key", [round]).unwrap();
            db.flush_all().unwrap();
        }
        db.close().unwrap();
        // Before the handle is dropped, when the directory may be another's.
        let calls = faults.recorded();
        drop(db);
        let count = |call: Call| {
            let of_manifest = |path: &std::path::Path| path.to_string_lossy().contains("MANIFEST");
            calls.iter().filter(|(made, path)| *made == call && of_manifest(path)).count()
        };
        let expected = usize::from(is_reserved);
        assert_eq!((count(Call::Allocate), count(Call::Truncate)), (expected, expected), "{size} {allowed}");
        let db = Db::open("/db", &options).unwrap();
        assert_eq!(db.get("key").unwrap().as_deref(), Some(&[2][..]));
    }
}
