//! Commands on a database that is in use, and on one that this user may not change or read.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use common::{failed, printed, run};
use flagstone::db::Db;
use flagstone::options::Options;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Pid, Signal, kill_process};

/// What a command does with a database that another process writes to.
#[derive(PartialEq)]
enum Beside {
    Refused,
    Works,
    /// It takes no database of its user's.
    Without,
}

/// All commands: {db} is a database, {new} is not there, {wal} and {blob} are files of the
/// database.
const COMMANDS: [(&str, Beside, &str); 56] = [
    ("get", Beside::Works, "get --db {db} key"),
    ("multi-get", Beside::Works, "multi-get --db {db} key"),
    ("put", Beside::Refused, "put --db {db} key value"),
    ("batch-put", Beside::Refused, "batch-put --db {db} key value"),
    ("get-entity", Beside::Works, "get-entity --db {db} key"),
    ("multi-get-entity", Beside::Works, "multi-get-entity --db {db} key"),
    ("put-entity", Beside::Refused, "put-entity --db {db} key name:value"),
    ("delete", Beside::Refused, "delete --db {db} key"),
    ("single-delete", Beside::Refused, "single-delete --db {db} key"),
    ("delete-range", Beside::Refused, "delete-range --db {db} a z"),
    ("clip", Beside::Refused, "clip --db {db} a z"),
    ("scan", Beside::Works, "scan --db {db}"),
    ("count", Beside::Works, "count --db {db}"),
    ("approximate-size", Beside::Works, "approximate-size --db {db} --to z"),
    ("query", Beside::Refused, "query --db {db}"),
    ("import", Beside::Refused, "import --db {db} {db}/CURRENT"),
    ("export", Beside::Works, "export --db {db} {new}"),
    ("dump", Beside::Works, "dump --db {db}"),
    ("load", Beside::Refused, "load --db {db}"),
    // It writes what it reads from its standard input.
    ("write-extern-sst", Beside::Without, ""),
    ("ingest", Beside::Refused, "ingest --db {db} {new}"),
    ("verify", Beside::Works, "verify --db {db}"),
    ("check", Beside::Works, "check --db {db}"),
    ("doctor", Beside::Works, "doctor --db {db}"),
    ("salvage", Beside::Refused, "salvage --db {db} --to {new}"),
    ("stats", Beside::Works, "stats --db {db}"),
    ("top", Beside::Works, "top --db {db} --once"),
    ("space", Beside::Works, "space --db {db}"),
    ("compact", Beside::Refused, "compact --db {db}"),
    ("reduce-levels", Beside::Refused, "reduce-levels --db {db} --new-levels 3"),
    (
        "change-compaction-style",
        Beside::Refused,
        "change-compaction-style --db {db} --new-compaction-style universal",
    ),
    ("flush", Beside::Refused, "flush --db {db}"),
    ("checkpoint", Beside::Refused, "checkpoint --db {db} {new}"),
    ("transactions", Beside::Works, "transactions --db {db}"),
    ("replay", Beside::Refused, "replay --db {db} {new}"),
    ("io-trace", Beside::Without, ""),
    ("backup", Beside::Refused, "backup create --db {db} --dir {new}"),
    ("list-families", Beside::Works, "list-families --db {db}"),
    ("create-family", Beside::Refused, "create-family --db {db} another"),
    ("drop-family", Beside::Refused, "drop-family --db {db} other"),
    ("export-family", Beside::Refused, "export-family --db {db} {new}"),
    ("import-family", Beside::Refused, "import-family --db {db} --cf another {new}"),
    ("list-files", Beside::Works, "list-files --db {db}"),
    ("list-range-deletions", Beside::Works, "list-range-deletions --db {db}"),
    ("dump-live-files", Beside::Works, "dump-live-files --db {db}"),
    ("manifest", Beside::Works, "manifest --db {db}"),
    ("update-manifest", Beside::Refused, "update-manifest --db {db} --temperature 4=kWarm"),
    ("unsafe-remove-table", Beside::Refused, "unsafe-remove-table --db {db} 4 --accept-loss"),
    ("sst", Beside::Works, "sst {db}"),
    ("wal", Beside::Works, "wal {wal}"),
    ("blob", Beside::Works, "blob {blob}"),
    (
        "bench",
        Beside::Refused,
        "bench --benchmarks=overwrite --num=10 --use_existing_db=true --db={db}",
    ),
    ("cache-sim", Beside::Without, ""),
    ("completions", Beside::Without, ""),
    ("man", Beside::Without, ""),
    ("help", Beside::Without, ""),
];

