//! The grammar of a backup's meta file, which is text:
//!
//! ```text
//! meta      := [ "schema_version 2" [ "." minor ] \n ]    missing in schema 1
//!              timestamp \n                               seconds since 1970
//!              sequence \n                                the database's last sequence number
//!              ( field \n )*                              "metadata" and hexadecimal digits
//!              count \n                                   files that follow and are not excluded
//!              ( path ( " " field )* \n )*
//!              [ "// FOOTER" \n ( field \n )* ]           only in schema 2
//! field     := name " " data
//! ```
//!
//! Fields of a file are `crc32` (decimal, CRC-32C of the whole file; required in schema 1), and in
//! schema 2 `size`, `temp` (such as `kWarm`) and `ni::excluded` (`true` or `false`). Schema 2 may
//! have any other field: one whose name begins with `ni::` must not be ignored by a reader that
//! does not know it.

use std::fmt::Write as _;

use crate::base::{Error, Result, SequenceNumber, SubCode, Temperature, from_hex};

use super::layout::{BackupPath, decimal};
use super::options::BackupId;

const SCHEMA_VERSION: &str = "schema_version ";
const FOOTER: &str = "// FOOTER";
const METADATA: &str = "metadata";
const CRC32C: &str = "crc32";
const SIZE: &str = "size";
const TEMPERATURE: &str = "temp";
const EXCLUDED: &str = "ni::excluded";
const NOT_IGNORABLE: &str = "ni::";

/// A larger file is no meta file.
pub(super) const META_SIZE_MAX: u64 = 256 << 20;

/// What a meta file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Meta {
    /// Seconds since 1970.
    pub(super) timestamp: u64,
    pub(super) sequence: SequenceNumber,
    /// The application's bytes.
    pub(super) app_metadata: Vec<u8>,
    pub(super) files: Vec<MetaFile>,
    /// Files that the backup lacks on request.
    pub(super) excluded: Vec<BackupPath>,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MetaFile {
    pub(super) path: BackupPath,
    pub(super) crc32c: Option<u32>,
    /// Bytes; unknown in schema 1.
    pub(super) size: Option<u64>,
    pub(super) temperature: Temperature,
}

impl MetaFile {
    /// The size that the meta file or the file's name tells.
    pub(super) fn known_size(&self) -> Option<u64> {
        self.size.or_else(|| self.path.named_size())
    }
}

impl Meta {
    /// The file's text in schema 1 or 2.
    pub(super) fn encode(&self, schema: u32) -> String {
        let mut text = String::new();
        if schema > 1 {
            text.push_str("schema_version 2.1\n");
        }
        // Writing into a string does not fail.
        let _ = write!(text, "{}\n{}\n", self.timestamp, self.sequence);
        if !self.app_metadata.is_empty() {
            text.push_str(METADATA);
            text.push(' ');
            self.app_metadata.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02X}");
            });
            text.push('\n');
        }
        let _ = writeln!(text, "{}", self.files.len());
        for file in &self.files {
            text.push_str(file.path.as_str());
            if let Some(crc32c) = file.crc32c {
                let _ = write!(text, " {CRC32C} {crc32c}");
            }
            if schema > 1 {
                if let Some(size) = file.size {
                    let _ = write!(text, " {SIZE} {size}");
                }
                let names = Temperature::NAMES.iter();
                let known = names.filter(|_| file.temperature != Temperature::UNKNOWN);
                for (name, _) in known.filter(|(_, value)| *value == file.temperature) {
                    let _ = write!(text, " {TEMPERATURE} {name}");
                }
            }
            text.push('\n');
        }
        for path in &self.excluded {
            assert!(schema > 1, "schema 1 cannot say that a file is excluded");
            let _ = writeln!(text, "{} {EXCLUDED} true", path.as_str());
        }
        text
    }

    /// Reads a meta file of the backup `id`.
    ///
    /// # Errors
    /// `Corruption` naming the line; `NotSupported` for a schema, or a field that must not be
    /// ignored, of another release.
    pub(super) fn parse(bytes: &[u8], id: BackupId) -> Result<Self> {
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| Error::corruption("the meta file is not text"))?;
        let whole = text.strip_suffix('\n');
        let whole = whole.ok_or_else(|| Error::corruption("the meta file ends within a line"))?;
        let mut lines = Lines { lines: whole.split('\n'), number: 0, id };
        lines
            .meta()
            .map_err(|error| error.context(format!("line {} of the meta file", lines.number)))
    }
}

