//! How often a file is expected to be read.

use std::fmt;

/// How often a table is expected to be read, in RocksDB's words: what the file system is told, so
/// that it may choose where the table lies, and what the MANIFEST keeps. The engine itself treats
/// all alike.
///
/// It is a number, so that what a newer RocksDB has written is kept as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Temperature(u8);

impl Temperature {
    /// Nothing is known: of every table that was not told otherwise.
    pub const UNKNOWN: Self = Self(0);
    /// Read often.
    pub const HOT: Self = Self(4);
    /// Read less often.
    pub const WARM: Self = Self(8);
    /// Read less often than that.
    pub const COOL: Self = Self(10);
    /// Read seldom.
    pub const COLD: Self = Self(12);
    /// Hardly ever read.
    pub const ICE: Self = Self(16);

    /// Those that have a name, with RocksDB's name.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("kUnknown", Self::UNKNOWN),
        ("kHot", Self::HOT),
        ("kWarm", Self::WARM),
        ("kCool", Self::COOL),
        ("kCold", Self::COLD),
        ("kIce", Self::ICE),
    ];

    pub(crate) const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    /// As the MANIFEST has it.
    pub const fn as_byte(self) -> u8 {
        self.0
    }

    /// Whether something is known.
    pub fn is_known(self) -> bool {
        self != Self::UNKNOWN
    }
}

impl fmt::Display for Temperature {
    /// Its name in one word, such as `warm`, or its number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.iter().find(|(_, value)| value == self) {
            Some((name, _)) => f.write_str(&name[1..].to_ascii_lowercase()),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests;
