//! Numbers that must not be confused with one another.

use std::fmt;

/// The column family that every database has.
pub const DEFAULT_COLUMN_FAMILY_NAME: &str = "default";

/// The position of a write in the database's history; 56 bits are stored.
pub type SequenceNumber = u64;

/// The number of a WAL, table, blob, MANIFEST, OPTIONS or temporary file; all share one counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileNumber(pub u64);

/// The number of a column family; 0 is `default`, and numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ColumnFamilyId(pub u32);

impl ColumnFamilyId {
    /// The family that every database has: `default`.
    pub const DEFAULT: Self = Self(0);
}

impl fmt::Display for FileNumber {
    /// As it stands in file names: at least six digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}", self.0)
    }
}

impl fmt::Display for ColumnFamilyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
