//! What a running database says of itself to other processes, in the file FIGURES of its directory.
//!
//! ```text
//! file     = "flagstone figures 1\n", line*, checksum
//! line     = name, ( " ", field )*, "\n"
//! checksum = "checksum ", eight hexadecimal digits of the CRC32C of all before, "\n"
//! ```
//!
//! Lines: `pid`, `process_start` (clock ticks since the system started), `opened_at` and
//! `updated_at` (microseconds since 1970), `counter NAME N` of a statistics counter, `figure NAME
//! N` of what is so now, and `level FAMILY LEVEL TABLES BYTES` of each level with tables, with the
//! family's name in hexadecimal digits. Lines that are not known are passed over.

use crate::base::checksum::crc32c;
use crate::base::{Error, Result, from_hex};

const MAGIC: &str = "flagstone figures 1\n";
const CHECKSUM: &str = "checksum ";

/// Bytes that the file has at most; a longer one is not read.
pub const SIZE_MAX: u64 = 1 << 20;

/// The tables of one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelFigures {
    /// The column family.
    pub family: String,
    /// The level.
    pub level: u32,
    /// How many tables it has.
    pub tables: u64,
    /// Bytes of these.
    pub bytes: u64,
}

/// What a database says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Figures {
    /// The process that has it open for writing.
    pub pid: u32,
    /// When that started, in clock ticks since the system did; 0 if it is not known.
    pub process_start: u64,
    /// When the database was opened, in microseconds since 1970.
    pub opened_at_us: u64,
    /// When this was written, in microseconds since 1970.
    pub updated_at_us: u64,
    /// Counters since the opening, by name.
    pub counters: Vec<(String, u64)>,
    /// What is so now, by name.
    pub figures: Vec<(String, u64)>,
    /// Levels that have tables, by family.
    pub levels: Vec<LevelFigures>,
}

impl Figures {
    /// The value of a counter; 0 if it is not there.
    pub fn counter(&self, name: &str) -> u64 {
        find(&self.counters, name)
    }

    /// The value of a figure; 0 if it is not there.
    pub fn figure(&self, name: &str) -> u64 {
        find(&self.figures, name)
    }

    /// The contents of the file.
    pub fn encode(&self) -> String {
        use std::fmt::Write;
        let mut text = String::from(MAGIC);
        let numbers = [
            ("pid", self.pid.into()),
            ("process_start", self.process_start),
            ("opened_at", self.opened_at_us),
            ("updated_at", self.updated_at_us),
        ];
        for (name, value) in numbers {
            let _ = writeln!(text, "{name} {value}");
        }
        for (kind, values) in [("counter", &self.counters), ("figure", &self.figures)] {
            for (name, value) in values {
                let _ = writeln!(text, "{kind} {name} {value}");
            }
        }
        for LevelFigures { family, level, tables, bytes } in &self.levels {
            text.push_str("level ");
            for byte in family.bytes() {
                let _ = write!(text, "{byte:02x}");
            }
            let _ = writeln!(text, " {level} {tables} {bytes}");
        }
        let sum = crc32c(text.as_bytes());
        let _ = writeln!(text, "{CHECKSUM}{sum:08x}");
        text
    }

    /// Reads the contents of the file.
    ///
    /// # Errors
    /// `Corruption` if they are none: a reader that meets them while they are written reads again.
    pub fn parse(contents: &[u8]) -> Result<Self> {
        let bad = |what: &str| Error::corruption(format!("no figures of a database: {what}"));
        let text = std::str::from_utf8(contents).map_err(|_| bad("not text"))?;
        let (body, sum) = text.rsplit_once(CHECKSUM).ok_or_else(|| bad("no checksum"))?;
        let stored = sum.strip_suffix('\n').filter(|sum| sum.len() == 8);
        let stored = stored.and_then(|sum| u32::from_str_radix(sum, 16).ok());
        if stored != Some(crc32c(body.as_bytes())) {
            return Err(bad("a wrong checksum"));
        }
        let lines = body.strip_prefix(MAGIC).ok_or_else(|| bad("another version"))?;
        let mut figures = Self::default();
        for line in lines.lines() {
            figures.take(line).ok_or_else(|| bad(&format!("the line '{line}'")))?;
        }
        Ok(figures)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let mut fields = line.split(' ');
        let mut next = || fields.next();
        match next()? {
            "pid" => self.pid = next()?.parse().ok()?,
            "process_start" => self.process_start = next()?.parse().ok()?,
            "opened_at" => self.opened_at_us = next()?.parse().ok()?,
            "updated_at" => self.updated_at_us = next()?.parse().ok()?,
            "counter" => self.counters.push((next()?.to_string(), next()?.parse().ok()?)),
            "figure" => self.figures.push((next()?.to_string(), next()?.parse().ok()?)),
            "level" => self.levels.push(LevelFigures {
                family: String::from_utf8(from_hex(next()?)?).ok()?,
                level: next()?.parse().ok()?,
                tables: next()?.parse().ok()?,
                bytes: next()?.parse().ok()?,
            }),
            _ => {}
        }
        Some(())
    }
}

fn find(values: &[(String, u64)], name: &str) -> u64 {
    values.iter().find(|(known, _)| known == name).map_or(0, |(_, value)| *value)
}

#[cfg(test)]
mod tests;
