//! The names at the root, as a program uses them.

use std::path::Path;

use flagstone::{Code, Db, FilterDecision, ReadOptions, Result, WriteBatch, WriteOptions};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn code<T: std::fmt::Debug>(outcome: Result<T>) -> Code {
    outcome.expect_err("a refusal").code()
}

/// The entries that an iteration returns until it ends, each as text.
fn texts(entries: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>) -> Vec<String> {
    entries
        .map(|entry| {
            let (key, value) = entry.expect("an entry");
            format!("{}={}", key.escape_ascii(), value.escape_ascii())
        })
        .collect()
}

/// A type `Range` at the root hid that of the standard library.
#[test]
fn the_names_stand_beside_the_standard_librarys() {
    use std::ops::*;

    use flagstone::*;

    fn part(view: &View, range: Range<u64>) -> Result<Option<ValuePart>> {
        view.get_part("stone", range)
    }
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    db.put("stone", "flag").unwrap();
    assert_eq!(part(&db, 1..3).unwrap().unwrap().bytes, "la");
}

#[test]
fn a_first_program() {
    let directory = temporary();
    let db = Db::open(directory.path().join("new")).unwrap();
    let users =
        db.create_column_family("users", |family| family.write_buffer_size = 1 << 20).unwrap();
    users.put("ada", "1815").unwrap();
    users.put_with("alan", "1912", &WriteOptions::synced()).unwrap();
    db.put("last", "alan").unwrap();
    assert_eq!(users.get("ada").unwrap().unwrap(), "1815");
    assert!(db.get("ada").unwrap().is_none(), "that is another family");
    let many = users.get_many(&["alan", "none", "ada"]).unwrap();
    assert_eq!(many[0].as_deref(), Some(&b"1912"[..]));
    assert!(many[1].is_none());
    assert_eq!(&*users.get_part("alan", 1..3).unwrap().unwrap().bytes, b"91");

    let before = db.snapshot();
    let mut batch = WriteBatch::new();
    batch.put("last", "grace").unwrap();
    batch.put_cf(&users, "grace", "1906").unwrap();
    batch.delete_cf(&users, "ada").unwrap();
    db.write(batch).unwrap();
    assert_eq!(texts(users.iter()), ["alan=1912", "grace=1906"]);
    assert_eq!(before.get("last").unwrap().unwrap(), "alan");
    let users_before = before.family(&users).unwrap();
    assert_eq!(texts(users_before.iter().rev()), ["alan=1912", "ada=1815"]);
    assert_eq!(texts(users_before.range("ada"..="ada")), ["ada=1815"]);

    db.close().unwrap();
    let db = Db::open(directory.path().join("new")).unwrap();
    assert_eq!(texts(db.column_family("users").unwrap().prefix("g")), ["grace=1906"]);
    assert_eq!(code(db.column_family("none")), Code::NotFound);
}

#[test]
fn a_closed_database_takes_no_writes() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    assert_eq!(code(db.put("key", "other")), Code::ShutdownInProgress);
    assert_eq!(db.get("key").unwrap().unwrap(), "value", "that is still in memory");
    db.close().unwrap();
    let again = Db::open(directory.path()).unwrap();
    assert_eq!(texts(again.iter()), ["key=value"]);
}

#[test]
fn a_builder_opens_what_is_there_and_makes_what_is_named() {
    let directory = temporary();
    let path = directory.path().join("db");
    let refused = Db::builder(&path).options(|options| options.create_if_missing = false).open();
    assert_eq!(code(refused), Code::InvalidArgument);
    assert!(!path.exists(), "nothing was made");
    let twice = Db::builder(&path).column_family("a", |_| {}).column_family("a", |_| {}).open();
    assert!(twice.unwrap_err().message().contains("'a' is named twice"));

    let db = Db::builder(&path).column_family("a", |_| {}).open().unwrap();
    db.column_family("a").unwrap().put("key", "value").unwrap();
    db.close().unwrap();
    let db = Db::builder(&path)
        .column_family("b", |family| {
            family.filter_with("no cats", |key, _value| {
                if key.starts_with(b"cat") { FilterDecision::Remove } else { FilterDecision::Keep }
            });
        })
        .open()
        .unwrap();
    let names: Vec<_> =
        db.column_families().iter().map(|family| family.name().to_string()).collect();
    assert_eq!(names, ["default", "a", "b"]);
    assert_eq!(Db::list_column_families(&path).unwrap(), names);
    let b = db.column_family("b").unwrap();
    b.put("cat", "tom").unwrap();
    b.put("dog", "rex").unwrap();
    b.compact().unwrap();
    assert_eq!(texts(b.iter()), ["dog=rex"]);
    db.close().unwrap();

    let exists = Db::builder(&path).options(|options| options.error_if_exists = true).open();
    assert_eq!(code(exists), Code::InvalidArgument);
    let unmade = Db::builder(&path)
        .options(|options| options.create_if_missing = false)
        .column_family("c", |_| {})
        .open();
    assert_eq!(code(unmade), Code::InvalidArgument);
    let reads = Db::builder(&path).open_read_only().unwrap();
    assert_eq!(reads.column_family("a").unwrap().get("key").unwrap().unwrap(), "value");
    assert!(reads.put("key", "value").is_err());
}

