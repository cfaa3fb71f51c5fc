//! What commands say that helps.

use std::path::Path;
use std::process::{Command, Output};

use flagstone::TransactionDb;
use flagstone::base::{Remedy, RemedyKind};
use flagstone::db::Db;
use flagstone::options::Options;

use super::Tried;
use super::common::{printed, run};
use super::findings::{files, logged};

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The remedy, if a command says it.
fn said(output: &Output, remedy: &Remedy) -> Vec<Remedy> {
    let is_said = text(output).contains(&remedy.to_string());
    if is_said { vec![remedy.clone()] } else { Vec::new() }
}

/// The remedy, if a command says it; one that does not must succeed.
fn tried(before: &Output, remedy: &Remedy, after: &Output) -> Tried {
    assert!(!before.status.success(), "{}", text(before));
    let tried = Tried { before: said(before, remedy), after: said(after, remedy) };
    assert!(after.status.success(), "{}", text(after));
    tried
}

/// The kinds of what the doctor advises, and what it prints.
fn doctor(path: &Path, flags: &str) -> (Vec<String>, String) {
    let line = format!("doctor --db {} {flags}", path.display());
    let found: serde_json::Value =
        serde_json::from_slice(&run(&format!("{line} --json")).stdout).unwrap();
    let findings = found["findings"].as_array().unwrap().clone();
    let kinds = findings.iter().flat_map(|finding| finding["remedies"].as_array().unwrap().clone());
    (kinds.map(|kind| kind.as_str().unwrap().to_string()).collect(), text(&run(&line)))
}

/// Whether the doctor advises it, as a remedy.
fn advised(path: &Path, flags: &str, remedy: &Remedy) -> Vec<Remedy> {
    let (kinds, _) = doctor(path, flags);
    let is_advised = kinds.contains(&format!("{:?}", remedy.kind()));
    if is_advised { vec![remedy.clone()] } else { Vec::new() }
}

/// The command that the doctor names in its advice for a closed database.
fn named_command(said: &str) -> String {
    let start = said.find("flagstone compact").unwrap_or_else(|| panic!("no command: {said}"));
    let rest = &said[start + "flagstone ".len()..];
    let end = rest.find([';', ',', '(', '\n']).unwrap_or(rest.len());
    rest[..end].trim_end().replace(" collects it", "").replace('\'', "")
}

/// Follows the doctor's advice on a database that is closed.
fn compacted(path: &Path, flags: &str, remedy: &Remedy) -> Tried {
    let before = advised(path, flags, remedy);
    let command = named_command(&doctor(path, flags).1);
    printed(&format!("{command} --db {} {flags}", path.display()));
    Tried { before, after: advised(path, flags, remedy) }
}

/// A name that no shell takes for a word is advised in digits.
pub fn decide_transaction() -> Tried {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let db = TransactionDb::open(&path).unwrap();
    let mut transaction = db.begin();
    transaction.set_name("order 4711").unwrap();
    transaction.put(&db, "key", "value").unwrap();
    transaction.prepare().unwrap();
    drop((transaction, db));
    let remedy = Remedy::DecideTransaction { name: String::new(), is_running: false };
    let before = advised(&path, "", &remedy);
    let said = doctor(&path, "").1;
    let (_, command) = said.split_once("flagstone transactions ").expect("a command");
    let (command, _) = command.split_once(',').expect("another one");
    printed(&format!("transactions --db {} {command}", path.display()));
    let after = advised(&path, "", &remedy);
    assert_eq!(Db::open(&path, &Options::default()).unwrap().get("key").unwrap().unwrap(), "value");
    Tried { before, after }
}

const COMPACT: Remedy = Remedy::Compact {
    what: "",
    family: String::new(),
    bottommost: false,
    is_running: false,
    but: String::new(),
};

fn settings(settings: &str) -> Options {
    let mut options = Options::default();
    options.set_all("create_if_missing=true;compression=kNoCompression").unwrap();
    options.set_all(settings).unwrap();
    options
}

