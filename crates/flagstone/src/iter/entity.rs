//! Wide-column entities.
//!
//! ```text
//! entity (version 1) = varint32 1, varint32 column count n,
//!                      n * (lps column name, varint32 value size),
//!                      n * value
//! ```
//!
//! Columns ascend bytewise by name. The default column has the empty name and so comes first.

use std::ops::Range;

use crate::base::Result;

/// One column: its name and its value.
pub type Column<'a> = (&'a [u8], &'a [u8]);

/// Decodes all columns.
///
/// # Errors
/// `Corruption` for malformed bytes, `NotSupported` for a newer version.
pub fn decode(_entity: &[u8]) -> Result<Vec<Column<'_>>> {
    todo!()
}

/// Where the default column's value lies; an empty range if there is no default column.
///
/// # Errors
/// As [`decode`].
pub fn default_column(_entity: &[u8]) -> Result<Range<usize>> {
    todo!()
}

/// Encodes columns, which must ascend by name.
pub fn encode(_columns: &[Column<'_>]) -> Vec<u8> {
    todo!()
}
