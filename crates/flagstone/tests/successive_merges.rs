//! Chains of merge operands in memtables: `max_successive_merges`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flagstone::base::MergeOperator;
use flagstone::base::entity;
use flagstone::base::merge::StringAppendOperator;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::{Env, read_file};
use flagstone::options::{Options, ReadOptions, load_latest};
use testkit::settings;

/// Appends, and notes the most operands that it was given at once.
#[derive(Default)]
struct Append {
    most: AtomicUsize,
}

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "Append"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        self.most.fetch_max(operands.len(), Ordering::Relaxed);
        let parts = existing.into_iter().chain(operands.iter().copied());
        (!operands.contains(&&b"refused"[..])).then(|| parts.collect::<Vec<_>>().concat())
    }
}

fn world(changes: &[(&str, &str)]) -> (Arc<Append>, Options) {
    let operator = Arc::new(Append::default());
    let mut options = settings::tiny(&Env::memory());
    settings::set(&mut options, &[("write_buffer_size", "1000000")]);
    settings::set(&mut options, changes);
    options.cf.merge_operator = Some(operator.clone());
    (operator, options)
}

fn get(db: &Db, key: &str) -> String {
    db.get(key)
        .unwrap()
        .map_or("nothing".to_string(), |value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn a_reader_finds_no_more_operands_than_wanted() {
    for (wanted, most) in [("0", 26), ("1", 1), ("2", 2), ("5", 5)] {
        let (operator, options) = world(&[("max_successive_merges", wanted)]);
        let db = Db::open("/db", &options).unwrap();
        for letter in "abcdefghijklmnopqrstuvwxyz".chars() {
            db.merge("key", letter.to_string()).unwrap();
        }
        assert_eq!(get(&db, "key"), "abcdefghijklmnopqrstuvwxyz", "{wanted}");
        assert_eq!(operator.most.load(Ordering::Relaxed), most, "{wanted}");
        drop(db);
        // The log has the operands.
        let db = Db::open("/db", &options).unwrap();
        assert_eq!(get(&db, "key"), "abcdefghijklmnopqrstuvwxyz", "{wanted}");
    }
}

/// What stands between, what is deleted, and who looked before count as ever.
#[test]
fn the_values_are_those_of_operands_one_by_one() {
    let (_, options) = world(&[("max_successive_merges", "2")]);
    let db = Db::open("/db", &options).unwrap();
    db.put("a", "0").unwrap();
    let mut batch = WriteBatch::new();
    ["1", "2", "3", "4"].iter().for_each(|operand| batch.merge(b"a", operand.as_bytes()).unwrap());
    db.write(batch).unwrap();
    let snapshot = db.snapshot();
    let before = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    for operand in ["5", "6", "7"] {
        db.merge("a", operand).unwrap();
    }
    assert_eq!(get(&db, "a"), "01234567");
    for flushed in [false, true] {
        assert_eq!(
            db.get_with(&before, db.default_column_family(), "a").unwrap().as_deref(),
            Some(&b"01234"[..])
        );
        if !flushed {
            db.flush_all().unwrap();
        }
    }
    db.delete_range("a", "b").unwrap();
    for operand in ["8", "9", "10"] {
        db.merge("a", operand).unwrap();
    }
    assert_eq!(get(&db, "a"), "8910");
    drop(before);
    // The operator may refuse: then the operand waits, as it would have without the option.
    db.merge("a", "refused").unwrap();
    assert!(db.get("a").is_err());
    db.put("a", "again").unwrap();
    assert_eq!(get(&db, "a"), "again");
}

/// A writer does not wait for the disk; what the value would need from there, readers fetch.
#[test]
fn what_is_not_in_memory_is_merged_later() {
    let (operator, options) = world(&[("block_cache", "0")]);
    let db = Db::open("/db", &options).unwrap();
    db.put("key", "base ").unwrap();
    db.flush_all().unwrap();
    db.set_options(db.default_column_family(), &[("max_successive_merges", "2")]).unwrap();
    for letter in "abcdef".chars() {
        db.merge("key", letter.to_string()).unwrap();
    }
    assert_eq!(operator.most.load(Ordering::Relaxed), 0, "nothing was merged");
    assert_eq!(get(&db, "key"), "base abcdef");
    assert_eq!(operator.most.load(Ordering::Relaxed), 6);
}

/// An operand changes the default column; a value in its place would take the others' place, too.
#[test]
fn the_other_columns_of_an_entity_stay() {
    for wanted in ["0", "1"] {
        let (_, options) = world(&[("max_successive_merges", wanted)]);
        let db = Db::open("/db", &options).unwrap();
        let mut batch = WriteBatch::new();
        let columns = entity::encode(&[(b"", b"a"), (b"other", b"a column to keep")]);
        batch.put_encoded_entity(db.default_column_family(), b"key", &columns).unwrap();
        db.write(batch).unwrap();
        ["b", "c", "d"].iter().for_each(|operand| db.merge("key", operand).unwrap());
        assert_eq!(get(&db, "key"), "abcd", "{wanted}");
        db.flush_all().unwrap();
        let table = read_file(&*options.env.fs, &db.live_files()[0].path, u64::MAX).unwrap();
        assert!(table.windows(16).any(|bytes| bytes == b"a column to keep"), "{wanted}");
    }
}

/// Appends, and panics at its first "panic".
#[derive(Default)]
struct Moody(AtomicBool);

impl MergeOperator for Moody {
    fn name(&self) -> &str {
        "Moody"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Option<Vec<u8>> {
        let panics = operands.contains(&&b"panic"[..]) && !self.0.swap(true, Ordering::Relaxed);
        assert!(!panics, "a fault of the application's operator");
        Some(existing.into_iter().chain(operands.iter().copied()).collect::<Vec<_>>().concat())
    }
}

/// The log had the batch, the memtable half of it, and the next one took its sequence numbers: half
/// a batch was seen, and the database could not be opened any more.
#[test]
fn an_operator_that_panics_in_a_write_leaves_the_operand_to_readers() {
    let (_, mut options) = world(&[("max_successive_merges", "1")]);
    options.cf.merge_operator = Some(Arc::new(Moody::default()));
    let db = Db::open("/db", &options).unwrap();
    db.merge("key", "a ").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(b"before", b"1").unwrap();
    batch.merge(b"key", b"panic").unwrap();
    batch.put(b"behind", b"2").unwrap();
    let written = catch_unwind(AssertUnwindSafe(|| db.write(batch)));
    db.put("other", "3").unwrap();
    assert_eq!(get(&db, "before") == "1", get(&db, "behind") == "2", "all of a batch or nothing");
    assert!(written.is_ok_and(|written| written.is_ok()));
    drop(db);
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(
        ["key", "before", "behind", "other"].map(|key| get(&db, key)),
        ["a panic", "1", "2", "3"]
    );
}

/// A delimiter `{` was read back as `{};`, and one that is no text as another: who opened the
/// database by its OPTIONS file put the wrong bytes between what it merged.
#[test]
fn an_options_file_gives_back_every_delimiter() {
    for delimiter in [&b"\n"[..], b"#", b" ", b"\\", b"{", b"}{", b";", b"", b"\xff", b"\x00"] {
        let mut options = settings::tiny(&Env::memory());
        options.cf.merge_operator = Some(Arc::new(StringAppendOperator::new(delimiter)));
        Db::open("/db", &options).unwrap().close().unwrap();
        let loaded = load_latest(&options.env, Path::new("/db")).unwrap().expect("an OPTIONS file");
        let db = Db::open("/db", &Options { cf: loaded.families[0].1.clone(), ..loaded.options })
            .unwrap();
        db.put("key", "1").unwrap();
        db.merge("key", "2").unwrap();
        assert_eq!(
            db.get("key").unwrap().unwrap()[..],
            [b"1", delimiter, b"2"].concat(),
            "{delimiter:?}"
        );
    }
}
