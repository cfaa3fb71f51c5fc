//! Random lives of databases.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;
use flagstone::batch::WriteBatch;
use flagstone::db::{ColumnFamily, Db, TtlDb, TtlOptions};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, IoMode};
use flagstone::options::{DataPathList, FlushOptions, Options, WriteOptions};

use super::common::{create, fixtures};
use super::take_in::take_in;
use super::{DIRECTORIES, Files, LOGS, SOURCE, files_of};

/// What puts operands behind one another.
pub const APPEND: &str = "{id=StringAppendOperator;delimiter=,;}";

/// What a life has beyond the plain ones. Chance of its own decides, so that plain lives stay what
/// they were.
#[derive(Debug, Default)]
pub struct Extras {
    /// Compression whose blocks do not tell where they end.
    pub compression: Option<&'static str>,
    /// Operands that are appended, and how many of a hundred writes are such.
    pub operands: u32,
    /// Range deletions that only WALs have.
    pub late_ranges: bool,
    /// WALs in files that had another life.
    pub recycles: bool,
    /// Tables and blob files in several directories.
    pub paths: bool,
    /// Values that expire, in half a century.
    pub expiring: bool,
    /// Tables without checksums.
    pub unprotected: bool,
    /// How many of a hundred writes are batches over all families, with data that is for the log
    /// alone.
    batches: u32,
    /// Families that were dropped, one of them whose name another has now.
    pub drops: bool,
    /// Hash indexes, and memtables by prefixes.
    prefixes: bool,
    /// It begins with tables that RocksDB has ingested, whose sequence numbers are not in the
    /// files.
    pub ingested: bool,
    /// They stay.
    rests: bool,
    /// It ends with a table that is taken in, newer than what WALs hold.
    pub takes_in: bool,
    /// WALs go on after that.
    goes_on: bool,
    /// All families are flushed together.
    atomic_flush: bool,
    /// WALs that are compressed.
    compressed_logs: bool,
    /// WALs in a directory of their own.
    pub log_directory: bool,
    /// How many families there are beside those of other lives.
    more_families: u32,
    /// How many of a thousand values have up to two MiB.
    huge: u32,
}

impl Extras {
    pub fn draw(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed ^ 0x5a17_a6e5);
        // Drawn apart, for the same reason.
        let mut others = Rng::with_seed(seed ^ 0x7712_0e55);
        let mut one_in = |count| others.u32(..count) == 0;
        let expiring = one_in(4);
        let mut later = Rng::with_seed(seed ^ 0x7a4e_117e);
        let drawn = Self {
            takes_in: !expiring && later.u32(..4) == 0,
            goes_on: later.bool(),
            expiring,
            unprotected: one_in(5),
            batches: if one_in(2) { 30 } else { 0 },
            drops: one_in(3),
            prefixes: one_in(4),
            ingested: !expiring && one_in(4),
            rests: one_in(2),
            ..Self::default()
        };
        Self {
            compression: [None, None, Some("kZlibCompression"), Some("kBZip2Compression")]
                [random.usize(..4)],
            // What comes of operands that expire has the time of the merge.
            operands: [0, 0, 10, 40][random.usize(..4)] * u32::from(!expiring),
            late_ranges: random.bool(),
            recycles: random.bool(),
            paths: random.u32(..3) == 0,
            ..drawn
        }
    }

    /// Nothing but a table that is taken in at the end.
    pub fn newer(seed: u64) -> Self {
        Self { takes_in: true, goes_on: seed % 8 == 2, ..Self::default() }
    }

    /// The same and more, drawn once more apart.
    pub fn draw_all(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed ^ 0x0a11_f1a6);
        let mut one_in = |count| random.u32(..count) == 0;
        let drawn = Self::draw(seed);
        Self {
            atomic_flush: one_in(2),
            compressed_logs: one_in(2),
            // Those of RocksDB lie beside its tables.
            log_directory: one_in(2) && !drawn.ingested,
            more_families: if one_in(2) { 7 } else { 0 },
            huge: if one_in(2) { 10 } else { 0 },
            ..drawn
        }
    }

    /// The key of a number: those of tables that were ingested look otherwise.
    fn key(&self, number: u32) -> String {
        if self.ingested { format!("user{number:08}") } else { format!("key{number:06}") }
    }

    /// Whether the bytes of values say nothing but what was written.
    fn is_plain_text(&self) -> bool {
        self.operands > 0
    }

    fn set(&self, options: &mut Options) {
        let mut settings = Vec::new();
        settings
            .extend(self.compression.map(|compression| ("compression", compression.to_string())));
        if self.operands > 0 {
            settings.push(("merge_operator", APPEND.to_string()));
        }
        if self.recycles {
            settings.push(("recycle_log_file_num", "2".to_string()));
        }
        if self.unprotected {
            settings.push(("table.checksum", "kNoChecksum".to_string()));
        }
        if self.prefixes {
            settings.push(("prefix_extractor", "fixed:5".to_string()));
            settings.push(("table.index_type", "kHashSearch".to_string()));
            settings.push(("memtable_factory", "prefix_hash:16".to_string()));
        }
        if self.ingested {
            settings.push(("disable_auto_compactions", self.rests.to_string()));
        }
        if self.atomic_flush {
            settings.push(("atomic_flush", "true".to_string()));
        }
        if self.compressed_logs {
            settings.push(("wal_compression", "kZSTD".to_string()));
        }
        if self.log_directory {
            settings.push(("wal_dir", LOGS.to_string()));
        }
        if self.paths {
            options.db.db_paths =
                DataPathList::of(&[(DIRECTORIES[0], 60_000), (DIRECTORIES[1], 1_000_000)]);
        }
        for (name, value) in &settings {
            options.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
        }
    }
}

