use super::*;
use crate::batch::WriteBatch;
use crate::db::handle::Db;
use crate::env::Env;
use crate::options::{FlushOptions, Options};

const KEYS: usize = 100;
const WRITES: usize = 20_000;

fn options(env: &Env, write_buffer_size: u64) -> Options {
    let mut options = Options { env: env.clone(), ..Options::default() };
    options.create_if_missing = true;
    options.cf.settings.disable_auto_compactions = true;
    options.cf.settings.level0_slowdown_writes_trigger = 1000;
    options.cf.settings.level0_stop_writes_trigger = 1000;
    options.cf.settings.write_buffer_size = write_buffer_size;
    options
}

/// A database whose WAL holds versions of a few keys, in two families.
fn unflushed() -> Env {
    let env = Env::memory();
    let db = Db::open("/db", &options(&env, 64 << 20)).unwrap();
    let family = db.create_column_family("other", &options(&env, 64 << 20).cf).unwrap();
    for i in 0..WRITES {
        let (key, value) = (format!("key{:03}", i % KEYS), format!("{i:0100}"));
        if i % 3 == 0 {
            db.put_cf(&family, key, value).unwrap();
        } else {
            db.put(key, value).unwrap();
        }
    }
    db.delete("key000").unwrap();
    db.close().unwrap();
    env
}

/// The last write of a key in a family.
fn expected(key: usize, is_other: bool) -> usize {
    (0..WRITES).rev().find(|i| i % KEYS == key && (i % 3 == 0) == is_other).unwrap()
}

#[test]
fn memtables_that_fill_up_in_the_replay_keep_the_order_of_history() {
    let env = unflushed();
    let db = Db::open("/db", &options(&env, 64 << 10)).unwrap();
    let other = db.column_family("other").unwrap();
    let tables = db.live_files().len();
    assert!(tables > 10, "{tables} tables: the replay wrote none on its way");
    for key in 0..KEYS {
        let name = format!("key{key:03}");
        let value = |is_other| format!("{:0100}", expected(key, is_other));
        assert_eq!(db.get_cf(&other, &name).unwrap().unwrap(), value(true).as_str());
        match db.get(&name).unwrap() {
            None => assert_eq!(key, 0),
            Some(found) => assert_eq!(found, value(false).as_str()),
        }
    }
    assert_eq!(db.latest_sequence_number(), WRITES as u64 + 1);
    // Newest first: a flush that overtook another would stand in the wrong place.
    let largest: Vec<_> = db.default_column_family().0.current.load().version.levels[0]
        .iter()
        .map(|file| file.meta.largest_seqno)
        .collect();
    assert!(largest.is_sorted_by(|newer, older| newer > older), "{largest:?}");
}

/// All of it came into one memtable, which became many times as large as it may, beside a list of
/// all its operations.
#[test]
fn a_batch_that_is_larger_than_a_memtable_fills_several() {
    let env = Env::memory();
    let db = Db::open("/db", &options(&env, 64 << 20)).unwrap();
    let mut batch = WriteBatch::new();
    for i in 0..WRITES {
        batch.put(format!("key{:03}", i % KEYS), format!("{i:0100}")).unwrap();
    }
    db.write(batch).unwrap();
    db.close().unwrap();
    drop(db);
    let db = Db::open("/db", &options(&env, 64 << 10)).unwrap();
    let tables = db.live_files().len();
    assert!(tables > 10, "{tables} tables");
    for key in 0..KEYS {
        let found = db.get(format!("key{key:03}")).unwrap().unwrap();
        assert_eq!(found, format!("{:0100}", WRITES - KEYS + key).as_str());
    }
    assert_eq!(db.latest_sequence_number(), WRITES as u64);
}

#[test]
fn opening_tells_how_far_it_is() {
    let env = unflushed();
    let told = Arc::new(Mutex::new(Vec::new()));
    let ear = told.clone();
    let mut options = options(&env, 64 << 10);
    options.open_progress = Some(Arc::new(move |progress| ear.lock().push(*progress)));
    let db = Db::open("/db", &options).unwrap();
    let tables = db.live_files().len() as u64;
    let steps = std::mem::take(&mut *told.lock());
    let (first, last) = (steps[0], steps[steps.len() - 1]);
    assert_eq!((first.wal_bytes_replayed, first.tables_written), (0, 0));
    assert_eq!((last.files_total, last.blobs_checked), (0, 0));
    assert!(last.wal_bytes_total > 2_000_000 && last.wal_bytes_replayed == last.wal_bytes_total);
    // Each family's last memtable is written after that.
    assert!(tables > 10 && last.tables_written == tables - 2, "{last:?}, {tables}");
    let is_ahead = |a: &OpenProgress, b: &OpenProgress| {
        a.wal_bytes_replayed <= b.wal_bytes_replayed && a.tables_written <= b.tables_written
    };
    assert!(steps.is_sorted_by(is_ahead), "{steps:?}");
    db.close().unwrap();
    drop(db);
    // Nothing to replay, nothing to tell.
    drop(Db::open("/db", &options).unwrap());
    assert_eq!(*told.lock(), []);
    drop(options);
    assert_eq!(Arc::strong_count(&told), 1, "an open database keeps the callback");
}
#[test]
fn opening_counts_what_it_checks() {
    let env = Env::memory();
    let mut options = options(&env, 64 << 20);
    options.cf.settings.blob_commit_min_size = 1000;
    options.cf.settings.enable_blob_files = Some(true);
    options.cf.settings.min_blob_size = Some(1000);
    let db = Db::open("/db", &options).unwrap();
    for at in 0..101 {
        db.put(format!("{at}"), "small").unwrap();
        db.flush(db.default_column_family(), &FlushOptions::default()).unwrap();
    }
    // Closing would flush them.
    (0..7).for_each(|at| db.put(format!("{at}"), vec![b'v'; 2000]).unwrap());
    let told = Arc::new(Mutex::new(Vec::new()));
    let ear = told.clone();
    options.open_progress = Some(Arc::new(move |progress| ear.lock().push(*progress)));
    drop(Db::open_read_only("/db", &options).unwrap());
    let steps = told.lock();
    let checked: Vec<_> = steps.iter().map(|step| (step.files_checked, step.files_total)).collect();
    assert_eq!(checked, [(100, 101), (101, 101), (101, 101)]);
    assert_eq!(steps.iter().map(|step| step.blobs_checked).collect::<Vec<_>>(), [0, 0, 7]);
}
