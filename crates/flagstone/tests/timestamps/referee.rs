//! RocksDB's own tools read what is written with timestamps.

use flagstone::base::timestamp::from_u64;
use flagstone::{Comparator, Db};
use testkit::referee::Referee;

#[test]
fn tables_with_timestamps_are_sound_for_rocksdb() {
    let Some(referee) = Referee::find() else {
        println!("SKIPPED: ldb and sst_dump are missing");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let open = || {
        let builder = Db::builder(path);
        builder.options(|options| options.cf.comparator = Comparator::BytewiseU64Ts).open().unwrap()
    };
    let db = open();
    for round in 1..4u64 {
        for key in 0..100 {
            let key = format!("key{key:03}");
            db.put_with_timestamp(&key, from_u64(round * 10), format!("{key}@{round}")).unwrap();
        }
        db.delete_with_timestamp("key050", from_u64(round * 10 + 1)).unwrap();
        db.delete_range_with_timestamp("key010".."key020", from_u64(round * 10 + 2)).unwrap();
        db.flush().unwrap();
    }
    let shown = |db: &Db| {
        let at = |timestamp| db.as_of(from_u64(timestamp)).iter().collect::<Result<Vec<_>, _>>();
        [9, 10, 11, 12, 25, 30, 31, 32].map(|timestamp| at(timestamp).unwrap())
    };
    let before = shown(&db);
    db.close().unwrap();
    assert_eq!(referee.verify_tables(path).unwrap(), 3);
    let dump = referee.ldb(path, &["idump", "--try_load_options", "--max_keys=4"]).unwrap();
    let versions = ["key000\x1e => key000@3", "key000\x14 => key000@2", "key000\n => key000@1"];
    let shown_first = |text: &str| versions.iter().all(|version| text.contains(version));
    assert!(shown_first(&dump.replace('\0', "")), "{dump:?}");
    assert_eq!(referee.ldb(path, &["checkconsistency", "--try_load_options"]).unwrap(), "OK\n");
    // What RocksDB writes of it is read the same.
    referee.ldb(path, &["compact", "--try_load_options"]).unwrap();
    let db = open();
    assert_eq!(shown(&db), before);
    db.put_with_timestamp("key000", from_u64(40), "again").unwrap();
    assert_eq!(db.as_of(from_u64(40)).get("key000").unwrap().unwrap(), "again");
}
