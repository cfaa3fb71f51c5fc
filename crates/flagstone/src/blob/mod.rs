//! Blob files: large values kept apart from their keys.

mod format;
mod garbage;
mod gc;

pub use format::{
    BlobFileFooter, BlobFileHeader, BlobIndex, FOOTER_SIZE, HEADER_SIZE, MAGIC, RECORD_HEADER_SIZE,
    RecordHeader, VERSION,
};
pub use garbage::{GarbageDelta, GarbageMeter};
pub use gc::{BlobFileUsage, BlobGcSettings, forced_gc, gc_cutoff};
