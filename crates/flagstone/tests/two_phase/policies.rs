//! What RocksDB's other policies leave behind.

use std::path::Path;

use flagstone::base::{Code, FileNumber};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, TwoPhase};
use flagstone::env::{Env, IoMode};
use flagstone::manifest::VersionEdit;
use flagstone::options::{Options, WriteOptions};
use flagstone::wal::{Writer, WriterOptions};

use crate::common::{add_to_manifest, create, entries};
use crate::{batch, commit, names, two_phase};

const BEGIN_WRITTEN: &[u8] = b"\x12";
const BEGIN_UNPREPARED: &[u8] = b"\x13";
const NOOP: &[u8] = b"\x0d";

fn put(key: &str, value: &str) -> Vec<u8> {
    let pair = [&[1, key.len() as u8], key.as_bytes(), &[value.len() as u8], value.as_bytes()];
    pair.concat()
}

fn marker(tag: u8, name: &str) -> Vec<u8> {
    [&[tag, name.len() as u8], name.as_bytes()].concat()
}

/// A WAL of these records: the number, how many operations, and what they are.
fn add_wal(options: &Options, number: u64, records: &[(u64, u32, Vec<Vec<u8>>)]) {
    let path = format!("/db/{number:06}.log");
    let file = options.env.fs.create_writable(Path::new(&path), IoMode::Buffered).unwrap();
    let mut writer = Writer::new(file, FileNumber(number), WriterOptions::default()).unwrap();
    for (sequence, count, operations) in records {
        let header = [&sequence.to_le_bytes()[..], &count.to_le_bytes()].concat();
        writer.add_record(&[header, operations.concat()].concat()).unwrap();
    }
}

/// A database in which `a` was `old`, and tables have what a write-prepared transaction wrote.
fn with_prepared_in_tables() -> Options {
    let options = Options { env: Env::memory(), ..two_phase() };
    let db = Db::open("/db", &options).unwrap();
    db.put("a", "old").unwrap();
    db.flush_all().unwrap();
    db.write(batch(&[("a", "new"), ("b", "new")])).unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    options
}

/// Says from which WAL on transactions are prepared, and from which families are to be replayed.
fn keep_wals(options: &Options, kept: u64, replayed: u64) {
    // A new MANIFEST has no number to keep; families go on from `replayed`.
    let edit = VersionEdit {
        log_number: Some(FileNumber(replayed)),
        next_file_number: Some(FileNumber(replayed + 1)),
        min_log_number_to_keep: Some(FileNumber(kept)),
        last_sequence: Some(10),
        ..VersionEdit::default()
    };
    add_to_manifest(&options.env, &edit);
}

#[test]
fn what_a_write_prepared_transaction_has_in_tables_is_hidden_until_its_commit() {
    for committed in [true, false] {
        let options = with_prepared_in_tables();
        let section = [BEGIN_WRITTEN.to_vec(), put("a", "new"), put("b", "new"), marker(0x0a, "x")];
        add_wal(&options, 50, &[(2, 2, section.to_vec())]);
        add_wal(&options, 60, &[]);
        keep_wals(&options, 50, 60);
        let refused = Db::open_read_only("/db", &options).unwrap_err();
        assert_eq!(refused.code(), Code::NotSupported, "{refused}");

        let db = Db::open("/db", &options).unwrap();
        assert_eq!(names(&db), ["x"]);
        assert_eq!(db.get("a").unwrap().unwrap(), "old");
        assert!(db.get("b").unwrap().is_none());
        db.close().unwrap();
        // It is as any other by now.
        let db = Db::open("/db", &options).unwrap();
        assert_eq!(names(&db), ["x"]);
        assert_eq!(db.get("a").unwrap().unwrap(), "old");
        if committed {
            commit(&db, "x");
        } else {
            TwoPhase::of(&db).rollback(&WriteOptions::default(), "x").unwrap();
        }
        db.compact_range(
            db.default_column_family(),
            None::<&[u8]>,
            None::<&[u8]>,
            &Default::default(),
        )
        .unwrap();
        let a = db.get("a").unwrap().unwrap();
        assert_eq!(a, if committed { "new" } else { "old" });
        assert_eq!(db.get("b").unwrap().is_some(), committed);
        db.close().unwrap();
    }
}

