//! Tables with values beside their blocks (embedded blobs) are written, ingested and read, and
//! their values go wherever compactions take them.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flagstone::base::{Code, Snapshot};
use flagstone::cache::CacheSettings;
use flagstone::db::{Db, Iter, salvage};
use flagstone::env::{Env, IoMode};
use flagstone::ingest::{SstFileWriter, SstFileWriterEmbeddedBlobOptions, SstFileWriterOptions};
use flagstone::options::{
    BlockCache, BottommostLevelCompaction, CompactRangeOptions, FlushOptions,
    IngestExternalFileOptions, Options, ReadOptions,
};

const DB: &str = "/db";

/// A value with its columns; the default one alone is a plain value.
type Columns = BTreeMap<Vec<u8>, Vec<u8>>;
type Model = BTreeMap<Vec<u8>, Columns>;

fn plain(value: &[u8]) -> Columns {
    Columns::from([(Vec::new(), value.to_vec())])
}

fn default_column(columns: &Columns) -> &[u8] {
    columns.get(&b""[..]).map_or(&[], |value| value)
}

fn flush(db: &Db) {
    db.flush(db.default_column_family(), &FlushOptions::default()).unwrap();
}

fn assert_stands_on(iter: &mut Iter, key: &[u8], columns: &Columns) {
    assert!(iter.valid(), "{:?}", iter.status());
    assert_eq!(iter.key(), key);
    assert_eq!(iter.value().unwrap(), default_column(columns));
}

struct Story {
    options: Options,
    db: Option<Db>,
    tables: u32,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
    random: fastrand::Rng,
}

