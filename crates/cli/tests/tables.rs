//! `flagstone sst`: single tables, and those of a directory; `flagstone wal`: single WALs.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::cmp::Ordering;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use common::{failed, printed, run};
use flagstone::base::{Comparator, FileNumber, UserComparator};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::{Env, IoMode};
use flagstone::options::Options;
use flagstone::sst::{TableBuilder, TableBuilderSettings};
use flagstone::wal::{Writer, WriterOptions};

/// Numbers in decimal, the largest first.
struct LargestFirst;

impl UserComparator for LargestFirst {
    fn name(&self) -> &str {
        "my.LargestFirst"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.len().cmp(&a.len()).then_with(|| b.cmp(a))
    }
}

/// A closed database with one table, and that.
fn written(path: &Path, comparator: Comparator, compression: &str) -> PathBuf {
    let mut options = Options::default();
    options.create_if_missing = true;
    options.set("compression", compression).unwrap();
    options.cf.comparator = comparator;
    let db = Db::open(path, &options).unwrap();
    for key in 0..2000 {
        db.put(key.to_string(), format!("value {key}")).unwrap();
    }
    // Of keys that are not there; which of the two comes first is a question of the order.
    db.delete_range("9001", "9000").or_else(|_| db.delete_range("9000", "9001")).unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    let mut files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|found| found == "sst")).unwrap()
}

fn flip(file: &Path, at: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

fn said(line: &str) -> (Option<i32>, String) {
    let output = run(line);
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code(), said)
}

/// Each of its tables was a fault, even where only its properties were asked for; and of one that
/// was verified nothing said so.
#[test]
fn tables_in_an_application_s_order_are_looked_into() {
    let scratch = tempfile::tempdir().unwrap();
    let table =
        written(scratch.path(), Comparator::Custom(Arc::new(LargestFirst)), "kNoCompression");
    let shown = printed(&format!("sst {}", scratch.path().display()));
    assert!(shown.contains("rocksdb.comparator: \"my.LargestFirst\""), "{shown}");
    let shown = printed(&format!("sst {} --verify", table.display()));
    assert!(shown.contains("rocksdb.num.entries: 2001") && !shown.contains("FAULT"), "{shown}");
    assert!(shown.lines().next().unwrap().ends_with(", every block read: sound"), "{shown}");
    let json = printed(&format!("sst {} --verify --json", table.display()));
    assert!(json.contains("\"faults\":0"), "{json}");
    let shown = printed(&format!("sst {}", table.display()));
    assert!(!shown.contains("every block read"), "{shown}");
    let entries = printed(&format!("sst {} --entries", table.display()));
    let keys: Vec<_> = entries.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!((keys.len(), keys[0], keys[1], keys[2000]), (2001, "9001", "1999", "0"));
    // It is nothing to open a database with: no key would be found.
    let mut options = Options::default();
    options.cf.comparator = Comparator::unknown("my.LargestFirst");
    let refused = Db::open_read_only(scratch.path(), &options).err().unwrap().to_string();
    assert!(refused.contains("comparator 'my.LargestFirst' is only a name"), "{refused}");
    flip(&table, 500);
    let (code, said) = said(&format!("sst {} --verify", table.display()));
    assert!(code == Some(1) && said.contains("FAULT") && said.contains("checksum"), "{said}");
    assert!(said.contains(", every block read: 1 fault\n"), "{said}");
}

/// Where an entry could not be read, the list ended, and with it the report: no fault was printed.
#[test]
fn faults_are_told_beside_the_entries_of_a_damaged_table() {
    let scratch = tempfile::tempdir().unwrap();
    let table = written(scratch.path(), Comparator::Bytewise, "kNoCompression");
    let middle = std::fs::read(&table)
        .unwrap()
        .windows(10)
        .position(|window| window == b"value 1500")
        .unwrap();
    flip(&table, middle);
    let (code, text) = said(&format!("sst {} --entries --verify", table.display()));
    assert!(code == Some(1) && text.matches("FAULT").count() == 1, "{text}");
    assert!(text.contains("offset ") && text.contains("\tvalue 100\n"), "{text}");
    let (code, text) = said(&format!("sst {} --entries --verify --json", table.display()));
    let facts: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(code == Some(1) && facts.iter().any(|fact| fact["fault"].is_string()), "{text}");
    // Who only lists is told why the list ends.
    let (code, text) = said(&format!("sst {} --entries", table.display()));
    assert!(code == Some(1) && text.contains("corruption: "), "{text}");
}