/// One that is added later belongs into the table.
#[test]
fn the_table_has_all_commands() {
    let help = printed("--help");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names: Vec<_> = listed
        .map_while(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(names, COMMANDS.map(|(name, ..)| name));
}

/// Has a table, a blob file, a WAL with records, and a family `other`.
fn made(directory: &Path) -> Options {
    let mut options = Options::default();
    options.create_if_missing = true;
    options
        .set_all("enable_blob_files=true;min_blob_size=100;disable_auto_compactions=true;publish_figures=false")
        .unwrap();
    let db = Db::open(directory, &options).unwrap();
    db.create_column_family("other", &options.cf).unwrap();
    db.put("key", "v".repeat(1000)).unwrap();
    db.flush_all().unwrap();
    db.put("logged", "value").unwrap();
    db.close().unwrap();
    options
}

fn named(directory: &Path, extension: &str) -> PathBuf {
    let mut paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.extension().is_some_and(|found| found == extension)).unwrap()
}

/// Sizes and times of all files. None is opened: that would give up a record lock of this process.
fn state(directory: &Path) -> BTreeMap<PathBuf, (u64, std::time::SystemTime)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    // A file may vanish meanwhile.
    let found = entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)));
    found.map(|(path, found)| (path, (found.len(), found.modified().unwrap()))).collect()
}

fn try_all(db: &Path, holder: &str, is_locked: impl Fn() -> bool) {
    let scratch = tempfile::tempdir().unwrap();
    let (wal, blob, before) = (named(db, "log"), named(db, "blob"), state(db));
    for (name, beside, line) in COMMANDS {
        if beside == Beside::Without {
            continue;
        }
        let new = scratch.path().join(name);
        let places = [("{db}", db), ("{new}", &new), ("{wal}", &wal), ("{blob}", &blob)];
        let line = places.iter().fold(line.to_string(), |line, (place, path)| {
            line.replace(place, &path.display().to_string())
        });
        let output = match name {
            "load" => common::run_with_input(&line, b"default 61 62\n"),
            _ => run(&line),
        };
        let said = text(&output);
        match beside {
            Beside::Refused => {
                assert_eq!(output.status.code(), Some(1), "{line}: {said}");
                let named = format!("in use by {holder}, process {};", std::process::id());
                assert!(said.contains(&named), "{line}: {said}");
            }
            _ => assert!(output.status.success(), "{line}: {said}"),
        }
        assert_eq!(state(db), before, "{line} has changed the database");
        assert!(is_locked(), "{line} has taken the lock");
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn own_name() -> String {
    fs::read_to_string("/proc/self/comm").unwrap().trim().to_string()
}

/// RocksDB, or an earlier Flagstone, has the database open.
#[test]
fn all_commands_beside_a_record_lock() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db");
    made(&db);
    let lock = OpenOptions::new().read(true).write(true).open(db.join("LOCK")).unwrap();
    fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    try_all(&db, &own_name(), || true);
}

#[test]
fn all_commands_beside_an_open_database() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db");
    let options = made(&db);
    let opened = Db::open(&db, &options).unwrap();
    opened.put("logged", "again").unwrap();
    opened.flush_wal(true).unwrap();
    let lock = OpenOptions::new().read(true).write(true).open(db.join("LOCK")).unwrap();
    // Of this process, which has the lock by another open file.
    let is_locked = || fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).is_err();
    try_all(&db, &own_name(), is_locked);
    opened.put("logged", "in the end").unwrap();
    opened.close().unwrap();
    assert!(!is_locked());
}

