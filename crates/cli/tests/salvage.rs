//! `flagstone salvage` as a user runs it.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flagstone::db::Db;
use flagstone::options::{FlushOptions, Options};

fn run(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flagstone")).args(line.split_whitespace()).output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn copy_of_fixture(name: &str, target: &Path) {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8").join(name);
    std::fs::create_dir_all(target).unwrap();
    for entry in std::fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
    }
}

fn file_with(directory: &Path, extension: &str) -> std::path::PathBuf {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|found| found == extension)).min().unwrap()
}

#[test]
fn a_database_without_a_manifest_is_rebuilt_and_nothing_is_lost() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, target) = (scratch.path().join("broken"), scratch.path().join("whole"));
    copy_of_fixture("blob-zstd", &source);
    let before = printed(&run(&format!("dump --db {}", source.display())));
    std::fs::remove_file(source.join("CURRENT")).unwrap();
    for entry in std::fs::read_dir(&source).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("MANIFEST") {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(run(&format!("dump --db {}", source.display())).status.code(), Some(1));
    let output = run(&format!("salvage --db {} --to {}", source.display(), target.display()));
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("nothing was lost") && text.contains("There is no MANIFEST"), "{text}");
    assert_eq!(printed(&run(&format!("dump --db {}", target.display()))), before);
    let again = run(&format!("salvage --db {} --to {}", source.display(), target.display()));
    assert_eq!(again.status.code(), Some(1), "the directory is not empty");
}

/// The next `put` made a new database in its place, and removed all tables.
#[test]
fn a_database_without_current_is_not_made_anew() {
    let scratch = tempfile::tempdir().unwrap();
    let (path, target) = (scratch.path().join("db"), scratch.path().join("whole"));
    let db = format!("--db {}", path.display());
    for command in ["put KEY 1", "flush"] {
        let line = format!("{command} {db}");
        assert!(run(&line).status.success(), "{line}");
    }
    std::fs::remove_file(path.join("CURRENT")).unwrap();
    let put = run(&format!("put {db} other 2"));
    let said = String::from_utf8(put.stderr).unwrap();
    assert!(put.status.code() == Some(1) && said.contains("flagstone salvage"), "{said}");
    let doctor = run(&format!("doctor {db}"));
    let text = printed(&doctor);
    assert_eq!(doctor.status.code(), Some(1), "{text}");
    assert!(
        text.contains("BROKEN") && text.contains("CURRENT") && text.contains("flagstone salvage"),
        "{text}"
    );
    let salvaged = run(&format!("salvage {db} --to {}", target.display()));
    assert_eq!(salvaged.status.code(), Some(0), "{}", printed(&salvaged));
    assert_eq!(printed(&run(&format!("get --db {} KEY", target.display()))), "1");
}

/// It was said what is wrong, and not what to do.
#[test]
fn who_is_refused_for_a_damaged_manifest_reads_how_to_save_the_rest() {
    let scratch = tempfile::tempdir().unwrap();
    let healthy = scratch.path().join("healthy");
    copy_of_fixture("blob-zstd", &healthy);
    let names = std::fs::read_dir(&healthy).unwrap().map(|entry| entry.unwrap().file_name());
    let manifest =
        names.map(|name| name.into_string().unwrap()).find(|name| name.starts_with("MANIFEST"));
    let manifest = manifest.unwrap();
    let mut flipped = std::fs::read(healthy.join(&manifest)).unwrap();
    flipped[20] ^= 0x10;
    let damages: [(&str, &str, Option<&[u8]>); 5] = [
        ("torn", "CURRENT", Some(b"MANIF")),
        ("other", "CURRENT", Some(b"nonsense\n")),
        ("gone", &manifest, None),
        ("empty", &manifest, Some(b"")),
        ("flipped", &manifest, Some(&flipped)),
    ];
    for (what, file, bytes) in damages {
        let db = scratch.path().join(what);
        copy_of_fixture("blob-zstd", &db);
        match bytes {
            Some(bytes) => std::fs::write(db.join(file), bytes).unwrap(),
            None => std::fs::remove_file(db.join(file)).unwrap(),
        }
        let read = run(&format!("scan --db {}", db.display()));
        let said = String::from_utf8(read.stderr).unwrap();
        assert!(
            read.status.code() == Some(1) && said.contains("flagstone salvage"),
            "{what}: {said}"
        );
        let options = Options::default();
        for opened in [Db::open(&db, &options), Db::open_read_only(&db, &options)] {
            let error = opened.err().unwrap();
            assert!(error.to_string().contains("flagstone salvage"), "{what}: {error}");
        }
    }
    std::fs::remove_file(healthy.join("CURRENT")).unwrap();
    let error = Db::open(&healthy, &Options::default()).err().unwrap();
    assert!(error.to_string().contains("flagstone salvage"), "{error}");
}