#[test]
fn a_database_is_opened_with_the_options_that_it_had() {
    let directory = temporary();
    let none = Db::open_with_stored_options(Path::new("/nowhere/at/all"));
    assert!(none.is_err());
    let db = Db::builder(directory.path())
        .options(|options| options.cf.set("merge_operator", "uint64add").unwrap())
        .column_family("small", |family| family.write_buffer_size = 123 << 10)
        .open()
        .unwrap();
    db.merge("visits", 1u64.to_le_bytes()).unwrap();
    db.close().unwrap();
    let db = Db::open_with_stored_options(directory.path()).unwrap();
    db.merge("visits", 1u64.to_le_bytes()).unwrap();
    assert_eq!(db.get("visits").unwrap().unwrap(), &2u64.to_le_bytes()[..]);
    assert_eq!(db.column_family("small").unwrap().options().write_buffer_size, 123 << 10);
}

#[test]
fn a_program_adds_to_stored_options_what_no_file_holds() {
    let directory = temporary();
    let last = |family: &mut flagstone::ColumnFamilyOptions| {
        family.merge_with("last", |_, _, operands| Some(operands.last()?.to_vec()));
    };
    let with_buffer = |family: &mut flagstone::ColumnFamilyOptions| {
        family.write_buffer_size = 123 << 10;
        last(family);
    };
    let db = Db::builder(directory.path()).column_family("log", with_buffer).open().unwrap();
    db.column_family("log").unwrap().merge("key", "first").unwrap();
    db.close().unwrap();

    let stored = || Db::builder(directory.path()).stored_options();
    assert_eq!(code(stored().unwrap().open()), Code::InvalidArgument, "who merges?");
    let twice = stored().unwrap().column_family("log", last).column_family("log", last);
    assert_eq!(code(twice.open()), Code::InvalidArgument);
    let db = stored().unwrap().column_family("log", last).open().unwrap();
    let log = db.column_family("log").unwrap();
    log.merge("key", "second").unwrap();
    assert_eq!(log.get("key").unwrap().unwrap(), "second");
    assert_eq!(log.options().write_buffer_size, 123 << 10);
    let empty = temporary();
    assert_eq!(code(Db::builder(empty.path()).stored_options()), Code::InvalidArgument);
}

#[test]
fn handles_of_another_database_are_refused() {
    let (first, second) = (temporary(), temporary());
    let [first, second] = [&first, &second].map(|directory| Db::open(directory.path()).unwrap());
    let family = second.create_column_family("family", |_| {}).unwrap();
    assert_eq!(code(first.snapshot().family(&family)), Code::InvalidArgument);
    let write = |snapshot, family| {
        code(first.write_if_unchanged(WriteBatch::new(), &snapshot, &[(family, "key")]))
    };
    assert_eq!(write(second.snapshot(), &first), Code::InvalidArgument);
    assert_eq!(write(first.snapshot(), &family), Code::InvalidArgument);
    assert_eq!(code(first.drop_column_family(&family)), Code::InvalidArgument);
    let options = ReadOptions {
        snapshot: second.snapshot().engine_snapshot().cloned(),
        ..ReadOptions::default()
    };
    assert_eq!(code(first.get_with("key", &options)), Code::InvalidArgument);
    assert_eq!(code(first.snapshot().cursor(&options)), Code::InvalidArgument);
}

