//! Stories of tables that cool as they age, under FIFO compaction. Which table is rewritten when is
//! told in `compaction/pick/testdata/fifo.txt`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use common::{create, open_as_written, referee, temporary};
use flagstone::backup::{BackupEngine, BackupEngineOptions, CreateBackupOptions};
use flagstone::base::Code;
use flagstone::db::Db;
use flagstone::env::os::OsFileSystem;
use flagstone::env::{AnyFile, Env, FileAround, FileSystem, FileSystemAround, OpenMode};
use flagstone::options::{Options, Temperature};
use flagstone::transactions::WriteBatchWithIndex;
use testkit::HandClock;

const BEGIN: u64 = 1_700_000_000;
const COOLING: &str = "compaction_style=kCompactionStyleFIFO;num_levels=1;\
    compaction_options_fifo={file_temperature_age_thresholds={{temperature=kWarm;age=100}:{temperature=kCold;age=500}}}";

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
    time: Arc<HandClock>,
    disk: Arc<Told>,
}

impl World {
    fn new() -> Self {
        let disk = Told(OsFileSystem, Mutex::default());
        Self { time: Arc::new(HandClock::at(BEGIN)), disk: Arc::new(disk) }
    }

    fn options(&self, text: &str) -> Options {
        let mut options = create();
        options.set_all(text).unwrap();
        options.env = Env { clock: self.time.clone(), ..Env::os().with_fs(self.disk.clone()) };
        options
    }

    /// Lets time pass, and what it brings about happen.
    fn pass(&self, db: &Db, seconds: u64) {
        self.time.advance(seconds);
        db.wait_for_compactions().unwrap();
    }

    fn told(&self) -> Vec<(PathBuf, Temperature)> {
        std::mem::take(&mut *self.disk.1.lock().unwrap())
    }
}

fn write(db: &Db, key: &str) {
    db.put(key, "value").unwrap();
    db.flush_all().unwrap();
}

/// By key, of tables with one each.
fn temperatures(db: &Db) -> Vec<(String, String)> {
    let file = |file: &flagstone::db::LiveFile| {
        (String::from_utf8(file.smallest.clone()).unwrap(), file.temperature.to_string())
    };
    let mut all: Vec<_> = db.live_files().iter().map(file).collect();
    all.sort();
    all
}

fn expected(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(key, temperature)| (key.to_string(), temperature.to_string())).collect()
}

#[test]
fn tables_cool_as_they_age_and_rocksdb_reads_them() {
    let directory = temporary();
    let world = World::new();
    let db = Db::open(directory.path(), &world.options(COOLING)).unwrap();
    write(&db, "a");
    world.pass(&db, 90);
    write(&db, "b");
    assert_eq!(temperatures(&db), expected(&[("a", "unknown"), ("b", "unknown")]));
    assert_eq!(world.told(), []);
    world.pass(&db, 20);
    assert_eq!(temperatures(&db), expected(&[("a", "warm"), ("b", "unknown")]));
    world.pass(&db, 400);
    // The rewriting has not made it younger.
    assert_eq!(temperatures(&db), expected(&[("a", "cold"), ("b", "warm")]));
    // The file system heard of each before it was made.
    let newest: Vec<_> =
        db.live_files().into_iter().map(|file| (file.path, file.temperature)).collect();
    let told = world.told();
    assert!(newest.iter().all(|known| told.contains(known)), "{newest:?} {told:?}");

    // It is known after a reopening, and told when a table is opened.
    drop(db);
    let db = Db::open(directory.path(), &world.options(COOLING)).unwrap();
    assert_eq!(temperatures(&db), expected(&[("a", "cold"), ("b", "warm")]));
    assert_eq!(db.get("a").unwrap().unwrap(), "value");
    assert!(world.told().iter().any(|(_, temperature)| *temperature == Temperature::COLD));
    db.close().unwrap();
    drop(db);

    let Some(referee) = referee() else { return };
    let manifest = referee.ldb(directory.path(), &["manifest_dump", "--verbose"]);
    assert!(manifest.contains("AddFile"), "{manifest}");
    // RocksDB 7.8 does not know the option, and reads no OPTIONS file that names it.
    let ldb = |words: &[&str]| {
        referee.ldb(directory.path(), &[words, &["--try_load_options=false"]].concat())
    };
    assert_eq!(ldb(&["get", "b"]).trim(), "value");
    ldb(&["checkconsistency"]);
    ldb(&["put", "c", "of rocksdb"]);
    // It has written a MANIFEST of its own meanwhile.
    let db = Db::open_read_only(directory.path(), &world.options(COOLING)).unwrap();
    assert_eq!(db.get("c").unwrap().unwrap(), "of rocksdb");
    let known = temperatures(&db);
    assert!(known.starts_with(&expected(&[("a", "cold"), ("b", "warm")])), "{known:?}");
}

