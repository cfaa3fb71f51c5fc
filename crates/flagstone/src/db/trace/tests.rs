use crate::cache::TraceOptions;
use crate::db::handle::Db;
use crate::env::Env;
use crate::options::{Options, ReadOptions};

/// Closing writes the rest, so that a program that forgets to end the recording has one all the
/// same.
#[test]
fn reads_are_recorded_until_the_database_is_closed() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    (0..1000).for_each(|i| db.put(format!("key{i:04}"), [7; 100]).unwrap());
    db.flush_all().unwrap();
    db.start_block_cache_trace("/db/trace", &TraceOptions::default()).unwrap();
    let before = db.inner().tables.caches().blocks().statistics();
    (0..1000).for_each(|i| assert!(db.get(format!("key{i:04}")).unwrap().is_some()));
    // These find nothing, or have nothing kept.
    let unkept = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    assert!(db.get("yes").unwrap().is_none());
    let mut iter = db.iter(&unkept).unwrap();
    iter.seek_to_first();
    assert!(iter.valid());
    drop(iter);
    let after = db.inner().tables.caches().blocks().statistics();
    let asked = after.hits - before.hits + after.inserts - before.inserts;
    db.close().unwrap();
    let size = options.env.fs.metadata("/db/trace".as_ref()).unwrap().size;
    assert_eq!(size, asked * 24);
    assert!(asked >= 1000, "{asked}");
    assert!(db.start_block_cache_trace("/db/other", &TraceOptions::default()).is_err());
}
