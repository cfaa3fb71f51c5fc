//! Several options at once, as RocksDB chooses them.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use flagstone::base::compression::CompressionType;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{CompactRangeOptions, CompactionStyle, Options};

/// A database that these options open, some of whose keys are written and read.
fn used(options: &Options) -> Db {
    let options = Options { env: Env::memory(), ..options.clone() };
    let db = Db::open("/db", &options).unwrap();
    for round in 0..3 {
        (0..100).for_each(|key| db.put(format!("{key:03}"), format!("{round}")).unwrap());
        db.flush_all().unwrap();
    }
    db.wait_for_compactions().unwrap();
    assert_eq!(db.get("042").unwrap().unwrap(), "2");
    assert!(db.get("100").unwrap().is_none());
    db
}

fn chosen(choose: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    options.create_if_missing = true;
    choose(&mut options);
    options
}

#[test]
fn a_small_database_takes_little_memory() {
    let options = chosen(Options::optimize_for_small_db);
    assert_eq!(
        (options.cf.write_buffer_size, options.cf.target_file_size_base),
        (2 << 20, 2 << 20)
    );
    assert_eq!(options.max_open_files, 5000);
    let db = used(&options);
    let capacity = db.int_property(db.default_column_family(), "rocksdb.block-cache-capacity");
    assert_eq!(capacity, Some(16 << 20));
}

#[test]
fn point_lookups_have_hashes_and_filters() {
    let options = chosen(|options| options.optimize_for_point_lookup(8));
    assert!(options.cf.memtable_whole_key_filtering);
    let db = used(&options);
    let capacity = db.int_property(db.default_column_family(), "rocksdb.block-cache-capacity");
    assert_eq!(capacity, Some(8 << 20));
}

#[test]
fn styles_divide_a_budget() {
    let budget = 64 << 20;
    let options = chosen(|options| options.cf.optimize_level_style_compaction(budget));
    assert_eq!(options.cf.write_buffer_size, 16 << 20);
    assert_eq!(
        (options.cf.min_write_buffer_number_to_merge, options.cf.max_write_buffer_number),
        (2, 6)
    );
    assert_eq!(
        (options.cf.target_file_size_base, options.cf.max_bytes_for_level_base),
        (8 << 20, budget)
    );
    let none = CompressionType::None;
    assert_eq!(options.cf.compression_per_level[..2], [none, none]);
    assert!(options.cf.compression_per_level[2..].iter().all(|compression| *compression != none));
    assert_eq!(options.cf.compression_per_level.len(), 7);
    used(&options);

    let options = chosen(|options| options.cf.optimize_universal_style_compaction(budget));
    assert_eq!(options.cf.compaction_style, CompactionStyle::Universal);
    assert_eq!(options.cf.compaction_options_universal.compression_size_percent, 80);
    used(&options);
}

#[test]
fn a_bulk_load_is_compacted_at_its_end() {
    let db = used(&chosen(Options::prepare_for_bulk_load));
    let levels = |db: &Db| db.live_files().iter().map(|file| file.level).collect::<Vec<_>>();
    assert_eq!(levels(&db), [Some(0); 3]);
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    assert_eq!(levels(&db), [Some(1)]);
}

#[test]
fn compressions_of_this_build_can_be_chosen() {
    for compression in CompressionType::supported() {
        used(&chosen(|options| options.cf.compression = compression));
    }
}
