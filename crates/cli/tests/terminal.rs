//! The program at a terminal.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use common::{printed, run_with_input};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The two ends of a terminal: the keyboard's, and the program's.
fn terminal() -> (OwnedFd, std::fs::File) {
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let name = ptsname(&keyboard, Vec::new()).unwrap();
    let mut how = std::fs::OpenOptions::new();
    // It must not become the terminal of the tests themselves.
    how.read(true).write(true).custom_flags(rustix::fs::OFlags::NOCTTY.bits() as i32);
    (keyboard, how.open(OsStr::from_bytes(name.as_bytes())).unwrap())
}

/// Runs `flagstone` with a terminal for its standard input, at which something is typed; what it
/// says on stderr.
fn typed(line: &str, keys: &[u8]) -> String {
    let (keyboard, program) = terminal();
    rustix::io::write(&keyboard, keys).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_flagstone"))
        .args(line.split_whitespace())
        .stdin(program)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

/// Runs `flagstone` with a terminal for its standard error; what is shown there.
fn watched(line: &str) -> String {
    let (screen, program) = terminal();
    let child = Command::new(env!("CARGO_BIN_EXE_flagstone"))
        .args(line.split_whitespace())
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(program)
        .spawn();
    let (mut shown, mut buffer) = (Vec::new(), [0; 4096]);
    // At the end, when nobody has the other side any more, this is an error.
    while let Ok(count @ 1..) = rustix::io::read(&screen, &mut buffer) {
        shown.extend_from_slice(&buffer[..count]);
    }
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(child.unwrap().wait().unwrap().success(), "{shown}");
    shown
}

/// They waited without a word, and looked like programs that hang.
#[test]
fn who_reads_from_a_terminal_says_so() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    let said = typed(&format!("put --db {db} key"), b"value\n\x04");
    assert!(said.contains("reading the value from the terminal; end with Ctrl-D"), "{said}");
    assert_eq!(printed(&format!("get --db {db} key")), "value\n");
    let said = typed(&format!("load --db {db}"), b"default 61 31\n\x04");
    assert!(said.contains("reading a dump from the terminal"), "{said}");
    assert_eq!(printed(&format!("get --db {db} a")), "1");
    // Who gives the value is asked nothing, and a pipe is no terminal.
    assert_eq!(typed(&format!("put --db {db} key value"), b""), "");
    assert!(run_with_input(&format!("put --db {db} key"), b"value").stderr.is_empty());
}

#[test]
fn query_shows_a_prompt_at_a_terminal_only() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    printed(&format!("put --db {db} key value"));
    let said = typed(&format!("query --db {db}"), b"get key\nquit\n");
    assert_eq!(said, "flagstone> flagstone> ");
    assert!(run_with_input(&format!("query --db {db}"), b"get key\n").stderr.is_empty());
}

/// They worked for minutes without a word.
#[test]
fn what_takes_long_shows_how_far_it_is() {
    let scratch = tempfile::tempdir().unwrap();
    let db = scratch.path().join("db").display().to_string();
    for (line, shown) in [
        (format!("bench --db={db} --num=2000 --benchmarks=fillrandom"), "operations"),
        (format!("flush --db {db}"), "flushing"),
        (format!("checkpoint --db {db} {db}-copy"), "making the copy"),
    ] {
        let said = watched(&line);
        assert!(said.contains(shown), "{line}: {said}");
    }
}
