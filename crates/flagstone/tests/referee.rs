//! RocksDB's own tools read, verify and go on writing what Flagstone wrote.

mod common;

use std::path::Path;

use common::{Referee, create, dump, dump_family, open_as_written, referee, temporary};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Ticker};
use flagstone::options::{Options, WriteOptions};

fn set(options: &mut Options, pairs: &[(&str, &str)]) {
    for (name, value) in pairs {
        options.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("key{number:08}").into_bytes()
}

fn value(number: u64, size: usize) -> Vec<u8> {
    let seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..size).map(|at| b'a' + ((seed >> (at % 50)) % 17) as u8).collect()
}

/// Everything that the referee can say about a closed database, and that it reads the same.
fn check(referee: &Referee, path: &Path) {
    let expected: Vec<(String, String)> = {
        let db = open_as_written(path, true);
        db.column_families()
            .iter()
            .map(|family| (family.name().to_string(), dump_family(&db, family)))
            .collect()
    };
    referee.ldb(path, &["checkconsistency"]);
    referee.ldb(path, &["list_live_files_metadata"]);
    let manifest = std::fs::read_to_string(path.join("CURRENT")).expect("CURRENT");
    let manifest = path.join(manifest.trim());
    referee.ldb(path, &["manifest_dump", &format!("--path={}", manifest.display())]);
    referee.verify_tables(path);
    for (family, contents) in expected {
        assert!(
            referee.scan(path, &family) == contents,
            "{}: family {family} differs",
            path.display()
        );
    }
}

/// RocksDB writes to the database and compacts it; Flagstone then reads what it had, and what was
/// written, and checks every byte.
fn rocksdb_continues(referee: &Referee, path: &Path) {
    let before = {
        let db = open_as_written(path, true);
        dump(&db)
    };
    referee.ldb(path, &["put", "--try_load_options", "zz-from-rocksdb", "hello"]);
    referee.ldb(path, &["compact", "--try_load_options"]);
    let db = open_as_written(path, false);
    assert!(db.get("zz-from-rocksdb").expect("a read").expect("a value") == "hello");
    db.delete("zz-from-rocksdb").expect("a delete");
    assert!(dump(&db) == before, "{} differs after RocksDB went on", path.display());
    for family in db.column_families() {
        db.compact_range(&family, None, None, &Default::default()).expect("a compaction");
    }
    assert!(dump(&db) == before, "{} differs after a compaction", path.display());
    let report = db.verify(|_| {});
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    db.close().expect("a clean close");
    drop(db);
    check(referee, path);
}

/// Overwrites and deletes in rounds, with a flush after each, so that compactions have work.
fn fill(db: &Db, rounds: u64, keys: u64, size: usize) {
    for round in 0..rounds {
        for number in 0..keys {
            let mixed = (number * 7919 + round * 31) % keys;
            match mixed % 11 {
                3 => db.delete(key(mixed)).expect("a delete"),
                _ => db.put(key(mixed), value(mixed + round, size)).expect("a put"),
            }
        }
        db.flush_all().expect("a flush");
    }
}

