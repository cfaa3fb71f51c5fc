//! How many entries a table has, and of which kinds.

use crate::manifest::TableFile;

/// What a table's entries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryStats {
    /// Entries, deletions included.
    pub entries: u64,
    /// Deletions of single keys.
    pub deletions: u64,
    /// Bytes of all values, uncompressed.
    pub value_bytes: u64,
}

/// The statistics of a table that is open; none is opened for them.
pub fn table_stats(file: &TableFile) -> Option<EntryStats> {
    let properties = file.table.get()?.properties();
    Some(EntryStats {
        entries: properties.num_entries,
        deletions: properties.num_deletions.saturating_sub(properties.num_range_deletions),
        value_bytes: properties.raw_value_size,
    })
}
