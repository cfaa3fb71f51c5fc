//! What a thread did, in a file of its own.
//!
//! A transaction is written down before its commit, with an outcome that is unknown yet, and its
//! outcome behind the commit, as a line `= ENDED ok` or `= ENDED failed`. Each is one call of the
//! system, so a process that is killed leaves whole lines, perhaps but for the last; and nothing of
//! a transaction can be in the database that is not in the journal.

use std::path::Path;
use std::sync::Arc;

use flagstone::Result;
use flagstone::env::{Env, IoMode, WritableFile, read_file};

use crate::isolation::{History, Outcome, Transaction};

/// No journal is longer.
const BYTES_MAX: u64 = 1 << 30;

pub(super) struct Journal {
    file: Arc<dyn WritableFile>,
    size: u64,
}

impl Journal {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = Env::os().fs.create_writable(path, IoMode::Buffered)?;
        Ok(Self { file, size: 0 })
    }

    fn add(&mut self, line: &str) -> Result<()> {
        self.file.write_at(self.size, line.as_bytes())?;
        self.size += line.len() as u64;
        Ok(())
    }

    /// Writes a transaction down. If its outcome is unknown, [`Journal::ended`] follows.
    pub(super) fn note(&mut self, transaction: &Transaction) -> Result<()> {
        self.add(&format!("{transaction}\n"))
    }

    /// The outcome of the last transaction.
    pub(super) fn ended(&mut self, ended: u64, is_committed: bool) -> Result<()> {
        self.add(&format!("= {ended} {}\n", if is_committed { "ok" } else { "failed" }))
    }
}

/// Reads a journal; its last line may be cut off.
///
/// # Errors
/// Why it makes no sense.
pub(super) fn read(path: &Path) -> std::result::Result<History, String> {
    let wrong = |what: String| format!("{}: {what}", path.display());
    let bytes =
        read_file(&*Env::os().fs, path, BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut history = History::default();
    for line in whole.lines() {
        let Some(end) = line.strip_prefix("= ") else {
            history.transactions.push(line.parse().map_err(wrong)?);
            continue;
        };
        let outcome = end.split_once(' ').and_then(|(ended, outcome)| {
            let outcome = match outcome {
                "ok" => Outcome::Committed,
                "failed" => Outcome::Failed,
                _ => return None,
            };
            Some((ended.parse().ok()?, outcome))
        });
        let (Some((ended, outcome)), Some(last)) = (outcome, history.transactions.last_mut())
        else {
            return Err(wrong(format!("'{line}' is no end")));
        };
        (last.ended, last.outcome) = (Some(ended), outcome);
    }
    Ok(history)
}