#[test]
fn databases_of_every_compression() {
    let Some(referee) = referee() else { return };
    for compression in ["none", "snappy", "zlib", "bzip2", "lz4", "lz4hc", "zstd"] {
        let directory = temporary();
        let path = directory.path().join("db");
        let mut options = create();
        let name = format!("k{compression}");
        let text = match compression {
            "none" => "kNoCompression".to_string(),
            "snappy" => "kSnappyCompression".to_string(),
            "zlib" => "kZlibCompression".to_string(),
            "bzip2" => "kBZip2Compression".to_string(),
            "lz4" => "kLZ4Compression".to_string(),
            "lz4hc" => "kLZ4HCCompression".to_string(),
            _ => "kZSTD".to_string(),
        };
        set(&mut options, &[("compression", &text)]);
        let db = Db::open(&path, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        fill(&db, 5, 500, 120);
        db.wait_for_compactions().expect("idle");
        db.close().expect("a clean close");
        drop(db);
        check(&referee, &path);
        rocksdb_continues(&referee, &path);
    }
}

#[test]
fn databases_whose_blocks_do_not_lie_across_pages() {
    let Some(referee) = referee() else { return };
    for interval in ["1", "16"] {
        let directory = temporary();
        let path = directory.path().join("db");
        let mut options = create();
        set(
            &mut options,
            &[
                ("compression", "kLZ4Compression"),
                ("super_block_alignment_size", "4096"),
                ("super_block_alignment_space_overhead_ratio", "4"),
                ("index_block_restart_interval", interval),
            ],
        );
        let db = Db::open(&path, &options).expect("a new database");
        fill(&db, 5, 500, 120);
        db.wait_for_compactions().expect("idle");
        db.close().expect("a clean close");
        drop(db);
        check(&referee, &path);
        rocksdb_continues(&referee, &path);
    }
}

#[test]
fn a_database_of_default_options_has_filters_that_rocksdb_knows() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let db = Db::open(&path, &create()).expect("a new database");
    fill(&db, 1, 500, 100);
    db.flush_all().expect("a flush");
    db.close().expect("a clean close");
    drop(db);
    let told = referee.table_properties(&path);
    assert!(told.contains("filter policy name: bloomfilter"), "{told}");
    check(&referee, &path);
    rocksdb_continues(&referee, &path);
}

#[test]
fn databases_with_filters_of_different_sizes() {
    let Some(referee) = referee() else { return };
    for policy in ["bloomfilter:10", "ribbonfilter:10:1"] {
        let directory = temporary();
        let path = directory.path().join("db");
        let mut options = create();
        set(
            &mut options,
            &[
                ("filter_policy", policy),
                ("filter_bits_per_level", "14:0:6.5:3"),
                ("write_buffer_size", "16384"),
                ("target_file_size_base", "8192"),
                ("max_bytes_for_level_base", "20000"),
            ],
        );
        let db = Db::open(&path, &options).expect("a new database");
        fill(&db, 5, 500, 120);
        db.wait_for_compactions().expect("idle");
        db.put("zz", "one more table in level 0").expect("a put");
        db.flush_all().expect("a flush");
        db.close().expect("a clean close");
        drop(db);
        check(&referee, &path);
        rocksdb_continues(&referee, &path);
    }
}

#[test]
fn hundreds_of_flushes_and_compactions_and_many_reopenings() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let mut options = create();
    set(
        &mut options,
        &[
            ("write_buffer_size", "16384"),
            ("target_file_size_base", "32768"),
            ("max_bytes_for_level_base", "131072"),
            ("filter_policy", "bloomfilter:10:false"),
        ],
    );
    for reopening in 0..8 {
        let db = Db::open(&path, &options).expect("a database");
        for number in 0..3_000u64 {
            let mixed = (number * 7919 + reopening) % 4_000;
            db.put(key(mixed), value(mixed + reopening, 100)).expect("a put");
            if number % 13 == 0 {
                db.delete(key((mixed * 3) % 4_000)).expect("a delete");
            }
        }
        let flushes = db.statistics().get(flagstone::db::Ticker::Flushes);
        assert!(flushes >= 10, "{flushes}");
        db.close().expect("a clean close");
    }
    check(&referee, &path);
    rocksdb_continues(&referee, &path);
}

#[test]
fn blob_files_with_garbage_collection() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let mut options = create();
    set(
        &mut options,
        &[
            ("enable_blob_files", "true"),
            ("min_blob_size", "200"),
            ("blob_file_size", "65536"),
            ("blob_compression_type", "kLZ4Compression"),
            ("enable_blob_garbage_collection", "true"),
            ("blob_garbage_collection_age_cutoff", "0.5"),
            ("write_buffer_size", "65536"),
        ],
    );
    let db = Db::open(&path, &options).expect("a database");
    fill(&db, 6, 400, 600);
    let family = db.default_column_family().clone();
    db.compact_range(&family, None, None, &Default::default()).expect("a compaction");
    assert!(db.int_property(&family, "rocksdb.num-blob-files").expect("known") > 0);
    db.close().expect("a clean close");
    drop(db);
    check(&referee, &path);
    rocksdb_continues(&referee, &path);
}

