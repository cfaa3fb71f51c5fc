//! Compaction filters and their factories in the life of a database.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::cmp::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use common::{create, entries, referee, temporary};
use flagstone::base::merge::StringAppendOperator;
use flagstone::base::{Code, Comparator, UserComparator};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{
    BottommostLevelCompaction, CompactFilesOptions, CompactRangeOptions, CompactionFilter,
    CompactionFilterContext, CompactionFilterFactory, FilterDecision, FilteredKind, KeepEverything,
    Options, ReadOptions, TableFileCreationReason, load_latest,
};
use testkit::{compare, settings};

/// Makes filters that remove what begins with "old", and writes down what it was told.
#[derive(Default)]
struct Sweeper {
    also: Option<TableFileCreationReason>,
    by_key: bool,
    told: Mutex<Vec<CompactionFilterContext>>,
    seen: Arc<Mutex<Vec<(u32, String)>>>,
}

impl Sweeper {
    fn last(&self) -> CompactionFilterContext {
        self.told.lock().unwrap().last().expect("a filter was made").clone()
    }
}

impl CompactionFilterFactory for Sweeper {
    fn name(&self) -> &str {
        "tests.Sweeper"
    }

    fn should_filter_table_file_creation(&self, reason: TableFileCreationReason) -> bool {
        reason == TableFileCreationReason::Compaction || self.also == Some(reason)
    }

    fn create_compaction_filter(
        &self,
        context: &CompactionFilterContext,
    ) -> Option<Box<dyn CompactionFilter>> {
        self.told.lock().unwrap().push(context.clone());
        Some(Box::new(Broom { by_key: self.by_key, seen: self.seen.clone() }))
    }
}

struct Broom {
    by_key: bool,
    seen: Arc<Mutex<Vec<(u32, String)>>>,
}

fn judge(key: &[u8]) -> FilterDecision {
    if key.starts_with(b"old") { FilterDecision::Remove } else { FilterDecision::Keep }
}

impl CompactionFilter for Broom {
    fn name(&self) -> &str {
        "tests.Broom"
    }

    fn filter(&self, level: u32, key: &[u8], _kind: FilteredKind, _value: &[u8]) -> FilterDecision {
        self.seen.lock().unwrap().push((level, String::from_utf8_lossy(key).into_owned()));
        judge(key)
    }

    fn filter_by_key(&self, _level: u32, key: &[u8]) -> Option<FilterDecision> {
        self.by_key.then(|| judge(key))
    }
}

fn with(env: &Env, factory: &Arc<Sweeper>) -> Options {
    let mut options = settings::tiny(env);
    settings::set(&mut options, &[("disable_auto_compactions", "true")]);
    options.cf.compaction_filter_factory = Some(factory.clone());
    options
}

