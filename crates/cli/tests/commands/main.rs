//! The program as a user runs it.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

#[path = "../common/mod.rs"]
mod common;
mod soundness;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{contents, failed, printed, run, run_with_input};
use flagstone::env::{Env, IoMode, read_file};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8")
}

fn write(path: &Path, bytes: &[u8]) {
    let fs = Env::os().fs;
    fs.create_directory(path.parent().unwrap()).unwrap();
    fs.create_writable(path, IoMode::Buffered).unwrap().write_at(0, bytes).unwrap();
}

/// A copy of a fixture that may be changed.
fn copy(name: &str, target: &Path) {
    for (file, bytes) in contents(&fixtures().join(name)) {
        write(&target.join(file), &bytes);
    }
}

/// Arguments that are no UTF-8 were refused before any command saw them.
#[cfg(unix)]
#[test]
fn keys_and_values_may_be_any_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db");
    let program = |words: &[&[u8]]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flagstone"));
        command.arg(OsStr::from_bytes(words[0])).arg("--db").arg(&db);
        command.args(words[1..].iter().map(|word| OsStr::from_bytes(word))).output().unwrap()
    };
    for words in [
        &[&b"put"[..], b"\xff\x01", b"\xfe"][..],
        &[b"put", b"\xff\x02", b"2"],
        &[b"put", b"", b"e"],
    ] {
        assert!(program(words).status.success());
    }
    assert_eq!(program(&[b"get", b"\xff\x01"]).stdout, b"\xfe");
    assert_eq!(program(&[b"get", b""]).stdout, b"e");
    assert_eq!(
        program(&[b"scan", b"--prefix", b"\xff"]).stdout,
        b"\\xff\\x01\t\\xfe\n\\xff\\x02\t2\n"
    );
    assert_eq!(program(&[b"scan", b"--from", b"\xff\x02", b"--keys-only"]).stdout, b"\\xff\\x02\n");
    assert!(program(&[b"delete-range", b"\xff\x01", b"\xff\x02"]).status.success());
    assert!(program(&[b"delete", b""]).status.success());
    assert_eq!(program(&[b"count"]).stdout, b"1\n");
    let missing = program(&[b"get", b"\x1b[31m\xff"]);
    assert!(
        String::from_utf8_lossy(&missing.stderr).contains(r"key '\x1b[31m\xff' is not in"),
        "a terminal's"
    );
    let refusal = program(&[b"get", b"--hex", b"\xff"]);
    assert_eq!(refusal.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refusal.stderr).contains("'\\xff' is not hexadecimal"));
}

#[test]
fn a_dump_of_each_fixture_is_what_rocksdb_read() {
    for name in Env::os().fs.list(&fixtures()).unwrap() {
        let Some(name) = name.strip_suffix(".expected") else { continue };
        let directory = fixtures().join(name);
        let before = contents(&directory);
        let dumped = printed(&format!("dump --db {}", directory.display()));
        let dumped = dumped.replace("reversed comparator=rocksdb.ReverseBytewiseComparator\n", "");
        let path = fixtures().join(format!("{name}.expected"));
        let expected = read_file(Env::os().fs.as_ref(), &path, 1 << 30).unwrap();
        assert!(dumped.as_bytes() == expected, "{name} differs");
        assert_eq!(contents(&directory), before, "{name} was changed");
    }
}