#[test]
fn tasks_read_without_waiting() {
    let directory = temporary();
    let db = Db::builder(directory.path())
        .column_family("users", |_| {})
        .options(|options| options.block_cache_size = Some(0))
        .open()
        .unwrap();
    let users = db.column_family("users").unwrap();
    users.put("ada", "1815").unwrap();
    db.flush().unwrap();
    users.put("alan", "1912").unwrap();
    // What is spawned borrows nothing, the key neither.
    fn spawned<T: Send>(task: impl Future<Output = T> + Send + 'static) -> T {
        testkit::history::block_on(task)
    }
    let found = spawned(users.get_async("ada".to_string().as_str())).unwrap().unwrap();
    assert_eq!(found, "1815");
    let found = spawned(users.get_many_async(&["ada".to_string().as_str()])).unwrap();
    assert_eq!(found.len(), 1);
    testkit::history::block_on(async {
        assert_eq!(users.get_async("ada").await.unwrap().unwrap(), "1815");
        let both = users.get_many_async(&["alan", "none", "ada"]).await.unwrap();
        let found: Vec<_> = both.iter().map(|value| value.as_deref()).collect();
        assert_eq!(found, [Some(&b"1912"[..]), None, Some(&b"1815"[..])]);
        assert!(db.get_async("ada").await.unwrap().is_none());
    });
}

#[test]
fn an_open_database_is_looked_after() {
    let directory = temporary();
    let db = Db::builder(directory.path().join("db"))
        .options(|options| options.WAL_ttl_seconds = 3600)
        .column_family("users", |_| {})
        .open()
        .unwrap();
    let users = db.column_family("users").unwrap();
    let before = db.latest_sequence_number();
    (0..100u8).for_each(|key| users.put([key], [key; 1000]).unwrap());

    users.set_options(&[("write_buffer_size", "123456")]).unwrap();
    assert_eq!(users.options().write_buffer_size, 123_456);
    db.set_db_options(&[("max_background_jobs", "3")]).unwrap();
    assert_eq!(db.db_options().max_background_jobs, 3);
    assert_eq!(code(users.set_options(&[("no_such_option", "1")])), Code::InvalidArgument);

    assert_eq!(users.int_property("rocksdb.estimate-num-keys"), Some(100));
    assert_eq!(db.aggregated_int_property("rocksdb.estimate-num-keys"), Some(100));
    assert_eq!(users.property("no such property"), None);
    assert_eq!(db.statistics().get(flagstone::Ticker::KeysWritten), 100);
    assert!(db.memory_usage().active_memtables > 100_000);

    let held = users.hold_compactions().unwrap();
    users.flush().unwrap();
    users.compact_range([10]..[20], &flagstone::CompactRangeOptions::default()).unwrap();
    drop(held);
    db.wait_for_compactions().unwrap();
    assert_eq!(db.live_files().len(), 1);
    let sizes = users
        .approximate_sizes(
            &[[0]..[200], [200]..[201]],
            &flagstone::SizeApproximationOptions::default(),
        )
        .unwrap();
    assert!(sizes[0] > 0 && sizes[1] == 0, "{sizes:?}");
    assert!(users.space().unwrap().table_bytes > 0);
    assert!(db.verify(|_| ()).faults.is_empty() && db.check().unwrap().faults.is_empty());

    let mut updates = db.updates_since(before + 1).unwrap();
    let first = updates.next_update().unwrap().unwrap();
    assert_eq!((first.sequence, first.batch.count()), (before + 1, 1));
    let mut rest = db.updates_after(first.position).unwrap();
    assert_eq!(rest.next_update().unwrap().unwrap().sequence, before + 2);

    users.delete_files_in_range::<[u8; 1]>(..).unwrap();
    assert_eq!(db.live_files().len(), 0);
    db.resume().unwrap();
    db.close().unwrap();
    let salvaged = directory.path().join("salvaged");
    Db::builder(directory.path().join("db")).salvage_to(&salvaged).unwrap();
    assert!(Db::open(&salvaged).unwrap().column_family("users").is_ok());
}

#[test]
fn ranges_whose_start_is_after_their_end_are_refused() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    db.put("key", "value").unwrap();
    let options = flagstone::CompactRangeOptions::default();
    assert_eq!(code(db.delete_range("z".."a")), Code::InvalidArgument);
    assert_eq!(code(db.compact_range("z".."a", &options)), Code::InvalidArgument);
    assert_eq!(code(db.delete_files_in_range("z".."a")), Code::InvalidArgument);
    let sizes = db.approximate_sizes(&["z".."a"], &flagstone::SizeApproximationOptions::default());
    assert_eq!(code(sizes), Code::InvalidArgument);
    assert_eq!(code(db.range("z".."a").next().unwrap()), Code::InvalidArgument);
    assert_eq!(texts(db.iter()), ["key=value"]);
}

