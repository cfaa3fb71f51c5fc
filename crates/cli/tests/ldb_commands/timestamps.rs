//! Keys with timestamps, and the times at which values of a TTL database were written.

use std::sync::Arc;

use flagstone::Env;
use testkit::HandClock;

use crate::common::{printed, run_with_input};
use crate::{referee, said, tables_in};

#[test]
fn keys_with_timestamps_are_written_and_read_as_of_one() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = format!("--db {}", path.display());
    let order = "--set comparator=leveldb.BytewiseComparator.u64ts";
    printed(&format!("put {db} bread 3 --write-timestamp 10 {order}"));
    printed(&format!("put {db} bread 4 --write-timestamp 20"));
    printed(&format!("batch-put {db} milk 1 salt 2 --write-timestamp 20"));
    let piped = run_with_input(&format!("put {db} tea --write_timestamp 20"), b"5");
    assert!(piped.status.success());
    printed(&format!("delete {db} milk --write-timestamp 30"));
    printed(&format!("delete-range {db} t u --write-timestamp 30"));
    printed(&format!("single-delete {db} salt --write-timestamp 30"));
    assert_eq!(printed(&format!("get {db} bread --read-timestamp 15")), "3");
    assert_eq!(printed(&format!("get {db} bread --read_timestamp=20")), "4");
    assert_eq!(printed(&format!("get {db} bread --read-timestamp 20 --range 0..1")), "4");
    let all = "bread\t20\t4\nmilk\t20\t1\nsalt\t20\t2\ntea\t20\t5\n";
    assert_eq!(printed(&format!("scan {db} --read-timestamp 20")), all);
    assert_eq!(printed(&format!("scan {db} --read-timestamp 30")), "bread\t20\t4\n");
    assert_eq!(printed(&format!("scan {db} --read-timestamp 9")), "");
    assert_eq!(printed(&format!("count {db} --read-timestamp 20")), "4\n");
    let some = printed(&format!("scan {db} --read-timestamp 20 --from m --to t --reverse"));
    assert_eq!(some, "salt\t20\t2\nmilk\t20\t1\n");
    let some = printed(&format!("scan {db} --read-timestamp 20 --prefix mi"));
    assert_eq!(some, "milk\t20\t1\n");
    assert_eq!(
        printed(&format!("multi-get {db} tea bread --read-timestamp 25")),
        "tea\t5\nbread\t4\n"
    );
    let json = printed(&format!("scan {db} --read-timestamp 15 --json"));
    assert_eq!(json, "{\"key\":\"bread\",\"timestamp\":10,\"value\":\"3\"}\n");
    let keys = printed(&format!("scan {db} --read-timestamp 15 --json --keys-only"));
    assert_eq!(keys, "{\"key\":\"bread\",\"timestamp\":10}\n");
    let columns = printed(&format!("get-entity {db} bread --read-timestamp 15"));
    assert_eq!(columns, ":3\n");
    let lines = b"put oil 9 --write-timestamp 40\nget oil --read-timestamp 40\nget oil --read-timestamp 39\n";
    let asked = run_with_input(&format!("query {db}"), lines);
    assert_eq!(String::from_utf8(asked.stdout).unwrap(), "OK\n9\n");
    printed(&format!("flush {db}"));
    printed(&format!("compact {db} --from a --to z"));
    if let Some(referee) = referee() {
        let dump = referee.ldb(&path, &["idump", "--try_load_options"]).unwrap();
        let dump = dump.replace('\0', "");
        assert!(dump.contains("bread\n => 3") && dump.contains("bread\x14 => 4"), "{dump:?}");
    }
}

#[test]
fn a_timestamp_is_asked_for_where_keys_have_some_and_refused_elsewhere() {
    let scratch = tempfile::tempdir().unwrap();
    let with = format!("--db {}", scratch.path().join("with").display());
    let order = "--set comparator=rocksdb.ReverseBytewiseComparator.u64ts";
    printed(&format!("put {with} a 1 --write-timestamp 1 {order}"));
    let without = format!("--db {}", scratch.path().join("without").display());
    printed(&format!("put {without} a 1"));
    for (line, expected) in [
        (format!("get {with} a"), "give --read-timestamp NUMBER"),
        (format!("scan {with}"), "give --read-timestamp NUMBER"),
        (format!("count {with}"), "give --read-timestamp NUMBER"),
        (format!("put {with} a 2"), "give --write-timestamp NUMBER"),
        (format!("delete {with} a"), "give --write-timestamp NUMBER"),
        (format!("delete-range {with} b a"), "give --write-timestamp NUMBER"),
        (format!("dump {with}"), "use scan --cf NAME --read-timestamp"),
        (format!("export {with} {}", scratch.path().join("new").display()), "use scan --read-"),
        (format!("put-entity {with} a b:c"), "use put or batch-put --write-timestamp"),
        (format!("get {without} a --read-timestamp 1"), "leave out --read-timestamp"),
        (format!("put {without} a 2 --write-timestamp 1"), "leave out --write-timestamp"),
        (format!("put {with} a 2 --write-timestamp -1"), "unexpected argument"),
        (format!("get {with} a --read-timestamp x"), "invalid value"),
    ] {
        let (code, text) = said(&line);
        assert!(code == 2 && text.contains(expected), "{line}: {text}");
    }
    assert_eq!(printed(&format!("get {with} a --read-timestamp 18446744073709551615")), "1");
}