impl Story {
    fn new(settings: &str, seed: u64) -> Self {
        let env = Env::memory();
        env.fs.create_directory(Path::new("/tables")).unwrap();
        let mut options = Options { env, ..Options::default() };
        options.db.create_if_missing = true;
        let base = "disable_auto_compactions=true;format_version=7;block_size=512";
        options.set_all(base).unwrap();
        options.set_all(settings).unwrap_or_else(|error| panic!("{settings}: {error}"));
        if seed.is_multiple_of(3) {
            let settings = CacheSettings::with_capacity(1 << 20);
            options.row_cache = Some(BlockCache::new(&settings));
        }
        let db = Some(Db::open(DB, &options).unwrap());
        let (model, random) = (Model::new(), fastrand::Rng::with_seed(seed));
        Self { options, db, tables: 0, model, snapshots: Vec::new(), random }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn writer(&mut self, min_blob_size: u64) -> (PathBuf, SstFileWriter) {
        self.tables += 1;
        let path = PathBuf::from(format!("/tables/{}.sst", self.tables));
        let options = SstFileWriterOptions {
            env: self.options.env.clone(),
            embedded_blobs: Some(SstFileWriterEmbeddedBlobOptions { min_blob_size }),
            ..SstFileWriterOptions::new(&self.options.cf)
        };
        let writer = SstFileWriter::create(&path, &options).unwrap();
        (path, writer)
    }

    fn ingest(&self, path: &Path) {
        let db = self.db();
        let options = IngestExternalFileOptions {
            verify_checksums_before_ingest: true,
            ..Default::default()
        };
        db.ingest_external_files(db.default_column_family(), &[path], &options).unwrap();
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key{:03}", self.random.u32(..120)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let (first, step) = (self.random.u8(..), self.random.usize(1..9));
        (0..self.random.usize(..900)).map(|at| first.wrapping_add((at / step) as u8)).collect()
    }

    /// Ingests a table of some keys, and a range deletion that covers only what is older.
    fn ingest_some(&mut self) {
        let mut added: BTreeMap<Vec<u8>, Option<Columns>> = BTreeMap::new();
        for _ in 0..self.random.usize(1..40) {
            let key = self.key();
            let entry = match self.random.u8(..8) {
                0 => None,
                1 | 2 => {
                    let names: [&[u8]; 3] = [b"", b"film", b"note"];
                    let columns = names.map(|name| (name.to_vec(), self.value()));
                    Some(columns.into_iter().skip(self.random.usize(..2)).collect())
                }
                _ => Some(plain(&self.value())),
            };
            added.insert(key, entry);
        }
        let from = self.random.choice([0, 100, 2048]).unwrap();
        let (path, mut writer) = self.writer(from);
        if self.random.u8(..4) == 0 {
            let (first, second) = (self.key(), self.key());
            let (begin, end) = (first.clone().min(second.clone()), first.max(second));
            writer.delete_range(&begin, &end).unwrap();
            self.model.retain(|key, _| *key < begin || *key >= end);
        }
        for (key, entry) in added {
            match entry {
                None => {
                    writer.delete(&key).unwrap();
                    self.model.remove(&key);
                }
                Some(columns) => {
                    if columns.len() == 1 && columns.contains_key(&b""[..]) {
                        writer.put(&key, default_column(&columns)).unwrap();
                    } else {
                        writer.put_entity(&key, columns.iter()).unwrap();
                    }
                    self.model.insert(key, columns);
                }
            }
        }
        writer.finish().unwrap();
        self.ingest(&path);
    }

    fn step(&mut self) {
        match self.random.u8(..12) {
            0..=3 => self.ingest_some(),
            4 | 5 => {
                for _ in 0..10 {
                    let (key, value) = (self.key(), self.value());
                    self.db().put(&key, &value).unwrap();
                    self.model.insert(key, plain(&value));
                }
            }
            6 => {
                let key = self.key();
                self.db().delete(&key).unwrap();
                self.model.remove(&key);
            }
            7 => flush(self.db()),
            8 | 9 => {
                let (first, second) = (self.key(), self.key());
                let (begin, end) = (first.clone().min(second.clone()), first.max(second));
                let db = self.db();
                let whole = self.tables.is_multiple_of(2);
                let (begin, end) = if whole { (None, None) } else { (Some(begin), Some(end)) };
                db.compact_range(
                    db.default_column_family(),
                    begin.as_deref(),
                    end.as_deref(),
                    &CompactRangeOptions::default(),
                )
                .unwrap();
            }
            10 => self.snapshots.push((self.db().snapshot(), self.model.clone())),
            _ => {
                self.snapshots.clear();
                self.db = None;
                self.db = Some(Db::open(DB, &self.options).unwrap());
            }
        }
    }

    fn check(&mut self) {
        let model = std::mem::take(&mut self.model);
        self.check_as_of(None, &model);
        for (snapshot, model) in self.snapshots.clone() {
            self.check_as_of(Some(snapshot), &model);
        }
        let keys: Vec<_> = (0..120).map(|key| format!("key{key:03}")).collect();
        let found = self.db().multi_get(&keys);
        for (key, found) in keys.iter().zip(found) {
            let wanted = model.get(key.as_bytes()).map(default_column);
            assert_eq!(found.unwrap().as_deref(), wanted, "{key}");
        }
        self.model = model;
    }

    fn check_as_of(&mut self, snapshot: Option<Snapshot>, model: &Model) {
        let options = ReadOptions { snapshot, ..ReadOptions::default() };
        let (lower, upper) = (self.key(), self.key());
        let db = self.db();
        let family = db.default_column_family();
        let mut iter = db.iter_cf(family, &options).unwrap();
        iter.seek_to_first();
        for (key, columns) in model {
            assert_stands_on(&mut iter, key, columns);
            iter.next();
        }
        assert!(!iter.valid());
        iter.seek_to_last();
        for (key, columns) in model.iter().rev() {
            assert_stands_on(&mut iter, key, columns);
            iter.prev();
        }
        iter.seek(&lower);
        if let Some((key, columns)) = model.range(lower.clone()..).next() {
            assert_stands_on(&mut iter, key, columns);
            let entity = db.get_entity(&options, family, key).unwrap().unwrap();
            assert_eq!(entity.to_vec(), columns.clone().into_iter().collect::<Vec<_>>());
            let part = db.get_range(&options, family, key, 3..50).unwrap().unwrap();
            let value = default_column(columns);
            assert_eq!(part.value_size, value.len() as u64);
            assert_eq!(part.bytes, &value[3.min(value.len())..50.min(value.len())]);
        }
        if lower < upper {
            let bounded = ReadOptions {
                iterate_lower_bound: Some(lower.clone()),
                iterate_upper_bound: Some(upper.clone()),
                ..options
            };
            let mut iter = db.iter_cf(family, &bounded).unwrap();
            iter.seek_to_last();
            for (key, columns) in model.range(lower..upper).rev() {
                assert_stands_on(&mut iter, key, columns);
                iter.prev();
            }
            assert!(!iter.valid());
            iter.status().unwrap();
        }
    }
}

const SETTINGS: [&str; 5] = [
    "compression=none",
    "enable_blob_files=true;min_blob_size=100;enable_blob_garbage_collection=true;\
     blob_garbage_collection_age_cutoff=1.0;blob_entity_columns=true",
    "compression=lz4;index_type=kTwoLevelIndexSearch;partition_filters=true;\
     filter_policy=bloomfilter:10:false",
    "compression=zstd;compression_opts.max_dict_bytes=1000;compaction_style=universal",
    "enable_blob_files=true;min_blob_size=300;blob_compression_type=lz4;\
     index_type=kBinarySearchWithFirstKey;memtable_protection_bytes_per_key=8",
];

#[test]
fn any_mix_of_tables_and_writes_reads_like_an_ordered_map() {
    for (at, settings) in SETTINGS.iter().enumerate() {
        for seed in 0..6 {
            let mut story = Story::new(settings, 100 * at as u64 + seed);
            for _ in 0..25 {
                story.step();
                story.check();
            }
            let report = story.db().verify(|_| {});
            assert!(report.faults.is_empty(), "{settings}, {seed}: {:?}", report.faults);
        }
    }
}

/// A small table, in which only `large` lies beside the blocks.
fn with_large_value(story: &mut Story) -> Vec<u8> {
    let large: Vec<u8> = (0..5000u32).map(|at| (at % 251) as u8).collect();
    let (path, mut writer) = story.writer(1000);
    for (key, value) in [("before", &b"small"[..]), ("large", &large), ("tail", b"small")] {
        writer.put(key, value).unwrap();
    }
    writer.finish().unwrap();
    story.ingest(&path);
    large
}

fn files(story: &Story, suffix: &str) -> Vec<PathBuf> {
    let names = story.options.env.fs.list(Path::new(DB)).unwrap();
    let named = names.iter().filter(|name| name.ends_with(suffix));
    named.map(|name| Path::new(DB).join(name)).collect()
}

/// With blob files a compaction moves the value to one; without, to a block.
#[test]
fn a_compaction_takes_values_to_where_they_belong() {
    for (settings, blob_files) in
        [("enable_blob_files=true;min_blob_size=1000", 1), ("enable_blob_files=false", 0)]
    {
        let mut story = Story::new(settings, 1);
        let large = with_large_value(&mut story);
        story.db().put("large2", "small").unwrap();
        flush(story.db());
        let options = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        let db = story.db();
        db.compact_range(db.default_column_family(), None, None, &options).unwrap();
        assert_eq!(db.get("large").unwrap().unwrap(), large);
        assert_eq!(files(&story, ".blob").len(), blob_files, "{settings}");
        for table in db.live_files().iter().filter(|file| file.level.is_some()) {
            let bytes = read(&story, &table.path);
            let property = b"rocksdb.embedded.blob";
            assert!(!bytes.windows(property.len()).any(|window| window == property));
        }
        assert!(db.verify(|_| {}).faults.is_empty());
    }
}

fn read(story: &Story, path: &Path) -> Vec<u8> {
    let file = story.options.env.fs.open_random_access(path, IoMode::Buffered).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn damage_to_a_value_is_named_and_costs_nothing_else() {
    let mut story = Story::new("compression=none", 1);
    let large = with_large_value(&mut story);
    story.db().put("another", "value").unwrap();
    story.db = None;
    let table = files(&story, ".sst").remove(0);
    let mut bytes = read(&story, &table);
    let at = bytes.windows(20).position(|window| window == &large[..20]).unwrap();
    bytes[at + 2000] ^= 0x40;
    let file = story.options.env.fs.create_writable(&table, IoMode::Buffered).unwrap();
    file.write_at(0, &bytes).unwrap();
    file.sync().unwrap();
    drop(file);
    let db = Db::open(DB, &story.options).unwrap();
    let error = db.get("large").unwrap_err();
    assert_eq!((error.code(), error.offset()), (Code::Corruption, Some(at as u64)), "{error}");
    assert_eq!(error.path(), Some(&*table), "{error}");
    assert_eq!(db.get("before").unwrap().unwrap(), "small");
    assert_eq!(db.get("tail").unwrap().unwrap(), "small");
    let mut iter = db.iter_cf(db.default_column_family(), &ReadOptions::default()).unwrap();
    iter.seek("before");
    assert!(iter.valid());
    iter.next();
    assert!(!iter.valid());
    assert_eq!(iter.status().unwrap_err().offset(), Some(at as u64));
    let report = db.verify(|_| {});
    assert_eq!(report.faults.len(), 1, "{:?}", report.faults);
    // A compaction must not leave it out.
    let family = db.default_column_family();
    db.put("large", "newer").unwrap();
    db.delete("large").unwrap();
    flush(&db);
    let options = CompactRangeOptions {
        bottommost_level_compaction: BottommostLevelCompaction::Force,
        ..CompactRangeOptions::default()
    };
    assert!(db.compact_range(family, None, None, &options).unwrap_err().is_corruption());
    drop(iter);
    drop(db);

    let families = [("default", story.options.cf.clone())];
    let saved = Path::new("/saved");
    let report = salvage(Path::new(DB), saved, &story.options, &families, &mut |_| {}).unwrap();
    assert!(!report.losses.is_empty());
    let db = Db::open(saved, &story.options).unwrap();
    for (key, value) in [("another", "value"), ("before", "small"), ("tail", "small")] {
        assert_eq!(db.get(key).unwrap().unwrap(), value);
    }
}