/// Every kind of write counts as a change, in memory and in tables; writes of other keys and
/// families do not.
#[test]
fn a_conditional_write_gives_way_to_any_other() {
    let directory = temporary();
    let db = Db::builder(directory.path())
        .column_family("sums", |family| {
            family.merge_with("last", |_, _, operands| Some(operands.last()?.to_vec()));
        })
        .open()
        .unwrap();
    let sums = db.column_family("sums").unwrap();
    let changes: [(&str, &dyn Fn() -> Result<()>); 5] = [
        ("put", &|| sums.put("key", "value")),
        ("the same put", &|| sums.put("key", "value")),
        ("merge", &|| sums.merge("key", "operand")),
        ("delete", &|| sums.delete("key")),
        ("delete_range", &|| sums.delete_range("a".."z")),
    ];
    let places: [(&str, &dyn Fn() -> Result<()>); 3] =
        [("memory", &|| Ok(())), ("level 0", &|| sums.flush()), ("below", &|| sums.compact())];
    for (change, make) in changes {
        for (place, bring) in places {
            sums.put("key", "before").unwrap();
            let since = db.snapshot();
            let condition = [(&sums, "key"), (&*db, "key")];
            let batch = || {
                let mut batch = WriteBatch::new();
                batch.put_cf(&sums, "answer", change).unwrap();
                batch
            };
            sums.put("other key", "value").unwrap();
            db.put("another key", "value").unwrap();
            bring().unwrap();
            db.write_if_unchanged(batch(), &since, &condition).unwrap();
            assert_eq!(sums.get("answer").unwrap().unwrap(), change);
            sums.delete("answer").unwrap();

            make().unwrap();
            bring().unwrap();
            let refused = db.write_if_unchanged(batch(), &since, &condition);
            assert_eq!(code(refused), Code::Busy, "{change} in {place}");
            assert!(sums.get("answer").unwrap().is_none());
            db.write_if_unchanged(batch(), &db.snapshot(), &condition).unwrap();
            sums.delete("answer").unwrap();
        }
    }
}

#[test]
fn conditional_increments_of_many_threads_are_all_there() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    let number = |db: &flagstone::View| -> u64 {
        db.get("sum").unwrap().map_or(0, |sum| u64::from_le_bytes((&*sum).try_into().unwrap()))
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                let options =
                    if thread == 0 { WriteOptions::synced() } else { WriteOptions::new() };
                for round in 0..50 {
                    loop {
                        let before = db.snapshot();
                        let mut batch = WriteBatch::new();
                        batch.put("sum", (number(&before) + 1).to_le_bytes()).unwrap();
                        let keys = [(&**db, "sum")];
                        match db.write_if_unchanged_with(batch, &before, &keys, &options) {
                            Ok(()) => break,
                            Err(error) => assert_eq!(error.code(), Code::Busy, "{error}"),
                        }
                    }
                    if round % 20 == thread {
                        db.flush().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(number(&db), 200);
}

/// A program that needs a family had to look for it first, and lost a race between two threads.
#[test]
fn threads_that_open_one_family_get_the_same() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    for round in 0..20 {
        let name = format!("family {round}");
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let (db, name) = (&db, &name);
                scope.spawn(move || {
                    let family = db.open_column_family(name, |_| {}).expect("it is there or made");
                    family.put([thread], "here").expect("a put");
                });
            }
        });
        assert_eq!(db.column_family(&name).unwrap().iter().count(), 4);
    }
    assert_eq!(db.column_families().len(), 21);
    let wrong = db.open_column_family("wrong", |family| family.write_buffer_size = 0);
    assert_eq!(code(wrong), Code::InvalidArgument);
    assert_eq!(code(db.column_family("wrong")), Code::NotFound);
    assert_eq!(code(db.open_column_family("", |_| {})), Code::InvalidArgument);
    db.close().unwrap();
    let reader = Db::builder(directory.path()).open_read_only().unwrap();
    assert!(reader.open_column_family("family 0", |_| {}).is_ok());
    assert!(reader.open_column_family("new", |_| {}).is_err());
}