/// What a merge had made of an entity came back as a value, without the other columns.
#[test]
fn an_entity_that_was_merged_onto_comes_back_with_its_columns() {
    let mut options = Options { env: Env::memory(), ..two_phase() };
    options.set("merge_operator", "stringappend").unwrap();
    let db = Db::open("/db", &options).unwrap();
    let mut before = WriteBatch::new();
    before.put_entity("a", [("", "1"), ("c", "kept")]).unwrap();
    db.write(before).unwrap();
    db.flush_all().unwrap();
    db.merge("a", "2").unwrap();
    db.flush_all().unwrap();
    db.write(batch(&[("a", "new")])).unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    let section = [BEGIN_WRITTEN.to_vec(), put("a", "new"), marker(0x0a, "x")];
    add_wal(&options, 50, &[(3, 1, section.to_vec())]);
    add_wal(&options, 60, &[]);
    keep_wals(&options, 50, 60);

    let db = Db::open("/db", &options).unwrap();
    assert_eq!(names(&db), ["x"]);
    let family = db.default_column_family();
    let a = db.get_entity(&Default::default(), family, "a").unwrap().unwrap();
    assert_eq!(a, [("", "1,2"), ("c", "kept")]);
    db.close().unwrap();
}

/// The numbers are shared: a later batch begins where an earlier one would have ended otherwise.
#[test]
fn logs_of_write_prepared_transactions_are_replayed() {
    let options = Options { env: Env::memory(), ..two_phase() };
    Db::open("/db", &options).unwrap().close().unwrap();
    let records = [
        (1, 2, vec![put("a", "1"), put("b", "1"), NOOP.to_vec()]),
        (2, 1, vec![BEGIN_WRITTEN.to_vec(), put("c", "1"), marker(0x0a, "x")]),
        (3, 2, vec![put("a", "2"), put("d", "1"), NOOP.to_vec()]),
        (4, 3, vec![put("a", "3"), put("a", "4"), put("b", "2"), NOOP.to_vec()]),
        (6, 1, vec![BEGIN_WRITTEN.to_vec(), put("e", "1"), marker(0x0a, "y")]),
        (7, 0, vec![marker(0x0b, "x")]),
        (8, 2, vec![BEGIN_WRITTEN.to_vec(), put("f", "1"), put("a", "5"), marker(0x0a, "z")]),
        // RocksDB writes back what was there before.
        (9, 1, vec![put("a", "4"), vec![0x00, 1, b'f'], marker(0x0c, "z")]),
        (10, 1, vec![put("g", "1"), NOOP.to_vec()]),
    ];
    let records = records.map(|(sequence, _, operations)| {
        let counted = operations.iter().filter(|operation| matches!(operation[0], 0 | 1)).count();
        (sequence, counted as u32, operations)
    });
    add_wal(&options, 50, &records);
    let db = Db::open("/db", &options).unwrap();
    let found: Vec<_> = entries(&db, db.default_column_family())
        .into_iter()
        .map(|(key, value)| format!("{}={}", key.escape_ascii(), value.escape_ascii()))
        .collect();
    assert_eq!(found, ["a=4", "b=2", "c=1", "d=1", "g=1"]);
    assert_eq!(names(&db), ["y"]);
    commit(&db, "y");
    assert_eq!(db.get("e").unwrap().unwrap(), "1");
    db.close().unwrap();
}

/// A transaction that was never prepared leaves nothing; one that was has all of its sections.
#[test]
fn write_unprepared_transactions_are_finished() {
    let options = with_prepared_in_tables();
    let section = |begin: &[u8], pairs: &[Vec<u8>], name| {
        [vec![begin.to_vec()], pairs.to_vec(), vec![marker(0x0a, name)]].concat()
    };
    add_wal(
        &options,
        50,
        &[
            (2, 2, section(BEGIN_UNPREPARED, &[put("a", "new"), put("b", "new")], "never")),
            (3, 1, section(BEGIN_UNPREPARED, &[put("c", "1")], "later")),
            (4, 1, section(BEGIN_WRITTEN, &[put("c", "2")], "later")),
        ],
    );
    add_wal(&options, 60, &[]);
    keep_wals(&options, 50, 60);
    let db = Db::open("/db", &options).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "old");
    assert!(db.get("b").unwrap().is_none());
    assert_eq!(names(&db), ["later"]);
    commit(&db, "later");
    assert_eq!(db.get("c").unwrap().unwrap(), "2");
    db.close().unwrap();
    assert!(Db::open("/db", &create_in(&options)).is_ok(), "nothing is undecided");
}

/// The same files, opened by somebody who knows nothing of transactions.
fn create_in(options: &Options) -> Options {
    Options { env: options.env.clone(), ..create() }
}
