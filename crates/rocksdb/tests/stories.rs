//! Stories of programs that were written for the rocksdb crate.

use std::path::Path;
use std::thread;

use flagstone_rocksdb::checkpoint::Checkpoint;
use flagstone_rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBWithThreadMode, Direction, ErrorKind,
    IteratorMode, MergeOperands, MultiThreaded, Options, ReadOptions, SingleThreaded, WriteBatch,
    WriteOptions,
};
use tempfile::TempDir;
use testkit::referee::Referee;

type Single = DBWithThreadMode<SingleThreaded>;
type Multi = DBWithThreadMode<MultiThreaded>;

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn create() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options
}

fn join(_key: &[u8], before: Option<&[u8]>, added: &MergeOperands<'_>) -> Option<Vec<u8>> {
    let parts: Vec<&[u8]> = before.into_iter().chain(added).collect();
    Some(parts.join(&b","[..]))
}

fn keys(db: &DB, mode: IteratorMode<'_>) -> Vec<Vec<u8>> {
    db.iterator(mode).map(|item| item.expect("an entry").0.into_vec()).collect()
}

/// What the directory holds, by the ends of the names.
fn count(directory: &Path, end: &str) -> usize {
    let entries = std::fs::read_dir(directory).expect("a listing");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names.filter(|name| name.to_string_lossy().ends_with(end)).count()
}

#[test]
fn openings_are_as_strict_as_rocksdbs() {
    let directory = temporary();
    let path = directory.path().join("db");
    let error = DB::open(&Options::default(), &path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("create_if_missing"), "{error}");
    let db = DB::open_cf(&create(), &path, ["users"]).unwrap();
    assert_eq!(DB::open_default(&path).unwrap_err().kind(), ErrorKind::IOError, "it is open");
    assert_eq!(DB::destroy(&Options::default(), &path).unwrap_err().kind(), ErrorKind::IOError);
    drop(db);
    let error = DB::open(&Options::default(), &path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("users"), "{error}");
    let error = DB::open_cf(&Options::default(), &path, ["users", "photos"]).unwrap_err();
    assert!(error.to_string().contains("photos"), "{error}");
    assert_eq!(DB::list_cf(&Options::default(), &path).unwrap(), ["default", "users"]);
    DB::destroy(&Options::default(), &path).unwrap();
    assert!(!path.exists());
}

#[test]
fn families_come_and_go_in_both_modes() {
    let directory = temporary();
    let path = directory.path().join("single");
    let mut single = Single::open(&create(), &path).unwrap();
    single.create_cf("users", &Options::default()).unwrap();
    single.put_cf(single.cf_handle("users").unwrap(), "ada", "1815").unwrap();
    single.drop_cf("users").unwrap();
    assert!(single.cf_handle("users").is_none());
    assert!(single.drop_cf("users").is_err());

    let multi = Multi::open(&create(), directory.path().join("multi")).unwrap();
    thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let multi = &multi;
            scope.spawn(move || {
                multi.create_cf(name, &Options::default()).unwrap();
                multi.put_cf(&multi.cf_handle(name).unwrap(), name, "1").unwrap();
            });
        }
    });
    let (a, b) = (multi.cf_handle("a").unwrap(), multi.cf_handle("b").unwrap());
    let found = multi.multi_get_cf([(&a, "a"), (&b, "b"), (&a, "b")]);
    let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(found, [Some(b"1".to_vec()), Some(b"1".to_vec()), None]);
    multi.drop_cf("a").unwrap();
    let error = multi.put_cf(&a, "a", "2").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[test]
fn snapshots_and_iterators_see_one_moment() {
    let directory = temporary();
    let db = DB::open_default(directory.path()).unwrap();
    for key in ["a", "b", "c"] {
        db.put(key, "1").unwrap();
    }
    let snapshot = db.snapshot();
    let mut before = db.raw_iterator();
    let mut tailing = ReadOptions::default();
    tailing.set_tailing(true);
    let mut tailing = db.raw_iterator_opt(tailing);
    tailing.seek("c");
    db.delete("b").unwrap();
    db.put("d", "2").unwrap();
    assert_eq!(keys(&db, IteratorMode::Start), [b"a", b"c", b"d"]);
    assert_eq!(keys(&db, IteratorMode::From(b"cc", Direction::Reverse)), [b"c", b"a"]);
    assert_eq!(snapshot.get("b").unwrap().unwrap(), b"1");
    assert_eq!(snapshot.iterator(IteratorMode::End).count(), 3);
    before.seek_to_last();
    assert_eq!(before.item(), Some((&b"c"[..], &b"1"[..])));
    before.next();
    assert_eq!((before.valid(), before.status()), (false, Ok(())));
    tailing.next();
    assert_eq!(tailing.key(), Some(&b"d"[..]), "what was written since is there");
    tailing.prev();
    assert_eq!(tailing.status().unwrap_err().kind(), ErrorKind::NotSupported);
}