/// `flagstone salvage | head -1` said that nothing was lost.
#[test]
fn losses_keep_their_exit_code_where_nobody_reads_of_them() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, target) = (scratch.path().join("broken"), scratch.path().join("new"));
    copy_of_fixture("blob-lz4", &source);
    let path = file_with(&source, "sst");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[300] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_flagstone"))
        .args(
            format!("salvage --db {} --to {}", source.display(), target.display())
                .split_whitespace(),
        )
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

/// It panicked at the first warning, and saved nothing.
#[test]
fn a_log_that_is_full_keeps_nobody_from_salvaging() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, target) = (scratch.path().join("broken"), scratch.path().join("new"));
    copy_of_fixture("basic", &source);
    for entry in std::fs::read_dir(&source).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("OPTIONS") {
            std::fs::write(path, "nonsense").unwrap();
        }
    }
    let ends_with = |line: String| {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_flagstone"));
        command.args(line.split_whitespace()).stderr(full).status().unwrap().code()
    };
    let (source, target) = (source.display(), target.display());
    assert_eq!(ends_with(format!("salvage --db {source} --to {target}")), Some(0));
    assert_eq!(ends_with(format!("get --db {target} no-such-key")), Some(1));
    assert_eq!(ends_with(format!("get --db {target} --cf none key")), Some(2));
}

/// What was in the WALs' own directory was lost without a word.
#[test]
fn where_the_newest_options_are_damaged_the_ones_before_are_used() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, wals, target) =
        (scratch.path().join("db"), scratch.path().join("wals"), scratch.path().join("new"));
    let (db, wals) = (source.display(), wals.display());
    assert!(run(&format!("put --db {db} --set wal_dir={wals} key value")).status.success());
    assert!(run(&format!("put --db {db} --set wal_dir={wals} later value")).status.success());
    let mut options: Vec<_> = std::fs::read_dir(&source)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("OPTIONS"))
        .collect();
    options.sort();
    assert_eq!(options.len(), 2);
    std::fs::write(&options[1], "nonsense").unwrap();
    let output = run(&format!("salvage --db {db} --to {}", target.display()));
    assert!(output.status.success(), "{output:?}");
    let output = run(&format!("get --db {} later", target.display()));
    assert_eq!(printed(&output).trim(), "value", "{output:?}");
}

#[test]
fn losses_are_named_and_have_an_exit_code_of_their_own() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("broken");
    copy_of_fixture("blob-lz4", &source);
    for (extension, at) in [("sst", 300), ("blob", 500)] {
        let path = file_with(&source, extension);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    let target = |name: &str| scratch.path().join(name).display().to_string();
    let output = run(&format!("salvage --db {} --to {}", source.display(), target("words")));
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    for part in ["LOST", ".sst", "offset", "keys from", "something was lost"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let output = run(&format!("salvage --json --db {} --to {}", source.display(), target("json")));
    assert_eq!(output.status.code(), Some(3));
    let report: serde_json::Value = serde_json::from_str(&printed(&output)).unwrap();
    assert_eq!(report["complete"], false);
    assert!(report["records"].as_u64().unwrap() > 0);
    assert!(
        report["losses"][0]["offset"].is_u64() && report["losses"][0]["from_key_hex"].is_string()
    );
    let sound = run(&format!("verify --db {}", target("json")));
    assert_eq!(sound.status.code(), Some(0), "{}", printed(&sound));
}

/// Mounts a directory a second time, where it cannot be written to; unmounted when it is dropped.
struct ReadOnlyMount(std::path::PathBuf);

impl ReadOnlyMount {
    /// `None` where nobody may mount.
    fn of(source: &Path, at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let mount = |arguments: &[&str]| Command::new("mount").args(arguments).arg(at).output();
        let is_bound = mount(&["--bind", source.to_str().unwrap()])
            .is_ok_and(|output| output.status.success());
        let mounted = is_bound.then(|| Self(at.to_path_buf()))?;
        let is_read_only =
            mount(&["-o", "remount,bind,ro"]).is_ok_and(|output| output.status.success());
        is_read_only.then_some(mounted)
    }
}

impl Drop for ReadOnlyMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

/// The lock's file could not be opened for writing, so nothing was saved from a disk that must not
/// be written to.
#[test]
fn a_database_that_cannot_be_written_to_is_salvaged() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, mounted, target) =
        (scratch.path().join("db"), scratch.path().join("mount"), scratch.path().join("new"));
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = Db::open(&source, &options).unwrap();
    db.put("key", "value").unwrap();
    let Some(_mount) = ReadOnlyMount::of(&source, &mounted) else {
        println!("skipped: mounting needs privileges that are missing here");
        return;
    };
    let line = format!("salvage --db {} --to {}", mounted.display(), target.display());
    let beside = run(&line);
    let said = String::from_utf8(beside.stderr).unwrap();
    assert!(
        beside.status.code() == Some(1) && said.contains("in use"),
        "a writer has the lock: {said}"
    );
    db.close().unwrap();
    drop(db);
    let salvaged = run(&line);
    let said = String::from_utf8(salvaged.stderr.clone()).unwrap();
    assert_eq!(salvaged.status.code(), Some(0), "{}{said}", printed(&salvaged));
    assert!(!printed(&salvaged).contains("lock"), "it was held: {}", printed(&salvaged));
    assert_eq!(printed(&run(&format!("get --db {} key", target.display()))), "value");
    for command in ["verify", "check", "doctor", "dump"] {
        let output = run(&format!("{command} --db {}", mounted.display()));
        assert_eq!(output.status.code(), Some(0), "{command}: {}", printed(&output));
    }
}

