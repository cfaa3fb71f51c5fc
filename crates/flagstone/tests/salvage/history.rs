//! What an older time left behind, and a MANIFEST that lost its end.

use super::*;

/// A copy of a database as a killed process leaves it, whose power failed while it wrote one more
/// edit.
fn with_a_torn_manifest(source: &Path, target: &Path) {
    copy_directory(source, target);
    let fs = Env::os().fs;
    let manifest = read_current(&*fs, target).expect("a MANIFEST");
    let (last, _) = dump_manifest(&*fs, &manifest).expect("readable").last().expect("edits");
    let mut bytes = std::fs::read(&manifest).expect("a file");
    bytes.extend_from_within(last as usize..bytes.len() - 3);
    std::fs::write(&manifest, bytes).expect("written");
}

/// Nothing in a MANIFEST with a torn end was believed, and a blob file whose values no WAL had come
/// to name was a loss.
#[test]
fn a_healthy_database_comes_out_the_same_after_a_power_loss() {
    let scratch = temporary();
    let [source, killed, target] = ["source", "killed", "db"].map(|name| scratch.path().join(name));
    let settings = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("blob_commit_min_size", "100"),
        ("disable_auto_compactions", "true"),
    ];
    let options = made(&source, &settings);
    let db = Db::open(&source, &options).expect("it opens");
    for (key, size) in [("small", 5), ("large", 5000), ("deleted", 300)] {
        db.put(key, vec![b'v'; size]).expect("a put");
    }
    db.flush_all().expect("a flush");
    db.delete("deleted").expect("a deletion");
    db.flush_all().expect("a flush");
    db.put("logged", [b'w'; 300]).expect("a put");
    let mut unlogged = WriteBatch::new();
    unlogged.put(b"unlogged", [b'x'; 300]).expect("a put");
    let without = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    db.write_with(&without, unlogged).expect("a write");
    with_a_torn_manifest(&source, &killed);
    let report = rebuild(&killed, &target);
    assert!(report.is_complete() && report.harmless.is_empty(), "{report:#?}");
    assert!(
        report.notes.iter().any(|note| note.contains("as after a power loss")),
        "{:?}",
        report.notes
    );
    let keys: Vec<_> = entries_of(&target).into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [&b"large"[..], b"logged", b"small"]);
    assert_eq!(entries_of(&target), entries_of(&killed));
}

/// With the torn edit others may be gone: what they named counts, and is missed where it is
/// damaged.
#[test]
fn more_than_one_edit_may_be_gone_with_the_end_of_a_manifest() {
    let scratch = temporary();
    let [source, target, other] = ["source", "db", "other"].map(|name| scratch.path().join(name));
    let options = made(&source, &[("disable_auto_compactions", "true")]);
    let db = Db::open(&source, &options).expect("it opens");
    let manifest = || read_current(&*Env::os().fs, &source).expect("a MANIFEST");
    let size = || std::fs::metadata(manifest()).expect("a file").len();
    let mut end = 0;
    for key in ["a", "b", "c"] {
        db.put(key, "v").expect("a put");
        end = if key == "b" { size() + 9 } else { end };
        db.flush_all().expect("a flush");
    }
    db.close().expect("closed");
    let file = std::fs::File::options().write(true).open(manifest()).expect("a file");
    file.set_len(end).expect("shorter");
    let report = rebuild(&source, &target);
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(entries_of(&target).len(), 3);
    flip(files(&source, "sst").last().expect("three tables"), 3);
    let report = rebuild(&source, &other);
    assert!(!report.is_complete(), "{report:#?}");
    assert_eq!(entries_of(&other).len(), 2);
}

#[test]
fn what_a_kept_log_holds_of_an_older_time_does_not_come_back() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let options = made(&source, &[("avoid_flush_during_shutdown", "true")]);
    let db = Db::open(&source, &options).expect("it opens");
    let idle = db.create_column_family("idle", &options.cf).expect("a family");
    db.put_cf(&idle, "it", "keeps the log").expect("a put");
    for key in ["changed", "deleted"] {
        db.put(key, "old").expect("a put");
    }
    let default = db.default_column_family();
    db.flush(default, &FlushOptions::default()).expect("a flush");
    db.put("changed", "new").expect("a put");
    db.delete("deleted").expect("a deletion");
    db.flush(default, &FlushOptions::default()).expect("a flush");
    db.compact_range(default, None, None, &CompactRangeOptions::default()).expect("a compaction");
    db.close().expect("closed");
    remove(&source, |name| name.starts_with("MANIFEST") || name == "CURRENT");
    let report = rebuild(&source, &target);
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(entries_of(&target), [(b"changed".to_vec(), b"new".to_vec())]);
    let db = open_as_written(&target, true);
    let idle = db.column_family("idle").expect("the family");
    assert_eq!(entries(&db, &idle).len(), 1);
}