#[test]
fn a_batch_tells_what_is_in_it_and_is_found_in_the_wal() {
    let directory = temporary();
    let db = DB::open_default(directory.path()).unwrap();
    db.put("before", "1").unwrap();
    let mut batch = WriteBatch::default();
    batch.put("a", "1");
    batch.delete("b");
    batch.put_log_data("only in the WAL");
    assert_eq!(batch.len(), 2);
    let copy = WriteBatch::from_data(batch.data());
    db.write(batch).unwrap();
    let (sequence, found) = db.get_updates_since(1).unwrap().next().unwrap().unwrap();
    assert_eq!((sequence, found.len()), (2, 2));
    db.write(copy).unwrap();
    assert_eq!(db.latest_sequence_number(), 5);
    let error = db.write(WriteBatch::from_data(b"no batch")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}

#[test]
fn operands_are_merged_and_refusals_reported() {
    let directory = temporary();
    let mut options = create();
    options.set_merge_operator_associative("join", join);
    let db = DB::open(&options, directory.path()).unwrap();
    db.put("key", "a").unwrap();
    db.merge("key", "b").unwrap();
    db.flush().unwrap();
    db.merge("key", "c").unwrap();
    db.compact_range(None::<&[u8]>, None::<&[u8]>);
    assert_eq!(db.get("key").unwrap().unwrap(), b"a,b,c");
    drop(db);
    options.set_merge_operator_associative("join", |_, _, _| None);
    let db = DB::open(&options, directory.path()).unwrap();
    db.merge("key", "d").unwrap();
    assert_eq!(db.get("key").unwrap_err().kind(), ErrorKind::Corruption);
    let mut items = db.iterator(IteratorMode::Start);
    assert_eq!(items.next().unwrap().unwrap_err().kind(), ErrorKind::Corruption);
    assert!(items.next().is_none(), "an error is told once");
}

#[test]
fn the_log_names_options_as_rocksdb_does() {
    let directory = temporary();
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(&Cache::new_lru_cache(115_343_360));
    let mut users = Options::default();
    users.set_block_based_table_factory(&tables);
    let users = ColumnFamilyDescriptor::new("users", users);
    drop(DB::open_cf_descriptors(&create(), directory.path(), [users]).unwrap());
    let log = std::fs::read_to_string(directory.path().join("LOG")).unwrap();
    let count = |line: &str| log.matches(line).count();
    assert_eq!(count("block_cache_options:\n    capacity : 115343360"), 1);
    assert_eq!(count("Options.compression: LZ4\n"), 2);
    assert_eq!(count("Options.bottommost_compression: Disabled\n"), 2);
    assert_eq!(count("Options.num_levels: 7\n"), 2);
}

/// Values stay in tables unless the program asks for blob files, and these are written at a flush:
/// so RocksDB reads what a killed process leaves.
#[test]
fn rocksdb_reads_what_was_written_and_not_flushed() {
    let Some(referee) = Referee::find() else {
        eprintln!("SKIPPED: ldb is missing");
        return;
    };
    let directory = temporary();
    let (path, copy) = (directory.path().join("db"), directory.path().join("copy"));
    let mut tables = BlockBasedOptions::default();
    tables.set_format_version(5); // An older ldb does not read the default's.
    let mut small = Options::default();
    small.set_block_based_table_factory(&tables);
    let mut large = small.clone();
    large.set_enable_blob_files(true);
    let families = [("default", small), ("large", large)]
        .map(|(name, options)| ColumnFamilyDescriptor::new(name, options));
    let db = DB::open_cf_descriptors(&create(), &path, families).unwrap();
    let value = vec![b'v'; 20_000];
    db.put("table", &value).unwrap();
    db.put_cf(&db.cf_handle("large").unwrap(), "blob", &value).unwrap();
    db.flush_cf(&db.cf_handle("large").unwrap()).unwrap();
    assert_eq!(count(&path, ".blob"), 1);
    db.put_cf(&db.cf_handle("large").unwrap(), "later", &value).unwrap();
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    db.put_opt("last", "1", &synced).unwrap();
    assert_eq!(count(&path, ".blob"), 1);
    // The files as a killed process would leave them.
    Checkpoint::new(&db).unwrap().create_checkpoint_with_log_size(&copy, u64::MAX).unwrap();
    let scan = |family: &str| referee.scan(&copy, family).unwrap();
    let entries = |text: &str| text.lines().count();
    assert_eq!((entries(&scan("default")), entries(&scan("large"))), (2, 2));
}

#[test]
fn single_operations_are_counted_for_their_thread() {
    use flagstone_rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};
    let directory = tempfile::tempdir().unwrap();
    let db = DB::open_default(directory.path()).unwrap();
    db.put("ada", "1815").unwrap();
    let mut context = PerfContext::default();
    db.get("ada").unwrap();
    assert_eq!(context.report(true), "", "a thread asks before it is counted for");
    set_perf_stats(PerfStatsLevel::EnableTime);
    db.get("ada").unwrap();
    assert_eq!(context.metric(PerfMetric::GetReadBytes), 4);
    assert_eq!(context.metric(PerfMetric::GetFromMemtableCount), 1);
    assert!(context.metric(PerfMetric::GetFromMemtableTime) > 0);
    assert_eq!(context.metric(PerfMetric::TotalMetricCount), 0);
    assert!(context.report(true).contains("get_read_bytes = 4"), "{}", context.report(true));
    assert!(context.report(false).contains("blob_read_count = 0"));
    context.reset();
    assert_eq!(context.metric(PerfMetric::GetReadBytes), 0);
    set_perf_stats(PerfStatsLevel::Disable);
}
