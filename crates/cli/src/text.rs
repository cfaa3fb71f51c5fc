//! Keys and values as text.

use std::ffi::OsStr;
use std::fmt::Write as _;

use crate::failure::Failure;

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)] as char);
        out.push(DIGITS[usize::from(byte & 15)] as char);
    }
    out
}

/// The inverse of [`hex`]; upper case and a leading `0x` are fine, too.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| (byte as char).to_digit(16);
    digits.chunks_exact(2).map(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)).collect()
}

/// How keys and values are given and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// As they are; what is not printable UTF-8 is escaped when shown, and the backslash.
    Plain,
    /// Hexadecimal.
    Hex,
}

impl Notation {
    /// The notation that `--hex` asks for.
    pub fn new(hex: bool) -> Self {
        if hex { Self::Hex } else { Self::Plain }
    }

    /// Reads a key or value from the command line, which may be any bytes but zeros.
    pub fn read(self, what: &str, text: &OsStr) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Plain => Ok(text.as_encoded_bytes().to_vec()),
            Self::Hex => text.to_str().and_then(from_hex).ok_or_else(|| {
                let text = text.as_encoded_bytes().escape_ascii();
                Failure::Usage(format!("{what} '{text}' is not hexadecimal, as --hex says"))
            }),
        }
    }

    /// Shows a key or value on one line.
    pub fn show(self, bytes: &[u8]) -> String {
        match self {
            Self::Plain => {
                let mut shown = String::with_capacity(bytes.len());
                for chunk in bytes.utf8_chunks() {
                    chunk.valid().chars().for_each(|char| show(char, &mut shown));
                    let _ = write!(shown, "{}", chunk.invalid().escape_ascii());
                }
                shown
            }
            Self::Hex => hex(bytes),
        }
    }
}

/// A character, or its bytes where a terminal might not show it.
fn show(char: char, shown: &mut String) {
    let is_plain = match char {
        '\\' => false,
        // Quotes end nothing here, and JSON is full of them.
        ' '..='~' => true,
        _ => !char.is_ascii() && char.escape_debug().eq([char]),
    };
    if is_plain {
        shown.push(char);
    } else {
        let _ = write!(shown, "{}", char.encode_utf8(&mut [0; 4]).as_bytes().escape_ascii());
    }
}

/// One line of a dump: `COLUMN_FAMILY HEXKEY HEXVALUE`. An empty key or value is an empty field.
pub fn dump_line(family: &str, key: &[u8], value: &[u8]) -> String {
    format!("{family} {} {}\n", hex(key), hex(value))
}

/// Takes a line of a dump apart.
pub fn parse_dump_line(line: &str) -> Option<(&str, Vec<u8>, Vec<u8>)> {
    // A family's name may hold spaces; the two hexadecimal fields do not.
    let (rest, value) = line.rsplit_once(' ')?;
    let (family, key) = rest.rsplit_once(' ')?;
    Some((family, from_hex(key)?, from_hex(value)?))
}

/// `12.3 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut amount = count as f64;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    let mut out = String::new();
    let _ = if unit == 0 { write!(out, "{count} B") } else { write!(out, "{amount:.1} {}", UNITS[unit]) };
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_undone() {
        assert_eq!(hex(b"\x00\xffa"), "00ff61");
        assert_eq!(from_hex("0x00FF61").unwrap(), b"\x00\xffa");
        assert_eq!(from_hex("").unwrap(), b"");
        for wrong in ["0", "0g", "123", "0x1", "+1"] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
    }

    /// Values that were JSON came with a backslash before each quote.
    #[test]
    fn what_is_printable_is_shown_as_it_is() {
        let json = br#"{"name":"O'Neill"}"#;
        assert_eq!(Notation::Plain.show(json).as_bytes(), json);
        assert_eq!(Notation::Plain.show(b"a\\b\t\x00\xff"), r"a\\b\t\x00\xff");
        assert_eq!(Notation::Hex.show(b"\\\""), "5c22");
    }

    /// Names of files in most languages could not be read.
    #[test]
    fn letters_are_shown_in_every_language() {
        let shown = |text: &[u8]| Notation::Plain.show(text);
        assert_eq!(shown("B\u{e4}ume/\u{6728}.jpg".as_bytes()), "B\u{e4}ume/\u{6728}.jpg");
        // The right-to-left override, an accent of its own, and the beginning of a character.
        assert_eq!(shown("\u{202e}a\u{301}".as_bytes()), r"\xe2\x80\xaea\xcc\x81");
        assert_eq!(shown(b"a\xc3"), r"a\xc3");
        assert_eq!(shown("\u{85}\r".as_bytes()), r"\xc2\x85\r");
    }

    #[test]
    fn dump_lines_are_undone() {
        for (family, key, value) in
            [("default", &b"k"[..], &b"v"[..]), ("two words", b"", b""), ("x", b"\0", b""), ("x", b"", b" ")]
        {
            let line = dump_line(family, key, value);
            let parsed = parse_dump_line(line.trim_end_matches('\n')).unwrap();
            assert_eq!(parsed, (family, key.to_vec(), value.to_vec()));
        }
        assert_eq!(parse_dump_line("default 61"), None);
        assert_eq!(parse_dump_line("default 6x 61"), None);
    }

    #[test]
    fn byte_counts_are_readable() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
    }
}
