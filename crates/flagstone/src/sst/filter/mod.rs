//! Filters: small sets of key hashes that rule out most keys that a file does not hold.
//!
//! ```text
//! filter  := data (L bytes) metadata (5 bytes)      shorter than 6 bytes in all: holds nothing
//! metadata:
//!   00 ..              always true
//!   ff 00 pp 00 00     FastLocalBloom: pp = probes in the low 5 bits, the top 3 zero; L a multiple of 64
//!   fe ss nn nn nn     Ribbon: ss = seed, n = number of 128-slot blocks (24 bits)
//!   pp nn nn nn nn     legacy Bloom: pp = 1-127 probes, n = number of 64-byte lines
//! ```
//! Anything else is from a future version and counts as always true.

mod bloom;
mod builder;
mod hashes;
mod policy;
mod reader;
mod ribbon;

pub use builder::FilterBuilder;
pub use policy::{FilterPolicy, WrittenBy};
pub use reader::{Filter, FilterKey};

/// Bytes of the metadata.
const METADATA_SIZE: usize = 5;

/// Bytes that one Bloom probe sequence stays within: a cache line.
const LINE: usize = 64;

/// First byte of the metadata of a FastLocalBloom filter.
const NEW_BLOOM: u8 = 0xff;

/// First byte of the metadata of a Ribbon filter.
const RIBBON: u8 = 0xfe;

#[cfg(test)]
mod tests;
