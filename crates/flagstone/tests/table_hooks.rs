//! What an application has to say about tables as they are written: collectors of properties, and
//! partitioners.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{create, referee, temporary};
use flagstone::base::Snapshot;
use flagstone::base::{Error, Result};
use flagstone::db::{ColumnFamily, Db, Value};
use flagstone::env::Env;
use flagstone::ingest::{SstFileWriter, SstFileWriterOptions};
use flagstone::options::{
    CollectedEntry, CollectorContext, CompactOnDeletionCollectorFactory, CompactRangeOptions,
    CompactionReason, EntryKind, EventListener, IngestExternalFileOptions, JobInfo, JobReason,
    Options, PartitionRequest, PartitionerContext, ReadOptions, SstPartitioner,
    SstPartitionerFactory, SstPartitionerFixedPrefixFactory, TablePropertiesCollector,
    TablePropertiesCollectorFactory, UserProperties,
};
use parking_lot::Mutex;

/// Gives each table the text of its entries and the level for which it was written.
struct Scribe;

struct Writing {
    text: String,
    blocks: usize,
}

impl TablePropertiesCollectorFactory for Scribe {
    fn name(&self) -> &str {
        "Scribe"
    }

    fn create(&self, context: &CollectorContext) -> Option<Box<dyn TablePropertiesCollector>> {
        let text = format!("{:?} {:?}:", context.family.map(|id| id.0), context.level);
        Some(Box::new(Writing { text, blocks: 0 }))
    }
}

impl TablePropertiesCollector for Writing {
    fn add(&mut self, entry: &CollectedEntry<'_>) -> Result<()> {
        let (key, value) = (entry.key.escape_ascii(), entry.value.escape_ascii());
        self.text += &format!(" {key}={value}@{}{:?}", entry.sequence, entry.kind);
        Ok(())
    }

    fn block_add(&mut self, bytes: u64) {
        assert!(bytes > 0);
        self.blocks += 1;
    }

    fn finish(&mut self) -> Result<UserProperties> {
        let properties = [("text", self.text.clone()), ("blocks", self.blocks.to_string())];
        Ok(properties.map(|(name, value)| (name.into(), value.into())).into())
    }
}

/// The texts of a family's tables by level.
fn texts(db: &Db, family: &ColumnFamily) -> Vec<String> {
    let levels = db.properties_of_tables_by_level(family).unwrap();
    let tables = levels.into_iter().flat_map(BTreeMap::into_values);
    let text = |table: flagstone::reports::TableProperties| {
        let all: BTreeMap<_, _> = table.user_properties().collect();
        String::from_utf8(all[&b"text"[..]].to_vec()).unwrap()
    };
    tables.map(text).collect()
}

fn compact(db: &Db) -> Result<()> {
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
}

#[test]
fn collectors_see_each_entry_of_each_table() {
    let directory = temporary();
    let mut options = create();
    options.set("merge_operator", "uint64add").unwrap();
    options.cf.table_properties_collectors.0.push(Arc::new(Scribe));
    let db = Db::open(directory.path(), &options).unwrap();
    let family = db.default_column_family();
    db.put("a", "1").unwrap();
    db.delete("b").unwrap();
    db.single_delete("c").unwrap();
    db.merge("d", 5u64.to_le_bytes()).unwrap();
    db.delete_range("e", "g").unwrap();
    db.flush_all().unwrap();
    let flushed = "Some(0) Some(0): a=1@1Put b=@2Delete c=@3SingleDelete \
                   d=\\x05\\x00\\x00\\x00\\x00\\x00\\x00\\x00@4Merge e=g@5RangeDelete";
    assert_eq!(texts(&db, family), [flushed]);
    let table = directory.path().join("external.sst");
    let mut writer =
        SstFileWriter::create(&table, &SstFileWriterOptions::new(&options.cf)).unwrap();
    writer.put("z", "2").unwrap();
    writer.finish().unwrap();
    db.ingest_external_files(family, &[&table], &IngestExternalFileOptions::default()).unwrap();
    assert_eq!(texts(&db, family), [flushed, "None None: z=2@0Put"]);
    db.put("a", "3").unwrap();
    compact(&db).unwrap();
    let all = texts(&db, family);
    let is_merged = |text: &String| text.starts_with("Some(0) Some(6): a=3@0Put d=");
    assert!(all.iter().any(is_merged), "{all:?}");
    db.close().unwrap();
    if let Some(referee) = referee() {
        let shown = referee.table_properties(directory.path());
        let hex: String = b"Some(0) Some(6): a=3@0Put".map(|byte| format!("{byte:02X}")).concat();
        assert!(shown.contains(&format!("# text: 0x{hex}")), "{shown}");
        assert!(shown.contains("property collectors names: [Scribe]"), "{shown}");
    }
}

