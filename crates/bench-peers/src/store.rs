//! Results on the disk: one JSON text a line, only ever appended to, so that an interrupted
//! campaign goes on.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::amplification::Outcome;
use crate::engine::Result;
use crate::environment::Environment;
use crate::run::{Assignment, Run};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// Where the runs that follow were made.
    Environment(Environment),
    /// A run.
    Run(Box<Run>),
    /// A run that came to nothing.
    Failure {
        /// What was to be done.
        assignment: Assignment,
        /// What went wrong.
        message: String,
    },
    /// What was written and what was on the disk, of `peers space` and `peers steady`.
    Amplification(Box<Outcome>),
}

impl Line {
    /// What it is about, if about a run.
    pub fn assignment(&self) -> Option<&Assignment> {
        match self {
            Self::Environment(_) | Self::Amplification(_) => None,
            Self::Run(run) => Some(&run.assignment),
            Self::Failure { assignment, .. } => Some(assignment),
        }
    }
}

/// All lines of a file; none if it does not exist. A torn last line is left out.
pub fn read(path: &Path) -> Result<Vec<Line>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", path.display()).into()),
    };
    let texts = BufReader::new(file).lines().collect::<std::io::Result<Vec<String>>>()?;
    let mut lines = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match serde_json::from_str(text) {
            Ok(line) => lines.push(line),
            Err(_) if index + 1 == texts.len() => break,
            Err(error) => return Err(format!("{}:{}: {error}", path.display(), index + 1).into()),
        }
    }
    Ok(lines)
}

/// Appends to a file of results.
pub struct Store {
    file: File,
}

impl Store {
    /// Opens the file, or begins it. A torn last line is cut off.
    pub fn open(path: &Path) -> Result<Self> {
        let whole = match std::fs::read(path) {
            Ok(bytes) => bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
            Err(_) => 0,
        };
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        file.set_len(whole as u64)?;
        Ok(Self { file })
    }

    /// Appends a line.
    pub fn append(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        Ok(self.file.write_all(text.as_bytes())?)
    }
}

#[cfg(test)]
mod tests;
