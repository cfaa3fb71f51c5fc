//! The program and its files as a user sees them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use flagstone::env::{Env, read_file};

/// Runs `flagstone` with these arguments, separated by blanks.
pub fn run(line: &str) -> Output {
    run_with_input(line, b"")
}

pub fn run_with_input(line: &str, input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_flagstone"))
        .args(line.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::scope(|scope| {
        scope.spawn(move || {
            use std::io::Write;
            let _ = stdin.write_all(&input);
        });
        child.wait_with_output()
    });
    feeder.unwrap()
}

/// What a command that succeeds prints.
pub fn printed(line: &str) -> String {
    let output = run(line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The exit code and what went to stderr.
pub fn failed(line: &str) -> (i32, String) {
    let output = run(line);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

pub fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let fs = Env::os().fs;
    let names = fs.list(directory).unwrap();
    names
        .into_iter()
        .filter(|name| !fs.metadata(&directory.join(name)).unwrap().is_directory)
        .map(|name| {
            (name.clone(), read_file(fs.as_ref(), &directory.join(&name), 1 << 30).unwrap())
        })
        .collect()
}