fn keys(db: &Db) -> Vec<String> {
    let found = entries(db, db.default_column_family());
    found.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

fn put_and_flush(db: &Db, names: &[&str]) {
    names.iter().for_each(|name| db.put(name, "value").expect("the database works"));
    db.flush_all().expect("the database works");
}

fn compact(db: &Db, options: &CompactRangeOptions) {
    db.compact_range(db.default_column_family(), None, None, options).expect("the database works");
}

#[test]
fn a_factory_is_told_what_its_filter_is_for() {
    let factory = Arc::new(Sweeper::default());
    let db = Db::open("/db", &with(&Env::memory(), &factory)).unwrap();
    put_and_flush(&db, &["a", "old1"]);
    put_and_flush(&db, &["b", "old2"]);
    assert!(
        factory.told.lock().unwrap().is_empty(),
        "flushes are not filtered unless it is asked for"
    );
    assert_eq!(keys(&db), ["a", "b", "old1", "old2"]);

    compact(&db, &CompactRangeOptions::default());
    assert_eq!(keys(&db), ["a", "b"]);
    let first = factory.told.lock().unwrap()[0].clone();
    assert!(first.is_manual_compaction && first.is_full_compaction);
    assert_eq!(
        (first.input_start_level, first.reason),
        (Some(0), TableFileCreationReason::Compaction)
    );
    assert!(first.output_level > 0);
    assert_eq!(first.column_family_id, db.default_column_family().id());
    let seen = std::mem::take(&mut *factory.seen.lock().unwrap());
    assert!(seen.contains(&(0, "old1".to_string())), "the level is that of the input: {seen:?}");

    let again = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    compact(&db, &again);
    assert_eq!(factory.last().input_start_level, Some(first.output_level));
    assert!(factory.seen.lock().unwrap().iter().all(|(level, _)| *level == first.output_level));
}

/// A manual compaction moved tables as they were, past the filters that a factory would have made.
#[test]
fn a_manual_compaction_moves_no_table_past_a_factory() {
    let factory = Arc::new(Sweeper::default());
    let db = Db::open("/db", &with(&Env::memory(), &factory)).unwrap();
    put_and_flush(&db, &["a", "old1"]);
    compact(&db, &CompactRangeOptions::default());
    assert_eq!(keys(&db), ["a"]);
}

#[test]
fn an_automatic_compaction_is_not_manual_and_may_be_of_a_part() {
    let factory = Arc::new(Sweeper::default());
    let db = Db::open("/db", &with(&Env::memory(), &factory)).unwrap();
    for round in 0..3 {
        put_and_flush(&db, &["a", "z", &format!("old{round}")]);
    }
    db.set_options(db.default_column_family(), &[("disable_auto_compactions", "false")]).unwrap();
    db.wait_for_compactions().unwrap();
    let told = factory.told.lock().unwrap().clone();
    assert!(
        !told.is_empty() && told.iter().all(|context| !context.is_manual_compaction),
        "{told:?}"
    );
    assert_eq!(keys(&db), ["a", "z"]);
}

#[test]
fn each_part_of_a_compaction_has_a_filter_of_its_own() {
    let factory = Arc::new(Sweeper::default());
    let mut options = with(&Env::memory(), &factory);
    settings::set(
        &mut options,
        &[("write_buffer_size", "1000000"), ("target_file_size_base", "4096")],
    );
    let db = Db::open("/db", &options).unwrap();
    for round in 0..4 {
        for number in 0..300 {
            db.put(format!("{}{number:04}", ["k", "old"][number % 2]), "v".repeat(100 + round))
                .unwrap();
        }
        db.flush_all().unwrap();
    }
    compact(&db, &CompactRangeOptions { max_subcompactions: 4, ..CompactRangeOptions::default() });
    assert!(factory.told.lock().unwrap().len() >= 3);
    assert_eq!(keys(&db).len(), 150);
    compare::check_files(&db);
}

/// What a flush removes must go on hiding what is in tables already.
#[test]
fn a_flush_is_filtered_where_the_factory_wants_it() {
    let env = Env::memory();
    let factory = Arc::new(Sweeper::default());
    let db = Db::open("/db", &with(&env, &factory)).unwrap();
    put_and_flush(&db, &["a", "old1"]);
    db.close().unwrap();
    drop(db);

    let factory =
        Arc::new(Sweeper { also: Some(TableFileCreationReason::Flush), ..Sweeper::default() });
    let db = Db::open("/db", &with(&env, &factory)).unwrap();
    assert_eq!(keys(&db), ["a", "old1"]);
    put_and_flush(&db, &["b", "old1", "old2"]);
    assert_eq!(keys(&db), ["a", "b"]);
    let context = factory.last();
    assert_eq!((context.reason, context.input_start_level), (TableFileCreationReason::Flush, None));
    assert!(!context.is_full_compaction && !context.is_manual_compaction);
    compare::check_files(&db);
}

#[test]
fn recovery_is_filtered_where_the_factory_wants_it() {
    for (also, left) in
        [(TableFileCreationReason::Recovery, 1), (TableFileCreationReason::Flush, 2)]
    {
        let env = Env::memory();
        let factory = Arc::new(Sweeper { also: Some(also), ..Sweeper::default() });
        let mut options = with(&env, &factory);
        settings::set(&mut options, &[("avoid_flush_during_shutdown", "true")]);
        let db = Db::open("/db", &options).unwrap();
        ["a", "old1"].iter().for_each(|name| db.put(name, "value").unwrap());
        db.close().unwrap();
        drop(db);
        let db = Db::open("/db", &options).unwrap();
        assert_eq!(keys(&db).len(), left);
    }
}

/// Large values are judged by their keys and never read; what they leave behind in blob files is
/// garbage.
#[test]
fn large_values_are_judged_without_being_read() {
    for wanted in [None, Some(TableFileCreationReason::Flush)] {
        let factory = Arc::new(Sweeper { by_key: true, also: wanted, ..Sweeper::default() });
        let mut options = with(&Env::memory(), &factory);
        settings::set(
            &mut options,
            &[
                ("enable_blob_files", "true"),
                ("min_blob_size", "10"),
                ("blob_commit_min_size", "10"),
                ("write_buffer_size", "1000000"),
            ],
        );
        let db = Db::open("/db", &options).unwrap();
        for number in 0..20 {
            db.put(format!("old{number:02}"), vec![7; 1000]).unwrap();
        }
        db.put("new", vec![7; 1000]).unwrap();
        db.flush_all().unwrap();
        compact(&db, &CompactRangeOptions::default());
        assert_eq!(keys(&db), ["new"]);
        assert!(factory.seen.lock().unwrap().is_empty(), "nothing was read for the filter's sake");
        compare::check_files(&db);
    }
}

#[test]
fn the_filter_goes_before_the_factory() {
    let factory = Arc::new(Sweeper::default());
    let mut options = with(&Env::memory(), &factory);
    options.cf.compaction_filter = Some(Arc::new(KeepEverything::instead_of("tests.None")));
    let db = Db::open("/db", &options).unwrap();
    put_and_flush(&db, &["a", "old1"]);
    compact(&db, &CompactRangeOptions::default());
    assert_eq!(keys(&db), ["a", "old1"]);
    assert!(factory.told.lock().unwrap().is_empty());
}

/// Went wrong: a program that forgot its filter went on without it, and the OPTIONS file forgot it,
/// too.
#[test]
fn a_filter_that_the_options_file_names_must_be_given() {
    let env = Env::memory();
    let factory = Arc::new(Sweeper::default());
    let written = with(&env, &factory);
    Db::open("/db", &written).unwrap().close().unwrap();
    let named = |env: &Env| {
        let loaded =
            load_latest(env, std::path::Path::new("/db")).unwrap().expect("an OPTIONS file");
        Options { cf: loaded.families[0].1.clone(), ..loaded.options }
    };

    let mut loaded = named(&env);
    let refused = Db::open("/db", &loaded).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.to_string().contains("compaction_filter_factory 'tests.Sweeper'"), "{refused}");
    let db = Db::open_read_only("/db", &loaded).expect("reading asks no filter");
    drop(db);

    loaded.cf.stand_in_for_filters();
    Db::open("/db", &loaded).unwrap().close().unwrap();
    let mut loaded = named(&env);
    assert_eq!(loaded.cf.kept.len(), 1, "it goes on naming the filter");
    loaded.cf.compaction_filter_factory = Some(factory);
    Db::open("/db", &loaded).unwrap().close().unwrap();

    let mut loaded = named(&env);
    assert_eq!(
        loaded.set("compaction_filter", "tests.Sweeper").unwrap_err().code(),
        Code::NotSupported
    );
    loaded.set("compaction_filter_factory", "nullptr").unwrap();
    Db::open("/db", &loaded).unwrap().close().unwrap();
    assert!(named(&env).cf.kept.is_empty());
}

