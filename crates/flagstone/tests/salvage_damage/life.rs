//! Random lives of databases.

use std::sync::Arc;

use fastrand::Rng;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{DataPathList, FlushOptions, Options};

use super::common::create;
use super::{DIRECTORIES, SOURCE};

/// What puts operands behind one another.
pub const APPEND: &str = "{id=StringAppendOperator;delimiter=,;}";

/// What a life has beyond the plain ones. Chance of its own decides, so that plain lives stay what they were.
#[derive(Debug, Default)]
pub struct Extras {
    /// Compression whose blocks do not tell where they end.
    pub compression: Option<&'static str>,
    /// Operands that are appended, and how many of a hundred writes are such.
    pub operands: u32,
    /// Range deletions that only WALs have.
    pub late_ranges: bool,
    /// WALs in files that had another life.
    recycles: bool,
    /// Tables and blob files in several directories.
    pub paths: bool,
}

impl Extras {
    pub fn draw(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed ^ 0x5a17_a6e5);
        Self {
            compression: [None, None, Some("kZlibCompression"), Some("kBZip2Compression")][random.usize(..4)],
            operands: [0, 0, 10, 40][random.usize(..4)],
            late_ranges: random.bool(),
            recycles: random.bool(),
            paths: random.u32(..3) == 0,
        }
    }

    /// Whether the bytes of values say nothing but what was written.
    fn is_plain_text(&self) -> bool {
        self.operands > 0
    }

    fn set(&self, options: &mut Options) {
        let mut settings = Vec::new();
        settings.extend(self.compression.map(|compression| ("compression", compression.to_string())));
        if self.operands > 0 {
            settings.push(("merge_operator", APPEND.to_string()));
        }
        if self.recycles {
            settings.push(("recycle_log_file_num", "2".to_string()));
        }
        if self.paths {
            options.db.db_paths = DataPathList::of(&[(DIRECTORIES[0], 60_000), (DIRECTORIES[1], 1_000_000)]);
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
    ];
    for (name, value) in &settings {
        options.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    }
    extras.set(&mut options);
    options
}

pub fn live(random: &mut Rng, extras: &Extras, options: &Options) {
    let db = Db::open(SOURCE, options).expect("a database");
    let mut families = vec![db.default_column_family().clone()];
    if random.bool() {
        families.push(db.create_column_family("second", &options.cf).expect("a family"));
        if random.bool() {
            families.push(db.create_column_family("third", &options.cf).expect("a family"));
        }
    }
    let keys = random.u32(50..600);
    let steps = random.u32(200..2500);
    for step in 0..steps {
        let family = &families[random.usize(..families.len())];
        let key = format!("key{:06}", random.u32(..keys));
        match random.u32(..100) {
            0..8 => db.delete_cf(family, key).expect("a deletion"),
            8 => {
                let end = format!("key{:06}", random.u32(..keys));
                if key < end {
                    db.delete_range_cf(family, &key, &end).expect("a deletion");
                }
            }
            9 if random.u32(..20) == 0 => {
                db.flush(family, &FlushOptions::default()).expect("a flush");
            }
            _ => {
                let size = match random.u32(..400) {
                    0 => random.usize(3000..100_000),
                    1..100 => random.usize(300..3000),
                    _ => random.usize(..200),
                };
                let mut value = format!("{step}:").into_bytes();
                let alphabet = if random.bool() || extras.is_plain_text() { 4 } else { 255 };
                value.extend((0..size).map(|_| random.u8(..alphabet)));
                match extras.operands > 0 && random.u32(..100) < extras.operands {
                    true => db.merge_cf(family, key, value).expect("an operand"),
                    false => db.put_cf(family, key, value).expect("a put"),
                }
            }
        }
    }
    // No WAL holds what one family has flushed and another has not: whether that is still wanted, a lost MANIFEST leaves open.
    db.flush_all().expect("a flush");
    // A record that goes over two blocks of its WAL, too; not more than a memtable holds.
    let is_long = random.bool();
    for step in 0..random.u32(..if is_long { 20 } else { 150 }) {
        let family = &families[random.usize(..families.len())];
        let size = if step == 0 && is_long { random.usize(30_000..50_000) } else { random.usize(..1000) };
        let value = [format!("late {step}:").as_bytes(), &vec![b'z'; size]].concat();
        let key = format!("key{:06}", random.u32(..keys));
        if extras.late_ranges && random.u32(..8) == 0 {
            let end = format!("key{:06}", random.u32(..keys));
            if key < end {
                db.delete_range_cf(family, &key, &end).expect("a deletion");
            }
        }
        match extras.operands > 0 && random.u32(..100) < extras.operands {
            true => db.merge_cf(family, key, value).expect("an operand"),
            false => db.put_cf(family, key, value).expect("a put"),
        }
    }
    db.wait_for_compactions().expect("rest");
    db.close().expect("closed");
}