/// A value with its stamp, in hexadecimal: what was written at that time.
fn stamped(value: &str, seconds: u32) -> String {
    let bytes = [value.as_bytes(), &seconds.to_le_bytes()].concat();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn times_of_a_ttl_database_are_shown_and_select() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = format!("--db {}", path.display());
    // In 2014, a day later, and so that it lives for ever.
    for (key, value, seconds) in
        [("61", "1", 1_400_000_000), ("62", "2", 1_400_086_400), ("63", "3", 2_147_483_647)]
    {
        printed(&format!("put {db} --hex {key} {}", stamped(value, seconds)));
    }
    assert_eq!(
        printed(&format!("scan {db} --ttl --timestamp")),
        "a\t2014-05-13T16:53:20Z\t1\nb\t2014-05-14T16:53:20Z\t2\nc\tfor ever\t3\n"
    );
    assert_eq!(
        printed(&format!("scan {db} --ttl --timestamp --keys-only --limit 1")),
        "a\t2014-05-13T16:53:20Z\n"
    );
    let json = printed(&format!("scan {db} --ttl --timestamp --json --limit 1"));
    assert_eq!(json, "{\"key\":\"a\",\"write_time_seconds\":1400000000,\"value\":\"1\"}\n");
    // The start is inclusive, the end is not; a limit counts what is shown.
    let between = "--start_time=1400000001 --end_time=1400086401";
    assert_eq!(printed(&format!("scan {db} --ttl {between} --limit 1")), "b\t2\n");
    assert_eq!(printed(&format!("count {db} --ttl --start-time 1400086400")), "2\n");
    assert_eq!(printed(&format!("count {db} --ttl --end-time 1400086400")), "1\n");
    assert_eq!(printed(&format!("dump {db} --ttl {between}")), "default 62 32\n");
    if let Some(referee) = referee() {
        for period in [
            &["--start_time=1400000001", "--end_time=1400086401"][..],
            &["--start_time=1400086400", "--end_time=2147483647"],
            &["--end_time=1400086400"],
        ] {
            let theirs = referee.ldb_ttl(&path, &[&["scan"], period].concat()).unwrap();
            let theirs: Vec<_> = theirs
                .lines()
                .map(|line| line.replace(" ==> ", "\t").replace(" : ", "\t"))
                .collect();
            let ours = printed(&format!("scan {db} --ttl {}", period.join(" ")));
            assert_eq!(ours.lines().collect::<Vec<_>>(), theirs, "{period:?}");
        }
    }
    for (line, expected) in [
        (format!("scan {db} --timestamp"), "--ttl"),
        (format!("scan {db} --start-time 1"), "--ttl"),
        (format!("dump {db} --ttl --start-time 2 --end-time 1"), "exchange them"),
    ] {
        let (code, text) = said(&line);
        assert!(code == 2 && text.contains(expected), "{line}: {text}");
    }
    assert!(tables_in(&path).len() < 10);
}

/// A later write has the time of the flush before it.
#[test]
fn times_of_tables_say_when_keys_were_not_written_yet() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let clock = Arc::new(HandClock::at(1_400_000_000));
    let opened = flagstone::Db::builder(&path)
        .options(|options| {
            options.env = Env { clock: clock.clone(), ..Env::os() };
            options.cf.set("preserve_internal_time_seconds", "1000").unwrap();
        })
        .open()
        .unwrap();
    for (key, value) in [("a", "1"), ("b", "2")] {
        opened.put(key, value).unwrap();
        flagstone::Family::flush(&opened).unwrap();
        clock.advance(86_400);
    }
    opened.close().unwrap();
    drop(opened);
    let db = format!("--db {}", path.display());
    assert_eq!(
        printed(&format!("scan {db} --write-unix-time")),
        "a\tunknown\t1\nb\t2014-05-13T16:53:20Z\t2\n"
    );
    assert_eq!(
        printed(&format!("scan {db} --get_write_unix_time --keys-only --json")),
        "{\"key\":\"a\"}\n{\"key\":\"b\",\"write_unix_time\":1400000000}\n"
    );
    let (code, text) = said(&format!("scan {db} --write-unix-time --reverse"));
    assert!(code == 2 && text.contains("cannot be used with"), "{text}");
}