/// Deletions that a snapshot kept when they were compacted lie in the last level, which `flagstone
/// compact` alone leaves as it is.
fn deleted_in_the_last_level(path: &Path) {
    let options = settings("disable_auto_compactions=true");
    let db = Db::open(path, &options).unwrap();
    let family = db.create_column_family("of photos", &options.cf).unwrap();
    (0..4000).for_each(|key| db.put_cf(&family, format!("{key:06}"), [b'v'; 100]).unwrap());
    db.flush_all().unwrap();
    let snapshot = db.snapshot();
    (0..3900).for_each(|key| db.delete_cf(&family, format!("{key:06}")).unwrap());
    db.compact_range(&family, None, None, &Default::default()).unwrap();
    drop(snapshot);
    db.close().unwrap();
}

pub fn compact() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    deleted_in_the_last_level(&path);
    let before = advised(&path, "", &COMPACT);
    let said = doctor(&path, "").1;
    assert!(said.contains("flagstone compact --force-bottommost --cf 'of photos'"), "{said}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagstone"));
    command.args(["compact", "--force-bottommost", "--cf", "of photos", "--db"]).arg(&path);
    assert!(command.status().unwrap().success());
    Tried { before, after: advised(&path, "", &COMPACT) }
}

/// Many tables wait where compactions do not run unasked.
#[test]
fn tables_that_wait_in_level_0_are_compacted_by_the_command_that_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let few = "disable_auto_compactions=true;level0_slowdown_writes_trigger=10;level0_stop_writes_trigger=30";
    let db = Db::open(&path, &settings(few)).unwrap();
    for round in 0..15 {
        (0..100).for_each(|key| db.put(format!("{:04}", key * 7 + round), [b'v'; 100]).unwrap());
        db.flush_all().unwrap();
    }
    db.close().unwrap();
    drop(db);
    for flags in ["", "--set disable_auto_compactions=false"] {
        let tried = advised(&path, flags, &COMPACT);
        assert_eq!(tried.len(), 1, "{flags}: {}", doctor(&path, flags).1);
    }
    let said = doctor(&path, "--set disable_auto_compactions=false").1;
    assert!(said.contains("would be delayed") && !said.contains("are delayed"), "{said}");
    let Tried { before, after } = compacted(&path, "", &COMPACT);
    assert!(!before.is_empty() && after.is_empty(), "{}", doctor(&path, "").1);
}

/// A database of which most of the blob files is garbage that no compaction has collected.
fn with_garbage(path: &Path) {
    let collects_none =
        "enable_blob_files=true;min_blob_size=1000;max_space_amplification=0;write_buffer_size=4m";
    let db = Db::open(path, &settings(collects_none)).unwrap();
    for _ in 0..3 {
        (0..1000).for_each(|key| db.put(format!("{key:04}"), [b'v'; 20_000]).unwrap());
    }
    db.flush_all().unwrap();
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
}

/// It said that compactions are behind, of a database that is closed, and advised a command that
/// did nothing.
pub fn collect_garbage() -> Tried {
    let of_kind = |flags: &str| {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("db");
        with_garbage(&path);
        let (kinds, said) = doctor(&path, flags);
        assert!(kinds.contains(&format!("{:?}", RemedyKind::CollectGarbage)), "{flags}: {said}");
        assert!(
            said.contains(" s if the disk") && !said.contains("what delays"),
            "{flags}: {said}"
        );
        let collect = Remedy::CollectGarbage {
            family: String::new(),
            by_request: false,
            is_running: false,
            bytes: 0,
        };
        let tried = compacted(&path, flags, &collect);
        let taken: u64 = files(&path, "blob").iter().map(|file| allocated(file)).sum();
        assert!(taken < 20_000_000 * 14 / 10, "{flags}: {taken}");
        tried
    };
    of_kind("--set max_space_amplification=1.3 --set disable_auto_compactions=true");
    of_kind("--set max_space_amplification=1.3")
}

fn allocated(file: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(file).unwrap().blocks() * 512
}