/// As with `ldb --ttl`: values carry the time of their writing.
#[test]
fn a_ttl_database_is_put_to_read_scanned_and_dumped() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    printed(&format!("put {db} --ttl a 1"));
    let from_stdin = run_with_input(&format!("put {db} --ttl b"), b"two");
    assert!(from_stdin.status.success());
    assert_eq!(printed(&format!("get {db} --ttl b")), "two");
    assert_eq!(printed(&format!("get {db} --ttl=3600 --hex 61")), "31\n");
    assert_eq!(printed(&format!("scan {db} --ttl")), "a\t1\nb\ttwo\n");
    assert_eq!(printed(&format!("scan {db} --ttl --reverse --limit 1")), "b\ttwo\n");
    assert_eq!(printed(&format!("dump {db} --ttl")), "default 61 31\ndefault 62 74776f\n");
    assert_eq!(run(&format!("get {db} b")).stdout.len(), "two".len() + 4);
    let copy = format!("--db {}", scratch.path().join("copy").display());
    run_with_input(&format!("load {copy}"), printed(&format!("dump {db}")).as_bytes());
    assert_eq!(printed(&format!("get {copy} --ttl=3600 b")), "two", "loaded as it was");
    assert!(printed("dump --help").contains("With --ttl, values lose their time"));
    printed(&format!("compact {db} --ttl=3600"));
    assert_eq!(printed(&format!("scan {db} --ttl --keys-only")), "a\nb\n");
    assert_eq!(
        printed(&format!("get {db} --ttl --range 1..9 b")),
        "wo",
        "the stamp is no part of it"
    );

    // What was written in 2014.
    printed(&format!("put {db} --hex 63 31004e7253"));
    assert_eq!(printed(&format!("count {db} --ttl")), "3\n");
    assert_eq!(printed(&format!("count {db} --ttl=3600")), "2\n");
    let files = scratch.path().join("files");
    printed(&format!("export {db} --ttl=3600 {}", files.display()));
    assert_eq!(
        contents(&files),
        [("a".into(), b"1".to_vec()), ("b".into(), b"two".to_vec())].into()
    );

    printed(&format!("put {db} old 0000"));
    let (code, message) = failed(&format!("get {db} --ttl old"));
    assert_eq!(code, 1);
    assert!(message.contains("not written to a TTL database"), "{message}");
    // It is no damage, and was to be salvaged.
    assert!(message.contains("without --ttl") && !message.contains("salvage"), "{message}");
}

#[test]
fn a_doctor_says_what_is_broken_and_what_is_slow() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("db");
    let (db, fs) = (format!("--db {}", directory.display()), Env::os().fs);
    let calm = "--set disable_auto_compactions=true";
    for key in ["a", "b", "c"] {
        printed(&format!("put {db} {key} 1 {calm}"));
        printed(&format!("flush {db} {calm}"));
    }
    let eager = "--set disable_auto_compactions=false --set write_buffer_size=65536";
    assert!(printed(&format!("doctor {db} {eager}")).starts_with("healthy; not read: "));
    let slow = run(&format!(
        "doctor {db} {eager} --set level0_slowdown_writes_trigger=2 --set level0_file_num_compaction_trigger=2"
    ));
    let text = String::from_utf8(slow.stdout).unwrap();
    assert_eq!(slow.status.code(), Some(3), "{text}");
    assert!(
        text.contains("3 tables wait in level 0") && text.contains("set max_background_jobs from"),
        "{text}"
    );

    let names = fs.list(&directory).unwrap();
    let table = names.iter().find(|name| name.ends_with(".sst")).unwrap();
    fs.remove(&directory.join(table)).unwrap();
    let broken = run(&format!("doctor {db} --json"));
    let text = String::from_utf8(broken.stdout).unwrap();
    assert_eq!(broken.status.code(), Some(1), "{text}");
    let findings: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(findings["findings"][0]["severity"], "broken", "{text}");
    assert!(text.contains(table.as_str()) && text.contains("flagstone salvage"), "{text}");

    let manifest = names.iter().find(|name| name.starts_with("MANIFEST")).unwrap();
    write(&directory.join(manifest), b"nothing that a MANIFEST begins with");
    let broken = run(&format!("doctor {db}"));
    assert_eq!(broken.status.code(), Some(1), "{broken:?}");
    assert!(String::from_utf8(broken.stdout).unwrap().contains("the database does not open"));
}

