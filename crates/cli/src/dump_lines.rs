//! The lines of a dump, read from standard input. One that is too long to be held as a whole is
//! read piece by piece.

use std::io::{BufRead, ErrorKind, Read, StdinLock, stdin};

use crate::arguments::Common;
use crate::failure::Failure;
use crate::left_out::LeftOut;
use crate::text::{DumpLine, DumpStart, is_entity_start, is_hex_start};

/// Longer lines are read piece by piece.
const WHOLE_MAX: usize = 16 << 20;

/// What is said of a line without an end: what is left of a value is hexadecimal, too.
pub const CUT: &str =
    "the line does not end, as if the dump was cut off; if it is complete, add a line end";

const NO_TEXT: &str = "expected COLUMN_FAMILY HEXKEY HEXVALUE";

/// What standard input has next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    End,
    /// A line.
    Line,
    /// The beginning of a long entry.
    Beginning,
    /// A line that cannot be read, for this reason.
    Bad(&'static str),
}

/// What came after digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// More of the line.
    More,
    /// The line's end.
    End,
    /// The end of the input.
    Cut,
}

/// Standard input, but for its empty lines.
pub struct Lines {
    input: StdinLock<'static>,
    line: Vec<u8>,
    /// Whether the end of the line was read.
    is_ended: bool,
    /// Whether the last digits came before a carriage return, which only the line's end may follow.
    is_at_return: bool,
    /// How many were read.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that could not be read.
    pub left_out: LeftOut,
}

impl Lines {
    /// Begins with the first.
    pub fn new(common: &Common) -> Self {
        Self {
            input: stdin().lock(),
            line: Vec::new(),
            is_ended: true,
            is_at_return: false,
            count: 0,
            bytes: 0,
            left_out: LeftOut::new("line", common),
        }
    }

    /// Goes to the next line.
    pub fn next(&mut self) -> Result<Found, Failure> {
        loop {
            self.line.clear();
            self.count += 1;
            self.read_up_to(WHOLE_MAX)?;
            if !self.is_ended && self.line.len() == WHOLE_MAX {
                if self.start().is_some() {
                    return Ok(Found::Beginning);
                }
                if !self.may_be_in_key() {
                    return Ok(Found::Bad(NO_TEXT));
                }
                self.read_up_to(usize::MAX)?;
            }
            match (self.is_ended, self.line.is_empty()) {
                (false, true) => return Ok(Found::End),
                (false, false) => return Ok(Found::Bad(CUT)),
                (true, _) if text_of(&self.line).is_empty() => {}
                (true, _) => return Ok(Found::Line),
            }
        }
    }

    /// Reads on up to the line's end, or until it has so many bytes.
    fn read_up_to(&mut self, most: usize) -> Result<(), Failure> {
        let limit = most.saturating_sub(self.line.len()) as u64;
        let read = (&mut self.input).take(limit).read_until(b'\n', &mut self.line);
        self.bytes += read.map_err(failed)? as u64;
        self.is_ended = self.line.ends_with(b"\n");
        Ok(())
    }

    /// Takes the line apart; or why that cannot be.
    pub fn parse(&self) -> Result<DumpLine<'_>, String> {
        let line = str::from_utf8(text_of(&self.line)).map_err(|_| not_a_dump(""))?;
        DumpLine::parse(line).ok_or_else(|| not_a_dump(line))
    }

    /// Takes the beginning of a long entry apart.
    pub fn start(&self) -> Option<DumpStart<'_>> {
        DumpStart::parse(str::from_utf8(&self.line).ok()?)
    }

    /// Whether the line may be one of a key of many bytes, or of an entity.
    fn may_be_in_key(&self) -> bool {
        let text = str::from_utf8(&self.line).ok();
        let last = text.and_then(|text| text.rsplit_once(' ')).map(|(_, last)| last);
        last.is_some_and(|last| is_hex_start(last) || is_entity_start(last))
    }

    /// Gives up the memory of the line's beginning.
    pub fn release(&mut self) {
        self.line = Vec::new();
    }

    /// Shows `take` the digits of a long line that come next, without the line's end.
    pub fn next_digits(&mut self, take: impl FnOnce(&[u8])) -> Result<Rest, Failure> {
        let buffer = loop {
            match self.input.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
                // It is there: this does not read again.
                Ok(_) => break self.input.fill_buf().map_err(failed)?,
            }
        };
        let (piece, read, rest) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&buffer[..end], end + 1, Rest::End),
            None if buffer.is_empty() => (buffer, 0, Rest::Cut),
            None => (buffer, buffer.len(), Rest::More),
        };
        let text = text_of(piece);
        take(if self.is_at_return && !text.is_empty() { b"\r" } else { text });
        self.is_at_return = rest == Rest::More && piece.ends_with(b"\r");
        self.input.consume(read);
        self.bytes += read as u64;
        self.is_ended = rest == Rest::End;
        Ok(rest)
    }

    /// Names the line as one that cannot be read, and goes to its end.
    pub fn leave_out(&mut self, why: &str) -> Result<(), Failure> {
        self.left_out.add(format_args!("line {} of standard input: {why}", self.count));
        while !self.is_ended && self.next_digits(|_| {})? != Rest::Cut {}
        Ok(())
    }
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Stream("read standard input", error)
}

fn text_of(line: &[u8]) -> &[u8] {
    let end =
        line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    &line[..end]
}

/// Why this is no line of a dump.
pub fn not_a_dump(line: &str) -> String {
    // Between key and value of ldb's.
    let helps = if line.contains(" ==> ") {
        "; this is a dump made by ldb, which only ldb loads; flagstone opens a RocksDB database directly"
    } else {
        ""
    };
    format!("{NO_TEXT}{helps}")
}
