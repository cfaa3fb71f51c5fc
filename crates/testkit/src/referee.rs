//! RocksDB's own tools, `ldb` and `sst_dump` (Debian's `rocksdb-tools`), as a second opinion.

use std::path::Path;
use std::process::{Command, Output};

/// The tools, found on `PATH`.
pub struct Referee(());

impl Referee {
    /// The tools, if both are installed.
    pub fn find() -> Option<Self> {
        let is_found = |tool: &&str| Command::new(tool).arg("--help").output().is_ok();
        ["ldb", "sst_dump"].iter().all(is_found).then_some(Self(()))
    }

    /// Runs `ldb --db=DB ARGUMENTS`; what it prints.
    ///
    /// # Errors
    /// What it says when it fails or finds damage.
    pub fn ldb(&self, db: &Path, arguments: &[&str]) -> Result<String, String> {
        let output =
            Command::new("ldb").arg(format!("--db={}", db.display())).args(arguments).output();
        let output = output.map_err(|error| format!("ldb cannot be started: {error}"))?;
        judge(&format!("ldb {arguments:?}"), &output, "Corruption")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs `ldb --db=DB --ttl ARGUMENTS`; what it prints. That of RocksDB 7.8 does as it is told,
    /// then complains of several column families, even if there is but one, and fails.
    ///
    /// # Errors
    /// As [`Referee::ldb`].
    pub fn ldb_ttl(&self, db: &Path, arguments: &[&str]) -> Result<String, String> {
        const COMPLAINT: &str = "Failed: ldb doesn't support TTL DB with multiple column families";
        let output = Command::new("ldb")
            .arg(format!("--db={}", db.display()))
            .arg("--ttl")
            .args(arguments)
            .output();
        let mut output = output.map_err(|error| format!("ldb cannot be started: {error}"))?;
        if String::from_utf8_lossy(&output.stderr).trim() == COMPLAINT {
            output.status = std::process::ExitStatus::default();
        }
        judge(&format!("ldb --ttl {arguments:?}"), &output, "Corruption")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Verifies every table of a database with `sst_dump`; how many there are.
    ///
    /// # Errors
    /// What it says of one that is damaged.
    pub fn verify_tables(&self, db: &Path) -> Result<usize, String> {
        let entries =
            std::fs::read_dir(db).map_err(|error| format!("{}: {error}", db.display()))?;
        let is_table = |entry: &std::io::Result<std::fs::DirEntry>| {
            entry
                .as_ref()
                .is_ok_and(|entry| entry.path().extension().is_some_and(|kind| kind == "sst"))
        };
        let tables = entries.filter(is_table).count();
        let file = format!("--file={}", db.display());
        // Without the last, `verify` reads the blocks, but does not look at their checksums.
        let arguments = [file.as_str(), "--command=verify", "--verify_checksum"];
        let output = Command::new("sst_dump").args(arguments).output();
        let output = output.map_err(|error| format!("sst_dump cannot be started: {error}"))?;
        let sound = String::from_utf8_lossy(&output.stdout).matches("The file is ok").count();
        // It exits with 0 whatever it finds, and with an error if there is nothing to look at.
        if tables > 0 {
            judge(&format!("sst_dump {file} ({sound} of {tables} are sound)"), &output, "orrupt")?;
        }
        if sound == tables {
            Ok(tables)
        } else {
            Err(format!("sst_dump: {sound} of {tables} tables are sound"))
        }
    }

    /// What `sst_dump` says of the properties of a database's tables.
    ///
    /// # Errors
    /// What it says of one that it cannot read.
    pub fn table_properties(&self, db: &Path) -> Result<String, String> {
        let file = format!("--file={}", db.display());
        let arguments = [file.as_str(), "--command=none", "--show_properties"];
        let output = Command::new("sst_dump").args(arguments).output();
        let output = output.map_err(|error| format!("sst_dump cannot be started: {error}"))?;
        judge(&format!("sst_dump {file}"), &output, "orrupt")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What `ldb scan --hex` shows of a family: a line `FAMILY HEXKEY HEXVALUE` for each entry, as
    /// `flagstone dump` does.
    ///
    /// # Errors
    /// As [`Referee::ldb`].
    pub fn scan(&self, db: &Path, family: &str) -> Result<String, String> {
        let family_argument = format!("--column_family={family}");
        let text = self.ldb(db, &["scan", "--hex", "--try_load_options", &family_argument])?;
        let entries = text
            .lines()
            .filter_map(|line| line.split_once(" ==> ").or_else(|| line.split_once(" : ")));
        let bare = |text: &str| text.trim().trim_start_matches("0x").to_lowercase();
        Ok(entries
            .map(|(key, value)| format!("{family} {} {}\n", bare(key), bare(value)))
            .collect())
    }
}

/// A tool may exit with 0 and still print what it did not like.
fn judge(what: &str, output: &Output, bad_word: &str) -> Result<(), String> {
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() && !text.contains(bad_word) && !errors.contains(bad_word) {
        return Ok(());
    }
    let text: String = text.chars().take(2000).collect();
    Err(format!("{what}: {}: {text}{errors}", output.status))
}
