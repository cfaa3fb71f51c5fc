//! Manifests with numbers that cannot be.

use super::*;

/// What a MANIFEST says of tables, made as large as can be.
const IMMENSE: &[(&str, Change)] = &[
    ("sizes", |table| table.size = u64::MAX),
    ("tails", |table| table.tail_size = u64::MAX),
    ("deleted sizes", |table| table.compensated_range_deletion_size = u64::MAX),
    ("ancestors", |table| table.oldest_ancestor_time = u64::MAX),
    ("times", |table| {
        (table.oldest_ancestor_time, table.file_creation_time) = (u64::MAX, u64::MAX)
    }),
    ("epochs", |table| table.epoch_number = u64::MAX - (table.number.0 - FIRST)),
    ("seqnos", |table| (table.smallest_seqno, table.largest_seqno) = (0, MAX_SEQUENCE_NUMBER)),
    ("entries", |table| {
        let [entries, deletions, range_deletions, value_bytes] = [u64::MAX; 4];
        table.entry_stats = Some(EntryStats { entries, deletions, range_deletions, value_bytes });
    }),
    ("deletions", |table| {
        table.entry_stats =
            Some(EntryStats { entries: 1, deletions: u64::MAX, ..EntryStats::default() });
    }),
    ("references", |table| {
        let oldest = table.oldest_blob_file.expect("it has one");
        let files = vec![(oldest, u64::MAX), (FileNumber(FIRST + 2), u64::MAX)];
        table.blob_references = BlobReferences::new(u64::MAX, files);
    }),
    ("directories", |table| table.path_id = 3),
];

const STYLES: [&str; 6] = [
    "ttl=100;periodic_compaction_seconds=100",
    "compaction_style=kCompactionStyleUniversal",
    "compaction_style=kCompactionStyleFIFO",
    "level_compaction_dynamic_level_bytes=false;max_space_amplification=1.5;enable_blob_garbage_collection=true",
    "compaction_style=kCompactionStyleUniversal;periodic_compaction_seconds=100;max_space_amplification=1.5",
    "compaction_style=kCompactionStyleFIFO;compaction_options_fifo={max_table_files_size=1000;};ttl=100",
];

const LOOKED_AT: [&str; 10] = [
    "rocksdb.blob-stats",
    "rocksdb.estimate-live-data-size",
    "rocksdb.estimate-num-keys",
    "rocksdb.estimate-pending-compaction-bytes",
    "rocksdb.levelstats",
    "rocksdb.live-blob-file-size",
    "rocksdb.live-sst-files-size",
    "rocksdb.sstables",
    "rocksdb.stats",
    "rocksdb.total-sst-files-size",
];

/// Three tables of the same keys and a blob file that is not there, of which the MANIFEST says
/// nonsense.
fn world_of_nonsense(change: Change, more: &VersionEdit) -> World {
    let world = World::new();
    let mut edit = VersionEdit {
        next_file_number: Some(FileNumber(FIRST + 100)),
        last_sequence: Some(100),
        ..VersionEdit::default()
    };
    edit.blob_file_additions.push(BlobFileAddition {
        number: FileNumber(FIRST + 2),
        total_count: 9,
        total_bytes: u64::MAX,
        ..BlobFileAddition::default()
    });
    for (number, level) in [(FIRST, 0), (FIRST + 1, 0), (FIRST + 3, 6)] {
        let entries = [("a", ValueType::Value, &b"value"[..]), ("key", ValueType::Value, b"value")];
        let table = world.table(number, &entries, TableBuilderSettings::default(), |_| {});
        let mut table = FileMetadata { epoch_number: number, ..table };
        change(&mut table);
        edit.add_file(level, table);
    }
    add_to_manifest(&world.options.env, &edit);
    add_to_manifest(&world.options.env, more);
    world
}

/// Does with a database what can be done, whether it can or not.
fn live_with(options: &Options) {
    for open in [Db::open_read_only, Db::open, Db::open] {
        let Ok(db) = open("/db", options) else { continue };
        let family = db.default_column_family();
        let _ = (db.get("key"), db.multi_get(&["key", "large"]), db.delete_range("k", "l"));
        for value in [10, 200] {
            let _ = (db.put("b", vec![7; value]), db.flush_all());
        }
        let _ = db.wait_for_compactions();
        for name in LOOKED_AT {
            let _ = db.property(family, name);
        }
        let _ = (db.doctor(), db.space(family), db.verify(|_| {}), db.check(), db.live_files());
        let _ = db.approximate_sizes(family, &[(b"a", b"z")], &SizeApproximationOptions::default());
        let _ = (
            db.compact_range(family, None, None, &everything()),
            db.create_column_family("other", &options.cf),
        );
        let health = db.property(family, "flagstone.background-error").unwrap_or_default();
        assert!(!health.contains("panicked"), "{health}");
        let _ = db.close();
    }
}

/// Sums of what the MANIFEST says panicked, or began again at nothing: whatever it says, what
/// cannot be done is an error.
#[test]
fn no_number_of_a_manifest_makes_anything_panic() {
    let file_number = Some(FileNumber((1 << 62) - 1));
    let plain = VersionEdit::default;
    fn nothing(_: &mut FileMetadata) {}
    let all = [
        VersionEdit { last_sequence: Some(MAX_SEQUENCE_NUMBER), ..plain() },
        VersionEdit { last_sequence: Some(MAX_SEQUENCE_NUMBER - 1), ..plain() },
        VersionEdit { next_file_number: file_number, ..plain() },
        VersionEdit { log_number: file_number, ..plain() },
        VersionEdit { min_log_number_to_keep: file_number, ..plain() },
        VersionEdit { max_column_family: Some(ColumnFamilyId(u32::MAX)), ..plain() },
    ];
    let of_all = all.into_iter().map(|edit| (STYLES[0], "all", nothing as Change, edit));
    let of_tables = STYLES.iter().flat_map(|style| IMMENSE.iter().map(move |case| (*style, case)));
    let of_tables = of_tables.map(|(style, (name, change))| (style, *name, *change, plain()));
    let mut panicked = Vec::new();
    for (style, name, change, more) in of_all.chain(of_tables) {
        let mut options = world_of_nonsense(change, &more).options;
        options
            .set_all("disable_auto_compactions=false;level0_file_num_compaction_trigger=2")
            .unwrap();
        options.set_all("paranoid_checks=false").unwrap();
        options.set_all(style).unwrap();
        if catch_unwind(AssertUnwindSafe(|| live_with(&options))).is_err() {
            panicked.push((style, name, more));
        }
    }
    assert!(panicked.is_empty(), "{panicked:#?}");
}