/// By default large values leave the tables, and RocksDB finds them.
#[test]
fn large_values_by_default() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path();
    let db = Db::open(path, &create()).expect("a database");
    let sizes = [100, 4095, 4096, 20_000, 300_000];
    for (number, size) in (0..).zip(sizes) {
        db.put(key(number), value(number, size)).expect("a put");
    }
    let logged = db.statistics().get(Ticker::WalBytes);
    assert!((4195..4600).contains(&logged), "the two smallest, and where the others lie: {logged}");
    db.flush_all().expect("a flush");
    let blobs: Vec<u64> =
        db.live_files().iter().filter(|file| file.level.is_none()).map(|file| file.size).collect();
    assert!(blobs.len() == 1 && blobs[0] < 100_000, "compressed: {blobs:?}");
    db.put(key(9), value(9, 5_000)).expect("a put");
    db.close().expect("a clean close");
    drop(db);
    check(&referee, path);
    rocksdb_continues(&referee, path);
}

/// Values that lie in blob files before the WAL names them, in memtables when the database is
/// closed.
#[test]
fn blob_files_written_at_commit() {
    let Some(referee) = referee() else { return };
    for (compression, directly) in
        [("kNoCompression", "false"), ("kLZ4Compression", "false"), ("kNoCompression", "true")]
    {
        let directory = temporary();
        let path = directory.path().join("db");
        let mut options = create();
        set(
            &mut options,
            &[
                ("enable_blob_files", "true"),
                ("min_blob_size", "200"),
                ("blob_commit_min_size", "300"),
                ("use_direct_io_for_flush_and_compaction", directly),
                ("use_direct_reads", directly),
                ("blob_file_size", "65536"),
                ("blob_compression_type", compression),
                ("enable_blob_garbage_collection", "true"),
            ],
        );
        let db = Db::open(&path, &options).expect("a database");
        fill(&db, 3, 400, 600);
        let family = db.default_column_family().clone();
        let mut pieces =
            db.put_stream(&family, "in pieces", &Default::default()).expect("a stream");
        for i in 0..20u8 {
            pieces.append(&[i; 100_000]).expect("a piece");
        }
        pieces.commit().expect("a value in pieces");
        // Overwritten in the memtable.
        (0..30).for_each(|round| db.put("again", value(round, 900)).expect("a put"));
        db.close().expect("a clean close");
        drop(db);
        check(&referee, &path);
        rocksdb_continues(&referee, &path);
    }
}

#[test]
fn three_families_merges_and_range_deletions() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let mut options = create();
    set(&mut options, &[("merge_operator", "uint64add")]);
    let db = Db::open(&path, &options).expect("a database");
    let users = db.create_column_family("users", &options.cf).expect("a family");
    let mut reversed_options = options.cf.clone();
    reversed_options.comparator = flagstone::base::Comparator::ReverseBytewise;
    let reversed = db.create_column_family("reversed", &reversed_options).expect("a family");
    for round in 0..4u64 {
        for number in 0..300 {
            db.merge(key(number), (number + round).to_le_bytes()).expect("a merge");
            db.put_cf(&users, key(number), value(number, 80)).expect("a put");
            db.put_cf(&reversed, key(number * 2), value(round, 40)).expect("a put");
        }
        db.delete_range_cf(&users, key(50 * round), key(50 * round + 20))
            .expect("a range deletion");
        db.delete_range_cf(&reversed, key(90), key(40)).expect("a range deletion");
        if round < 3 {
            db.flush_all().expect("a flush");
        }
    }
    db.close().expect("a clean close");
    drop(db);
    check(&referee, &path);
    rocksdb_continues(&referee, &path);
}

/// RocksDB reads the choice of a memtable from the OPTIONS file, opens with it, and has one of its
/// own.
#[test]
fn databases_of_every_memtable() {
    let Some(referee) = referee() else { return };
    for memtable in
        ["btree", "skip_list", "vector", "prefix_hash", "prefix_hash:7", "hash_linkedlist:50"]
    {
        let directory = temporary();
        let path = directory.path().join(memtable);
        let mut options = create();
        set(&mut options, &[("memtable", memtable), ("prefix_extractor", "fixed:4")]);
        set(&mut options, &[("write_buffer_size", "20000"), ("compression", "kNoCompression")]);
        let db = Db::open(&path, &options).expect("a new database");
        fill(&db, 3, 500, 60);
        db.put("not flushed", "yet").expect("a put");
        db.close().expect("a clean close");
        drop(db);
        check(&referee, &path);
        rocksdb_continues(&referee, &path);
    }
}

