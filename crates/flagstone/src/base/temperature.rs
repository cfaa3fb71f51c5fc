//! How often a file is expected to be read.

use std::fmt;

/// How often a table is expected to be read, in RocksDB's terms. The file system is told, so that
/// it may choose where to put the table, and the MANIFEST records it. The engine itself treats all
/// tables alike.
///
/// It is a number, so that values of newer RocksDB releases are preserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Temperature(u8);

impl Temperature {
    /// Unknown; the default of every table.
    pub const UNKNOWN: Self = Self(0);
    /// Read often.
    pub const HOT: Self = Self(4);
    /// Read less often.
    pub const WARM: Self = Self(8);
    /// Read less often than `WARM`.
    pub const COOL: Self = Self(10);
    /// Read rarely.
    pub const COLD: Self = Self(12);
    /// Hardly ever read.
    pub const ICE: Self = Self(16);

    /// The temperatures that have a name, with RocksDB's name.
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

    /// The byte stored in the MANIFEST.
    pub const fn as_byte(self) -> u8 {
        self.0
    }

    /// Whether the temperature is known.
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