/// A compaction that ended after the directory was listed made a fault of each of its inputs.
#[test]
fn a_table_that_is_gone_when_its_turn_comes_is_no_fault() {
    let scratch = tempfile::tempdir().unwrap();
    let table = written(scratch.path(), Comparator::Bytewise, "kNoCompression");
    // A name without a file is what is left of one that is removed in that moment.
    let gone = scratch.path().join("000001.sst");
    std::os::unix::fs::symlink(scratch.path().join("nowhere"), &gone).unwrap();
    let (code, text) = said(&format!("sst {} --verify", scratch.path().display()));
    assert!(code == Some(0) && text.contains("000001.sst was removed meanwhile"), "{text}");
    assert!(text.contains("rocksdb.num.entries") && !text.contains("FAULT"), "{text}");
    let (code, text) = said(&format!("sst {} --json", scratch.path().display()));
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(code == Some(0) && first["note"].is_string(), "{text}");
    // One that was named must be there.
    let (code, text) = said(&format!("sst {} {}", gone.display(), table.display()));
    assert!(code == Some(1) && text.contains("FAULT"), "{text}");
}

/// A flush or compaction in another program, or one that a crash cut off, made a fault of the table
/// that it had begun.
#[test]
fn a_table_that_is_not_finished_is_no_fault() {
    let scratch = tempfile::tempdir().unwrap();
    let table = written(scratch.path(), Comparator::Bytewise, "kNoCompression");
    let begun = scratch.path().join("000999.sst");
    std::fs::copy(&table, &begun).unwrap();
    let cut = |file: &Path| {
        let bytes = std::fs::read(file).unwrap();
        std::fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
    };
    cut(&begun);
    let (code, text) = said(&format!("sst {} --verify", scratch.path().display()));
    assert!(
        code == Some(0) && text.contains("000999.sst is incomplete") && !text.contains("FAULT"),
        "{text}"
    );
    // One that the database has is to be whole, and so is one that is named.
    let (code, text) = said(&format!("sst {} {}", table.display(), begun.display()));
    assert!(code == Some(1) && text.contains("FAULT"), "{text}");
    cut(&table);
    let (code, text) = said(&format!("sst {}", scratch.path().display()));
    assert!(code == Some(1) && text.matches("FAULT").count() == 1, "{text}");
}

/// In a directory of `db_paths`, where no MANIFEST is, it was one all the same.
#[test]
fn a_table_that_is_not_finished_is_no_fault_in_another_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let tables = scratch.path().join("tables");
    let mut options = Options::default();
    options.create_if_missing = true;
    options.set("db_paths", &tables.display().to_string()).unwrap();
    let db = Db::open(scratch.path().join("db"), &options).unwrap();
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    let is_table = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "sst");
    let names = std::fs::read_dir(&tables).unwrap().map(|entry| entry.unwrap().path());
    let table = names.into_iter().find(is_table).unwrap();
    let bytes = std::fs::read(&table).unwrap();
    std::fs::write(tables.join("000999.sst"), &bytes[..bytes.len() / 2]).unwrap();
    let (code, text) = said(&format!("sst {} --verify", tables.display()));
    assert!(
        code == Some(0) && text.contains("000999.sst is incomplete") && !text.contains("FAULT"),
        "{text}"
    );
    std::fs::write(&table, &bytes[..bytes.len() / 2]).unwrap();
    let (code, text) = said(&format!("sst {}", tables.display()));
    assert!(code == Some(1) && text.matches("FAULT").count() == 1, "{text}");
}

