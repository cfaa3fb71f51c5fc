//! Keys and values as text.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

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
                    let mut is_shown = false;
                    for char in chunk.valid().chars() {
                        is_shown = show(char, is_shown, &mut shown);
                    }
                    let _ = write!(shown, "{}", chunk.invalid().escape_ascii());
                }
                shown
            }
            Self::Hex => hex(bytes),
        }
    }
}

/// Shows a character, or its bytes where a terminal might not show it; whether it is shown. An accent is, where the character
/// before it is (names of files on macOS have many): it would stand on that.
fn show(char: char, has_base: bool, shown: &mut String) -> bool {
    let is_plain = match char {
        '\\' => false,
        // Quotes end nothing here, and JSON is full of them.
        ' '..='~' => true,
        _ if char.is_ascii() => false,
        _ => char.escape_debug().eq([char]) || has_base && is_accent(char),
    };
    if is_plain {
        shown.push(char);
    } else {
        let _ = write!(shown, "{}", char.encode_utf8(&mut [0; 4]).as_bytes().escape_ascii());
    }
    is_plain
}

/// Whether a character is printable behind another one.
fn is_accent(char: char) -> bool {
    let mut pair = [b'a'; 5];
    let length = 1 + char.encode_utf8(&mut pair[1..]).len();
    // Of a text only the first character is escaped for being one that belongs on another.
    str::from_utf8(&pair[..length]).is_ok_and(|pair| pair.escape_debug().eq(pair.chars()))
}

/// A name, as of a column family, on one line.
pub fn name(name: &str) -> String {
    Notation::Plain.show(name.as_bytes())
}

/// A path on one line. One that is no UTF-8 loses nothing.
pub fn path(path: &Path) -> String {
    Notation::Plain.show(path.as_os_str().as_encoded_bytes())
}

/// Text of the engine, which may hold names: its lines, without what would change the terminal.
pub fn lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char.is_control() && char != '\n' {
            true => shown.extend(char.escape_default()),
            false => shown.push(char),
        }
    }
    shown
}

/// One line of a dump.
#[derive(Debug, PartialEq, Eq)]
pub enum DumpLine<'a> {
    /// `COLUMN_FAMILY HEXKEY HEXVALUE`. An empty key or value is an empty field.
    Entry(&'a str, Vec<u8>, Vec<u8>),
    /// `COLUMN_FAMILY comparator=NAME`: whose keys are not in the order of bytes. It stands before the family's entries.
    Order(&'a str, &'a str),
}

/// What precedes the comparator's name, and no hexadecimal field.
const COMPARATOR: &str = " comparator=";

/// A line of an entry.
pub fn dump_line(family: &str, key: &[u8], value: &[u8]) -> String {
    format!("{family} {} {}\n", hex(key), hex(value))
}

/// A line of an order.
pub fn order_line(family: &str, comparator: &str) -> String {
    format!("{family}{COMPARATOR}{comparator}\n")
}

impl<'a> DumpLine<'a> {
    /// Takes a line apart.
    pub fn parse(line: &'a str) -> Option<Self> {
        Self::entry(line).or_else(|| {
            let (family, comparator) = line.rsplit_once(COMPARATOR)?;
            Some(Self::Order(family, comparator))
        })
    }

    fn entry(line: &'a str) -> Option<Self> {
        // A family's name may hold spaces; the two hexadecimal fields do not.
        let (rest, value) = line.rsplit_once(' ')?;
        let (family, key) = rest.rsplit_once(' ')?;
        Some(Self::Entry(family, from_hex(key)?, from_hex(value)?))
    }
}

/// `1 table`, `2 tables`.
pub fn count(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
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
        // The right-to-left override, and the beginning of a character.
        assert_eq!(shown("\u{202e}a".as_bytes()), r"\xe2\x80\xaea");
        assert_eq!(shown(b"a\xc3"), r"a\xc3");
        assert_eq!(shown("\u{85}\r".as_bytes()), r"\xc2\x85\r");
    }

    /// As macOS writes them, of letters and accents, they could not either.
    #[test]
    fn accents_are_shown_on_their_letters() {
        let shown = |text: &str| Notation::Plain.show(text.as_bytes());
        for name in ["Ba\u{308}ume", "a\u{301}\u{323}", "\u{915}\u{93f}", "\u{2764}\u{fe0f}"] {
            assert_eq!(shown(name), name);
        }
        // Not on a tab before the value, on a digit that stands for a byte, or on a direction.
        assert_eq!(shown("\u{301}a"), r"\xcc\x81a");
        assert_eq!(shown("\u{1}\u{301}"), r"\x01\xcc\x81");
        assert_eq!(shown("a\u{202e}\u{301}"), r"a\xe2\x80\xae\xcc\x81");
        assert_eq!(Notation::Plain.show(b"a\xff\xcc\x81"), r"a\xff\xcc\x81");
        // What joins others is not seen.
        assert_eq!(shown("a\u{200d}"), r"a\xe2\x80\x8d");
    }

    #[test]
    fn dump_lines_are_undone() {
        for (family, key, value) in
            [("default", &b"k"[..], &b"v"[..]), ("two words", b"", b""), ("x", b"\0", b""), ("x", b"", b" ")]
        {
            let line = dump_line(family, key, value);
            let parsed = DumpLine::parse(line.trim_end_matches('\n')).unwrap();
            assert_eq!(parsed, DumpLine::Entry(family, key.to_vec(), value.to_vec()));
        }
        for family in ["default", "two words", "a comparator=b", ""] {
            let line = order_line(family, "c");
            assert_eq!(DumpLine::parse(line.trim_end_matches('\n')), Some(DumpLine::Order(family, "c")));
        }
        assert_eq!(
            DumpLine::parse("a comparator=b 61 "),
            Some(DumpLine::Entry("a comparator=b", b"a".into(), vec![]))
        );
        assert_eq!(DumpLine::parse("default 61"), None);
        assert_eq!(DumpLine::parse("default 6x 61"), None);
    }

    /// Any line is an entry, an order or an error; what it says is printed so that it says the same.
    #[test]
    fn hostile_dump_lines_are_read() {
        let mut random = fastrand::Rng::with_seed(1);
        for seed in
            ["default 61 62", "two words  00ff", "\u{e4} 61 ", "x comparator=c d 0x61", " comparator= 6"]
        {
            for _ in 0..1000 {
                let mut bytes = seed.as_bytes().to_vec();
                testkit::fuzz::mutate(&mut random, &mut bytes);
                assert!(!Notation::Plain.show(&bytes).contains(char::is_control), "{bytes:?}");
                let Ok(line) = std::str::from_utf8(&bytes) else { continue };
                let parsed = DumpLine::parse(line);
                let printed = match &parsed {
                    Some(DumpLine::Entry(family, key, value)) => dump_line(family, key, value),
                    Some(DumpLine::Order(family, comparator)) => order_line(family, comparator),
                    None => continue,
                };
                assert_eq!(DumpLine::parse(&printed[..printed.len() - 1]), parsed, "{line:?}");
            }
        }
    }

    #[test]
    fn byte_counts_are_readable() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(u64::MAX), "16384.0 PiB");
    }
}
