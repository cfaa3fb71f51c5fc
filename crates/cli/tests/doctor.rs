//! `flagstone doctor` and the WALs that an opening would replay.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flagstone::db::Db;
use flagstone::options::{Options, RecoveryMode};
use testkit::fault::{Call, FaultFs, Injection, Plan, sort_of};

/// What the doctor says of a database, and its exit code.
fn asked(path: &Path, mode: &str) -> (String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagstone"));
    command
        .args(["doctor", "--db"])
        .arg(path)
        .args(["--set", &format!("wal_recovery_mode={mode}")]);
    let output = command.output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap()
    );
    (said, output.status.code().unwrap())
}

fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing = true;
    options
}

/// A database of which all is in its WAL: twenty values of a hundred bytes.
fn written(path: &Path) -> PathBuf {
    let db = Db::open(path, &options()).unwrap();
    for key in 10..30 {
        db.put(format!("key{key}"), [b'v'; 100]).unwrap();
    }
    db.close().unwrap();
    wals(path).pop().unwrap()
}

fn wals(path: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut wals: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|found| found == "log")).collect();
    wals.sort();
    wals
}

/// Damages the fifth of the values.
fn damage(wal: &Path) {
    let mut bytes = std::fs::read(wal).unwrap();
    let fifth = bytes.windows(5).position(|window| window == b"key14").unwrap();
    bytes[fifth + 50] ^= 1;
    std::fs::write(wal, bytes).unwrap();
}

/// The doctor called it healthy, and the next opening threw away what lay behind.
#[test]
fn damage_in_the_middle_of_a_wal_is_found_and_what_an_opening_would_do() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let wal = written(&path);
    damage(&wal);
    let before = std::fs::read(&wal).unwrap();
    for (mode, fate) in [
        ("kPointInTimeRecovery", "permanently discards it and everything after it"),
        ("kAbsoluteConsistency", "does not open"),
        ("kTolerateCorruptedTailRecords", "permanently discards it and the rest of this WAL"),
        ("kSkipAnyCorruptedRecords", "leaves a gap in history"),
    ] {
        let (said, code) = asked(&path, mode);
        assert_eq!(code, 1, "{mode}: {said}");
        let name = wal.file_name().unwrap().to_str().unwrap();
        for part in ["BROKEN", name, "offset ", "intact record", mode, fate, "flagstone salvage"] {
            assert!(said.contains(part), "{mode}: no '{part}' in {said}");
        }
    }
    assert_eq!(std::fs::read(&wal).unwrap(), before);
    // What it said is so.
    let db = Db::open(&path, &options()).unwrap();
    assert!(db.get("key13").unwrap().is_some() && db.get("key14").unwrap().is_none());
}

/// Where tables of a family are newer than the damage nothing opens at all.
#[test]
fn a_wal_that_is_damaged_behind_what_was_flushed_keeps_a_database_closed() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = Db::open(&path, &options()).unwrap();
    let other = db.create_column_family("other", &options().cf).unwrap();
    for key in 10..30 {
        db.put(format!("key{key}"), [b'v'; 100]).unwrap();
    }
    db.put_cf(&other, "key", "value").unwrap();
    db.flush(&other, &flagstone::options::FlushOptions::default()).unwrap();
    db.put("last", "value").unwrap();
    drop(other);
    db.close().unwrap();
    damage(&wals(&path)[0]);
    let (said, code) = asked(&path, "kPointInTimeRecovery");
    assert!(code == 1 && said.contains("BROKEN") && said.contains("does not open"), "{said}");
    assert!(said.contains("is ahead of WAL") && said.contains("intact records"), "{said}");
}

#[test]
fn a_wal_whose_end_is_torn_is_how_a_process_dies() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let wal = written(&path);
    let file = std::fs::File::options().write(true).open(&wal).unwrap();
    file.set_len(std::fs::metadata(&wal).unwrap().len() - 10).unwrap();
    let (said, code) = asked(&path, "kPointInTimeRecovery");
    assert!(code == 0 && said.contains("note: ") && said.contains("\nhealthy; "), "{said}");
    let (said, code) = asked(&path, "kAbsoluteConsistency");
    assert!(
        code == 1 && said.contains("does not open") && said.contains("no intact record"),
        "{said}"
    );
}

