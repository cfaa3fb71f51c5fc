//! Blob files: large values kept apart from their keys.

mod builder;
mod format;
mod garbage;
mod gc;
mod reader;
mod scan;
mod separator;
#[cfg(test)]
mod tests;

pub use builder::{BlobBuilderSettings, BlobFileBuilder, BlobFileSummary};
pub use format::{
    BlobFileFooter, BlobFileHeader, BlobIndex, FOOTER_SIZE, HEADER_SIZE, MAGIC, RECORD_HEADER_SIZE,
    RecordHeader, VERSION,
};
pub use garbage::{GarbageDelta, GarbageMeter};
pub use gc::{BlobFileUsage, BlobGcSettings, forced_gc, gc_candidates};
pub use reader::{BlobFileReader, BlobRequest, BlobValue};
pub use scan::{BlobFileScan, BlobRecord, RecoveredBlobFile, recover_size};
pub use separator::{BlobSeparator, FinishedBlobFile, OpenBlobFile, SeparationPolicy};
