//! Tables whose entries are out of order, or beyond the bounds that the MANIFEST names.

use super::*;

/// Orders keys as their bytes do, but for `b` and `c`.
struct Confused;

impl UserComparator for Confused {
    fn name(&self) -> &str {
        "leveldb.BytewiseComparator"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        fn place(key: &[u8]) -> &[u8] {
            match key {
                b"b" => b"c",
                b"c" => b"b",
                other => other,
            }
        }
        place(a).cmp(place(b))
    }
}

/// Whoever wrote a table had sorted it wrongly, or given a sequence number twice: the compaction
/// panicked, and with it the database was out of service, at each opening anew.
#[test]
fn a_table_whose_entries_are_out_of_order_is_set_aside() {
    let mut world = World::new("disable_auto_compactions=true");
    world.options.cf.comparator = Comparator::Custom(Arc::new(Confused));
    let db = world.open();
    put(&db, "abcd", "old");
    db.close().expect("a clean close");
    let tables = world.files("sst");

    world.options.cf.comparator = Comparator::Bytewise;
    world.options.set_all("disable_auto_compactions=false").expect("an option");
    assert_goes_on_without(&world, &tables[0], &["out of order", "keys 'a' to 'd'"]);
    let report = world.open().verify(|_| {});
    assert!(
        report.faults.iter().any(|fault| fault.error.message().contains("out of order")),
        "{report:?}"
    );
}

/// Orders keys as their bytes do, but for those with `d`, which come right behind those with `a`.
struct Misplaced;

impl UserComparator for Misplaced {
    fn name(&self) -> &str {
        "leveldb.BytewiseComparator"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let place = |key: &[u8]| if key.starts_with(b"d") { b"a~".to_vec() } else { key.to_vec() };
        place(a).cmp(&place(b))
    }
}

/// A compaction cut before `c` read `a` in one part, for which `d` was the end, and began the other
/// with `c`: `d` and `b` were gone, and nobody was told.
#[test]
fn a_table_out_of_order_is_set_aside_by_a_compaction_in_parts_too() {
    let mut world = World::new(
        "disable_auto_compactions=true;target_file_size_base=400;\
         block_based_table_factory={block_size=450;block_restart_interval=1;}",
    );
    world.options.cf.comparator = Comparator::Custom(Arc::new(Misplaced));
    let db = world.open();
    for key in ["aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "gggg", "hhhh"] {
        db.put(key, "x".repeat(100)).expect("a write");
    }
    db.flush_all().expect("a flush");
    db.close().expect("a clean close");

    world.options.cf.comparator = Comparator::Bytewise;
    let db = world.open();
    let family = db.default_column_family();
    let in_parts = CompactRangeOptions { max_subcompactions: 2, ..everything() };
    let error = db.compact_range(family, None, None, &in_parts).expect_err("they lie in no part");
    assert!(error.is_corruption() && error.to_string().contains("out of order"), "{error}");
    let listed = damaged(&db);
    assert!(
        listed.contains("keys 'aaaa' to 'hhhh': corruption") && listed.contains("offset 0"),
        "{listed}"
    );
    let mut all = db.iter(&ReadOptions::default()).expect("a cursor");
    all.seek_to_first();
    let mut keys = Vec::new();
    while all.valid() {
        keys.extend(all.key().first());
        all.next();
    }
    assert_eq!(String::from_utf8(keys).expect("letters"), "adbcefgh", "all is still there");
    assert_eq!(db.property(family, "flagstone.background-error").as_deref(), Some("healthy"));
}