/// A program had to take lines with tabs and escapes apart.
#[test]
fn the_operations_of_a_wal_are_objects_in_json() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    printed(&format!("put --db {db} k ey"));
    printed(&format!("delete-range --db {db} a b"));
    let wals = Env::os().fs.list(&scratch.path().join("db")).unwrap();
    let wals = wals.iter().filter(|name| name.ends_with(".log"));
    let operations: Vec<serde_json::Value> = wals
        .flat_map(|wal| {
            let said = printed(&format!("wal {db}/{wal} --operations --json"));
            let lines: Vec<serde_json::Value> =
                said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            lines
                .into_iter()
                .flat_map(|line| line["operations"].as_array().cloned().unwrap_or_default())
        })
        .collect();
    let put =
        serde_json::json!({ "type": "Put", "column_family_id": 0, "key": "k", "value": "ey" });
    let range = serde_json::json!({ "type": "DeleteRange", "column_family_id": 0, "key": "a", "end_key": "b" });
    assert!(operations == [range.clone()] || operations == [put, range], "{operations:?}");
    let (code, message) = failed(&format!("wal {db}"));
    assert!(code == 2 && message.contains("is a directory"), "{message}");
}

/// Of transactions of two phases a program got the words of a debugger, and never the time of a
/// timed put.
#[test]
fn the_records_of_transactions_have_fields_in_json() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("000007.log");
    let file = Env::os().fs.create_writable(&path, IoMode::Buffered).unwrap();
    let mut writer = Writer::new(file, FileNumber(7), WriterOptions::default()).unwrap();
    // Sequence 1, one counted operation.
    let mut batch = vec![1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    batch.extend(
        b"\x12\x18\x01k\x09v\x05\0\0\0\0\0\0\0\x0a\x0212\x0b\x0212\x0c\x0213\x15\x02ts\x0214",
    );
    writer.add_record(&batch).unwrap();
    let path = path.display();
    let said = printed(&format!("wal {path} --operations --json"));
    let line: serde_json::Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    let expected = serde_json::json!([
        { "type": "BeginPrepare", "policy": "WritePrepared" },
        { "type": "TimedPut", "column_family_id": 0, "key": "k", "value": "v", "write_time": 5 },
        { "type": "EndPrepare", "xid": "12" },
        { "type": "Commit", "xid": "12" },
        { "type": "Rollback", "xid": "13" },
        { "type": "CommitWithTimestamp", "timestamp": "ts", "xid": "14" },
    ]);
    assert_eq!(line["operations"], expected);
    let said = printed(&format!("wal {path} --operations"));
    assert!(said.contains("TimedPut\t0\tk\tv\t5\n") && said.contains("EndPrepare\t12\n"), "{said}");
}

/// Each piece between two ends of any of them passed for an entry, with a line for each range over
/// it: four of these two.
#[test]
fn range_deletions_are_listed_as_they_were_written() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("000007.sst");
    let file = Env::os().fs.create_writable(&path, IoMode::Buffered).unwrap();
    let mut builder = TableBuilder::new(file, TableBuilderSettings::default()).unwrap();
    builder.add_range_tombstone(b"a", b"m", 3);
    builder.add_range_tombstone(b"c", b"p", 5);
    builder.finish().unwrap();
    let said = printed(&format!("sst {} --entries", path.display()));
    assert_eq!(said, "a\t3\tRangeDeletion\tm\nc\t5\tRangeDeletion\tp\n");
}

/// Half of what the properties of this table counted was not there.
#[test]
fn range_deletions_are_listed_with_the_entries() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8/rangedel");
    let said = printed(&format!("sst {}/000026.sst --entries", fixture.display()));
    let ranges = said.lines().filter(|line| line.contains("\tRangeDeletion\t")).count();
    assert_eq!((ranges, said.lines().count()), (7, 14), "{said}");
    // As ldb list_file_range_deletes tells it.
    assert!(said.starts_with("user00000560\t3017\tRangeDeletion\tuser00000585\n"), "{said}");
    let json = printed(&format!("sst {}/000026.sst --entries --json", fixture.display()));
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["key"], &first["end_key"]),
        (&"user00000560".into(), &"user00000585".into())
    );
}