#[test]
fn keys_are_put_read_scanned_and_deleted() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    for (key, value) in [("a", "1"), ("b", "2"), ("b2", "3"), ("c", "4")] {
        printed(&format!("put {db} {key} {value}"));
    }
    assert!(run_with_input(&format!("put {db} d"), b"from stdin\0").status.success());
    assert_eq!(run(&format!("get {db} d")).stdout, b"from stdin\0");
    let large: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    let file = scratch.path().join("large");
    write(&file, &large);
    printed(&format!("put {db} d --value-file {}", file.display()));
    assert!(run(&format!("get {db} d")).stdout == large);
    assert!(run_with_input(&format!("put {db} d --file -"), &large[1..]).status.success());
    assert!(run(&format!("get {db} d")).stdout == large[1..]);
    assert!(run(&format!("get {db} d --range 70000..")).stdout == large[70_001..]);
    assert!(run(&format!("get {db} d --range 5..9")).stdout == large[6..10]);
    assert_eq!(failed(&format!("get {db} d --range 9..5")).0, 2);
    printed(&format!("verify {db}"));
    assert_eq!(printed(&format!("get {db} a")), "1");
    assert_eq!(printed(&format!("get --hex {db} 61")), "31\n");
    assert_eq!(printed(&format!("scan {db} --prefix b")), "b\t2\nb2\t3\n");
    assert_eq!(
        printed(&format!("scan {db} --from b --to c --keys-only --reverse --limit 1")),
        "b2\n"
    );
    assert_eq!(printed(&format!("count {db}")), "5\n");
    printed(&format!("delete {db} a"));
    printed(&format!("delete-range {db} b c"));
    assert_eq!(
        printed(&format!("scan {db} --json --limit 1")),
        "{\"key\":\"c\",\"value\":\"4\"}\n"
    );
    assert_eq!(printed(&format!("get {db} --json c")), "{\"key\":\"c\",\"value\":\"4\"}\n");
    assert_eq!(failed(&format!("get {db} a")).0, 1);
    printed(&format!("flush {db}"));
    printed(&format!("compact {db}"));
    assert_eq!(printed(&format!("count {db}")), "2\n");
    assert!(printed(&format!("stats {db}")).contains("column family 'default'"));
    assert!(printed(&format!("stats {db}")).contains("memory of this process"));
    assert!(printed(&format!("--json stats {db}")).contains(r#""total_bytes":"#));
    assert_eq!(printed(&format!("list-families {db}")), "default\n");
}

/// Of what a database consists was told only by the whole history of its MANIFEST.
#[test]
fn the_files_that_make_up_a_database_are_listed() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path().join("db").display().to_string();
    let db = format!("--db {at}");
    let set =
        "--set enable_blob_files=true --set min_blob_size=5 --set disable_auto_compactions=true";
    printed(&format!("put {db} a 1 {set}"));
    printed(&format!("flush {db}"));
    let listed = printed(&format!("list-files {db}"));
    assert!(
        listed.starts_with(&format!("column family 'default'\n  level 0 {at}/000004.sst: ")),
        "{listed}"
    );
    let told = ", entries 1, deletions 0, keys 'a' to 'a', sequence numbers 1 to 1\n";
    assert!(listed.ends_with(told), "{listed}");
    printed(&format!("put {db} b 1234567890"));
    printed(&format!("delete {db} a"));
    printed(&format!("flush {db}"));
    let lines = printed(&format!("list-files {db} --json --hex --cf default"));
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let (tables, blobs) = (of("table"), of("blob"));
    assert_eq!((tables.len(), blobs.len()), (3, 1), "{lines:?}");
    let newest = tables.iter().find(|table| table["largest_sequence"] == 3).unwrap();
    let told = ["level", "entries", "deletions", "smallest_key", "largest_key"]
        .map(|name| newest[name].to_string());
    assert_eq!(told, ["0", "1", "1", "\"61\"", "\"61\""], "{newest}");
    // A header of 32 bytes, the key and the value.
    assert_eq!(
        (blobs[0]["bytes"].clone(), blobs[0]["garbage_bytes"].clone()),
        (43.into(), 0.into())
    );
    assert_eq!(failed(&format!("list-files {db} --cf none")).0, 2);
}

#[test]
fn list_files_shows_checksums_of_files_that_have_one() {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path().join("db").display().to_string();
    let db = format!("--db {at}");
    printed(&format!("put {db} a 1 --set disable_auto_compactions=true"));
    printed(&format!("flush {db}"));
    printed(&format!("put {db} b 2 --set file_checksum_gen_factory=crc32c"));
    printed(&format!("flush {db}"));
    let listed = printed(&format!("list-files {db} --checksums"));
    assert!(listed.contains(".sst: no checksum\n"), "{listed}");
    assert!(listed.contains(".sst: FileChecksumCrc32c "), "{listed}");
    let lines = printed(&format!("list-files {db} --json"));
    assert!(lines.contains("\"checksum_function\":\"FileChecksumCrc32c\""), "{lines}");
    assert!(lines.contains("\"checksum_function\":null"), "{lines}");
}