pub fn mount_wal_directory() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (path, wals) = (scratch.path().join("db"), scratch.path().join("wals"));
    let db = Db::open(&path, &settings(&format!("wal_dir={}", wals.display()))).unwrap();
    db.put("key", "value").unwrap();
    db.close().unwrap();
    drop(db);
    let elsewhere = scratch.path().join("unmounted");
    std::fs::rename(&wals, &elsewhere).unwrap();
    let flags = format!("--set wal_dir={}", elsewhere.display());
    let remedy = Remedy::MountWalDirectory;
    Tried { before: advised(&path, "", &remedy), after: advised(&path, &flags, &remedy) }
}

/// A WAL that is no file.
pub fn restore_wal() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (_, path, wal) = logged(scratch.path());
    let whole = std::fs::read(&wal).unwrap();
    std::fs::remove_file(&wal).unwrap();
    std::fs::create_dir(&wal).unwrap();
    let before = advised(&path, "", &Remedy::RestoreWal);
    std::fs::remove_dir(&wal).unwrap();
    std::fs::write(&wal, whole).unwrap();
    Tried { before, after: advised(&path, "", &Remedy::RestoreWal) }
}

/// Settings that pass over damage, as a program has left them.
pub fn set_back() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (mut options, path, _) = logged(scratch.path());
    options.set_all("paranoid_checks=false;wal_recovery_mode=kSkipAnyCorruptedRecords").unwrap();
    Db::open(&path, &options).unwrap().close().unwrap();
    let remedies = [("paranoid_checks", "true"), ("wal_recovery_mode", "kPointInTimeRecovery")];
    let remedies = remedies.map(|(option, to)| Remedy::SetBack { option, to, is_running: false });
    let advised = || {
        let (_, said) = doctor(&path, "");
        remedies
            .iter()
            .filter(|remedy| said.contains(&remedy.to_string()))
            .cloned()
            .collect::<Vec<_>>()
    };
    let before = advised();
    assert_eq!(before.len(), remedies.len(), "{before:?}");
    for remedy in &remedies {
        let Remedy::SetBack { option, to, .. } = remedy else { unreachable!() };
        printed(&format!("flush --set {option}={to} --db {}", path.display()));
    }
    Tried { before, after: advised() }
}

pub fn move_options_away() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (_, path, _) = logged(scratch.path());
    let is_options = |path: &std::path::PathBuf| path.to_str().unwrap().contains("OPTIONS");
    let all: Vec<_> = files(&path, "").into_iter().filter(is_options).collect();
    all.iter().for_each(|file| std::fs::write(file, "nonsense").unwrap());
    let before = advised(&path, "", &Remedy::MoveOptionsAway);
    all.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    Tried { before, after: advised(&path, "", &Remedy::MoveOptionsAway) }
}

pub fn salvage_without_current() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (_, path, _) = logged(scratch.path());
    std::fs::remove_file(path.join("CURRENT")).unwrap();
    let saved = scratch.path().join("saved");
    let before = run(&format!("get key10 --db {}", path.display()));
    run(&format!("salvage --db {} --to {}", path.display(), saved.display()));
    let after = run(&format!("get key10 --db {}", saved.display()));
    tried(&before, &Remedy::SalvageWithoutCurrent, &after)
}

pub fn check_path() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (_, path, _) = logged(scratch.path());
    let get = |path: &Path| run(&format!("get key10 --db {}", path.display()));
    tried(&get(&scratch.path().join("bd")), &Remedy::CheckPath, &get(&path))
}

/// The WAL is shown by its own command.
pub fn show_by_kind() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (_, _, wal) = logged(scratch.path());
    let remedy = Remedy::ShowByKind { command: "flagstone wal" };
    let before = run(&format!("sst {}", wal.display()));
    tried(&before, &remedy, &run(&format!("wal {}", wal.display())))
}

/// A test beside `beside_writer` has looks at a database that changes; when that is closed, the
/// next look says what is there.
pub fn look_again() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (_, path, _) = logged(scratch.path());
    Tried { before: vec![Remedy::LookAgain], after: advised(&path, "", &Remedy::LookAgain) }
}

