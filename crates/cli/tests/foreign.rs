//! Databases of an application that has components of its own, and of its own options: the program
//! reads what it can.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

mod common;

use std::path::{Path, PathBuf};

use common::{contents, failed, printed};
use flagstone::env::{Env, IoMode, read_file};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rocksdb-7.8")
}

/// A copy of a fixture whose OPTIONS file says something else.
struct Foreign {
    directory: tempfile::TempDir,
    name: &'static str,
}

impl Foreign {
    fn new(name: &'static str, changes: &[(&str, &str)]) -> Self {
        let foreign = Self { directory: tempfile::tempdir().unwrap(), name };
        for (file, bytes) in contents(&fixtures().join(name)) {
            foreign.write(&file, &bytes);
        }
        changes.iter().for_each(|(old, new)| foreign.change(old, new));
        foreign
    }

    fn write(&self, file: &str, bytes: &[u8]) {
        let fs = Env::os().fs;
        fs.create_writable(&self.directory.path().join(file), IoMode::Buffered)
            .unwrap()
            .write_at(0, bytes)
            .unwrap();
    }

    /// The newest OPTIONS file.
    fn options(&self) -> (String, String) {
        let files = contents(self.directory.path());
        let (name, bytes) = files.iter().rfind(|(name, _)| name.starts_with("OPTIONS-")).unwrap();
        (name.clone(), String::from_utf8(bytes.clone()).unwrap())
    }

    fn change(&self, old: &str, new: &str) {
        let (name, text) = self.options();
        assert!(text.contains(old), "{text}");
        Env::os().fs.remove(&self.directory.path().join(&name)).unwrap();
        self.write(&name, text.replace(old, new).as_bytes());
    }

    fn says(&self, line: &str) -> bool {
        self.options().1.contains(&format!("\n  {line}\n"))
    }

    fn expected(&self) -> String {
        let path = fixtures().join(format!("{}.expected", self.name));
        String::from_utf8(read_file(Env::os().fs.as_ref(), &path, 1 << 30).unwrap()).unwrap()
    }

    fn command(&self, command: &str) -> String {
        let (first, rest) = command.split_once(' ').unwrap_or((command, ""));
        format!("{first} --db {} {rest}", self.directory.path().display())
    }

    fn printed(&self, command: &str) -> String {
        printed(&self.command(command))
    }

    fn failed(&self, command: &str) -> (i32, String) {
        failed(&self.command(command))
    }
}

/// The program refused to do anything at all with such a database, where RocksDB's tools do all but
/// merge.
#[test]
fn a_merge_operator_of_an_application_keeps_only_what_was_merged_from_being_read() {
    let own = "merge_operator={id=my.Append;depth=3;}";
    let db = Foreign::new(
        "merge-append",
        &[("merge_operator={id=StringAppendOperator;delimiter=,;}", own)],
    );
    for command in ["verify", "check", "stats", "space", "list-families", "list-files", "manifest"]
    {
        db.printed(command);
    }
    let expected = db.expected();
    let merged =
        expected.lines().find(|line| line.contains("2c")).unwrap().split(' ').nth(1).unwrap();
    let (code, message) = db.failed(&format!("get --hex {merged}"));
    assert!(
        code == 1 && message.contains("merge operator 'my.Append', which is not built in"),
        "{message}"
    );
    assert!(!message.contains("corruption"), "{message}");

    // What is written, and compacted, loses no operand and gives no table a wrong name.
    db.printed("put zz new");
    db.printed("compact --force-bottommost");
    assert!(db.says(own), "{}", db.options().1);
    assert_eq!(db.failed(&format!("get --hex {merged}")).0, 1);
    db.change(own, "merge_operator={id=StringAppendOperator;delimiter=,;}");
    assert_eq!(db.printed("dump"), format!("{expected}default 7a7a 6e6577\n"));
}

#[test]
fn a_prefix_extractor_of_an_application_costs_nothing_but_filters() {
    for name in ["bloom-prefix", "hashindex"] {
        let db = Foreign::new(name, &[("=rocksdb.FixedPrefix.9", "=my.Prefix")]);
        assert_eq!(db.printed("dump"), db.expected(), "{name}");
        db.printed("verify");
        db.printed("put zz new");
        db.printed("compact --force-bottommost");
        assert!(db.says("prefix_extractor=my.Prefix"), "{}", db.options().1);
        assert_eq!(db.says("index_type=kHashSearch"), name == "hashindex");
        let (key, value) = db
            .expected()
            .lines()
            .next()
            .unwrap()
            .split_once(' ')
            .unwrap()
            .1
            .split_once(' ')
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .unwrap();
        assert_eq!(db.printed(&format!("get --hex {key}")), format!("{value}\n"), "{name}");
        // The application finds everything again: no new table claims to have a filter that it
        // lacks.
        db.change("=my.Prefix", "=rocksdb.FixedPrefix.9");
        assert_eq!(db.printed("dump"), format!("{}default 7a7a 6e6577\n", db.expected()), "{name}");
        assert_eq!(db.printed(&format!("get --hex {key}")), format!("{value}\n"), "{name}");
    }
}

/// RocksDB opens with them; here not even a dump was to be had.
#[test]
fn numbers_that_are_out_of_range_here_are_no_reason_not_to_open() {
    let db = Foreign::new(
        "basic",
        &[
            ("writable_file_max_buffer_size=1048576", "writable_file_max_buffer_size=1000"),
            ("max_background_jobs=1", "max_background_jobs=0"),
        ],
    );
    assert_eq!(db.printed("dump"), db.expected());
    let output = common::run(&db.command("put zz new"));
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{warning}");
    assert!(
        warning.contains("writable_file_max_buffer_size=1000 (4096 used instead)"),
        "{warning}"
    );
    assert!(db.says("writable_file_max_buffer_size=1000") && db.says("max_background_jobs=0"));
    assert_eq!(db.printed("dump"), format!("{}default 7a7a 6e6577\n", db.expected()));
}

/// Every command on every database of an application began with a list of what RocksDB writes to
/// its own log.
#[test]
fn settings_of_what_is_not_here_are_kept_without_a_word() {
    let db = Foreign::new("basic", &[("info_log_level=FATAL_LEVEL", "info_log_level=ERROR_LEVEL")]);
    let output = common::run(&db.command("count"));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    db.printed("put zz new");
    for kept in ["info_log_level=ERROR_LEVEL", "keep_log_file_num=1", "stats_dump_period_sec=0"] {
        assert!(db.says(kept), "{}", db.options().1);
    }
    // What is not done that matters is said.
    let db =
        Foreign::new("basic", &[("best_efforts_recovery=false", "best_efforts_recovery=true")]);
    let output = common::run(&db.command("count"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.ends_with("without effect here: best_efforts_recovery=true\n"), "{said}");
}