fn salvaged(source: &Path, target: &Path) -> (String, Vec<String>) {
    let output = run(&format!("salvage --db {} --to {}", source.display(), target.display()));
    assert!(output.status.code() != Some(1), "{}", String::from_utf8(output.stderr).unwrap());
    let families = printed(&run(&format!("list-families --db {}", target.display())));
    (printed(&output), families.lines().map(str::to_string).collect())
}

/// Its number is in records of a WAL that another family needs. The MANIFEST, once it is begun
/// anew, does not speak of it.
#[test]
fn a_family_that_was_dropped_does_not_come_back_from_a_wal() {
    let scratch = tempfile::tempdir().unwrap();
    let (source, target) = (scratch.path().join("db"), scratch.path().join("new"));
    let mut options = Options::default();
    options.create_if_missing = true;
    options.avoid_flush_during_recovery = true;
    let db = Db::open(&source, &options).unwrap();
    let gone = db.create_column_family("gone", &options.cf).unwrap();
    db.put_cf(&gone, "secret", "value").unwrap();
    db.put("key", "value").unwrap();
    db.drop_column_family(&gone).unwrap();
    drop(gone);
    db.close().unwrap();
    drop(db);
    let db = Db::open(&source, &options).unwrap();
    db.close().unwrap();
    drop(db);
    let (said, families) = salvaged(&source, &target);
    assert_eq!(families, ["default"], "{said}");
    assert!(said.contains("nothing was lost"), "{said}");
    assert_eq!(printed(&run(&format!("get --db {} key", target.display()))), "value");
}

/// A database whose family `name` was dropped, of which a table is left, and made again.
fn with_a_table_of_a_dropped_family(source: &Path, is_made_again: bool) {
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = Db::open(source, &options).unwrap();
    db.put("key", "value").unwrap();
    let first = db.create_column_family("name", &options.cf).unwrap();
    db.put_cf(&first, "old", "value").unwrap();
    db.flush(&first, &FlushOptions::default()).unwrap();
    let table = file_with(source, "sst");
    let kept = std::fs::read(&table).unwrap();
    db.drop_column_family(&first).unwrap();
    drop(first);
    if is_made_again {
        let second = db.create_column_family("name", &options.cf).unwrap();
        db.put_cf(&second, "new", "value").unwrap();
        db.flush(&second, &FlushOptions::default()).unwrap();
    }
    db.flush_all().unwrap();
    db.close().unwrap();
    drop(db);
    std::fs::write(table, kept).unwrap();
}

fn lose_manifest(source: &Path) {
    for entry in std::fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("MANIFEST") || name == "CURRENT" {
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// Keys of the dropped one came back in the family that has its name now.
#[test]
fn a_family_made_again_does_not_get_what_the_one_before_it_held() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("db");
    with_a_table_of_a_dropped_family(&source, true);
    let (said, families) = salvaged(&source, &scratch.path().join("with"));
    assert_eq!(families, ["default", "name"], "the MANIFEST tells: {said}");
    lose_manifest(&source);
    let target = scratch.path().join("without");
    let (said, _) = salvaged(&source, &target);
    assert_eq!(
        printed(&run(&format!("scan --db {} --cf name", target.display()))),
        "new\tvalue\n",
        "{said}"
    );
    assert!(said.contains("'salvaged-1'") && said.contains("dropped"), "{said}");
}

#[test]
fn of_a_family_that_nothing_but_its_tables_names_it_is_said_that_it_may_have_been_dropped() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("db");
    with_a_table_of_a_dropped_family(&source, false);
    let (said, families) = salvaged(&source, &scratch.path().join("with"));
    assert_eq!(families, ["default"], "the MANIFEST tells: {said}");
    assert!(!said.contains("may be one"), "{said}");
    lose_manifest(&source);
    let (said, families) = salvaged(&source, &scratch.path().join("without"));
    assert_eq!(families, ["default", "name"]);
    assert!(said.contains("Family 'name'") && said.contains("may have been dropped"), "{said}");
}