/// RocksDB 7.8 has one threshold; what either makes warm is warm for the other.
#[test]
fn rocksdb_s_older_word_for_warm_tables_is_understood_by_both() {
    let directory = temporary();
    let world = World::new();
    let text = "compaction_style=kCompactionStyleFIFO;num_levels=1;ttl=0;compaction_options_fifo={age_for_warm=100}";
    let db = Db::open(directory.path(), &world.options(text)).unwrap();
    write(&db, "a");
    world.pass(&db, 100);
    write(&db, "b");
    write(&db, "c");
    assert_eq!(temperatures(&db), expected(&[("a", "warm"), ("b", "unknown"), ("c", "unknown")]));
    db.close().unwrap();
    drop(db);
    let Some(referee) = referee() else { return };
    referee.ldb(directory.path(), &["compact", "--try_load_options"]);
    let db = open_as_written(directory.path(), true);
    assert_eq!(temperatures(&db), expected(&[("a", "warm"), ("b", "warm"), ("c", "unknown")]));
}

/// Went wrong as it was written: a table that was made warm began its time to live anew.
#[test]
fn a_table_that_was_rewritten_dies_when_it_would_have() {
    let directory = temporary();
    let world = World::new();
    let db = Db::open(directory.path(), &world.options(&format!("{COOLING};ttl=300"))).unwrap();
    write(&db, "a");
    world.pass(&db, 200);
    assert_eq!(temperatures(&db), expected(&[("a", "warm")]));
    world.pass(&db, 90);
    assert_eq!(temperatures(&db), expected(&[("a", "warm")]));
    world.pass(&db, 20);
    assert_eq!(temperatures(&db), []);
}

#[test]
fn thresholds_change_while_the_database_is_open() {
    let directory = temporary();
    let world = World::new();
    let fifo = "compaction_style=kCompactionStyleFIFO;num_levels=1";
    let db = Db::open(directory.path(), &world.options(fifo)).unwrap();
    write(&db, "a");
    world.pass(&db, 1000);
    assert_eq!(temperatures(&db), expected(&[("a", "unknown")]));
    let set = |text: &str| {
        db.set_options(db.default_column_family(), &[("compaction_options_fifo", text)])
    };
    set("{age_for_warm=100}").unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(temperatures(&db), expected(&[("a", "warm")]));
    set("{file_temperature_age_thresholds={{temperature=kIce;age=900}}}").unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(temperatures(&db), expected(&[("a", "ice")]));
    set("{file_temperature_age_thresholds={{temperature=kIce;age=9}:{temperature=kHot;age=9}}}")
        .unwrap_err();
    // What was set stands in the OPTIONS file.
    drop(db);
    let db = open_as_written(directory.path(), true);
    let fifo = db.default_column_family().options().compaction_options_fifo.clone();
    assert_eq!((fifo.age_for_warm, fifo.file_temperature_age_thresholds.0[0].age), (100, 900));
}

#[test]
fn what_has_no_age_is_refused() {
    let ages =
        "compaction_options_fifo={file_temperature_age_thresholds={{temperature=kWarm;age=1}}}";
    for (text, refused) in [
        ("compaction_style=kCompactionStyleFIFO;num_levels=1", false),
        ("compaction_style=kCompactionStyleFIFO", true),
        ("num_levels=1", true),
    ] {
        let directory = temporary();
        let options = World::new().options(&format!("{text};{ages}"));
        let opened = Db::open(directory.path(), &options);
        assert_eq!(
            opened.err().map(|error| error.code()),
            refused.then_some(Code::NotSupported),
            "{text}"
        );
    }
}