/// RocksDB rewrites every table within 30 days where there is a filter.
#[test]
fn a_filter_comes_by_every_table_in_the_end() {
    let (mut with_filter, without) = (create(), create());
    with_filter.cf.compaction_filter_factory = Some(Arc::new(Sweeper::default()));
    assert_eq!(with_filter.cf.sanitized().periodic_compaction_seconds, 30 * 24 * 60 * 60);
    assert_eq!(without.cf.sanitized().periodic_compaction_seconds, 0);
    with_filter.cf.periodic_compaction_seconds = 0;
    assert_eq!(with_filter.cf.sanitized().periodic_compaction_seconds, 0);
}

#[test]
fn rocksdb_passes_over_the_names_of_filters() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let mut options = create();
    options.cf.compaction_filter = Some(Arc::new(KeepEverything::instead_of("tests.Filter")));
    options.cf.compaction_filter_factory = Some(Arc::new(Sweeper::default()));
    let db = Db::open(&path, &options).unwrap();
    put_and_flush(&db, &["a"]);
    db.close().unwrap();
    drop(db);
    assert_eq!(referee.ldb(&path, &["get", "a"]).trim(), "value");
    referee.ldb(&path, &["put", "b", "by ldb"]);
    let db = Db::open(&path, &options).unwrap();
    assert_eq!(keys(&db), ["a", "b"]);
}