fn started(line: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_flagstone"))
        .args(line.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// It read its own LOCK by another name, had the lock no longer, and a second writer made the
/// import's file disappear.
#[test]
fn an_import_keeps_its_lock_whatever_it_reads() {
    const SIZE: u64 = 128 << 20;
    let scratch = tempfile::tempdir().unwrap();
    let at = |name: &str| scratch.path().join(name);
    let db = at("db").display().to_string();
    printed(&format!("put --db {db} a 1"));
    fs::create_dir(at("tree")).unwrap();
    fs::hard_link(at("db/LOCK"), at("tree/LOCK")).unwrap();
    File::create(at("tree/zz")).unwrap().set_len(SIZE).unwrap();
    let tree = at("tree").display().to_string();
    let mut import = started(&format!("import --threads 1 --db {db} {tree}/LOCK {tree}/zz"));
    let has_blob_file =
        || state(&at("db")).keys().any(|path| path.extension().is_some_and(|kind| kind == "blob"));
    while !has_blob_file() {
        assert!(import.try_wait().unwrap().is_none(), "it ended without a blob file");
        std::thread::yield_now();
    }
    let pid = Pid::from_raw(import.id().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let second = run(&format!("put --db {db} b 2"));
    let is_over = import.try_wait().unwrap().is_some();
    kill_process(pid, Signal::CONT).unwrap();
    let said = text(&second);
    assert!(
        is_over || said.contains(&format!("in use by flagstone, process {}", import.id())),
        "{said}"
    );
    assert_eq!(import.wait().unwrap().code(), Some(1), "the link to its own lock is left out");
    let expected = if second.status.success() { "a\nb\nzz\n" } else { "a\nzz\n" };
    assert_eq!(printed(&format!("scan --db {db} --keys-only")), expected);
    let value = run(&format!("get --db {db} zz")).stdout;
    assert!(value.len() as u64 >= SIZE && value[..SIZE as usize].iter().all(|byte| *byte == 0));
}

/// The number of `nobody`.
const NOBODY: u32 = 65534;

/// A user without rights on what the test's own has made.
struct Nobody {
    scratch: tempfile::TempDir,
    program: PathBuf,
}

impl Nobody {
    /// `None`, and a visible word, where the test's user may not become another one, or that one
    /// may not run the program.
    fn new() -> Option<Self> {
        let scratch = tempfile::tempdir().unwrap();
        permit(scratch.path(), 0o755);
        let built = Path::new(env!("CARGO_BIN_EXE_flagstone"));
        let program = scratch.path().join("flagstone");
        if fs::hard_link(built, &program).is_err() {
            fs::copy(built, &program).unwrap();
        }
        let nobody = Self { scratch, program };
        let can_run =
            nobody.command("--version").output().is_ok_and(|output| output.status.success());
        if !can_run {
            use std::io::Write;
            let word =
                b"SKIPPED: this user may not run programs as another one (the test wants root)\n";
            std::io::stderr().write_all(word).unwrap();
        }
        can_run.then_some(nobody)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(line.split_whitespace()).current_dir(self.scratch.path());
        command.uid(NOBODY).gid(NOBODY).stdin(Stdio::null());
        command
    }

    /// Runs a command; its exit code and all that it printed.
    fn run(&self, line: &str) -> (i32, String) {
        let output = self.command(line).output().unwrap();
        (output.status.code().unwrap(), text(&output))
    }

    /// One error, with what to do, and nothing else.
    fn is_refused(&self, line: &str, file: &str) {
        let (code, said) = self.run(line);
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(code, 1, "{line}: {said}");
        assert_eq!(lines.len(), 2, "{line}: {said}");
        assert!(lines[0].starts_with("flagstone: I/O error: cannot "), "{line}: {said}");
        assert!(
            lines[0].contains("Permission denied") && lines[0].contains(file),
            "{line}: {said}"
        );
        assert!(lines[1].contains("run it as the owner"), "{line}: {said}");
    }
}

fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Salvage called a file lost that the user may not read, and doctor the database broken.
#[test]
fn a_database_of_another_user() {
    let Some(nobody) = Nobody::new() else { return };
    let db = nobody.at("db");
    made(&db);
    for (name, mode) in [("tree", 0o755), ("free", 0o777)] {
        fs::create_dir(nobody.at(name)).unwrap();
        permit(&nobody.at(name), mode);
    }
    fs::write(nobody.at("tree/file"), "contents").unwrap();
    let all_files = || state(&db).into_keys().collect::<Vec<_>>();
    let commands = ["doctor --db db", "salvage --db db --to free/new", "import --db db tree"];
    let new = nobody.at("free/new");

    // Readable by all.
    let before = state(&db);
    let (code, said) = nobody.run("doctor --db db");
    assert!(code == 0 && said.contains("healthy"), "{said}");
    let (code, said) = nobody.run("salvage --db db --to free/readable");
    assert!(code == 0 && !said.contains("LOST"), "{said}");
    nobody.is_refused("salvage --db db --to tree/new", "tree/new");
    nobody.is_refused("import --db db tree", "db/LOCK");
    nobody.is_refused("import --db tree/db tree", "tree/db");
    assert_eq!(state(&db), before);

    // Nothing can be read, then no directory, then one file of each kind.
    permit(&db, 0o700);
    commands.iter().for_each(|command| nobody.is_refused(command, "db"));
    permit(&db, 0o755);
    for secret in all_files() {
        let name = secret.file_name().unwrap().to_str().unwrap().to_string();
        let kind = name.split(['-', '.']).next_back().unwrap();
        permit(&secret, 0o600);
        for command in commands {
            let (code, said) = nobody.run(command);
            let is_told = said.contains("Permission denied") || said.contains("owner");
            let can_do_without =
                ["IDENTITY", "LOCK"].contains(&kind) || command.starts_with("doctor");
            assert!(is_told || can_do_without || code == 0, "{command} without {name}: {said}");
            assert!(
                !said.contains("LOST") && !said.contains("damaged"),
                "{command} without {name}: {said}"
            );
            assert!(
                !command.starts_with("import") || code == 1,
                "{command} without {name}: {said}"
            );
            assert!(code == 0 || !new.exists(), "{command} without {name}: {said}");
            // Of a table, doctor says that it cannot be read, and not that anything is wrong with
            // it.
            let is_judged =
                said.contains("BROKEN") && !said.contains("its contents could not be checked");
            assert!(!is_judged, "{command} without {name}: {said}");
            let _ = fs::remove_dir_all(&new);
        }
        permit(&secret, 0o644);
    }
    all_files().iter().for_each(|file| permit(file, 0o600));
    commands.iter().for_each(|command| nobody.is_refused(command, "db/"));
    assert!(!new.exists());
    all_files().iter().for_each(|file| permit(file, 0o644));
    assert_eq!(state(&db), before);
}

#[test]
fn a_database_whose_directory_may_not_be_written() {
    let Some(nobody) = Nobody::new() else { return };
    let db = nobody.at("db");
    made(&db);
    fs::create_dir(nobody.at("tree")).unwrap();
    fs::write(nobody.at("tree/file"), "contents").unwrap();
    for path in state(&db).into_keys().chain([db.clone()]) {
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    permit(&db, 0o555);
    let dump = nobody.run("dump --db db");
    let names = || state(&db).into_keys().collect::<Vec<_>>();
    let before = names();
    let (code, said) = nobody.run("doctor --db db");
    assert!(code == 0 && said.contains("healthy"), "{said}");
    for _ in 0..2 {
        nobody.is_refused("import --db db tree", "db/");
        nobody.is_refused("salvage --db db --to new", "new");
        assert_eq!(names(), before);
        assert_eq!(nobody.run("dump --db db"), dump);
    }
    permit(&db, 0o755);
    assert_eq!(nobody.run("import --db db tree").0, 0);
    assert_eq!(nobody.run("get --db db file"), (0, "contents".to_string()));
    // What is in the tree may not be readable, either.
    permit(&nobody.at("tree/file"), 0o600);
    let (code, said) = nobody.run("import --db db tree");
    assert!(
        code == 1 && said.contains("Permission denied") && said.contains("tree/file"),
        "{said}"
    );
    assert_eq!(failed(&format!("get --db {} nothing", db.display())).0, 1);
}