/// A log of so many records with a value of that size each, and where each ends.
fn logged(
    path: &Path,
    number: u64,
    recyclable: bool,
    records: usize,
    size: usize,
) -> (Writer, Vec<usize>) {
    let file = Env::os().fs.create_writable(path, IoMode::Buffered).unwrap();
    let options = WriterOptions { recyclable, ..WriterOptions::default() };
    let mut writer = Writer::new(file, FileNumber(number), options).unwrap();
    let ends = add(&mut writer, records, size);
    (writer, ends)
}

fn add(writer: &mut Writer, records: usize, size: usize) -> Vec<usize> {
    let mut batch = WriteBatch::new();
    batch.put("key", vec![b'v'; size]).unwrap();
    let add = |_| {
        writer.add_record(batch.data()).unwrap();
        writer.offset() as usize
    };
    (0..records).map(add).collect()
}

/// There it ended, as it said, and what follows was not listed.
#[test]
fn a_wal_with_a_hole_in_front_of_records_is_faulty() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("000007.log");
    let listed = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let (code, text) = said(&format!("wal {}", path.display()));
        (code, text.matches("1 operation,").count(), text.matches("FAULT").count(), text)
    };
    logged(&path, 7, false, 1, 1000);
    let record = std::fs::read(&path).unwrap();
    let mut bytes = record.clone();
    bytes.resize(32768, 0);
    bytes.extend(&record);
    let (code, records, faults, text) = listed(&bytes);
    assert_eq!((code, records, faults), (Some(1), 2, 1), "{text}");
    // A page that was never written, and one that still is as in the file's earlier life.
    logged(&path, 5, true, 100, 1000);
    let old = std::fs::read(&path).unwrap();
    let (_, ends) = logged(&path, 7, true, 100, 1000);
    let own = std::fs::read(&path).unwrap();
    let lost = 65536..69632;
    for page in [&[0; 4096][..], &old[lost.clone()]] {
        let (code, records, faults, text) =
            listed(&[&own[..lost.start], page, &own[lost.end..]].concat());
        assert_eq!((code, faults), (Some(1), 1), "{text}");
        assert!((60..100).contains(&records) && !text.contains("end:"), "{text}");
        assert!(text.contains(&format!("\n{}: ", ends[98])), "{text}");
    }
}

/// The rest of an older record, behind the last one of a WAL in a recycled file, passed for a
/// damaged one, and all ends were called corruption.
#[test]
fn a_wal_that_ends_as_wals_do_is_sound() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("000007.log");
    let [older, like] = [1300, 1000].map(|size| {
        logged(&path, 5, true, 150, size);
        std::fs::read(&path).unwrap()
    });
    let (_, ends) = logged(&path, 7, true, 100, 1000);
    let own = std::fs::read(&path).unwrap();
    let records = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let text = printed(&format!("wal {}", path.display()));
        let end = text.lines().last().unwrap();
        assert!(
            end.starts_with("end: ") && !text.contains("FAULT") && !text.contains("corruption"),
            "{text}"
        );
        text.matches("1 operation,").count()
    };
    // In the middle of an older record, at the end of one, in front of zeros, and cut off.
    assert_eq!(records(&[&own[..ends[19]], &older[ends[19]..]].concat()), 20);
    assert_eq!(records(&[&own[..ends[39]], &like[ends[39]..]].concat()), 40);
    assert_eq!(records(&[&own[..ends[59]], &[0; 100_000]].concat()), 60);
    assert_eq!(records(&own[..ends[79] + 500]), 80);
}