/// RocksDB read what the settings had led to, and refused to open the database for writing because
/// of its OPTIONS file.
#[test]
fn settings_that_rocksdb_refuses_are_mended_or_refused() {
    let Some(referee) = referee() else { return };
    for settings in [
        &[("compression", "kZSTD"), ("compression_opts.zstd_max_train_bytes", "100000")][..],
        &[
            ("data_block_index_type", "kDataBlockBinaryAndHash"),
            ("data_block_hash_table_util_ratio", "0"),
        ],
    ] {
        let directory = temporary();
        let path = directory.path().join("db");
        let mut options = create();
        set(&mut options, settings);
        let db = Db::open(&path, &options).expect("a new database");
        fill(&db, 2, 300, 60);
        db.close().expect("a clean close");
        drop(db);
        check(&referee, &path);
        rocksdb_continues(&referee, &path);
    }
    let mut options = create();
    set(
        &mut options,
        &[("compression", "kNoCompression"), ("block_align", "true"), ("block_size", "1000")],
    );
    let refusal =
        Db::open(temporary().path().join("db"), &options).expect_err("RocksDB refuses it, too");
    assert!(refusal.to_string().contains("power of two"), "{refusal}");
}

#[test]
fn rocksdb_goes_on_writing() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let db = Db::open(&path, &create()).expect("a database");
    fill(&db, 3, 200, 50);
    db.put("left in the WAL", "yes").expect("a put");
    db.close().expect("a clean close");
    drop(db);
    referee.ldb(&path, &["put", "from-rocksdb", "hello"]);
    referee.ldb(&path, &["delete", "left in the WAL"]);
    referee.ldb(&path, &["compact"]);
    let db = open_as_written(&path, false);
    assert!(db.get("from-rocksdb").expect("a read").expect("a value") == "hello");
    assert!(db.get("left in the WAL").expect("a read").is_none());
    db.put("from-flagstone", "hello again").expect("a put");
    let contents = dump(&db);
    db.close().expect("a clean close");
    drop(db);
    assert!(referee.scan(&path, "default") == contents);
}

/// Families that were flushed together: the group is in the MANIFEST, whole, and then without its
/// end.
#[test]
fn databases_whose_families_are_flushed_together() {
    let Some(referee) = referee() else { return };
    let directory = temporary();
    let path = directory.path().join("db");
    let mut options = create();
    set(&mut options, &[("atomic_flush", "true")]);
    let names = ["default", "first", "second", "third", "fourth"];
    // Of three each edit of a group is synced before the next, of five all but the last together.
    for count in [3, 5] {
        let families: Vec<_> =
            names[..count].iter().map(|name| (*name, options.cf.clone())).collect();
        options.create_missing_column_families = true;
        let db = Db::open_with_families(&path, &options, &families).expect("a database");
        for round in 0..3 {
            for number in 0..100 {
                let mut batch = WriteBatch::new();
                for family in db.column_families() {
                    batch.put_cf(&family, key(number), value(number + round, 60)).expect("a put");
                }
                let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
                db.write_with(&unlogged, batch).expect("a write");
            }
            db.flush_all().expect("a flush");
        }
        let killed = directory.path().join(format!("killed{count}"));
        common::copy_directory(&path, &killed);
        check(&referee, &killed);
        let manifest = std::fs::read_to_string(killed.join("CURRENT")).expect("CURRENT");
        let manifest = std::fs::File::options()
            .write(true)
            .open(killed.join(manifest.trim()))
            .expect("a file");
        manifest.set_len(manifest.metadata().expect("a size").len() - 1).expect("shorter");
        check(&referee, &killed);
        db.close().expect("a clean close");
        drop(db);
        check(&referee, &path);
        rocksdb_continues(&referee, &path);
    }
}