pub fn random_options(random: &mut Rng, extras: &Extras, fs: &MemoryFileSystem) -> Options {
    let mut options = create();
    options.env = Env::os().with_fs(Arc::new(fs.clone()));
    let compression = ["kNoCompression", "kLZ4Compression", "kSnappyCompression", "kZSTD"];
    let checksum = ["kXXH3", "kCRC32c", "kxxHash64"];
    let blobs = ["kNoCompression", "kLZ4Compression", "kZSTD"];
    let pick = |random: &mut Rng, from: &[&'static str]| from[random.usize(..from.len())];
    let settings = [
        ("write_buffer_size", "65536".to_string()),
        ("compression", pick(random, &compression).to_string()),
        ("table.checksum", pick(random, &checksum).to_string()),
        ("table.block_size", pick(random, &["512", "2048", "4096"]).to_string()),
        ("table.format_version", pick(random, &["2", "3", "4", "5", "5", "6", "7"]).to_string()),
        (
            "table.index_type",
            pick(random, &["kBinarySearch", "kBinarySearch", "kTwoLevelIndexSearch"]).to_string(),
        ),
        (
            "table.data_block_index_type",
            pick(random, &["kDataBlockBinarySearch", "kDataBlockBinaryAndHash"]).to_string(),
        ),
        ("table.filter_policy", pick(random, &["nullptr", "bloomfilter:10:false"]).to_string()),
        ("enable_blob_files", random.bool().to_string()),
        ("min_blob_size", "300".to_string()),
        ("blob_commit_min_size", pick(random, &["0", "400"]).to_string()),
        ("blob_compression_type", pick(random, &blobs).to_string()),
        ("target_file_size_base", "40000".to_string()),
        ("max_bytes_for_level_base", "100000".to_string()),
        ("level0_file_num_compaction_trigger", "3".to_string()),
        // On a busy machine it would be waited for.
        ("background_niceness", "0".to_string()),
    ];
    for (name, value) in &settings {
        options.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    }
    extras.set(&mut options);
    options
}

/// A handle for writing.
enum Writer {
    Plain(Db),
    Expiring(TtlDb),
}

/// How long values live that expire: none does here.
pub const TTL: TtlOptions =
    TtlOptions { ttl_seconds: 50 * 365 * 24 * 60 * 60, strict_reads: false, eternal_values: false };

impl Writer {
    fn open(extras: &Extras, options: &Options) -> Self {
        if !extras.expiring {
            Self::Plain(Db::open(SOURCE, options).expect("a database"))
        } else {
            Self::Expiring(TtlDb::open(SOURCE, options, TTL).expect("a database"))
        }
    }

    fn db(&self) -> &Db {
        match self {
            Self::Plain(db) => db,
            Self::Expiring(db) => db.base(),
        }
    }

    fn create(&self, name: &str, options: &Options) -> ColumnFamily {
        match self {
            Self::Plain(db) => db.create_column_family(name, &options.cf),
            Self::Expiring(db) => db.create_column_family(name, &options.cf, TTL),
        }
        .expect("a family")
    }

    fn put(&self, family: &ColumnFamily, key: String, value: Vec<u8>) {
        match self {
            Self::Plain(db) => db.put_cf(family, key, value),
            Self::Expiring(db) => db.put_cf(family, key, value),
        }
        .expect("a put");
    }

    fn write(&self, batch: WriteBatch) {
        match self {
            Self::Plain(db) => db.write_with(&WriteOptions::default(), batch),
            Self::Expiring(db) => db.write_with(&WriteOptions::default(), &batch),
        }
        .expect("a batch");
    }
}

/// The files of a database that RocksDB wrote, two tables of which it had ingested.
fn begin_with_ingested(fs: &MemoryFileSystem, extras: &Extras) {
    let from = Env::os().fs;
    let directory = fixtures().join("ingest");
    let home = if extras.paths { DIRECTORIES[0] } else { SOURCE };
    [SOURCE, home]
        .iter()
        .for_each(|path| fs.create_directory(path.as_ref()).expect("a directory in memory"));
    for name in from.list(&directory).expect("a fixture") {
        let bytes =
            flagstone::env::read_file(&*from, &directory.join(&name), 1 << 30).expect("a file");
        let path = Path::new(if name.ends_with(".sst") { home } else { SOURCE }).join(name);
        fs.create_writable(&path, IoMode::Buffered)
            .and_then(|file| file.write_at(0, &bytes))
            .expect("written");
    }
}

/// Lives a database; what its files were halfway.
pub fn live(random: &mut Rng, extras: &Extras, options: &Options, fs: &MemoryFileSystem) -> Files {
    if extras.ingested {
        begin_with_ingested(fs, extras);
    }
    let db = Writer::open(extras, options);
    let mut families = vec![db.db().default_column_family().clone()];
    let mut gone = Vec::new();
    if extras.drops {
        gone = ["gone", "second"].iter().map(|name| db.create(name, options)).collect();
        write(random, extras, &db, &gone, 100);
        db.db().drop_column_family(&gone.pop().expect("the second")).expect("dropped");
    }
    if random.bool() {
        families.push(db.create("second", options));
        if random.bool() {
            families.push(db.create("third", options));
        }
    }
    families.extend((0..extras.more_families).map(|nth| db.create(&format!("more{nth}"), options)));
    let keys = random.u32(50..600);
    let steps = random.u32(200..2500);
    let mut before = Files::new();
    for step in 0..steps {
        if step == steps / 2 {
            before = files_of(fs);
        }
        let family = &families[random.usize(..families.len())];
        let key = extras.key(random.u32(..keys));
        match random.u32(..100) {
            0..8 => db.db().delete_cf(family, key).expect("a deletion"),
            8 => {
                let end = extras.key(random.u32(..keys));
                if key < end {
                    db.db().delete_range_cf(family, &key, &end).expect("a deletion");
                }
            }
            9 if random.u32(..20) == 0 => {
                db.db().flush(family, &FlushOptions::default()).expect("a flush");
            }
            _ => {
                let value = value(random, extras, step);
                set(random, extras, &db, family, key, value);
            }
        }
        if extras.batches > 0 && random.u32(..100) < extras.batches {
            write(random, extras, &db, &families, keys);
        }
    }
    // No WAL holds what one family has flushed and another has not: whether that is still wanted, a
    // lost MANIFEST leaves open.
    db.db().flush_all().expect("a flush");
    // Of the keys that are taken in no WAL has one.
    let keys_late = if extras.takes_in { keys * 3 / 4 } else { keys };
    end(random, extras, &db, &families, keys_late);
    // Its WAL still has what it held last.
    for family in gone {
        write(random, extras, &db, std::slice::from_ref(&family), keys);
        db.db().drop_column_family(&family).expect("dropped");
    }
    db.db().wait_for_compactions().expect("rest");
    db.db().close().expect("closed");
    if extras.takes_in {
        let family = families[random.usize(..families.len())].clone();
        drop(families);
        newest(random, extras, options, fs, (db, &family), keys_late..keys);
    }
    before
}

/// A value of some length, which begins with the number of its step.
fn value(random: &mut Rng, extras: &Extras, step: u32) -> Vec<u8> {
    let size = match random.u32(..400) {
        _ if extras.huge > 0 && random.u32(..1000) < extras.huge => random.usize(100_000..2 << 20),
        0 => random.usize(3000..100_000),
        1..100 => random.usize(300..3000),
        _ => random.usize(..200),
    };
    let mut value = format!("{step}:").into_bytes();
    let alphabet = if random.bool() || extras.is_plain_text() { 4 } else { 255 };
    value.extend((0..size).map(|_| random.u8(..alphabet)));
    value
}

/// Takes in a table of some of the keys, of which no WAL has one, and goes on.
fn newest(
    random: &mut Rng,
    extras: &Extras,
    options: &Options,
    fs: &MemoryFileSystem,
    (db, family): (Writer, &ColumnFamily),
    keys: Range<u32>,
) {
    let last = db.db().latest_sequence_number();
    let mut chosen: Vec<String> =
        keys.clone().filter(|_| random.bool()).map(|number| extras.key(number)).collect();
    if chosen.is_empty() {
        chosen.push(extras.key(keys.start));
    }
    take_in(random, extras, options, fs, (family.id(), family.name()), last, chosen.into_iter());
    drop(db);
    go_on(random, extras, options, keys.end);
}

/// What WALs get behind the table that was taken in.
fn go_on(random: &mut Rng, extras: &Extras, options: &Options, keys: u32) {
    if !extras.goes_on {
        return;
    }
    let mut options = options.clone();
    options.set("avoid_flush_during_recovery", "true").expect("an option");
    let db = Writer::open(extras, &options);
    let families = db.db().column_families();
    end(random, extras, &db, &families, keys);
    db.db().wait_for_compactions().expect("rest");
    db.db().close().expect("closed");
}

/// What only the WAL will have.
fn end(random: &mut Rng, extras: &Extras, db: &Writer, families: &[ColumnFamily], keys: u32) {
    // A record that goes over two blocks of its WAL, too; not more than a memtable holds.
    let is_long = random.bool();
    for step in 0..random.u32(..if is_long { 20 } else { 150 }) {
        let family = &families[random.usize(..families.len())];
        let size =
            if step == 0 && is_long { random.usize(30_000..50_000) } else { random.usize(..1000) };
        let value = [format!("late {step}:").as_bytes(), &vec![b'z'; size]].concat();
        let key = extras.key(random.u32(..keys));
        if extras.late_ranges && random.u32(..8) == 0 {
            let end = extras.key(random.u32(..keys));
            if key < end {
                db.db().delete_range_cf(family, &key, &end).expect("a deletion");
            }
        }
        set(random, extras, db, family, key, value);
        if extras.batches > 0 && random.u32(..100) < extras.batches {
            write(random, extras, db, families, keys);
        }
    }
}

/// Sets a key, or adds an operand to it.
fn set(
    random: &mut Rng,
    extras: &Extras,
    db: &Writer,
    family: &ColumnFamily,
    key: String,
    value: Vec<u8>,
) {
    if extras.operands > 0 && random.u32(..100) < extras.operands {
        db.db().merge_cf(family, key, value).expect("an operand")
    } else {
        db.put(family, key, value)
    }
}

/// As transactions are written: what is for the log alone, then each family's part.
fn write(random: &mut Rng, extras: &Extras, db: &Writer, families: &[ColumnFamily], keys: u32) {
    let mut batch = WriteBatch::new();
    batch.put_log_data(format!("transaction {}", random.u64(..)).as_bytes()).expect("room");
    for family in families.iter().chain(families) {
        let key = extras.key(random.u32(..keys));
        match random.u32(..8) {
            0 => batch.delete_cf(family.id(), key.as_bytes()),
            _ => {
                let value = format!("batch {} {}", random.u64(..), "b".repeat(random.usize(..500)));
                batch.put_cf(family.id(), key.as_bytes(), value.as_bytes())
            }
        }
        .expect("room");
        batch.put_log_data(b"done").expect("room");
    }
    db.write(batch);
}
