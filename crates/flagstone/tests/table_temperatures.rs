//! Stories of the temperatures that new tables get, and of what keeps them. Which compaction writes
//! which temperature is told in `compaction/pick/testdata`; FIFO compaction has `temperatures.rs`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use common::{create, open_as_written, referee, temporary};
use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
use flagstone::db::{Db, ExternalFiles, Ticker, salvage};
use flagstone::env::os::OsFileSystem;
use flagstone::env::{Env, FileSystem, FileSystemAround};
use flagstone::options::{
    BottommostLevelCompaction, CheckpointOptions, CompactFilesOptions, CompactRangeOptions,
    ImportColumnFamilyOptions, IngestExternalFileOptions, Options, Temperature,
};
use flagstone::reports::{IoMetric, IoStatsContext, PerfLevel, set_perf_level};
use flagstone::{SstFileWriter, SstFileWriterOptions};

const TIERS: &str = "compression=kNoCompression;default_write_temperature=kHot;\
    last_level_temperature=kCold;num_levels=3;disable_auto_compactions=true";

/// Notes what it is told of files.
struct Told(OsFileSystem, Mutex<Vec<(PathBuf, Temperature)>>);

impl FileSystemAround for Told {
    fn inner(&self) -> &dyn FileSystem {
        &self.0
    }

    fn advise(&self, path: &Path, temperature: Temperature) {
        self.1.lock().unwrap().push((path.to_path_buf(), temperature));
    }
}

struct World {
    directory: tempfile::TempDir,
    disk: Arc<Told>,
}