/// It advised a salvage, and said nothing of what an opening for writing would lose.
#[test]
fn a_directory_of_wals_that_is_not_there_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, wals) = (scratch.path().join("db"), scratch.path().join("wals"));
    let mut options = options();
    options.set("wal_dir", wals.to_str().unwrap()).unwrap();
    let db = Db::open(&path, &options).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    std::fs::rename(&wals, scratch.path().join("unmounted")).unwrap();
    let (said, code) = asked(&path, "kPointInTimeRecovery");
    assert!(code == 1 && said.contains("its WALs are in wal_dir, which does not exist"), "{said}");
    assert!(said.contains("--set wal_dir=DIR") && said.contains("1 broken"), "{said}");
}

#[test]
fn a_wal_that_is_missing_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let wal = written(&path);
    std::fs::remove_file(&wal).unwrap();
    let (said, _) = asked(&path, "kPointInTimeRecovery");
    assert!(
        said.contains("missing") && said.contains(wal.file_name().unwrap().to_str().unwrap()),
        "{said}"
    );
}

/// A database whose writes lie in three WALs.
fn with_three_wals(path: &Path) -> (Options, Vec<PathBuf>) {
    // Each opening without a flush keeps the WALs before it.
    let mut options = options();
    options.set("avoid_flush_during_recovery", "true").unwrap();
    for round in 0..3 {
        let db = Db::open(path, &options).unwrap();
        for key in 10..30 {
            db.put(format!("{round}key{key}"), [b'v'; 100]).unwrap();
        }
        db.close().unwrap();
    }
    let wals: Vec<_> =
        wals(path).into_iter().filter(|wal| std::fs::metadata(wal).unwrap().len() > 1000).collect();
    assert_eq!(wals.len(), 3, "{wals:?}");
    (options, wals)
}

/// None of the others was looked at.
#[test]
fn a_wal_that_opens_and_cannot_be_read_is_a_finding_beside_those_of_others() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let (mut options, wals) = with_three_wals(&path);
    let disk = FaultFs::new(options.env.fs.clone());
    options.env = options.env.with_fs(Arc::new(disk.clone()));
    let db = Db::open_read_only(&path, &options).unwrap();
    damage(&wals[0]);
    damage(&wals[2]);
    let (broken, plans) = (wals[1].clone(), disk.clone());
    disk.before_each(move |call, path| {
        if call == Call::Read && path == broken {
            plans.plan(Plan::Next { call, sort: sort_of(path), injection: Injection::Io });
        }
    });
    let facts = db.facts_under(RecoveryMode::TolerateCorruptedTailRecords).unwrap();
    let name = |wal: &PathBuf| wal.file_name().unwrap().to_str().unwrap().to_string();
    assert_eq!(
        facts.faults.iter().filter(|fault| fault.contains(&name(&wals[1]))).count(),
        1,
        "{facts:?}"
    );
    assert_eq!(facts.logs.len(), 2, "{facts:?}");
    for (log, wal) in facts.logs.iter().zip([&wals[0], &wals[2]]) {
        assert!(log.what.contains(&name(wal)) && log.records_behind == 15, "{facts:?}");
    }
}

/// It had one and looked at no other, and JSON had nothing of it.
#[test]
fn a_wal_that_cannot_be_opened_is_a_finding_beside_those_of_others() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let (_, wals) = with_three_wals(&path);
    std::fs::remove_file(&wals[0]).unwrap();
    std::fs::create_dir(&wals[0]).unwrap();
    damage(&wals[1]);
    damage(&wals[2]);
    let name = |wal: &PathBuf| wal.file_name().unwrap().to_str().unwrap().to_string();
    let (said, code) = asked(&path, "kPointInTimeRecovery");
    assert!(code == 1 && said.contains("BROKEN") && said.contains(&name(&wals[0])), "{said}");
    // It ended with the bare error.
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagstone"));
    let output = command.args(["verify", "--db"]).arg(&path).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("FAULT I/O error: the database does not open")
            && said.contains(&name(&wals[0])),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
}

/// The number behind it overflowed.
#[test]
fn a_wal_that_cannot_be_opened_may_have_the_largest_number() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    written(&path);
    let name = format!("{}.log", u64::MAX);
    std::fs::create_dir(path.join(&name)).unwrap();
    let (said, code) = asked(&path, "kPointInTimeRecovery");
    assert!(code == 1 && said.contains("BROKEN") && said.contains(&name), "{said}");
}

