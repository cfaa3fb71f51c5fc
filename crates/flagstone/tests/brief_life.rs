//! A brief life of a database with a reader, a writer and the background's threads: so brief that
//! Miri, which knows data races and weak memory, can live it in several ways (`scripts/miri.sh`).

use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{ReadOptions, WriteOptions};
use testkit::settings;

#[test]
fn a_reader_and_a_writer() {
    let options = settings::tiny(&Env::memory());
    let db = Db::open("/db", &options).expect("a new database");
    db.put("a", "0").expect("a write");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..3 {
                let mut batch = flagstone::batch::WriteBatch::new();
                batch.put(b"a", n.to_string().as_bytes()).expect("a small batch");
                batch.put(b"b", n.to_string().as_bytes()).expect("a small batch");
                db.write_with(&WriteOptions { sync: n == 1, ..WriteOptions::default() }, batch)
                    .expect("a write");
                db.flush_all().expect("a flush");
            }
        });
        for _ in 0..2 {
            assert!(db.get("a").expect("a lookup").is_some());
            let options = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
            let default = db.default_column_family();
            let b = db.get_with(&options, default, "b").expect("a lookup");
            let a =
                db.get_with(&options, default, "a").expect("a lookup").expect("it is always there");
            assert!(b.is_none_or(|b| *b == *a), "whole batches");
        }
    });
    db.compact_range(db.default_column_family(), None, None, &Default::default())
        .expect("a compaction");
    assert_eq!(db.get("b").expect("a lookup").expect("it was written"), "2");
    db.close().expect("a clean close");
}
