//! Keys and values as text.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use crate::failure::Failure;

/// Lower-case hexadecimal. Values of gigabytes are printed so: four bytes at a time are turned into
/// digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut digits = Vec::with_capacity(bytes.len() * 2 + 8);
    let (whole, rest) = bytes.as_chunks::<4>();
    for four in whole {
        digits.extend_from_slice(&digits_of(*four));
    }
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    digits.extend_from_slice(&digits_of(last)[..rest.len() * 2]);
    String::from_utf8(digits).expect("digits")
}

/// The digits of four bytes, each in a byte of one word.
fn digits_of(bytes: [u8; 4]) -> [u8; 8] {
    let mut spread = u64::from(u32::from_le_bytes(bytes));
    spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
    spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    let values = (spread >> 4 & 0x000f_000f_000f_000f) | (spread & 0x000f_000f_000f_000f) << 8;
    // Adding 6 carries over from 10 on.
    let letters = (values + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (values + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10)).to_le_bytes()
}

/// The inverse of [`hex`]; upper case and a leading `0x` are fine, too.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| (byte as char).to_digit(16);
    digits
        .chunks_exact(2)
        .map(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8))
        .collect()
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
                let expected = "expected two digits 0 to f for each byte";
                Failure::Usage(format!(
                    "{what} '{text}' is not hexadecimal, as --hex says: {expected}"
                ))
            }),
        }
    }

    /// Shows a key or value on one line.
    pub fn show(self, bytes: &[u8]) -> String {
        let mut shown = Shown::new(self);
        let mut text = shown.piece(bytes);
        text.push_str(&shown.end());
        text
    }
}

/// Shows a value piece by piece: together the pieces are what [`Notation::show`] makes of it.
pub struct Shown {
    notation: Notation,
    /// The beginning of a character, at the end of the last piece.
    begun: Vec<u8>,
    /// Whether the last character is shown as it is.
    is_plain: bool,
}

impl Shown {
    /// Nothing is shown yet.
    pub fn new(notation: Notation) -> Self {
        Self { notation, begun: Vec::new(), is_plain: false }
    }

    /// Shows the next piece.
    pub fn piece(&mut self, piece: &[u8]) -> String {
        if self.notation == Notation::Hex {
            return hex(piece);
        }
        let mut whole = std::mem::take(&mut self.begun);
        let bytes = if whole.is_empty() {
            piece
        } else {
            whole.extend_from_slice(piece);
            &whole
        };
        let (bytes, begun) = bytes.split_at(bytes.len() - unfinished(bytes));
        let text = self.show(bytes);
        self.begun = begun.to_vec();
        text
    }

    /// Shows what is left.
    pub fn end(&mut self) -> String {
        let begun = std::mem::take(&mut self.begun);
        self.show(&begun)
    }

    fn show(&mut self, bytes: &[u8]) -> String {
        let mut shown = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            for char in chunk.valid().chars() {
                self.is_plain = show(char, self.is_plain, &mut shown);
            }
            if !chunk.invalid().is_empty() {
                self.is_plain = false;
                let _ = write!(shown, "{}", chunk.invalid().escape_ascii());
            }
        }
        shown
    }
}

/// How many bytes at the end may be the beginning of a character of UTF-8.
pub fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(3);
    let begin = last.take_while(|byte| **byte >= 0x80).position(|byte| *byte >= 0xc0);
    let length_of = |first: u8| match first {
        0xf0.. => 4,
        0xe0.. => 3,
        _ => 2,
    };
    match begin.map(|at| at + 1) {
        Some(length) if length < length_of(bytes[bytes.len() - length]) => length,
        _ => 0,
    }
}

/// Shows a character, or its bytes where a terminal might not show it; whether it is shown. An
/// accent is, where the character before it is (names of files on macOS have many): it would stand
/// on that.
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
        if char.is_control() && char != '\n' {
            shown.extend(char.escape_default())
        } else {
            shown.push(char)
        }
    }
    shown
}

