//! Blob files: large values kept apart from their keys.

mod appender;
#[cfg(test)]
mod appender_tests;
mod block_map;
mod builder;
mod format;
mod garbage;
mod gc;
#[cfg(test)]
mod hole_tests;
mod pieces;
mod readahead;
#[cfg(test)]
mod readahead_tests;
mod reader;
mod references;
mod scan;
mod separator;
mod stream;
#[cfg(test)]
mod tests;
mod walk;

pub use appender::{BlobAppender, BlobIndexes, NewBlob};
pub use block_map::BlockMap;
pub use builder::{BlobBuilderSettings, BlobFileBuilder, BlobFileSummary};
pub use format::{
    BlobFileFooter, BlobFileHeader, BlobIndex, FOOTER_SIZE, HEADER_SIZE, MAGIC, PART_SIZE_MAX,
    RECORD_HEADER_SIZE, RecordHeader, VERSION,
};
pub use garbage::{GarbageDelta, GarbageMeter, Outflow};
pub use gc::{BlobFileUsage, BlobGcSettings, WORTHWHILE_GARBAGE, forced_gc, gc_candidates};
pub use pieces::{PIECE_SIZE, PieceChecksums};
pub use readahead::BlobReadahead;
pub use reader::{BlobFileReader, BlobRequest, BlobValue, get_together};
pub use references::{references, visit_references};
pub use scan::{BlobFileScan, BlobRecord};
pub use separator::{
    BlobSeparator, FinishedBlobFile, OpenBlobFile, SeparationPolicy, UNCOMPRESSED_FROM,
};
pub use stream::BlobStream;
pub use walk::{BlobPieces, is_read_in_pieces};