/// Each call says so, and none panics or waits.
#[test]
fn a_closed_database_refuses_whatever_changes_it() {
    let directory = temporary();
    let path = directory.path().join("db");
    let db = Db::builder(&path).column_family("users", |_| {}).open().unwrap();
    let users = db.column_family("users").unwrap();
    users.put("key", "value").unwrap();
    let before = db.snapshot();
    let mut cursor = users.cursor(&ReadOptions::default()).unwrap();
    let mut film = users.put_in_pieces("film", &WriteOptions::new()).unwrap();
    db.close().unwrap();

    let closed = Code::ShutdownInProgress;
    assert_eq!(code(users.put_with("key", "other", &WriteOptions::synced())), closed);
    assert_eq!(code(users.delete_range("a".."z")), closed);
    assert_eq!(code(db.write(WriteBatch::new())), closed);
    let keys = [(&users, "key")];
    assert_eq!(code(db.write_if_unchanged(WriteBatch::new(), &before, &keys)), closed);
    assert_eq!(code(db.create_column_family("more", |_| {})), closed);
    assert_eq!(code(db.drop_column_family(&users)), closed);
    assert_eq!(code(users.set_options(&[("write_buffer_size", "123456")])), closed);
    assert_eq!(code(users.flush()), closed);
    assert_eq!(code(users.compact()), closed);
    assert_eq!(code(db.sync_wal()), closed);
    assert_eq!(code(db.resume()), closed);
    assert_eq!(code(db.checkpoint(directory.path().join("copy"))), closed);
    assert_eq!(code(db.updates_since(1)), closed);
    film.append(b"frame").unwrap();
    assert_eq!(code(film.commit()), closed);

    let other = Db::open(&path).unwrap();
    other.column_family("users").unwrap().put("key", "later").unwrap();
    cursor.seek_to_first();
    assert_eq!(cursor.value().unwrap(), b"value");
    assert_eq!(texts(before.family(&users).unwrap().iter()), ["key=value"]);
    drop((users, before, cursor, db));
    assert_eq!(other.column_family("users").unwrap().get("key").unwrap().unwrap(), "later");
}

#[test]
fn a_dropped_family_takes_no_writes() {
    let directory = temporary();
    let db = Db::builder(directory.path()).column_family("users", |_| {}).open().unwrap();
    let users = db.column_family("users").unwrap();
    users.put("key", "value").unwrap();
    db.drop_column_family(&users).unwrap();
    assert_eq!(code(users.put("key", "other")), Code::ColumnFamilyDropped);
    assert_eq!(code(db.drop_column_family(&users)), Code::ColumnFamilyDropped);
    let keys = [(&users, "key")];
    let refused = db.write_if_unchanged(WriteBatch::new(), &db.snapshot(), &keys);
    assert_eq!(code(refused), Code::ColumnFamilyDropped);
    let mut batch = WriteBatch::new();
    batch.put_cf(&users, "key", "other").unwrap();
    batch.put("key", "other").unwrap();
    assert_eq!(code(db.write(batch)), Code::InvalidArgument);
    assert!(db.get("key").unwrap().is_none(), "a batch takes place as a whole");
    assert_eq!(texts(users.iter()), ["key=value"]);
    assert_eq!(code(db.create_column_family("default", |_| {})), Code::InvalidArgument);
}

#[test]
fn options_that_contradict_each_other_are_refused_by_name() {
    let directory = temporary();
    let path = directory.path().join("db");
    let refused = |change: &dyn Fn(&mut flagstone::Options), name: &str| {
        let error = Db::builder(&path).options(change).open().expect_err(name);
        assert!(matches!(error.code(), Code::InvalidArgument | Code::NotSupported), "{error}");
        assert!(error.message().contains(name), "{error}");
        assert!(!path.join("CURRENT").exists(), "nothing was made");
    };
    refused(&|options| options.cf.table.partition_filters = true, "partition_filters");
    refused(&|options| options.cf.write_buffer_size = 0, "write_buffer_size");
    refused(&|options| options.cf.num_levels = 0, "num_levels");
    refused(
        &|options| {
            options.cf.compaction_style = flagstone::CompactionStyle::Fifo;
            options.db_paths = flagstone::DataPathList::of(&[("/one", 1), ("/two", 2)]);
        },
        "db_paths",
    );
    let db = Db::open(&path).unwrap();
    let unlogged = WriteOptions { sync: true, ..WriteOptions::unlogged() };
    assert_eq!(code(db.put_with("key", "value", &unlogged)), Code::InvalidArgument);
    assert_eq!(code(db.set_options(&[("num_levels", "3")])), Code::InvalidArgument);
}