#[test]
fn space_is_accounted_for() {
    let scratch = tempfile::tempdir().unwrap();
    let db = format!("--db {}", scratch.path().join("db").display());
    let set = "--set enable_blob_files=true --set min_blob_size=1 --set max_space_amplification=0";
    for value in ["1234567890", "abcdefghij"] {
        printed(&format!("put {db} key {value} {set}"));
        printed(&format!("flush {db}"));
    }
    // A record has a header of 32 bytes, and the key.
    let said = printed(&format!("space {db} --json"));
    for figure in [r#""live_bytes":45,"#, r#""hidden_bytes":45,"#, r#""garbage_bytes":0,"#] {
        assert!(said.contains(figure), "{said}");
    }
    assert!(
        said.contains(r#""reclaimable_bytes":45"#) && said.contains(r#""reader_bytes":0"#),
        "{said}"
    );
    // The limit is kept by whoever opens the database for writing.
    printed(&format!("flush {db} --set max_space_amplification=1.3"));
    printed(&format!("compact {db}"));
    let said = printed(&format!("space {db}"));
    assert!(
        said.contains("live values: 45 B\n") && said.contains("reclaimable now: 0 B\n"),
        "{said}"
    );
    assert!(said.contains("(limit 1.3, in bursts 2.2)"), "{said}");
}

/// What was no dump left an empty database behind, and one that is not there was to be opened with
/// an option of the library.
#[test]
fn no_database_is_made_of_no_dump() {
    let scratch = tempfile::tempdir().unwrap();
    let target = scratch.path().join("db");
    let wrong = run_with_input(&format!("load --db {}", target.display()), b"\nthis is no dump\n");
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success() && said.contains("line 2 of standard input"), "{said}");
    assert!(!target.exists());
    let (_, said) = failed(&format!("list-families --db {}", target.display()));
    assert!(
        said.contains("there is no database here") && !said.contains("create_if_missing"),
        "{said}"
    );
}

#[test]
fn a_dump_is_loaded_again() {
    let scratch = tempfile::tempdir().unwrap();
    let target = scratch.path().join("db");
    let dump = printed(&format!("dump --db {}", fixtures().join("blob-none").display()));
    let output = run_with_input(&format!("load --db {}", target.display()), dump.as_bytes());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed(&format!("dump --db {}", target.display())) == dump);
    let wrong = run_with_input(&format!("load --db {}", target.display()), b"default 61\n");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("line 1"));
    let wrong = run_with_input(
        &format!("load --db {}", target.display()),
        b"\ndefault 61 62\n\ndefault 61\n",
    );
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("line 4"));
    let wrong =
        run_with_input(&format!("load --db {}", target.display()), b"default 61 62\n\xff\n");
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("line 2 of standard input: expected"));
}

#[test]
fn a_database_without_its_options_file_is_read_as_its_manifest_says() {
    let scratch = tempfile::tempdir().unwrap();
    copy("cfs", scratch.path());
    for name in contents(scratch.path()).keys().filter(|name| name.starts_with("OPTIONS")) {
        Env::os().fs.remove(&scratch.path().join(name)).unwrap();
    }
    let with = printed(&format!("dump --db {}", fixtures().join("cfs").display()));
    assert!(printed(&format!("dump --db {}", scratch.path().display())) == with);
}

