//! The write-ahead log, and the framing of records that the MANIFEST shares with it.

mod ahead;
#[cfg(feature = "zstd")]
mod compression;
#[cfg(not(feature = "zstd"))]
#[path = "compression_left_out.rs"]
mod compression;
mod damage;
#[cfg(test)]
mod fixture_tests;
mod format;
mod gap;
mod mode;
mod numbering;
mod physical;
mod pieces;
mod predecessor;
mod reached;
mod reader;
#[cfg(test)]
mod reader_tests;
mod recovery;
#[cfg(test)]
mod recovery_tests;
mod sections;
mod space;
mod stamps;
#[cfg(test)]
mod test_support;
mod writer;
#[cfg(test)]
mod writer_tests;

pub use ahead::FetchAhead;
pub use damage::{Damage, DamageKind};
pub use format::{BLOCK_SIZE, LEGACY_HEADER_SIZE, PredecessorWal, tail_of};
pub use gap::{Gap, number_at};
pub use mode::{RecoveryMode, Verdict};
pub use numbering::{Numbering, shares_numbers};
pub use physical::{byte_with_wrong_bit, has_unknown_type, records_within};
pub use pieces::{Checks, Fault, Reading};
pub use predecessor::{Noted, WalEnd};
pub use reached::reached_until;
pub use reader::{Event, Reader, ReaderOptions};
pub use recovery::{
    Applied, Apply, Expected, Judged, RecoveryOutcome, ReplayRecord, ReplayedWal, Stop,
    missing_wal, replay,
};
pub use sections::{SectionCounts, Sections, Sharing, Step as SectionStep, is_plain};
pub use stamps::{StampedFamily, Stamps};
pub use writer::{WalCompression, WalWriteMode, Writer, WriterOptions};
