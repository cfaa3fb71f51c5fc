//! The lines of the info log that programs read, as a program reads them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use flagstone::db::Db;
use flagstone::env::{Env, read_file};
use flagstone::ingest::{SstFileWriter, SstFileWriterOptions};
use flagstone::options::{CompactRangeOptions, IngestExternalFileOptions, Options};

/// What an event says; objects and arrays as their texts.
type Event = BTreeMap<String, String>;

/// Reads one value of JSON, strictly; what follows it.
fn value(text: &str) -> (String, &str) {
    let parts = |open: char, close: char, keyed: bool| {
        let mut rest = &text[1..];
        if let Some(after) = rest.strip_prefix(close) {
            return after;
        }
        loop {
            if keyed {
                let (name, after) = value(rest);
                assert!(rest.starts_with('"') && !name.is_empty(), "a name: {rest}");
                rest = after.strip_prefix(": ").unwrap();
            }
            rest = value(rest).1;
            match rest.strip_prefix(close) {
                Some(after) => return after,
                None => rest = rest.strip_prefix(", ").unwrap_or_else(|| panic!("{open}: {rest}")),
            }
        }
    };
    let rest = match text.chars().next().unwrap() {
        '{' => parts('{', '}', true),
        '[' => parts('[', ']', false),
        '"' => {
            let mut escaped = false;
            let end = text[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let end = end.unwrap() + 1;
            return (text[1..end].to_string(), &text[end + 1..]);
        }
        _ => {
            let end = text.find([',', '}', ']']).unwrap();
            text[..end].parse::<i64>().unwrap();
            &text[end..]
        }
    };
    (text[..text.len() - rest.len()].to_string(), rest)
}

fn event(object: &str) -> Event {
    let (whole, rest) = value(object);
    assert!(rest.is_empty() && whole == object, "{object}");
    let mut event = Event::new();
    let mut rest = &object[1..];
    while !rest.starts_with('}') {
        let (name, after) = value(rest.trim_start_matches(", "));
        let (value, after) = value(after.strip_prefix(": ").unwrap());
        assert!(event.insert(name, value).is_none(), "twice in {object}");
        rest = after;
    }
    event
}

fn events(env: &Env) -> Vec<Event> {
    let log = read_file(&*env.fs, Path::new("/db/LOG"), 1 << 24).unwrap();
    let log = String::from_utf8(log).unwrap();
    let lines = log.lines().filter_map(|line| line.split_once(" EVENT_LOG_v1 "));
    lines.map(|(_, object)| event(object)).collect()
}

/// The events of that kind.
fn of<'a>(events: &'a [Event], kind: &str) -> Vec<&'a Event> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

fn options(env: &Env) -> Options {
    let mut options = Options { env: env.clone(), ..Options::default() };
    let settings = "create_if_missing=true;enable_blob_files=true;min_blob_size=1000;\
                    blob_write_mode=flush;disable_auto_compactions=true;compression=kNoCompression";
    options.set_all(settings).unwrap();
    options
}

