//! Tables that are written outside of a database, to be ingested.
//!
//! - [`SstFileWriter`] writes one table in RocksDB's external format.
//! - [`SstFileInfo`] says what was written.

mod info;
mod writer;

pub use info::SstFileInfo;
pub use writer::{SstFileWriter, SstFileWriterEmbeddedBlobOptions, SstFileWriterOptions};

#[cfg(test)]
mod tests;