impl World {
    fn new() -> Self {
        let disk = Arc::new(Told(OsFileSystem, Mutex::default()));
        Self { directory: temporary(), disk }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn options(&self, text: &str) -> Options {
        let mut options = create();
        options.set_all(text).unwrap();
        options.env = Env::os().with_fs(self.disk.clone());
        options
    }

    fn open(&self, text: &str) -> Db {
        Db::open(self.at("db"), &self.options(text)).unwrap()
    }

    /// A hot table with `new` and a cold one with `old`.
    fn two_tiers(&self) -> Db {
        let db = self.open(TIERS);
        write(&db, "old");
        compact(&db);
        write(&db, "new");
        assert_eq!(temperatures(&db), "new: hot, old: cold");
        db
    }

    /// Every table of the database was announced with its temperature.
    fn assert_told(&self, db: &Db) {
        let told = self.disk.1.lock().unwrap();
        for file in db.live_files() {
            let known = (file.path, file.temperature);
            assert!(told.contains(&known), "{known:?} {told:?}");
        }
    }
}

fn write(db: &Db, key: &str) {
    db.put(key, "value").unwrap();
    db.flush_all().unwrap();
}

/// Writes the last level anew.
fn compact(db: &Db) {
    compact_with(db, BottommostLevelCompaction::Force);
}

fn compact_with(db: &Db, bottommost_level_compaction: BottommostLevelCompaction) {
    let all = CompactRangeOptions { bottommost_level_compaction, ..CompactRangeOptions::default() };
    db.compact_range(db.default_column_family(), None, None, &all).unwrap();
}

/// By key, of tables with one each.
fn temperatures(db: &Db) -> String {
    temperatures_in(db, "default")
}

fn temperatures_in(db: &Db, family: &str) -> String {
    let of_family = db.live_files().into_iter().filter(|file| file.column_family == family);
    let mut all: Vec<_> = of_family
        .map(|file| format!("{}: {}", file.smallest.escape_ascii(), file.temperature))
        .collect();
    all.sort();
    all.join(", ")
}

#[test]
fn the_last_level_is_cold_and_what_is_new_hot() {
    let world = World::new();
    let db = world.two_tiers();
    world.assert_told(&db);
    let sizes = |temperature: Temperature| {
        let name = format!("rocksdb.live-sst-files-size-at-temperature{}", temperature.as_byte());
        db.property(db.default_column_family(), &name).unwrap().parse::<u64>().unwrap()
    };
    let each = [Temperature::HOT, Temperature::COLD, Temperature::UNKNOWN].map(sizes);
    assert!(each[0] > 0 && each[1] > 0 && each[2] == 0, "{each:?}");

    // It is known after a reopening, and told when a table is opened.
    drop(db);
    world.disk.1.lock().unwrap().clear();
    let db = world.open(TIERS);
    assert_eq!(temperatures(&db), "new: hot, old: cold");
    assert_eq!(db.get("new").unwrap().unwrap(), "value");
    assert_eq!(db.get("old").unwrap().unwrap(), "value");
    world.assert_told(&db);

    compact(&db);
    assert_eq!(temperatures(&db), "new: cold");
}

#[test]
fn new_tables_follow_the_options_as_they_change() {
    let world = World::new();
    let db = world.open("num_levels=3;disable_auto_compactions=true");
    let set =
        |name: &str, value: &str| db.set_options(db.default_column_family(), &[(name, value)]);
    write(&db, "a");
    set("default_write_temperature", "kWarm").unwrap();
    write(&db, "b");
    assert_eq!(temperatures(&db), "a: unknown, b: warm");
    compact(&db);
    assert_eq!(temperatures(&db), "a: warm", "the last level has none of its own");
    set("last_level_temperature", "kIce").unwrap();
    write(&db, "c");
    compact(&db);
    assert_eq!(temperatures(&db), "a: ice");
    set("last_level_temperature", "kLukewarm").unwrap_err();
    set("default_temperature", "kHot").unwrap_err();
    // What was set stands in the OPTIONS file.
    drop(db);
    let db = open_as_written(&world.at("db"), true);
    let options = db.default_column_family().options();
    let both = (options.default_write_temperature, options.last_level_temperature);
    assert_eq!(both, (Temperature::WARM, Temperature::ICE));
}

#[test]
fn a_table_that_moves_to_the_last_level_stays_as_it_is() {
    let world = World::new();
    let db = world.open("num_levels=2;default_write_temperature=kHot;last_level_temperature=kCold");
    write(&db, "a");
    compact_with(&db, BottommostLevelCompaction::Skip);
    let [file] = &db.live_files()[..] else { panic!("one table") };
    assert_eq!((file.level, file.temperature), (Some(1), Temperature::HOT));
}

#[test]
fn fifo_compaction_has_no_last_level() {
    let world = World::new();
    let fifo = "compaction_style=kCompactionStyleFIFO;num_levels=1;last_level_temperature=kCold";
    let db = world.open(fifo);
    write(&db, "a");
    assert_eq!(temperatures(&db), "a: unknown");
}

#[test]
fn chosen_tables_get_the_temperature_that_the_caller_says() {
    let world = World::new();
    let db = world.two_tiers();
    let family = db.default_column_family();
    let tables: Vec<_> = db.live_files().iter().map(|file| file.number).collect();
    let to = |temperature| CompactFilesOptions {
        output_temperature_override: temperature,
        ..CompactFilesOptions::default()
    };
    let made = db.compact_files(family, &tables, 2, &to(Temperature::WARM)).unwrap();
    assert_eq!(temperatures(&db), "new: warm");
    db.compact_files(family, &made, 2, &to(Temperature::UNKNOWN)).unwrap();
    assert_eq!(temperatures(&db), "new: cold");
}

#[test]
fn copies_of_a_database_keep_the_temperatures() {
    let world = World::new();
    let db = world.two_tiers();
    let both = "new: hot, old: cold";
    // Copied, not linked, so that the copies are announced as well.
    let mut copied = CheckpointOptions::default();
    copied.link_files = false;
    db.checkpoint_with(world.at("checkpoint"), &copied).unwrap();
    let checkpoint = Db::open(world.at("checkpoint"), &world.options(TIERS)).unwrap();
    assert_eq!(temperatures(&checkpoint), both);
    world.assert_told(&checkpoint);

    let mut options = BackupEngineOptions::new(world.at("backups"));
    options.schema_version = 2;
    let backups = BackupEngine::open(options).unwrap();
    let id = backups.create_new_backup(&db, &CreateBackupOptions::default()).unwrap();
    let details = backups.get_backup(id).unwrap().file_details;
    let known: Vec<_> = details.iter().filter(|file| file.temperature.is_known()).collect();
    assert_eq!(known.len(), 2, "{details:?}");
    backups.restore(id, world.at("restored")).unwrap();
    assert_eq!(temperatures(&open_as_written(&world.at("restored"), true)), both);

    let family = db.default_column_family();
    let export = db.export_column_family(family, world.at("export")).unwrap();
    let target = Db::open(world.at("target"), &world.options("")).unwrap();
    let copied = ImportColumnFamilyOptions::default();
    let options = target.default_column_family().options();
    let from = std::slice::from_ref(&export);
    target.create_column_family_with_import("all", &options, from, &copied).unwrap();
    assert_eq!(temperatures_in(&target, "all"), both);
    world.assert_told(&target);
}

/// A salvage writes the last level anew: with the temperature that the options ask for, or the one
/// that all tables had.
#[test]
fn a_salvage_keeps_what_it_can() {
    let world = World::new();
    drop(world.two_tiers());
    let salvaged = |name: &str, text: &str| {
        let options = world.options(text);
        let families = [("default", options.cf.clone())];
        salvage(&world.at("db"), &world.at(name), &options, &families, &mut |_| {}).unwrap();
        temperatures(&Db::open_read_only(world.at(name), &options).unwrap())
    };
    assert_eq!(salvaged("as-asked", TIERS), "new: cold");
    assert_eq!(salvaged("of-two", "num_levels=3"), "new: unknown");
    let db = world.open(TIERS);
    compact(&db);
    drop(db);
    assert_eq!(salvaged("of-one", "num_levels=3"), "new: cold");
}

#[test]
fn a_table_that_is_linked_keeps_its_temperature_and_a_copy_gets_another() {
    let world = World::new();
    let db = world.open(TIERS);
    let table = |key: &str| {
        let path = world.at(&format!("{key}.outside"));
        let mut writer = SstFileWriter::create(&path, &SstFileWriterOptions::default()).unwrap();
        writer.put(key, "value").unwrap();
        writer.finish().unwrap();
        path
    };
    let ingest = |key: &str, options: IngestExternalFileOptions| {
        let mut group = ExternalFiles::new(db.default_column_family(), [table(key)]);
        (group.options, group.file_temperature) = (options, Temperature::WARM);
        db.ingest_together(&[group]).unwrap();
    };
    let mut options = IngestExternalFileOptions::default();
    ingest("copied", options);
    options.fail_if_not_bottommost_level = true;
    ingest("last", options);
    options.link_files = true;
    ingest("linked", options);
    assert_eq!(temperatures(&db), "copied: hot, last: cold, linked: warm");
    world.assert_told(&db);
    // The reader of the original was told, too.
    let told = world.disk.1.lock().unwrap();
    assert!(told.contains(&(world.at("copied.outside"), Temperature::WARM)), "{told:?}");
}

#[test]
fn reads_are_counted_by_the_temperature_of_the_table() {
    let world = World::new();
    drop(world.two_tiers());
    let read = |text: &str| {
        let db = world.open(&format!("{TIERS};{text}"));
        set_perf_level(PerfLevel::EnableCount);
        IoStatsContext::reset();
        assert_eq!(db.get("old").unwrap().unwrap(), "value");
        let context = IoStatsContext::now();
        set_perf_level(PerfLevel::Disable);
        let figure = |ticker| db.statistics().get(ticker);
        let of_hot = [figure(Ticker::HotFileReadBytes), figure(Ticker::HotFileReads)];
        let of_cold = [figure(Ticker::ColdFileReadBytes), figure(Ticker::ColdFileReads)];
        let of_thread = [IoMetric::ColdFileBytesRead, IoMetric::ColdFileReadCount];
        assert_eq!(of_cold, of_thread.map(|metric| context.get(metric)));
        (of_hot, of_cold)
    };
    let (of_hot, of_cold) = read("");
    assert_eq!(of_hot, [0, 0]);
    assert!(of_cold[0] > 100 && of_cold[1] >= 2, "{of_cold:?}");
    // Tables without a temperature count as those of the default one.
    let db = world.open("num_levels=3");
    write(&db, "old");
    compact(&db);
    drop(db);
    let (of_hot, of_cold) = read("default_temperature=kHot");
    assert!(of_hot[0] > 100 && of_hot[1] >= 2, "{of_hot:?}");
    assert_eq!(of_cold, [0, 0]);
    assert_eq!(read("default_temperature=kUnknown"), ([0, 0], [0, 0]));
}

/// RocksDB 7.8 knows `last_level_temperature`, and keeps what it reads in the MANIFEST.
#[test]
fn rocksdb_reads_and_writes_the_same_temperatures() {
    let Some(referee) = referee() else { return };
    let world = World::new();
    world.two_tiers().close().unwrap();
    let path = world.at("db");
    let ldb = |words: &[&str]| referee.ldb(&path, words);
    assert_eq!(ldb(&["get", "old", "--try_load_options"]).trim(), "value");
    ldb(&["checkconsistency", "--try_load_options"]);
    // It has written a MANIFEST of its own meanwhile.
    ldb(&["put", "theirs", "value", "--try_load_options"]);
    let db = Db::open_read_only(&path, &world.options(TIERS)).unwrap();
    let known = temperatures(&db);
    assert!(known.starts_with("new: hot, old: cold"), "{known}");
    drop(db);
    ldb(&["compact", "--try_load_options"]);
    let db = Db::open(&path, &world.options(TIERS)).unwrap();
    assert_eq!(temperatures(&db), "new: cold");
    assert_eq!(db.get("theirs").unwrap().unwrap(), "value");
}