#[test]
fn logs_and_metadata_have_temperatures_of_their_own() {
    let scratch = temporary();
    let world = World::new();
    let text =
        "wal_write_temperature=kWarm;metadata_write_temperature=kCold;recycle_log_file_num=0";
    let db = Db::open(scratch.path(), &world.options(text)).unwrap();
    write(&db, "a");
    db.close().unwrap();
    let told = world.told();
    let of = |wanted: &dyn Fn(&str) -> bool| -> Vec<Temperature> {
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        told.iter().filter(|(path, _)| wanted(&name(path))).map(|(_, told)| *told).collect()
    };
    let wals = of(&|name| name.ends_with(".log"));
    assert!(wals.len() >= 2 && wals.iter().all(|told| *told == Temperature::WARM), "{told:?}");
    // The others are written under temporary names.
    let metadata = of(&|name| name.starts_with("MANIFEST-"));
    let temporary = of(&|name| name.ends_with(".dbtmp"));
    assert!(!metadata.is_empty() && temporary.len() >= 3, "{told:?}");
    assert!(metadata.iter().chain(&temporary).all(|told| *told == Temperature::COLD), "{told:?}");
    assert!(of(&|name| name.ends_with(".sst") || name.starts_with("LOG")).is_empty(), "{told:?}");
    // Without them nothing is said.
    Db::open(scratch.path(), &world.options("")).unwrap().close().unwrap();
    assert_eq!(world.told(), []);
}

/// The tables of a batch that is ingested have temporary names, too, and are no metadata.
#[test]
fn ingested_batches_have_the_temperature_of_tables() {
    let scratch = temporary();
    let world = World::new();
    let text = "metadata_write_temperature=kCold;default_write_temperature=kWarm";
    let db = Db::open(scratch.path(), &world.options(text)).unwrap();
    world.told();
    let mut batch = WriteBatchWithIndex::new();
    batch.put(db.default_column_family(), "a", "1").unwrap();
    batch.ingest(&db).unwrap();
    let told = world.told();
    assert!(
        !told.is_empty() && told.iter().all(|(_, told)| *told == Temperature::WARM),
        "{told:?}"
    );
    assert_eq!(db.live_files()[0].temperature, Temperature::WARM);
}

/// Says that its tables are warm.
struct Warm(OsFileSystem);

struct WarmFile(AnyFile);

impl FileAround for WarmFile {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn temperature(&self) -> Temperature {
        Temperature::WARM
    }
}

impl FileSystemAround for Warm {
    fn inner(&self) -> &dyn FileSystem {
        &self.0
    }

    fn open(&self, path: &Path, mode: OpenMode) -> flagstone::Result<AnyFile> {
        let file = mode.open(&self.0, path)?;
        let is_table = path.extension().is_some_and(|kind| kind == "sst");
        Ok(if is_table { AnyFile::around(WarmFile(file)) } else { file })
    }
}

/// The MANIFEST says what was planned, and the file system what is: RocksDB lets the option choose,
/// and takes what is known where only one of them knows.
#[test]
fn a_backup_records_the_temperatures_of_the_manifest_or_of_the_files() {
    for (planned, overrides, expected) in [
        ("kUnknown", false, Temperature::WARM),
        ("kCold", false, Temperature::COLD),
        ("kCold", true, Temperature::WARM),
    ] {
        let scratch = temporary();
        let mut options = create();
        options.set("default_write_temperature", planned).unwrap();
        options.env = Env::os().with_fs(Arc::new(Warm(OsFileSystem)));
        let db = Db::open(scratch.path().join("db"), &options).unwrap();
        write(&db, "a");
        let mut of_backups = BackupEngineOptions::new(scratch.path().join("backups"));
        of_backups.schema_version = 2;
        of_backups.current_temperatures_override_manifest = overrides;
        let backups = BackupEngine::open(of_backups).unwrap();
        backups.create_new_backup(&db, &CreateBackupOptions::default()).unwrap();
        let info = backups.get_backup_info(true).unwrap().remove(0);
        let tables =
            info.file_details.iter().filter(|file| file.relative_filename.ends_with(".sst"));
        let found: Vec<Temperature> = tables.map(|file| file.temperature).collect();
        assert_eq!(found, [expected], "{planned} {overrides}");
    }
}