#[test]
fn flushes_compactions_and_files_are_told_to_programs() {
    let env = Env::memory();
    let db = Db::open("/db", &options(&env)).unwrap();
    let family = db.default_column_family().clone();
    let everything = CompactRangeOptions::default();
    for round in 0..2u8 {
        db.put("key", vec![round; 2000]).unwrap();
        db.put("another", "small").unwrap();
        db.delete("gone").unwrap();
        db.flush_all().unwrap();
    }
    db.compact_range(&family, None, None, &everything).unwrap();
    db.put("zzz", "alone").unwrap();
    db.flush_all().unwrap();
    db.compact_range(&family, None, None, &everything).unwrap();
    let mut writer = SstFileWriter::create(
        "/out.sst",
        &SstFileWriterOptions { env: env.clone(), ..Default::default() },
    )
    .unwrap();
    writer.put("zzzz", "from outside").unwrap();
    writer.finish().unwrap();
    db.ingest_external_files(&family, &["/out.sst"], &IngestExternalFileOptions::default())
        .unwrap();
    db.close().unwrap();

    let events = events(&env);
    for event in &events {
        assert!(event["time_micros"].parse::<u64>().unwrap() > 0, "{event:?}");
    }
    let flushes = of(&events, "flush_started");
    assert_eq!(flushes.len(), 3, "{events:?}");
    assert_eq!(flushes[0]["num_memtables"], "1");
    assert_eq!(flushes[0]["total_num_input_entries"], "3");
    assert_eq!((&*flushes[0]["num_deletes"], &*flushes[0]["flush_reason"]), ("1", "Manual Flush"));
    assert!(flushes[0]["total_data_size"].parse::<u64>().unwrap() > 2000);
    let flushed = of(&events, "flush_finished");
    assert_eq!(flushed[1]["lsm_state"], "[2, 0, 0, 0, 0, 0, 0]");
    assert_eq!(flushed[1]["immutable_memtables"], "0");
    assert!(flushed[1]["blob_file_head"] < flushed[1]["blob_file_tail"]);
    assert_eq!(flushed[1]["output_compression"], "NoCompression");
    assert_eq!(flushed[0]["job"], flushes[0]["job"]);

    let begun = of(&events, "compaction_started");
    assert_eq!(begun[0]["cf_name"], "default");
    assert_eq!(begun[0]["compaction_reason"], "ManualCompaction");
    assert_eq!(begun[0]["oldest_snapshot_seqno"], "-1");
    assert!(begun[0]["files_L0"].starts_with('['), "{:?}", begun[0]);
    let ended = of(&events, "compaction_finished");
    assert_eq!(ended[0]["job"], begun[0]["job"]);
    assert_eq!((&*ended[0]["num_output_files"], &*ended[0]["num_subcompactions"]), ("1", "1"));
    assert_eq!(ended[0]["num_input_records"], "6");
    assert_eq!(ended[0]["num_output_records"], "2");
    assert_eq!(ended[0]["lsm_state"], "[0, 0, 0, 0, 0, 0, 1]");

    let created = of(&events, "table_file_creation");
    assert!(created.len() >= 4 && created.iter().all(|file| file["status"] == "OK"));
    assert!(created[0]["table_properties"].contains("\"num_entries\": 3"), "{:?}", created[0]);
    assert!(created[0].contains_key("oldest_blob_file_number"));
    assert_eq!((&*created[0]["smallest_seqno"], &*created[0]["largest_seqno"]), ("1", "3"));
    let blobs = of(&events, "blob_file_creation");
    assert_eq!(blobs[0]["total_blob_count"], "1");
    let deleted: Vec<_> =
        of(&events, "table_file_deletion").iter().map(|file| file["file_number"].clone()).collect();
    assert!(deleted.contains(&created[0]["file_number"]), "{deleted:?}");
    assert!(!of(&events, "blob_file_deletion").is_empty());
    assert_eq!(of(&events, "ingest_finished").len(), 1);
    assert_eq!(of(&events, "recovery_started").len(), 1);
}

#[test]
fn moves_and_recoveries_are_told_to_programs() {
    let env = Env::memory();
    let mut options = options(&env);
    options.set("level_compaction_dynamic_level_bytes", "false").unwrap();
    let db = Db::open("/db", &options).unwrap();
    db.put("a", "1").unwrap();
    db.flush_all().unwrap();
    db.put("in the WAL", "2").unwrap();
    db.compact_range(db.default_column_family(), Some(b"a"), Some(b"b"), &Default::default())
        .unwrap();
    let moves = events(&env);
    let moves = of(&moves, "trivial_move");
    assert!(!moves.is_empty(), "a table goes down as it is");
    assert_eq!((&*moves[0]["destination_level"], &*moves[0]["files"]), ("1", "1"));
    db.close().unwrap();
    drop(Db::open("/db", &options).unwrap());
    let events = events(&env);
    let (begun, ended) = (of(&events, "recovery_started"), of(&events, "recovery_finished"));
    assert_eq!((begun.len(), ended.len()), (1, 1));
    assert!(begun[0]["wal_files"].len() > 2, "{:?}", begun[0]);
    assert_eq!((&begun[0]["job"], &*ended[0]["status"]), (&ended[0]["job"], "OK"));
}

#[test]
fn names_of_families_do_not_break_lines() {
    let env = Env::memory();
    let db = Db::open("/db", &options(&env)).unwrap();
    let odd = db.create_column_family("a \"b\" \\ c\nd", &Default::default()).unwrap();
    db.put_cf(&odd, "key", "value").unwrap();
    db.flush_all().unwrap();
    db.close().unwrap();
    let events = events(&env);
    let created = of(&events, "table_file_creation");
    assert_eq!(created[0]["cf_name"], "a \\\"b\\\" \\\\ c\\u000ad");
}