/// Fails in a way of its own.
#[derive(Clone, Copy, Debug)]
enum Bad {
    Creates,
    Adds,
    PanicsWhenItAdds,
    Finishes,
    TakesAName,
    GivesTooMuch,
}

impl TablePropertiesCollectorFactory for Bad {
    fn name(&self) -> &str {
        "Bad"
    }

    fn create(&self, _context: &CollectorContext) -> Option<Box<dyn TablePropertiesCollector>> {
        assert!(!matches!(self, Self::Creates), "it cannot");
        Some(Box::new(*self))
    }
}

impl TablePropertiesCollector for Bad {
    fn add(&mut self, _entry: &CollectedEntry<'_>) -> Result<()> {
        match self {
            Self::Adds => Err(Error::invalid_argument("it cannot")),
            Self::PanicsWhenItAdds => panic!("it cannot"),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<UserProperties> {
        let properties = |name: &str, bytes| [(name.into(), vec![b'x'; bytes])].into();
        match self {
            Self::Finishes => Err(Error::invalid_argument("it cannot")),
            Self::TakesAName => Ok(properties("flagstone.bounds", 1)),
            Self::GivesTooMuch => Ok(properties("much", 17 << 20)),
            _ => Ok(properties("bad", 1)),
        }
    }

    fn need_compact(&self) -> bool {
        true
    }
}

#[test]
fn a_collector_that_fails_costs_its_own_properties_only() {
    let all = [
        Bad::Creates,
        Bad::Adds,
        Bad::PanicsWhenItAdds,
        Bad::Finishes,
        Bad::TakesAName,
        Bad::GivesTooMuch,
    ];
    for bad in all {
        let mut options = Options { env: Env::memory(), ..create() };
        options.cf.table_properties_collectors.0 = vec![Arc::new(bad), Arc::new(Scribe)];
        let db = Db::open("/db", &options).unwrap();
        db.put("key", "value").unwrap();
        db.flush_all().unwrap();
        let tables = db.properties_of_all_tables(db.default_column_family()).unwrap();
        let table = tables.into_values().next().unwrap();
        let names: Vec<_> = table.user_properties().map(|(name, _)| name.to_vec()).collect();
        assert_eq!(names, [&b"blocks"[..], b"text"], "{bad:?}");
        assert!(table.bounds().is_none(), "{bad:?}");
        db.put("other", "value").unwrap();
        assert_eq!(db.get("key").unwrap().unwrap().as_ref(), b"value");
        db.close().unwrap();
    }
}

/// Remembers why compactions ran.
#[derive(Default)]
struct Reasons(Mutex<Vec<JobReason>>);

impl EventListener for Reasons {
    fn on_compaction_completed(&self, job: &JobInfo) {
        self.0.lock().push(job.reason);
    }
}

#[test]
fn a_table_of_many_deletions_is_compacted_soon() {
    let reasons = Arc::new(Reasons::default());
    let mut options = Options { env: Env::memory(), ..create() };
    options.set("level0_file_num_compaction_trigger", "100").unwrap();
    let text = "{{id=CompactOnDeletionCollector;window_size=100;deletion_trigger=50;}}";
    options.set("table_properties_collectors", text).unwrap();
    options.listeners.push(reasons.clone());
    let db = Db::open("/db", &options).unwrap();
    let flush = |deletions: u32| {
        for n in 0..200u32 {
            let key = format!("{n:03}");
            if n < deletions { db.delete(key).unwrap() } else { db.put(key, "value").unwrap() }
        }
        db.flush_all().unwrap();
        db.wait_for_compactions().unwrap();
    };
    flush(30);
    assert!(reasons.0.lock().is_empty());
    flush(80);
    let marked = JobReason::Compaction(CompactionReason::Marked);
    assert_eq!(reasons.0.lock().first(), Some(&marked));
    assert!(bounds(&db).iter().all(|(level, ..)| *level > 0), "{:?}", bounds(&db));
}

/// The last run was rewritten for its mark, which gave the new tables the mark again: without end.
#[test]
fn a_mark_does_not_outlive_the_compaction_that_it_starts() {
    let mut options = Options { env: testkit::steps::world(Env::memory().fs, 1), ..create() };
    options.set("compaction_style", "kCompactionStyleUniversal").unwrap();
    options.set("allow_ingest_behind", "true").unwrap();
    let text = "{{id=CompactOnDeletionCollector;window_size=20;deletion_trigger=5;}}";
    options.set("table_properties_collectors", text).unwrap();
    let db = Db::open("/db", &options).unwrap();
    for round in 0..3u32 {
        for n in 0..100u32 {
            let key = format!("{n:03}");
            if n % 3 == round { db.delete(key).unwrap() } else { db.put(key, "value").unwrap() }
        }
        db.flush_all().unwrap();
        let mut steps = 0;
        while db.background_step().unwrap() {
            steps += 1;
            assert!(steps < 100, "it does not end");
        }
    }
}

#[test]
fn the_options_file_names_what_is_built_in() {
    let directory = temporary();
    let mut options = create();
    options.cf.sst_partitioner_factory = Some(Arc::new(SstPartitionerFixedPrefixFactory::new(4)));
    let on_deletion = CompactOnDeletionCollectorFactory {
        deletion_ratio: 0.5,
        min_file_size: 9,
        ..CompactOnDeletionCollectorFactory::new(128, 64)
    };
    options.cf.table_properties_collectors.0.push(Arc::new(on_deletion));
    let db = Db::open(directory.path(), &options).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    let loaded = flagstone::options::load_latest(&Env::os(), directory.path()).unwrap().unwrap();
    assert_eq!(loaded.warnings(), [""; 0]);
    let read = &loaded.options.cf;
    let (partitioner, collectors) = ("sst_partitioner_factory", "table_properties_collectors");
    let expected = "{id=SstPartitionerFixedPrefixFactory;length=4;}";
    assert_eq!(read.get(partitioner).as_deref(), Some(expected));
    assert_eq!(read.get(collectors), options.cf.get(collectors));
    assert_eq!(
        read.get(collectors).as_deref(),
        Some(
            "{{id=CompactOnDeletionCollector;window_size=128;deletion_trigger=64;deletion_ratio=0.500000;min_file_size=9;}}"
        )
    );
    let Some(referee) = referee() else { return };
    referee.ldb(directory.path(), &["put", "--try_load_options", "key2", "value"]);
    // RocksDB writes what it has read.
    let loaded = flagstone::options::load_latest(&Env::os(), directory.path()).unwrap().unwrap();
    assert_eq!(loaded.options.cf.get(partitioner).as_deref(), Some(expected));
}

#[test]
fn what_is_not_built_in_is_refused_by_name() {
    let mut options = Options::default();
    for (name, text) in [
        ("sst_partitioner_factory", "Mine"),
        ("table_properties_collectors", "{{id=Mine;depth=3;}}"),
    ] {
        let error = options.set(name, text).unwrap_err();
        assert!(error.to_string().contains("supply it in code"), "{error}");
    }
    for (name, text) in [
        ("sst_partitioner_factory", "{id=SstPartitionerFixedPrefixFactory;length=x;}"),
        ("sst_partitioner_factory", "{length=3;}"),
        ("table_properties_collectors", "{{id=CompactOnDeletionCollector;depth=3;}}"),
    ] {
        options.set(name, text).unwrap_err();
    }
    options
        .set("sst_partitioner_factory", "{id=SstPartitionerFixedPrefixFactory;length=3;}")
        .unwrap();
    options.set("sst_partitioner_factory", "nullptr").unwrap();
    assert!(options.cf.sst_partitioner_factory.is_none());
}

/// The smallest and largest user keys of all tables, by level.
fn bounds(db: &Db) -> Vec<(usize, String, String)> {
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let files = db.live_files().into_iter();
    let mut all: Vec<_> = files
        .map(|file| (file.level.unwrap(), text(&file.smallest), text(&file.largest)))
        .collect();
    all.sort();
    all
}

fn get_at(db: &Db, snapshot: &Snapshot, key: &str) -> Option<Value> {
    let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
    db.get_with(&options, db.default_column_family(), key).unwrap()
}

fn partitioned(factory: Arc<dyn SstPartitionerFactory>) -> Options {
    let mut options = Options { env: Env::memory(), ..create() };
    options.set("disable_auto_compactions", "true").unwrap();
    options.cf.sst_partitioner_factory = Some(factory);
    options
}

#[test]
fn tables_end_where_the_prefix_changes() {
    let options = partitioned(Arc::new(SstPartitionerFixedPrefixFactory::new(1)));
    let db = Db::open("/db", &options).unwrap();
    for round in ["1", "2"] {
        for key in ["a1", "a2", "b1", "c1", "c2"] {
            db.put(key, round).unwrap();
        }
        db.flush_all().unwrap();
    }
    let snapshot = db.snapshot();
    db.put("a1", "3").unwrap();
    db.delete_range("a2", "c2").unwrap();
    compact(&db).unwrap();
    let spans: Vec<_> = bounds(&db);
    assert_eq!(spans.len(), 3, "{spans:?}");
    let values = |key: &str| db.get(key).unwrap().map(|value| value.to_vec());
    assert_eq!(
        ["a1", "a2", "b1", "c1", "c2"].map(values),
        [Some(b"3".to_vec()), None, None, None, Some(b"2".to_vec())]
    );
    let old = |key: &str| get_at(&db, &snapshot, key).map(|value| value.to_vec());
    assert_eq!(["a1", "a2", "b1", "c1"].map(old), [(); 4].map(|()| Some(b"2".to_vec())));
    drop(snapshot);
    compact(&db).unwrap();
    assert!(db.verify(|_| {}).faults.is_empty());
}

#[test]
fn a_table_of_several_prefixes_is_rewritten_and_one_of_a_single_prefix_moves() {
    let options = partitioned(Arc::new(SstPartitionerFixedPrefixFactory::new(1)));
    let db = Db::open("/db", &options).unwrap();
    for key in ["a1", "b1"] {
        db.put(key, "1").unwrap();
    }
    db.flush_all().unwrap();
    compact(&db).unwrap();
    let of = |prefix: &str| (6, format!("{prefix}1"), format!("{prefix}1"));
    assert_eq!(bounds(&db), [of("a"), of("b")]);
    db.put("c1", "1").unwrap();
    db.flush_all().unwrap();
    let before = db.statistics().get(flagstone::db::Ticker::TrivialMoves);
    compact(&db).unwrap();
    assert_eq!(bounds(&db), [of("a"), of("b"), of("c")]);
    assert_eq!(db.statistics().get(flagstone::db::Ticker::TrivialMoves), before + 1);
}

/// Tables of level 0 that could move together, with another below between them, were merged over
/// that one: two tables of a level overlapped, and the database was poisoned.
#[test]
fn tables_that_may_not_move_are_not_merged_over_what_lies_between() {
    let mut options = partitioned(Arc::new(SstPartitionerFixedPrefixFactory::new(1)));
    options.set("disable_auto_compactions", "false").unwrap();
    options.env = testkit::steps::world(Env::memory().fs, 1);
    options.set("level0_file_num_compaction_trigger", "4").unwrap();
    let db = Db::open("/db", &options).unwrap();
    db.put("k0", "1").unwrap();
    db.flush_all().unwrap();
    compact(&db).unwrap();
    for keys in [["j", "k"], ["k00", "l"], ["m", "n"], ["o", "p"]] {
        keys.into_iter().for_each(|key| db.put(key, "2").unwrap());
        db.flush_all().unwrap();
    }
    db.wait_for_compactions().unwrap();
    assert!(bounds(&db).iter().any(|(level, ..)| *level > 0));
    for key in ["j", "k", "k0", "k00", "l", "m", "n", "o", "p"] {
        assert!(db.get(key).unwrap().is_some(), "{key}");
    }
    db.put("q", "3").unwrap();
    assert!(db.verify(|_| {}).faults.is_empty());
}

/// Cuts before each key, also between two versions of one; and remembers for what it was created.
#[derive(Default)]
struct Everywhere(Mutex<Vec<String>>);

impl SstPartitionerFactory for Everywhere {
    fn name(&self) -> &str {
        "Everywhere"
    }

    fn create(&self, context: &PartitionerContext) -> Option<Box<dyn SstPartitioner>> {
        let (smallest, largest) = (context.smallest.escape_ascii(), context.largest.escape_ascii());
        self.0.lock().push(format!(
            "{} {} {} {smallest} {largest}",
            context.is_full_compaction, context.is_manual_compaction, context.output_level
        ));
        Some(Box::new(Cut))
    }
}

struct Cut;

impl SstPartitioner for Cut {
    fn should_partition(&mut self, request: &PartitionRequest<'_>) -> bool {
        assert!(request.previous <= request.current);
        true
    }

    fn can_do_trivial_move(&mut self, _smallest: &[u8], _largest: &[u8]) -> bool {
        false
    }
}

#[test]
fn versions_of_a_key_may_lie_in_several_tables() {
    let factory = Arc::new(Everywhere::default());
    let db = Db::open("/db", &partitioned(factory.clone())).unwrap();
    let mut snapshots = Vec::new();
    for value in ["1", "2", "3"] {
        db.put("a", value).unwrap();
        db.put("b", value).unwrap();
        snapshots.push(db.snapshot());
    }
    db.flush_all().unwrap();
    compact(&db).unwrap();
    assert_eq!(bounds(&db).len(), 6);
    assert_eq!(factory.0.lock()[0], "true true 6 a b");
    for (snapshot, value) in snapshots.iter().zip(["1", "2", "3"]) {
        for key in ["a", "b"] {
            assert_eq!(get_at(&db, snapshot, key).unwrap().as_ref(), value.as_bytes());
        }
    }
    drop(snapshots);
    compact(&db).unwrap();
    assert!(db.verify(|_| {}).faults.is_empty());
    db.close().unwrap();
}

#[test]
fn kinds_say_whether_they_delete_one_key() {
    assert!(EntryKind::SingleDelete.is_point_deletion());
    assert!(!EntryKind::RangeDelete.is_point_deletion());
}
