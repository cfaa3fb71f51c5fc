//! Standard output, buffered, with errors that say so.

use std::io::{self, BufWriter, StdoutLock, Write};

use crate::failure::Failure;

/// Standard output.
pub struct Output {
    stream: BufWriter<StdoutLock<'static>>,
    /// Whether a reader that goes away is no error.
    may_go_unread: bool,
    /// Nobody reads any more.
    is_unread: bool,
}

impl Output {
    /// Takes standard output.
    pub fn new() -> Self {
        let stream = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        Self { stream, may_go_unread: false, is_unread: false }
    }

    /// The same for who looks for faults as it prints: its verdict is of everything, although
    /// nobody reads to the end.
    pub fn of_a_search() -> Self {
        Self { may_go_unread: true, ..Self::new() }
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.is_unread {
            return Ok(());
        }
        let written = self.stream.write_all(bytes);
        self.heard(written)
    }

    /// Writes a line.
    pub fn line(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        self.bytes(line.as_ref().as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes a line about something wrong, JSON like all others if they are. `what` is a word for
    /// it, such as FAULT.
    pub fn finding(&mut self, json: bool, what: &str, message: &str) -> Result<(), Failure> {
        self.line(if json {
            serde_json::json!({ what.trim_end_matches(':').to_lowercase(): message }).to_string()
        } else {
            format!("{what} {message}")
        })
    }

    /// Writes what is buffered, for somebody who waits for it.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let written = self.stream.flush();
        self.heard(written)
    }

    /// Writes what is still buffered; without it an error at the end would go unnoticed.
    pub fn finish(mut self) -> Result<(), Failure> {
        if self.is_unread {
            return Ok(());
        }
        let written = self.stream.flush();
        self.heard(written)
    }

    fn heard(&mut self, written: io::Result<()>) -> Result<(), Failure> {
        match written {
            Err(error) if self.may_go_unread && error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_unread = true;
                Ok(())
            }
            written => written.map_err(|error| Failure::Stream("write to standard output", error)),
        }
    }
}