/// The deletion of `dddd` was dropped at the bottom before `bbbb` came, and then what it had
/// deleted: all that was written was in order, and `dddd` was back.
#[test]
fn a_table_out_of_order_is_set_aside_also_where_the_output_would_be_in_order() {
    let mut world = World::new("disable_auto_compactions=true");
    world.options.cf.comparator = Comparator::Custom(Arc::new(Misplaced));
    let db = world.open();
    db.put("dddd", "old").expect("a write");
    db.flush_all().expect("a flush");
    db.compact_range(db.default_column_family(), None, None, &everything()).expect("a compaction");
    db.put("aaaa", "new").expect("a write");
    db.delete("dddd").expect("a write");
    db.put("bbbb", "new").expect("a write");
    db.flush_all().expect("a flush");
    db.close().expect("a clean close");

    world.options.cf.comparator = Comparator::Bytewise;
    let db = world.open();
    let error = db.compact_range(db.default_column_family(), None, None, &everything());
    let error = error.expect_err("nobody knows what else is wrong with such a table");
    assert!(error.is_corruption() && error.to_string().contains("out of order"), "{error}");
    assert!(damaged(&db).contains("corruption: entries are out of order"), "{}", damaged(&db));
}

/// Parts behind the bounds that the MANIFEST gives a table did not open it: what it has there was
/// gone.
#[test]
fn a_table_with_keys_beyond_its_bounds_is_read_whole() {
    let world = World::new(
        "disable_auto_compactions=true;target_file_size_base=4000;block_based_table_factory={block_size=400;}",
    );
    let db = world.open();
    put(&db, "abcdefghijklmnop", "old");
    db.compact_range(db.default_column_family(), None, None, &everything()).expect("a compaction");
    db.close().expect("a clean close");
    let records = manifest_records(&world.options.env);
    let edits = records.iter().map(|record| VersionEdit::decode(record).expect("an edit"));
    let (level, table) = edits.flat_map(|edit| edit.new_files).next_back().expect("a table");
    let mut edit = VersionEdit::new(ColumnFamilyId::DEFAULT);
    edit.delete_file(level, table.number);
    edit.add_file(
        level,
        FileMetadata { largest: InternalKeyBuf::new(b"b", 1, ValueType::Value), ..table },
    );
    add_to_manifest(&world.options.env, &edit);

    let mut options = world.options.clone();
    options.set("target_file_size_base", "400").expect("an option");
    let db = Db::open("/db", &options).expect("a database");
    let in_parts = CompactRangeOptions { max_subcompactions: 4, ..everything() };
    db.compact_range(db.default_column_family(), None, None, &in_parts).expect("a compaction");
    "abcdefghijklmnop".chars().for_each(|letter| begins(&db, &letter.to_string(), "old"));
    assert_eq!(damaged(&db), "");
}

/// Cancels a compaction when it comes to an entry.
struct Canceling(Arc<CompactionControl>);

impl CompactionFilter for Canceling {
    fn name(&self) -> &str {
        "Canceling"
    }

    fn filter(&self, _: u32, _: &[u8], _: FilteredKind, _: &[u8]) -> FilterDecision {
        self.0.cancel();
        FilterDecision::Keep
    }
}

/// Which table it was, was looked for in all of its inputs, however large they are, before it
/// ended.
#[test]
fn a_compaction_that_is_canceled_does_not_look_for_the_damage_that_it_met() {
    let mut world = World::new("disable_auto_compactions=true");
    world.options.cf.comparator = Comparator::Custom(Arc::new(Confused));
    let db = world.open();
    put(&db, "abcd", "old");
    db.close().expect("a clean close");
    let control = CompactionControl::new();
    world.options.cf.comparator = Comparator::Bytewise;
    world.options.cf.compaction_filter = Some(Arc::new(Canceling(control.clone())));
    let db = world.open();
    let options = CompactRangeOptions { control: Some(control), ..everything() };
    let error =
        db.compact_range(db.default_column_family(), None, None, &options).expect_err("canceled");
    assert_eq!(error.code(), Code::Incomplete, "{error}");
    assert_eq!(damaged(&db), "");
    let error = db.compact_range(db.default_column_family(), None, None, &everything());
    assert!(error.expect_err("it is out of order").to_string().contains("out of order"));
}