struct Lines<'a> {
    lines: std::str::Split<'a, char>,
    /// Of the line that was read last, from 1 on.
    number: usize,
    id: BackupId,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let line = self.lines.next()?;
        self.number += 1;
        Some(line)
    }

    fn required(&mut self, what: &str) -> Result<&'a str> {
        self.next().ok_or_else(|| Error::corruption(format!("the meta file ends before {what}")))
    }

    fn meta(&mut self) -> Result<Meta> {
        let mut line = self.required("the timestamp")?;
        let mut schema = 1;
        if let Some(version) = line.strip_prefix(SCHEMA_VERSION) {
            if version != "2" && !version.starts_with("2.") {
                return Err(of_other_release(format!("schema version {version:?}")));
            }
            schema = 2;
            line = self.required("the timestamp")?;
        }
        let mut meta = Meta { timestamp: number(line, "a timestamp")?, ..Meta::default() };
        meta.sequence = number(self.required("the sequence number")?, "a sequence number")?;
        let count = self.header(schema, &mut meta)?;
        let has_footer = self.files(schema, &mut meta)?;
        while has_footer && let Some(line) = self.next() {
            let (name, _) = field(line)?;
            check_ignorable(name)?;
        }
        if meta.files.len() as u64 != count {
            let message = format!("{} files are listed, {count} are announced", meta.files.len());
            return Err(Error::corruption(message));
        }
        Ok(meta)
    }

    /// The fields before the files; how many files are announced.
    fn header(&mut self, schema: u32, meta: &mut Meta) -> Result<u64> {
        loop {
            let line = self.required("the number of files")?;
            if let Some(count) = decimal(line) {
                return Ok(count);
            }
            let (name, data) = field(line)?;
            match name {
                METADATA => meta.app_metadata = from_hex(data).ok_or_else(no_digits)?,
                _ if schema > 1 => check_ignorable(name)?,
                _ => return Err(Error::corruption(format!("unknown field {name:?}"))),
            }
        }
    }

    /// The files; whether a footer follows.
    fn files(&mut self, schema: u32, meta: &mut Meta) -> Result<bool> {
        while let Some(line) = self.next() {
            if schema > 1 && line == FOOTER {
                return Ok(true);
            }
            let mut words = line.split(' ');
            let path = BackupPath::parse(words.next().unwrap_or_default())?;
            if !path.may_belong_to(self.id) {
                let message = format!("{} is a file of another backup", path.as_str());
                return Err(Error::corruption(message));
            }
            let temperature = Temperature::UNKNOWN;
            let mut file = MetaFile { path, crc32c: None, size: None, temperature };
            let mut is_excluded = false;
            while let Some(name) = words.next() {
                let data = words.next();
                let data =
                    data.ok_or_else(|| Error::corruption(format!("no value of {name:?}")))?;
                match name {
                    CRC32C => file.crc32c = Some(number(data, "a checksum")?),
                    _ if schema == 1 => {
                        return Err(Error::corruption(format!("unknown field {name:?}")));
                    }
                    SIZE => file.size = Some(number(data, "a size")?),
                    TEMPERATURE => file.temperature = temperature_named(data),
                    EXCLUDED if data == "true" || data == "false" => is_excluded = data == "true",
                    EXCLUDED => {
                        return Err(of_other_release(format!("{data:?} as value of {name}")));
                    }
                    _ => check_ignorable(name)?,
                }
            }
            if schema == 1 && file.crc32c.is_none() {
                return Err(Error::corruption(format!("{} has no checksum", file.path.as_str())));
            }
            if is_excluded {
                meta.excluded.push(file.path);
            } else {
                meta.files.push(file);
            }
        }
        Ok(false)
    }
}

/// A name and what follows it.
fn field(line: &str) -> Result<(&str, &str)> {
    let parts = line.split_once(' ').filter(|(name, _)| !name.is_empty());
    parts.ok_or_else(|| Error::corruption(format!("neither a number nor a field: {line:?}")))
}

fn check_ignorable(name: &str) -> Result<()> {
    if name.starts_with(NOT_IGNORABLE) {
        return Err(of_other_release(format!("field {name:?}")));
    }
    Ok(())
}

fn of_other_release(what: String) -> Error {
    let message = format!("{what} is of another release and must not be ignored");
    Error::not_supported(message).with_subcode(SubCode::OtherRelease)
}

fn number<T: TryFrom<u64>>(text: &str, what: &str) -> Result<T> {
    let value = decimal(text).and_then(|value| T::try_from(value).ok());
    value
        .ok_or_else(|| Error::corruption(format!("no {}: {text:?}", what.trim_start_matches("a "))))
}

fn no_digits() -> Error {
    Error::corruption("the metadata are not hexadecimal digits")
}

/// A name that a later release may have is no reason to refuse the backup.
fn temperature_named(name: &str) -> Temperature {
    let found = Temperature::NAMES.iter().find(|(known, _)| *known == name);
    found.map_or(Temperature::UNKNOWN, |(_, value)| *value)
}

/// Reads and writes a meta file, for the fuzz target: what is accepted reads the same once written.
///
/// # Errors
/// As reading a meta file.
///
/// # Panics
/// If what is written reads differently.
pub fn check_meta(bytes: &[u8]) -> Result<()> {
    let meta = Meta::parse(bytes, 1)?;
    for file in &meta.files {
        assert!(!file.path.as_str().contains(".."), "a way out: {:?}", file.path);
        let _ = (file.known_size(), file.path.database_name());
    }
    let again = Meta::parse(meta.encode(2).as_bytes(), 1)?;
    assert_eq!(again, meta);
    Ok(())
}

#[cfg(test)]
mod tests;
