//! The small databases that the target `database` damages: each holds every kind of file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use flagstone::base::entity;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{FileSystem, read_file};
use flagstone::options::Options;

use crate::{settings, steps};

/// Where a database lies.
pub const DIRECTORY: &str = "/db";
/// The families of each.
pub const FAMILIES: [&str; 3] = ["default", "other", "third"];
/// A file is never larger.
pub const FILE_SIZE_MAX: u64 = 1 << 20;

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What sets the databases apart.
const VARIANTS: &[&[(&str, &str)]] = &[
    &[("compression", "kLZ4Compression"), ("table.filter_policy", "bloomfilter:10:false")],
    &[
        ("compression", "kZSTD"),
        ("table.index_type", "kTwoLevelIndexSearch"),
        ("table.partition_filters", "true"),
        ("table.filter_policy", "bloomfilter:10:false"),
        ("table.metadata_block_size", "64"),
        ("wal_compression", "kZSTD"),
        ("blob_compression_type", "kZSTD"),
    ],
    &[
        ("compression", "kNoCompression"),
        ("table.data_block_index_type", "kDataBlockBinaryAndHash"),
        ("table.filter_policy", "ribbonfilter:10:-1"),
        ("table.checksum", "kxxHash64"),
        ("table.format_version", "4"),
        ("recycle_log_file_num", "2"),
    ],
    &[
        ("compression", "kNoCompression"),
        ("table.index_type", "kBinarySearchWithFirstKey"),
        ("table.format_version", "6"),
        ("prefix_extractor", "fixed:2"),
        ("table.filter_policy", "bloomfilter:10:false"),
        ("blob_compression_type", "kLZ4Compression"),
        ("bottommost_compression", "kZlibCompression"),
    ],
    &[
        ("comparator", "rocksdb.ReverseBytewiseComparator"),
        ("prefix_extractor", "fixed:2"),
        ("table.index_type", "kHashSearch"),
        ("table.filter_policy", "ribbonfilter:10:-1"),
        ("compression", "kZSTD"),
        ("compression_opts", "{max_dict_bytes=100;}"),
        ("bottommost_compression", "kSnappyCompression"),
    ],
];

/// How many databases there are.
pub fn count() -> usize {
    VARIANTS.len()
}

/// The settings of database `variant` over these files. The world has no threads: the same input
/// does the same.
pub fn options(variant: usize, fs: &MemoryFileSystem) -> Options {
    let mut options = settings::tiny(&steps::world(Arc::new(fs.clone()), variant as u64));
    let common = [
        ("create_if_missing", "false"),
        ("enable_blob_files", "true"),
        ("min_blob_size", "60"),
        ("blob_commit_min_size", "80"),
        ("blob_file_size", "2000"),
        ("enable_blob_garbage_collection", "true"),
        ("blob_garbage_collection_age_cutoff", "0.5"),
        ("table.block_size", "128"),
        ("table.block_restart_interval", "3"),
        ("write_buffer_size", "4096"),
        ("max_bytes_for_level_base", "4096"),
        ("target_file_size_base", "1024"),
        ("level0_file_num_compaction_trigger", "3"),
    ];
    settings::set(&mut options, &common);
    settings::set(&mut options, VARIANTS[variant]);
    options
}

/// The files of database `variant`, as they lie on the disk of a process that died.
pub fn files(variant: usize) -> &'static Files {
    static FILES: [OnceLock<Files>; VARIANTS.len()] = [const { OnceLock::new() }; VARIANTS.len()];
    FILES[variant].get_or_init(|| make(variant))
}

fn make(variant: usize) -> Files {
    let fs = MemoryFileSystem::new();
    let mut options = options(variant, &fs);
    settings::set(
        &mut options,
        &[("create_if_missing", "true"), ("disable_auto_compactions", "true")],
    );
    let listed = FAMILIES.map(|name| (name, options.cf.clone()));
    let db = Db::open_with_families(DIRECTORY, &options, &listed).expect("a new database");
    for round in 0..4 {
        write_round(&db, round);
        if round < 3 {
            db.flush_all().expect("a flush");
        }
        if round == 1 {
            let family = db.column_family(FAMILIES[1]).expect("it was opened");
            db.compact_range(&family, None, None, &Default::default()).expect("a compaction");
        }
    }
    // The last round is in the WAL only, and stays there: the files are taken while the database is
    // open.
    let names = fs.list(Path::new(DIRECTORY)).expect("memory");
    let kept = names.into_iter().filter(|name| name != "LOCK");
    kept.map(|name| {
        let bytes =
            read_file(&fs, &Path::new(DIRECTORY).join(&name), FILE_SIZE_MAX).expect("memory");
        (name, bytes)
    })
    .collect()
}

fn write_round(db: &Db, round: usize) {
    for name in FAMILIES {
        let family = db.column_family(name).expect("it was opened");
        for number in 0..8 {
            let key = format!("k{:02}", number * 3 + round);
            let length = if number % 3 == 0 { 90 } else { 10 };
            db.put_cf(&family, &key, vec![b'a' + number as u8; length]).expect("a write");
        }
        let mut wide = WriteBatch::new();
        let columns = entity::encode(&[(b"", b"wide"), (b"column", b"value")]);
        wide.put_encoded_entity(&family, format!("w{round}").as_bytes(), &columns)
            .expect("a small entity");
        db.write(wide).expect("a write");
        db.merge_cf(&family, "k03", format!("m{round}")).expect("a write");
        db.merge_cf(&family, "only merged", "+").expect("a write");
        db.delete_cf(&family, format!("k{:02}", 3 * round)).expect("a write");
        if round % 2 == 1 {
            let mut ends = ["k10".to_string(), format!("k1{}", 2 + round)];
            ends.sort_by(|a, b| family.comparator().compare(a.as_bytes(), b.as_bytes()));
            db.delete_range_cf(&family, &ends[0], &ends[1]).expect("a write");
            db.single_delete_cf(&family, "once").expect("a write");
        } else {
            db.put_cf(&family, "once", "1").expect("a write");
        }
    }
}
