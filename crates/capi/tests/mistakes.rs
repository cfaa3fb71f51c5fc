//! What calls say of mistakes, beside what RocksDB says: `c/mistakes.c`, which is compiled once,
//! runs on either library. `mistakes.txt` has both texts of each mistake.
//!
//! `FLAGSTONE_BLESS=1` writes the texts of this library there. With RocksDB's shared library in
//! `FLAGSTONE_ROCKSDB` its texts are checked, too, or written.

#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::disallowed_methods, reason = "the files are those of a C compiler")]

mod common;

use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "\
# Mistakes, and what RocksDB 11.8 and this library say of them; `tests/mistakes.rs` says how it is
# made. A mistake that is of another kind here, or is none, says why. DIR is a directory, N a number.
";

/// A mistake of a program.
#[derive(Default, Debug, PartialEq)]
struct Mistake {
    /// The call and what is wrong with it.
    name: String,
    rocksdb: String,
    here: String,
    /// Why the kinds differ.
    why: Option<String>,
}

/// What an error begins with: `NotFound`, `IO error`, or `no error`.
fn kind(text: &str) -> &str {
    text.split(':').next().unwrap_or_default()
}

fn parse(text: &str) -> Vec<Mistake> {
    let mut mistakes: Vec<Mistake> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(line) = line.strip_prefix("    ") else {
            mistakes.push(Mistake { name: line.to_string(), ..Mistake::default() });
            continue;
        };
        let (field, value) = line.split_once(": ").unwrap();
        let mistake = mistakes.last_mut().unwrap();
        match field {
            "both" => (mistake.rocksdb, mistake.here) = (value.to_string(), value.to_string()),
            "RocksDB" => mistake.rocksdb = value.to_string(),
            "here" => mistake.here = value.to_string(),
            "why" => mistake.why = Some(value.to_string()),
            _ => panic!("{line}"),
        }
    }
    mistakes
}

fn format(mistakes: &[Mistake]) -> String {
    let mut text = HEAD.to_string();
    for mistake in mistakes {
        write!(text, "\n{}\n", mistake.name).unwrap();
        if mistake.rocksdb == mistake.here {
            writeln!(text, "    both: {}", mistake.here).unwrap();
        } else {
            writeln!(text, "    RocksDB: {}\n    here: {}", mistake.rocksdb, mistake.here).unwrap();
        }
        if let Some(why) = &mistake.why {
            writeln!(text, "    why: {why}").unwrap();
        }
    }
    text
}

/// The mistakes that the program makes with a library, and the texts.
fn told(program: &Path, library: &Path) -> Vec<(String, String)> {
    let directory = tempfile::tempdir().unwrap();
    let libraries = directory.path().join("libraries");
    let data = directory.path().join("data");
    std::fs::create_dir(&libraries).unwrap();
    std::fs::create_dir(&data).unwrap();
    for name in ["librocksdb.so", "librocksdb.so.11.9"] {
        std::os::unix::fs::symlink(library, libraries.join(name)).unwrap();
    }
    let mut command = std::process::Command::new(program);
    let output = command.arg(&data).env("LD_LIBRARY_PATH", &libraries).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |line: &str| {
        let (name, text) = line.split_once(": ").unwrap();
        (name.to_string(), text.trim_end().to_string())
    };
    text.lines().map(line).collect()
}

#[test]
fn mistakes_are_told_as_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes.txt");
    let recorded = parse(&std::fs::read_to_string(&path).unwrap_or_default());
    let directory = tempfile::tempdir().unwrap();
    let program = common::compile("mistakes", directory.path());
    let here = told(&program, &common::library_directory().join("librocksdb.so"));
    let rocksdb = std::env::var_os("FLAGSTONE_ROCKSDB");
    let rocksdb = rocksdb.map(|library| told(&program, Path::new(&library)));
    let mistake = |at: usize| {
        let (name, here) = here[at].clone();
        let of_rocksdb = rocksdb.as_ref().map(|told| {
            assert_eq!(told[at].0, name);
            told[at].1.clone()
        });
        let known = recorded.iter().find(|known| known.name == name);
        let recorded = || known.map(|known| known.rocksdb.clone()).unwrap_or_default();
        let rocksdb = of_rocksdb.unwrap_or_else(recorded);
        let why = known.and_then(|known| known.why.clone());
        let why = why.filter(|_| kind(&rocksdb) != kind(&here));
        Mistake { name, rocksdb, here, why }
    };
    let found: Vec<Mistake> = (0..here.len()).map(mistake).collect();
    if std::env::var_os("FLAGSTONE_BLESS").is_some() {
        std::fs::write(&path, format(&found)).unwrap();
    } else {
        for (found, recorded) in found.iter().zip(&recorded) {
            assert_eq!(found, recorded);
        }
        assert_eq!(found.len(), recorded.len(), "mistakes in tests/mistakes.txt");
    }
    let differs = |mistake: &&Mistake| kind(&mistake.rocksdb) != kind(&mistake.here);
    let unexplained: Vec<_> =
        found.iter().filter(differs).filter(|mistake| mistake.why.is_none()).collect();
    assert!(
        unexplained.is_empty(),
        "other kinds than RocksDB's, without a reason: {unexplained:#?}"
    );
}