/// One damaged block, and all that a kept WAL had of the family was done once more: operands
/// counted twice, and an old range deletion took keys that were written since without the WAL.
#[test]
fn damage_elsewhere_does_not_replay_what_was_flushed() {
    let scratch = temporary();
    let (source, target) = (scratch.path().join("source"), scratch.path().join("db"));
    let settings = [
        ("avoid_flush_during_shutdown", "true"),
        ("merge_operator", "uint64add"),
        ("compression", "kNoCompression"),
        ("table.block_size", "512"),
    ];
    let options = made(&source, &settings);
    let db = Db::open(&source, &options).expect("it opens");
    let default = db.default_column_family();
    db.put("k", 1u64.to_le_bytes()).expect("a put");
    for key in 0..2000u32 {
        db.put(format!("z{key:05}"), b"filler..").expect("a put");
    }
    db.flush(default, &FlushOptions::default()).expect("a flush");
    let idle = db.create_column_family("idle", &options.cf).expect("a family");
    db.put_cf(&idle, "it", "keeps the log").expect("a put");
    db.merge("k", 1u64.to_le_bytes()).expect("an operand");
    db.delete_range("a", "c").expect("a deletion");
    let mut batch = WriteBatch::new();
    batch.put(b"b", 5u64.to_le_bytes()).expect("a put");
    db.write_with(&WriteOptions { disable_wal: true, ..WriteOptions::default() }, batch)
        .expect("a write");
    db.put("z01000", b"rewritten").expect("a put");
    db.flush(default, &FlushOptions::default()).expect("a flush");
    db.compact_range(default, None, None, &CompactRangeOptions::default()).expect("a compaction");
    db.close().expect("closed");
    let size = |path: &PathBuf| std::fs::metadata(path).expect("a file").len();
    let table = files(&source, "sst").into_iter().max_by_key(size).expect("a table");
    let bytes = std::fs::read(&table).expect("a file");
    let at = bytes.windows(9).position(|bytes| bytes == b"rewritten").expect("the value");
    flip(&table, at as u64);
    let report = rebuild(&source, &target);
    assert_eq!(report.losses.len(), 1, "{report:#?}");
    let found = entries_of(&target);
    let value = |key: &[u8]| {
        found.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_slice())
    };
    assert_eq!(value(b"k"), Some(&2u64.to_le_bytes()[..]), "the operand was counted twice");
    assert_eq!(
        value(b"b"),
        Some(&5u64.to_le_bytes()[..]),
        "an old range deletion deleted an intact key"
    );
    assert_eq!(value(b"z01000"), Some(&b"rewritten"[..]), "the log still has what the block lost");
}

/// A crash between a flush's table and its edit: the table was taken beside the WAL that it was
/// flushed from, and what it had merged counted twice.
#[test]
fn what_a_flush_left_behind_is_not_counted_again() {
    let scratch = temporary();
    let (source, crashed) = (scratch.path().join("source"), scratch.path().join("crashed"));
    let options = made(&source, &[("merge_operator", "uint64add")]);
    let db = Db::open(&source, &options).expect("it opens");
    db.merge("k", 3u64.to_le_bytes()).expect("an operand");
    db.merge("k", 4u64.to_le_bytes()).expect("an operand");
    db.sync_wal().expect("a sync");
    copy_directory(&source, &crashed);
    db.flush_all().expect("a flush");
    let tables = files(&source, "sst");
    for table in &tables {
        std::fs::copy(table, crashed.join(table.file_name().expect("a name"))).expect("a copy");
    }
    db.close().expect("closed");
    let report = rebuild(&crashed, &scratch.path().join("db"));
    assert!(report.is_complete(), "{report:#?}");
    assert!(
        report.files.iter().filter(|file| file.records > 0).count() > tables.len(),
        "the table counted, too"
    );
    assert_eq!(
        entries_of(&scratch.path().join("db")),
        [(b"k".to_vec(), 7u64.to_le_bytes().to_vec())]
    );
}

/// A crash between a compaction's tables and its edit: values at the bottom have no sequence
/// number, so that operands which are in them counted again, also where the operands were all there
/// was.
#[test]
fn what_a_compaction_left_behind_is_not_counted_again() {
    let scratch = temporary();
    let (source, crashed) = (scratch.path().join("source"), scratch.path().join("crashed"));
    let settings = [("merge_operator", "uint64add"), ("disable_auto_compactions", "true")];
    let options = made(&source, &settings);
    let db = Db::open(&source, &options).expect("it opens");
    for count in [7u64, 1] {
        db.put("based", count.to_le_bytes()).expect("a put");
        db.flush_all().expect("a flush");
    }
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
    for key in ["based", "bare"] {
        db.merge(key, 1u64.to_le_bytes()).expect("an operand");
    }
    db.flush_all().expect("a flush");
    copy_directory(&source, &crashed);
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .expect("a compaction");
    for table in files(&source, "sst") {
        std::fs::copy(&table, crashed.join(table.file_name().expect("a name"))).expect("a copy");
    }
    db.close().expect("closed");
    let count = |key: &str, count: u64| (key.as_bytes().to_vec(), count.to_le_bytes().to_vec());
    let expected = [count("bare", 1), count("based", 2)];
    let report = rebuild(&crashed, &scratch.path().join("db"));
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(entries_of(&scratch.path().join("db")), expected);
    // Without the MANIFEST nothing tells whether there was an operand before the compaction or
    // since.
    remove(&crashed, |name| name.starts_with("MANIFEST"));
    let report = rebuild(&crashed, &scratch.path().join("guessed"));
    assert!(!report.is_complete(), "{report:#?}");
}
