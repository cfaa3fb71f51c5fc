use super::*;
use crate::base::Code;
use crate::batch::WriteBatch;
use crate::env::Env;
use crate::options::{Options, WriteOptions};

fn put(db: &Db, family: &ColumnFamily, low_pri: bool) -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.put_cf(family, b"key", b"value")?;
    db.write_with(&WriteOptions { no_slowdown: true, low_pri, ..WriteOptions::default() }, batch)
}

/// Writers of all families waited for what did not come: for ever, if the one who held the
/// compactions was among them.
#[test]
fn nobody_waits_for_compactions_that_are_held() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    let stops = "level0_slowdown_writes_trigger=3;level0_stop_writes_trigger=3";
    let eager = format!("create_if_missing=true;level0_file_num_compaction_trigger=2;{stops}");
    options.set_all(&eager).unwrap();
    let db = Db::open("/db", &options).unwrap();
    let family = db.default_column_family();
    let other = db.create_column_family("other", &options.cf).unwrap();
    let outcomes =
        || [false, true].map(|low_pri| put(&db, &other, low_pri).map_err(|error| error.code()));
    // None begins that is not held either.
    db.inner().tree.lock().paused.compactions = 1;
    for _ in 0..3 {
        put(&db, family, false).unwrap();
        db.flush_all().unwrap();
    }
    assert_eq!(outcomes(), [Err(Code::Incomplete); 2], "writers are stopped");
    let first = db.hold_automatic_compactions(family).unwrap();
    let last = db.hold_automatic_compactions(family).unwrap();
    assert_eq!(outcomes(), [Ok(()); 2]);
    assert!(db.facts().unwrap().families[0].compactions_are_held);
    put(&db, family, false).unwrap();
    db.flush_all().unwrap();
    assert_eq!(outcomes(), [Ok(()); 2]);
    drop(first);
    assert_eq!(outcomes(), [Ok(()); 2], "one holds them still");
    drop(last);
    assert!(!db.facts().unwrap().families[0].compactions_are_held);
    assert_eq!(outcomes(), [Err(Code::Incomplete); 2], "they are behind");
    db.inner().tree.lock().paused.compactions = 0;
    db.wait_for_compactions().unwrap();
    assert_eq!(outcomes(), [Ok(()); 2]);
    let mut tables = db.live_files();
    tables.retain(|table| table.column_family == family.name());
    assert!(tables.iter().all(|table| table.level > Some(0)), "{tables:?}");
}

fn tables(options: &Options) -> usize {
    let names = options.env.fs.list("/db".as_ref()).unwrap();
    names.iter().filter(|name| name.ends_with(".sst")).count()
}

#[test]
fn tables_that_were_compacted_stay_until_the_last_holder_is_gone() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    let holders = [db.hold_files(), db.hold_files()];
    for value in ["old", "new"] {
        db.put("key", value).unwrap();
        db.flush_all().unwrap();
    }
    let compact = || {
        let family = db.default_column_family();
        db.compact_range(family, None, None, &Default::default()).unwrap();
    };
    compact();
    assert_eq!(tables(&options), 3);
    let [first, last] = holders;
    drop(first);
    assert_eq!(tables(&options), 3);
    drop(last);
    assert_eq!(tables(&options), 1);

    let outlives = db.hold_files();
    db.close().unwrap();
    drop(db);
    drop(outlives);
    assert_eq!(Db::open("/db", &options).unwrap().get("key").unwrap().unwrap(), "new");
}