/// One line of a dump.
#[derive(Debug, PartialEq, Eq)]
pub enum DumpLine<'a> {
    /// `COLUMN_FAMILY HEXKEY HEXVALUE`. An empty key or value is an empty field.
    Entry(&'a str, Vec<u8>, Vec<u8>),
    /// `COLUMN_FAMILY HEXKEY entity=HEXENTITY`: an entity in its encoded form.
    Entity(&'a str, Vec<u8>, Vec<u8>),
    /// `COLUMN_FAMILY comparator=NAME`: whose keys are not in the order of bytes. It stands before
    /// the family's entries.
    Order(&'a str, &'a str),
}

/// What precedes an encoded entity.
const ENTITY: &str = "entity=";

/// An entity in the place of a value.
pub fn dump_entity(entity: &[u8]) -> String {
    format!("{ENTITY}{}", hex(entity))
}

/// What precedes the comparator's name, and no hexadecimal field.
const COMPARATOR: &str = " comparator=";

/// The beginning of an entry's line: the value follows, in hexadecimal, and the line's end.
pub fn dump_line_start(family: &str, key: &[u8]) -> String {
    format!("{family} {} ", hex(key))
}

/// A line of an order.
pub fn order_line(family: &str, comparator: &str) -> String {
    format!("{family}{COMPARATOR}{comparator}\n")
}

impl<'a> DumpLine<'a> {
    /// Takes a line apart.
    pub fn parse(line: &'a str) -> Option<Self> {
        let order = || {
            let (family, comparator) = line.rsplit_once(COMPARATOR)?;
            Some(Self::Order(family, comparator))
        };
        Self::entry(line).or_else(order).filter(|line| {
            let (Self::Entry(family, ..) | Self::Entity(family, ..) | Self::Order(family, _)) =
                line;
            // No family has an empty name.
            !family.is_empty()
        })
    }

    fn entry(line: &'a str) -> Option<Self> {
        // A family's name may hold spaces; the two hexadecimal fields do not.
        let (rest, value) = line.rsplit_once(' ')?;
        let (family, key) = rest.rsplit_once(' ')?;
        let key = from_hex(key)?;
        Some(match value.strip_prefix(ENTITY) {
            Some(entity) => Self::Entity(family, key, from_hex(entity)?),
            None => Self::Entry(family, key, from_hex(value)?),
        })
    }
}

/// The beginning of an entry's line.
#[derive(Debug, PartialEq, Eq)]
pub struct DumpStart<'a> {
    /// The column family.
    pub family: &'a str,
    /// The key.
    pub key: Vec<u8>,
    /// What there is of the value, in hexadecimal.
    pub value: &'a str,
}

impl<'a> DumpStart<'a> {
    /// Takes the beginning of a line apart that reaches into the value. The line of an entity is
    /// read as a whole.
    pub fn parse(start: &'a str) -> Option<Self> {
        let (rest, value) = start.rsplit_once(' ')?;
        let (family, key) = rest.rsplit_once(' ')?;
        let start = Self { family, key: from_hex(key)?, value };
        Some(start).filter(|start| is_hex_start(start.value) && !family.is_empty())
    }
}

/// Whether this is the beginning of an entity's field.
pub fn is_entity_start(text: &str) -> bool {
    text.strip_prefix(ENTITY).is_some_and(is_hex_start)
}

/// Whether this may be the beginning of a hexadecimal field.
pub fn is_hex_start(text: &str) -> bool {
    text.strip_prefix("0x").unwrap_or(text).bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A hexadecimal field that is read piece by piece, as [`from_hex`] reads it whole.
#[derive(Debug, Default)]
pub struct HexPieces {
    /// Whether something was read: `0x` may stand at the beginning.
    has_begun: bool,
    /// The first digit of a byte.
    high: Option<u8>,
}

impl HexPieces {
    /// Reads on, and appends the bytes; `None` where this is no hexadecimal. The first piece has at
    /// least two digits.
    pub fn read(&mut self, digits: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
        let digits = if std::mem::replace(&mut self.has_begun, true) {
            digits
        } else {
            digits.strip_prefix(b"0x").unwrap_or(digits)
        };
        for digit in digits {
            let digit = (*digit as char).to_digit(16)? as u8;
            match self.high.take() {
                Some(high) => bytes.push(high << 4 | digit),
                None => self.high = Some(digit),
            }
        }
        Some(())
    }

    /// Whether it may end here.
    pub fn is_whole(&self) -> bool {
        self.high.is_none()
    }
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
    let _ = if unit == 0 {
        write!(out, "{count} B")
    } else {
        write!(out, "{amount:.1} {}", UNITS[unit])
    };
    out
}

#[cfg(test)]
mod tests;
