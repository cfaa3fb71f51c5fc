//! `flagstone top` beside a process that has the database open.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use common::{failed, printed};
use flagstone::Db;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

fn told(path: &Path) -> serde_json::Value {
    let printed = printed(&format!("top --db {} --once --json", path.display()));
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn a_database_is_seen_while_it_is_open_and_told_from_one_that_was_left() {
    let scratch = tempfile::tempdir().unwrap();
    let path = &scratch.path().join("db");
    let db = Db::open(path).unwrap();
    let live = told(path);
    assert_eq!((&live["state"], &live["pid"]), (&"live".into(), &std::process::id().into()));
    assert!(live["per_second"]["rocksdb.number.keys.written"].is_number(), "{live}");
    assert_eq!(live["files"]["wal"]["count"], 1);
    let lines = printed(&format!("top --db {} --once", path.display()));
    assert!(lines.contains(&format!("process {}, open ", std::process::id())), "{lines}");
    // As a process that was killed some time ago leaves it.
    let left = std::fs::read_to_string(path.join("FIGURES")).unwrap();
    db.close().unwrap();
    assert_eq!(told(path)["state"], "none");
    let mut figures = flagstone::figures::Figures::parse(left.as_bytes()).unwrap();
    figures.pid = u32::MAX;
    figures.updated_at_us -= 60_000_000;
    std::fs::write(path.join("FIGURES"), figures.encode()).unwrap();
    let stale = told(path);
    assert_eq!(stale["state"], "stale");
    assert!(stale.get("per_second").is_none(), "{stale}");
    std::fs::write(path.join("FIGURES"), "nonsense").unwrap();
    let lines = printed(&format!("top --db {} --once", path.display()));
    assert!(lines.contains("the file FIGURES cannot be read"), "{lines}");
    let (code, said) = failed(&format!("top --db {} --once", scratch.path().display()));
    assert!(code == 1 && said.contains("there is no database"), "{said}");
}

#[test]
fn beside_rocksdb_files_and_the_log_are_shown() {
    let scratch = tempfile::tempdir().unwrap();
    let path = &scratch.path().join("db");
    Db::open(path).unwrap().close().unwrap();
    let log = "2024/01/01-00:00:00.000000 1 [/db_impl.cc:1] ------- DUMPING STATS -------\n\
               ** DB Stats **\nUptime(secs): 600.0 total, 600.0 interval\n\
               Cumulative writes: 12K writes, 12K keys, 12K commit groups, 1.0 writes per commit group\n\
               Cumulative stall: 00:00:30.000 H:M:S, 5.0 percent\n";
    std::fs::write(path.join("LOG"), log).unwrap();
    let none = told(path);
    assert_eq!((&none["state"], &none["log"]["open_seconds"]), (&"none".into(), &600.into()));
    assert_eq!(
        (&none["log"]["keys_written"], &none["log"]["stall_us"]),
        (&12_000.into(), &30_000_000.into())
    );
    let lines = printed(&format!("top --db {} --once", path.display()));
    assert!(lines.contains("LOG      open 10:00 min, 12000 keys written"), "{lines}");
}

/// What is shown on a terminal until a key is pressed, and whether the terminal is as before.
#[test]
fn on_a_terminal_a_key_ends_the_view() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("db");
    let db = Db::open(&path).unwrap();
    for key in [&b"q"[..], b"\x1b", b"\x03"] {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let mut how = std::fs::OpenOptions::new();
        how.read(true).write(true).custom_flags(rustix::fs::OFlags::NOCTTY.bits() as i32);
        let terminal = how.open(OsStr::from_bytes(name.as_bytes())).unwrap();
        let before = rustix::termios::tcgetattr(&terminal).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_flagstone"))
            .args(["top", "--interval", "1", "--db"])
            .arg(&path)
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .spawn()
            .unwrap();
        let (mut shown, mut buffer) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&shown).contains("level") && !shown.ends_with(b"\x1b[J") {
            let count = rustix::io::read(&keyboard, &mut buffer).unwrap();
            shown.extend_from_slice(&buffer[..count]);
        }
        rustix::io::write(&keyboard, key).unwrap();
        assert!(child.wait().unwrap().success());
        let count = rustix::io::read(&keyboard, &mut buffer).unwrap();
        shown.extend_from_slice(&buffer[..count]);
        let shown = String::from_utf8_lossy(&shown);
        assert!(shown.starts_with("\x1b[?1049h\x1b[?25l\x1b[H"), "{shown:?}");
        assert!(shown.contains("writers  not delayed"), "{shown:?}");
        assert!(shown.ends_with("\x1b[?25h\x1b[?1049l"), "{shown:?}");
        let after = rustix::termios::tcgetattr(&terminal).unwrap();
        assert_eq!(after.local_modes, before.local_modes);
    }
    db.close().unwrap();
}