/// Where it had ended when that was read was a fault, as soon as records were written behind it.
#[test]
fn a_wal_that_is_written_meanwhile_is_sound() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("000007.log");
    let (mut writer, _) = logged(&path, 7, true, 200, 1000);
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_flagstone"))
        .arg("wal")
        .arg(&path)
        .args(["--operations", "--hex"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It waits for somebody to read what it has found in the first bytes, and these end in zeros.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("0: "));
    add(&mut writer, 200, 1000);
    let text: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(text.iter().any(|line| line.starts_with("note: the WAL grew")), "{:?}", text.last());
    assert!(!text.iter().any(|line| line.starts_with("FAULT")), "{:?}", text.last());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Of one letter it was a number.
#[test]
fn the_name_of_a_family_is_a_text() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    printed(&format!("put --db {db} key value"));
    printed(&format!("create-family --db {db} a"));
    printed(&format!("put --db {db} --cf a key value"));
    printed(&format!("flush --db {db}"));
    let said = printed(&format!("sst {db} --json"));
    assert!(said.contains(r#""rocksdb.column.family.name":"a""#), "{said}");
    assert!(said.contains(r#""rocksdb.num.entries":1,"#), "{said}");
}

fn keys_of(listed: &str) -> Vec<&str> {
    listed.lines().map(|line| line.split('\t').next().unwrap_or_default()).collect()
}

#[test]
fn some_entries_of_a_table_are_listed() {
    let scratch = tempfile::tempdir().unwrap();
    let table = written(scratch.path(), Comparator::Bytewise, "kLZ4Compression");
    let table = table.display();
    let listed = printed(&format!("sst {table} --entries --from 1998 --to 2000"));
    assert_eq!(keys_of(&listed), ["1998", "1999", "2", "20", "200"]);
    let listed = printed(&format!("sst {table} --entries --prefix 19 --limit 3"));
    assert_eq!(keys_of(&listed), ["19", "190", "1900"]);
    let listed = printed(&format!("sst {table} --entries --limit 0"));
    assert_eq!(keys_of(&listed), ["9000"], "the range deletion alone");
    let listed = printed(&format!("sst {table} --entries --from 9000x --limit 1"));
    assert_eq!(keys_of(&listed)[0], "9000", "its range reaches there");
    assert_eq!(printed(&format!("sst {table} --entries --from zebra")), "");
    let listed = printed(&format!("sst {table} --entries --hex --from 0x31393938 --limit 1"));
    assert_eq!(keys_of(&listed), ["39303030", "31393938"], "the range reaches there, too");

    let (code, said) = said(&format!("sst {table} --from 1"));
    assert!(code == Some(2) && said.contains("need --entries"), "{said}");
}

#[test]
fn only_a_known_order_has_a_first_and_a_last_key() {
    let scratch = tempfile::tempdir().unwrap();
    let order = Comparator::Custom(Arc::new(LargestFirst));
    let table = written(scratch.path(), order, "kNoCompression");
    let table = table.display();
    for bounds in ["--from 7", "--to 7", "--prefix 7"] {
        let (code, said) = said(&format!("sst {table} --entries {bounds}"));
        assert!(code == Some(2) && said.contains("my.LargestFirst"), "{bounds}: {said}");
    }
    let listed = printed(&format!("sst {table} --entries --limit 2"));
    assert_eq!(keys_of(&listed), ["9001", "1999", "1998"], "without comparing any");
}

#[test]
fn the_size_of_a_range_is_estimated() {
    let scratch = tempfile::tempdir().unwrap();
    written(scratch.path(), Comparator::Bytewise, "kNoCompression");
    let db = scratch.path().display();
    let bytes = |range: &str| -> u64 {
        let json = printed(&format!("approximate-size --db {db} {range} --json"));
        let facts: serde_json::Value = serde_json::from_str(&json).unwrap();
        facts["bytes"].as_u64().unwrap()
    };
    let (all, half) = (bytes("--to z"), bytes("--from 1 --to 2"));
    assert!(half > 0 && half < all, "{half} of {all}");
    assert_eq!(bytes("--from x --to z"), 0);
    let shown = printed(&format!("approxsize --db {db} --to z"));
    assert_eq!(shown, format!("{all} bytes\n"));
    let (code, said) = said(&format!("approximate-size --db {db} --from 1"));
    assert!(code == Some(2) && said.contains("--to KEY"), "{said}");
}
