//! What flushes and compactions count.

/// What a job read and wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobCounts {
    /// Bytes of the tables' keys and values, uncompressed.
    pub raw_bytes: u64,
    /// Bytes of the blob files, headers and footers included.
    pub blob_bytes: u64,
    /// Values that were moved from one blob file to another.
    pub relocated_blobs: u64,
    /// Their bytes.
    pub relocated_bytes: u64,
    /// Entries of the input, range tombstones not included.
    pub entries_read: u64,
    /// Faults of keys, also those that are not listed.
    pub key_faults: u64,
    /// Parts that the whole job ran in. Parts leave it at 0.
    pub subcompactions: u64,
    /// How long the whole job took, in microseconds. Parts of a job leave it at 0.
    pub micros: u64,
}

impl JobCounts {
    /// Adds those of a later part. What the whole job has stays.
    pub fn absorb(&mut self, later: Self) {
        self.raw_bytes = self.raw_bytes.saturating_add(later.raw_bytes);
        self.blob_bytes += later.blob_bytes;
        self.relocated_blobs += later.relocated_blobs;
        self.relocated_bytes += later.relocated_bytes;
        self.entries_read += later.entries_read;
        self.key_faults += later.key_faults;
    }
}
