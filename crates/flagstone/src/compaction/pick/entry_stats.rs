//! How many entries a table has, and of which kinds.

use crate::manifest::{EntryStats, TableFile};

/// What the MANIFEST says of a table's entries, or the table, if it is open; none is opened for
/// that.
pub fn table_stats(file: &TableFile) -> Option<EntryStats> {
    file.meta
        .entry_stats
        .or_else(|| file.table.get().map(|table| EntryStats::of(table.properties())))
}