#[test]
fn a_database_in_several_directories_is_opened_by_its_options_file() {
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    let db = format!("--db {}", at("db"));
    let paths = format!("--set db_paths={{path={};target_size=1g}}:{}", at("fast"), at("slow"));
    printed(&format!("put {db} {paths} key value"));
    printed(&format!("flush {db}"));
    assert!(
        printed(&format!("compact {db} --force-bottommost --dry-run --json"))
            .starts_with(r#"{"bytes":"#)
    );
    assert!(printed(&format!("compact {db} --dry-run")).starts_with("about "));
    printed(&format!("compact {db} --force-bottommost --target-path 1"));
    assert!(printed(&format!("manifest {db}")).contains(", path 1"));
    let tables = |name: &str| {
        contents(Path::new(&at(name))).keys().filter(|file| file.ends_with(".sst")).count()
    };
    assert_eq!((tables("db"), tables("fast"), tables("slow")), (0, 0, 1));
    for command in ["verify", "check", "doctor", "space", "stats"] {
        printed(&format!("{command} {db}"));
    }
    printed(&format!("checkpoint {db} {}", at("copy")));
    assert_eq!(printed(&format!("get --db {} key", at("copy"))), "value");
    assert_eq!(tables("copy"), 1);

    // Where it is lost, the paths must be given.
    for name in contents(Path::new(&at("db"))).keys().filter(|name| name.starts_with("OPTIONS")) {
        Env::os().fs.remove(&Path::new(&at("db")).join(name)).unwrap();
    }
    let (code, message) = failed(&format!("get {db} key"));
    assert!(code != 0 && message.contains("name all of them in db_paths"), "{message}");
    assert_eq!(printed(&format!("get {db} {paths} key")), "value");
    printed(&format!("salvage {db} {paths} --to {}", at("saved")));
    assert_eq!(printed(&format!("get --db {} key", at("saved"))), "value");
}

#[test]
fn mistakes_are_explained() {
    let scratch = tempfile::tempdir().unwrap();
    let basic = fixtures().join("basic");
    let basic = basic.display();
    let (cfs, none) = (fixtures().join("cfs"), scratch.path().join("none"));
    let (cfs, none) = (cfs.display(), none.display());
    for (line, code, says) in [
        (format!("get --db {none} k"), 1, "no database here (no such directory)"),
        (
            format!("get --db {} k", scratch.path().display()),
            1,
            "no database here (no file CURRENT)",
        ),
        (
            format!("get --db {cfs}/CURRENT k"),
            1,
            "no database here (a file, not a directory); check --db",
        ),
        (format!("put --db {cfs}/CURRENT k v"), 1, "no database here (a file, not a directory)"),
        (format!("manifest --db {none}"), 1, "no database here"),
        (format!("scan --db {basic} --cf nope"), 2, "no column family 'nope'"),
        (format!("scan --db {basic} --set blok_size=1"), 2, "did you mean 'block_size'?"),
        (format!("scan --db {basic} --set best_efforts_recovery=true"), 2, "not supported yet"),
        (format!("scan --db {basic} --set memory_budget=1k"), 2, "memory_budget=1024 is too small"),
        (format!("get --db {basic} --hex xyz"), 2, "not hexadecimal"),
        (format!("count --db {cfs} --cf reversed --prefix user"), 2, "use --from and --to"),
        (format!("scan --db {cfs} --cf reversed --prefix user"), 2, "use --from and --to"),
        (format!("export --db {cfs} --cf reversed --prefix user {none}"), 2, "use --from and --to"),
        ("bench --benchmarks=fillsec".to_string(), 2, "no benchmark 'fillsec'"),
        ("frobnicate".to_string(), 2, "frobnicate"),
        (format!("dump --db {basic} --json"), 2, "scan --json"),
        ("manifest".to_string(), 2, "<--db <DB>|FILE>"),
        (format!("put --db {none} --cf nope key value"), 2, "no column family 'nope'"),
        (format!("import --db {none} --cf nope {basic}"), 2, "no column family 'nope'"),
        (format!("import --db {none} {none}/pictures"), 2, "nothing exists at "),
        (format!("wal {none}/pictures"), 1, "check the path"),
        (format!("put --db {none} --ttl=2147483648 k v"), 2, "2147483648 is not in 0..=2147483647"),
    ] {
        let (found, message) = failed(&line);
        assert_eq!(found, code, "{line}: {message}");
        assert!(message.contains(says), "{line}: {message}");
    }
    assert!(
        Env::os().fs.list(scratch.path()).unwrap().is_empty(),
        "no database is made of a mistake"
    );
    copy("basic", scratch.path());
    let options = "[DBOptions]\n[CFOptions \"default\"]\n  comparator=my.Order\n";
    write(&scratch.path().join("OPTIONS-999999"), options.as_bytes());
    let (code, message) = failed(&format!("scan --db {}", scratch.path().display()));
    assert!(
        code == 1 && message.contains("comparator 'my.Order', which is not built in"),
        "{message}"
    );
}

#[test]
fn single_files_are_shown() {
    let file = |name: &str, extension: &str| {
        let names = Env::os().fs.list(&fixtures().join(name)).unwrap();
        let mut found: Vec<_> =
            names.into_iter().filter(|file| file.ends_with(extension)).collect();
        found.sort();
        fixtures().join(name).join(&found[0]).display().to_string()
    };
    assert!(
        printed(&format!("sst {} --verify", file("basic", ".sst"))).contains("rocksdb.num.entries")
    );
    assert!(printed(&format!("sst {} --entries", file("basic", ".sst"))).contains("\tValue\t"));
    assert!(printed(&format!("blob {}", file("blob-lz4", ".blob"))).contains("compression lz4"));
    assert!(
        printed(&format!("wal {} --operations", file("wal-plain", ".log"))).contains("Put\t0\t")
    );
    let cfs = fixtures().join("cfs");
    assert!(
        printed(&format!("manifest --db {}", cfs.display()))
            .contains("column family added: photos")
    );
    assert_eq!(
        printed(&format!("list-families --db {}", cfs.display())),
        "default\nusers\nreversed\nphotos\n"
    );
}