/// Destroys the newest OPTIONS file; one before it is left.
fn lose_newest_options(source: &Path) {
    let entries = std::fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path());
    let is_options =
        |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("OPTIONS-");
    let mut files: Vec<_> = entries.filter(is_options).collect();
    files.sort();
    assert!(files.len() > 1, "{files:?}");
    std::fs::write(files.last().unwrap(), "nonsense").unwrap();
}

/// It does not name one that was made since, which therefore passed for dropped.
#[test]
fn an_older_options_file_does_not_deny_a_family() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("db");
    let mut options = Options::default();
    options.create_if_missing = true;
    let db = Db::open(&source, &options).unwrap();
    let made = db.create_column_family("made", &options.cf).unwrap();
    db.put_cf(&made, "key", "value").unwrap();
    db.close().unwrap();
    drop((made, db));
    lose_newest_options(&source);
    let (said, families) = salvaged(&source, &scratch.path().join("with"));
    assert_eq!(families, ["default", "made"], "{said}");
    assert!(!said.contains("may be one"), "the MANIFEST tells: {said}");
}

/// It names one that was dropped since, which came back as if nobody doubted it.
#[test]
fn an_older_options_file_does_not_confirm_a_family() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("db");
    with_a_table_of_a_dropped_family(&source, false);
    lose_newest_options(&source);
    lose_manifest(&source);
    let (said, families) = salvaged(&source, &scratch.path().join("without"));
    assert_eq!(families, ["default", "name"], "{said}");
    assert!(said.contains("Family 'name'") && said.contains("may have been dropped"), "{said}");
}

/// A file of which not even the size could be read, as a link to nowhere, kept all others from
/// being saved.
#[test]
fn a_link_to_nowhere_costs_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("broken");
    copy_of_fixture("basic", &source);
    std::os::unix::fs::symlink("/nowhere/at/all", source.join("999999.sst")).unwrap();
    let output = run(&format!(
        "salvage --db {} --to {}",
        source.display(),
        scratch.path().join("a").display()
    ));
    assert_eq!(
        output.status.code(),
        Some(0),
        "the MANIFEST does not name it: {}",
        printed(&output)
    );
    assert!(printed(&output).contains("999999.sst"), "{}", printed(&output));
    std::fs::rename(source.join("999999.sst"), source.join("999999.log")).unwrap();
    let output = run(&format!(
        "salvage --db {} --to {}",
        source.display(),
        scratch.path().join("b").display()
    ));
    assert_eq!(output.status.code(), Some(3), "{}", printed(&output));
}

/// Of a database whose tables were all gone nothing was lost.
#[test]
fn large_values_that_nothing_refers_to_any_more_are_a_loss() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("broken");
    copy_of_fixture("blob-lz4", &source);
    for entry in std::fs::read_dir(&source).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "blob") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let output = run(&format!(
        "salvage --db {} --to {}",
        source.display(),
        scratch.path().join("new").display()
    ));
    let said = printed(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("LOST") && !said.contains("nothing was lost"), "{said}");
}

/// What lies behind a table that is whole, and another database's blob file, which is whole too,
/// were sound.
#[test]
fn a_file_of_another_size_than_the_manifest_says_is_not_sound() {
    for (extension, fixture) in [("sst", "basic"), ("blob", "blob-lz4")] {
        let scratch = tempfile::tempdir().unwrap();
        let source = scratch.path().join("db");
        copy_of_fixture(fixture, &source);
        let line = format!("verify --db {}", source.display());
        assert_eq!(run(&line).status.code(), Some(0));
        let path = file_with(&source, extension);
        match extension {
            "sst" => {
                let mut bytes = std::fs::read(&path).unwrap();
                bytes.extend([0; 100]);
                std::fs::write(&path, bytes).unwrap();
            }
            _ => {
                let other = scratch.path().join("other");
                copy_of_fixture("blob-zstd", &other);
                std::fs::copy(file_with(&other, extension), &path).unwrap();
            }
        }
        let output = run(&line);
        assert_eq!(output.status.code(), Some(1), "{extension}: {}", printed(&output));
    }
}
