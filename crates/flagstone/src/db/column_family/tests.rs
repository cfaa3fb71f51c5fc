use super::*;
use crate::base::compression::CompressionType;
use crate::env::Env;
use crate::options::{CompactionStyle, Options};

/// A trigger that was raised for a bulk load, and lowered again, had those of writers raised with
/// it for good: nobody was held up by level 0 any more. So was lowered, or forgotten, what must
/// stay below another setting or needs one.
#[test]
fn settings_that_gave_way_to_others_come_back_with_these() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    let asked = [
        "create_if_missing=true;level0_slowdown_writes_trigger=20;level0_stop_writes_trigger=36",
        "max_write_buffer_number=6;min_write_buffer_number_to_merge=4;write_buffer_size=64m",
        "prefix_extractor=fixed:2;memtable_factory=prefix_hash:300000",
        "soft_pending_compaction_bytes_limit=64g;hard_pending_compaction_bytes_limit=256g",
        "compression_opts={max_dict_bytes=16k;zstd_max_train_bytes=1m}",
    ];
    options.set_all(&asked.join(";")).unwrap();
    let db = Db::open("/db", &options).unwrap();
    let family = db.default_column_family();
    let before = family.options();
    let both_ways = [
        ("level0_file_num_compaction_trigger", "100000", "4"),
        ("max_write_buffer_number", "2", "6"),
        ("write_buffer_size", "64k", "64m"),
        ("hard_pending_compaction_bytes_limit", "1g", "256g"),
        ("compression_opts.max_dict_bytes", "0", "16k"),
    ];
    for (name, other, back) in both_ways {
        db.set_options(family, &[(name, other)]).unwrap();
        db.set_options(family, &[(name, back)]).unwrap();
        assert_eq!(family.options().settings, before.settings, "{name}");
    }
    // What is set meanwhile is not what was asked for at first.
    let triggers =
        [("level0_file_num_compaction_trigger", "50"), ("level0_stop_writes_trigger", "40")];
    db.set_options(family, &triggers).unwrap();
    assert_eq!(family.options().level0_stop_writes_trigger, 50);
    db.set_options(family, &[("level0_file_num_compaction_trigger", "4")]).unwrap();
    let options = family.options();
    assert_eq!(
        (options.level0_slowdown_writes_trigger, options.level0_stop_writes_trigger),
        (20, 40)
    );
}

/// Put back to `auto`, `min_blob_size` was 0, and all values went to blob files, with the
/// compression of the opening.
#[test]
fn what_is_left_open_of_blob_files_follows_the_other_options_while_the_database_is_open() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    let family = db.default_column_family();
    for (name, value) in
        [("min_blob_size", "8192"), ("compression", "kZSTD"), ("min_blob_size", "auto")]
    {
        db.set_options(family, &[(name, value)]).unwrap();
    }
    let now = family.options();
    assert_eq!((now.smallest_blob(), now.blob_compression()), (4096, CompressionType::Zstd));
    // So it is for another family with these options, but for what its compaction has to do with
    // it.
    let mut copied = (*now).clone();
    copied.compaction_style = CompactionStyle::Fifo;
    let cache = db.create_column_family("cache", &copied).unwrap();
    assert!(!cache.options().separates_values());
}

/// With thousands of families of the largest buffers the sum began again from nothing, or panicked.
#[test]
fn the_write_buffers_of_many_families_add_up_to_the_most_there_is() {
    let mut buffers = WriteBuffers::default();
    (0..20_000).for_each(|_| buffers.add(1 << 40, 1024));
    assert_eq!((buffers.largest, buffers.most_full, buffers.total), (1 << 40, 1023, u64::MAX));
}