/// A checkpoint of a database that is open here; what was advised copies it.
pub fn copy_beside_writer() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (options, path, _) = logged(scratch.path());
    let (db, copy) = (path.display(), scratch.path().join("copy"));
    let held = Db::open(&path, &options).unwrap();
    let before = run(&format!("checkpoint --db {db} {}", copy.display()));
    assert!(
        text(&before).contains("in use by") && text(&before).contains("process"),
        "{}",
        text(&before)
    );
    let copied =
        shell(&format!("flagstone dump --db {db} | flagstone load --db {}", copy.display()));
    assert!(copied.status.success(), "{}", text(&copied));
    assert_eq!(
        printed(&format!("count --db {}", copy.display())),
        printed(&format!("count --db {db}"))
    );
    held.close().unwrap();
    drop(held);
    let after = run(&format!("checkpoint --db {db} {}", scratch.path().join("other").display()));
    tried(&before, &Remedy::CopyBesideWriter, &after)
}

/// What is intact is in the new database.
pub fn verify_and_salvage() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (options, path, _) = logged(scratch.path());
    Db::open(&path, &options).unwrap().flush_all().unwrap();
    let table = files(&path, "sst").pop().unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let before = run(&format!("scan --db {}", path.display()));
    assert_eq!(run(&format!("verify --db {}", path.display())).status.code(), Some(1));
    let saved = scratch.path().join("saved");
    run(&format!("salvage --db {} --to {}", path.display(), saved.display()));
    tried(&before, &Remedy::VerifyAndSalvage, &run(&format!("scan --db {}", saved.display())))
}

pub fn see_what_is_there() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (_, path, wal) = logged(scratch.path());
    let before = run(&format!("wal {}", path.join("000099.log").display()));
    tried(&before, &Remedy::SeeWhatIsThere, &run(&format!("wal {}", wal.display())))
}

/// A shell runs the command, with a limit of its own or other ends.
fn shell(text: &str) -> Output {
    let text = text.replace("flagstone", env!("CARGO_BIN_EXE_flagstone"));
    Command::new("sh").args(["-c", &text]).output().unwrap()
}

pub fn make_space_and_repeat() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (_, path, _) = logged(scratch.path());
    let scan = |to: &str| shell(&format!("flagstone scan --db {} > {to}", path.display()));
    tried(&scan("/dev/full"), &Remedy::MakeSpaceAndRepeat, &scan("/dev/null"))
}

/// A signal would end the process, unless it is ignored.
pub fn permit_larger_files() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let (_, path, _) = logged(scratch.path());
    let out = scratch.path().join("out");
    let scan = |limit: &str| {
        let (path, out) = (path.display(), out.display());
        shell(&format!("trap '' XFSZ; {limit} flagstone scan --db {path} > {out}"))
    };
    tried(&scan("ulimit -f 0;"), &Remedy::PermitLargerFiles, &scan(""))
}

/// A closed database of 60 tables.
fn many_tables(path: &Path) {
    let db = Db::open(path, &settings("disable_auto_compactions=true")).unwrap();
    for round in 0..60 {
        db.put(format!("{}", round % 2), "value").unwrap();
        db.put("every table", "value").unwrap();
        db.flush_all().unwrap();
    }
    db.close().unwrap();
}

pub fn permit_more_files() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    many_tables(&path);
    let compact = |limit: &str| {
        shell(&format!("{limit} flagstone compact --db {} --set max_open_files=-1", path.display()))
    };
    tried(&compact("ulimit -Sn 40; ulimit -Hn 40;"), &Remedy::PermitMoreFiles, &compact(""))
}

pub fn hold_all_files() -> Tried {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    many_tables(&path);
    let scan = |limit: u64| {
        shell(&format!(
            "ulimit -Sn {limit}; ulimit -Hn {limit}; flagstone scan --db {}",
            path.display()
        ))
    };
    // The tables, and twice 16 for what else is open.
    let wanted = 60 + 32;
    tried(&scan(40), &Remedy::HoldAllFiles { limit: Some(40), wanted }, &scan(wanted))
}
