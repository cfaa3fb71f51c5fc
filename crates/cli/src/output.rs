//! Standard output, buffered, with errors that say so.

use std::io::{self, BufWriter, StdoutLock, Write};

use crate::failure::Failure;

/// Standard output.
pub struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    /// Takes standard output.
    pub fn new() -> Self {
        Self(BufWriter::with_capacity(1 << 16, io::stdout().lock()))
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.0.write_all(bytes).map_err(failed)
    }

    /// Writes a line.
    pub fn line(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        self.bytes(line.as_ref().as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes a line about something wrong, JSON like all others if they are. `what` is a word for it, such as FAULT.
    pub fn finding(&mut self, json: bool, what: &str, message: &str) -> Result<(), Failure> {
        self.line(match json {
            true => serde_json::json!({ what.trim_end_matches(':').to_lowercase(): message }).to_string(),
            false => format!("{what} {message}"),
        })
    }

    /// Writes what is still buffered; without it an error at the end would go unnoticed.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.0.flush().map_err(failed)
    }
}

fn failed(error: io::Error) -> Failure {
    Failure::Stream("write to standard output", error)
}