/// For each damage the WAL was read from its front once more.
#[test]
fn all_that_stands_behind_damage_is_counted_in_one_go() {
    const BLOCK: usize = 32 << 10;
    const COUNT: usize = 2000;
    let scratch = tempfile::tempdir().unwrap();
    // How often the WAL is read where a record is damaged in each of so many blocks.
    let reads = |blocks: usize| {
        let path = scratch.path().join(blocks.to_string());
        let mut options = options();
        let db = Db::open(&path, &options).unwrap();
        for key in 0..COUNT {
            db.put(format!("key{key:04}"), [b'v'; 500]).unwrap();
        }
        db.close().unwrap();
        let wal = wals(&path).pop().unwrap();
        let disk = FaultFs::new(options.env.fs.clone());
        options.env = options.env.with_fs(Arc::new(disk.clone()));
        let db = Db::open_read_only(&path, &options).unwrap();
        let mut bytes = std::fs::read(&wal).unwrap();
        let mut damaged = Vec::new();
        for block in 0..blocks {
            let begin = block * BLOCK + BLOCK / 3;
            let at = begin + bytes[begin..].windows(3).position(|window| window == b"key").unwrap();
            damaged.push(
                std::str::from_utf8(&bytes[at + 3..at + 7]).unwrap().parse::<usize>().unwrap(),
            );
            bytes[at + 50] ^= 1;
        }
        std::fs::write(&wal, bytes).unwrap();
        disk.record();
        let facts = db.facts_under(RecoveryMode::SkipAnyCorruptedRecords).unwrap();
        // Without the rest of its block a record may lack its start, too.
        let found = facts.logs.iter().filter(|log| log.what.contains("checksum mismatch"));
        let found: Vec<_> = found.map(|log| log.records_behind).collect();
        let intact = |nth: usize, key: usize| (COUNT - 1 - key - (blocks - 1 - nth)) as u64;
        let expected: Vec<_> =
            damaged.iter().enumerate().map(|(nth, key)| intact(nth, *key)).collect();
        assert_eq!(found, expected);
        disk.recorded().iter().filter(|(call, path)| *call == Call::Read && *path == wal).count()
    };
    let (few, many) = (reads(1), reads(20));
    assert!(many <= 2 * few, "{few} reads for one damage, {many} for twenty");
}

/// A record that is being written is not damaged, whatever is seen behind it a moment later.
#[test]
fn a_wal_that_is_being_written_is_not_damaged() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = Db::open(&path, &options()).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut key = 0u64;
            while !is_done.load(Ordering::Relaxed) {
                db.put(key.to_be_bytes(), vec![b'v'; (key * 7919 % 300) as usize]).unwrap();
                key += 1;
            }
        });
        for _ in 0..2 {
            let (said, code) = asked(&path, "kPointInTimeRecovery");
            assert!(code != 1 && !said.contains("BROKEN"), "{said}");
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

/// That was no finding, and JSON had nothing of it.
#[test]
fn an_options_file_that_cannot_be_read_is_a_finding() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    written(&path);
    for entry in std::fs::read_dir(&path).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("OPTIONS") {
            std::fs::write(path, "nonsense").unwrap();
        }
    }
    let (said, code) = asked(&path, "kPointInTimeRecovery");
    assert!(code == 1 && said.contains("BROKEN") && said.contains("OPTIONS"), "{said}");
}

/// An operator has the files, and a log that the program or RocksDB wrote.
#[test]
fn what_the_running_database_wrote_to_its_log_is_heeded() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    written(&path);
    let log = scratch.path().join("LOG");
    let ask = |log: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flagstone"));
        command.args(["doctor", "--db"]).arg(&path).arg("--statistics").arg(log).output().unwrap()
    };
    let report = "** DB Stats **\nUptime(secs): 100.0 total, 100.0 interval\nCumulative stall: 00:00:30.000 H:M:S, 30.0 \
                  percent\n\
                  ** Compaction Stats [default] **\nWrite Stall (count): memtable-limit-delays: 0, memtable-limit-stops: 4\n";
    std::fs::write(&log, format!("2026/11/25-23:32 [db_impl.cc:1532] DUMPING STATS\n\n{report}"))
        .unwrap();
    let output = ask(&log);
    let said = String::from_utf8(output.stdout).unwrap();
    let expected = "SLOW: writers were delayed or stopped for 30 of the 100 s since the database was opened, mostly by full \
                    memtables";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(output.status.code(), Some(3));

    std::fs::write(&log, "nothing of the kind\n").unwrap();
    let output = ask(&log);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("it contains no report of a running database"), "{said}");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(ask(&scratch.path().join("missing")).status.code(), Some(1));
}