/// Removes what says "base", unless something was merged onto it.
struct DropsBases;

impl CompactionFilter for DropsBases {
    fn name(&self) -> &str {
        "tests.DropsBases"
    }

    fn filter(
        &self,
        _level: u32,
        _key: &[u8],
        _kind: FilteredKind,
        value: &[u8],
    ) -> FilterDecision {
        if value == b"base" { FilterDecision::RemoveUnlessMerged } else { FilterDecision::Keep }
    }
}

/// The order of bytes; who first compares with "zebra" tells so, and waits.
struct WaitsAtZebra(Mutex<Option<(Sender<()>, Receiver<()>)>>);

impl UserComparator for WaitsAtZebra {
    fn name(&self) -> &str {
        "tests.WaitsAtZebra"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if [a, b].contains(&&b"zebra"[..])
            && let Some((has_come, goes_on)) = self.0.lock().unwrap().take()
        {
            has_come.send(()).unwrap();
            let _ = goes_on.recv();
        }
        a.cmp(b)
    }
}

/// A write under way hid the operands from the compaction, and not from a snapshot that was taken
/// before it was over.
#[test]
fn what_is_still_being_written_hides_no_operands() {
    let (has_come, come) = channel();
    let (go_on, goes_on) = channel();
    let mut options = settings::tiny(&Env::memory());
    settings::set(&mut options, &[("disable_auto_compactions", "true")]);
    options.cf.comparator =
        Comparator::Custom(Arc::new(WaitsAtZebra(Mutex::new(Some((has_come, goes_on))))));
    options.cf.merge_operator = Some(Arc::new(StringAppendOperator::new(",")));
    options.cf.compaction_filter = Some(Arc::new(DropsBases));
    let db = Db::open("/db", &options).unwrap();
    let family = db.default_column_family();
    db.put("key", "base").unwrap();
    db.flush_all().unwrap();
    db.merge("key", "more").unwrap();
    let tables: Vec<_> = db.live_files().iter().map(|file| file.number).collect();
    let snapshot = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut batch = WriteBatch::new();
            batch.put(b"key", b"another").unwrap();
            batch.put(b"zebra", b"striped").unwrap();
            db.write(batch).unwrap();
        });
        come.recv().unwrap();
        db.compact_files(family, &tables, 6, &CompactFilesOptions::default()).unwrap();
        let snapshot = db.snapshot();
        go_on.send(()).unwrap();
        snapshot
    });
    let then = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    assert_eq!(db.get_with(&then, family, "key").unwrap().unwrap(), "base,more");
    assert_eq!(db.get("key").unwrap().unwrap(), "another");
}
