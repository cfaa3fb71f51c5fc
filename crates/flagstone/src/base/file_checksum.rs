//! Checksums of whole files, as the MANIFEST records them for tables and blob files.
//!
//! A factory makes a generator for each file; a file's bytes pass it from the first to the last.
//! The built-in factory computes what RocksDB's `FileChecksumGenCrc32cFactory` does: the CRC32C of
//! the file, in four bytes, the most significant first.

use std::fmt;
use std::sync::Arc;

use super::checksum::crc32c_append;
use super::{Error, Result};

/// The name of the built-in function.
pub const FILE_CHECKSUM_CRC32C: &str = "FileChecksumCrc32c";

/// The checksum of a whole file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileChecksum {
    /// The name of the function, such as `FileChecksumCrc32c`.
    pub function: String,
    /// What it gives for the file.
    pub value: Vec<u8>,
}

impl FileChecksum {
    /// What the MANIFEST says of a file; `None` if it has no value.
    pub fn of(function: &str, value: &[u8]) -> Option<Self> {
        let is_known = !function.is_empty() && !value.is_empty();
        is_known.then(|| Self { function: function.to_string(), value: value.to_vec() })
    }

    /// The CRC32C of a file, as the built-in function has it.
    pub fn crc32c(crc: u32) -> Self {
        let value = crc.to_be_bytes().to_vec();
        Self { function: FILE_CHECKSUM_CRC32C.to_string(), value }
    }

    /// The CRC32C, if this is one.
    pub fn as_crc32c(&self) -> Option<u32> {
        let bytes = self.value.as_slice().try_into().ok()?;
        (self.function == FILE_CHECKSUM_CRC32C).then(|| u32::from_be_bytes(bytes))
    }

    /// Compares it with what a file in fact has.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn check(&self, found: &Self) -> Result<()> {
        if self == found {
            return Ok(());
        }
        Err(Error::corruption(format!("the file has checksum {found} instead of {self}")))
    }
}

/// The function and the value in hexadecimal digits.
impl fmt::Display for FileChecksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.function)?;
        self.value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Computes the checksum of one file.
pub trait FileChecksumGenerator: Send {
    /// The next bytes of the file.
    fn update(&mut self, bytes: &[u8]);

    /// The checksum of all bytes.
    fn finish(self: Box<Self>) -> Vec<u8>;
}

/// Makes generators of checksums of whole files (RocksDB's `FileChecksumGenFactory`).
pub trait FileChecksumFactory: Send + Sync {
    /// The name of the function for new files. Once files have it, it must not change its meaning.
    fn function(&self) -> &str;

    /// A generator of the function of that name; `None` if the factory does not know it.
    fn generator(&self, function: &str) -> Option<Box<dyn FileChecksumGenerator>>;
}

/// The factory of RocksDB's `FileChecksumGenCrc32cFactory`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Crc32cFileChecksums;

impl FileChecksumFactory for Crc32cFileChecksums {
    fn function(&self) -> &str {
        FILE_CHECKSUM_CRC32C
    }

    fn generator(&self, function: &str) -> Option<Box<dyn FileChecksumGenerator>> {
        (function == FILE_CHECKSUM_CRC32C).then(|| Box::new(RunningCrc(0)) as _)
    }
}

struct RunningCrc(u32);

impl FileChecksumGenerator for RunningCrc {
    fn update(&mut self, bytes: &[u8]) {
        self.0 = crc32c_append(self.0, bytes);
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        FileChecksum::crc32c(self.0).value
    }
}

/// The functions that a database knows: that of its factory, if it has one, and the built-in one.
#[derive(Clone, Default)]
pub struct FileChecksums(Option<Arc<dyn FileChecksumFactory>>);

impl FileChecksums {
    /// With a factory, new files get checksums.
    pub fn new(factory: Option<Arc<dyn FileChecksumFactory>>) -> Self {
        Self(factory)
    }

    /// The function of new files, if they get checksums.
    pub fn function(&self) -> Option<&str> {
        self.0.as_deref().map(FileChecksumFactory::function)
    }

    /// A generator for a new file, if these get checksums.
    ///
    /// # Errors
    /// `InvalidArgument` if the factory does not make its own function.
    pub fn for_new_file(&self) -> Result<Option<RunningFileChecksum>> {
        self.function().map(|function| self.of_function(function)).transpose()
    }

    /// A generator of the function of that name.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not known.
    pub fn of_function(&self, function: &str) -> Result<RunningFileChecksum> {
        let own = self.0.as_ref().and_then(|factory| factory.generator(function));
        let generator = own.or_else(|| Crc32cFileChecksums.generator(function));
        let generator = generator.ok_or_else(|| {
            Error::invalid_argument(format!(
                "checksum function '{function}' is not known; open the database with the file_checksum_factory that \
                 has it"
            ))
        })?;
        Ok(RunningFileChecksum { function: function.to_string(), generator })
    }
}

/// The checksum of a file whose bytes are passing.
pub struct RunningFileChecksum {
    function: String,
    generator: Box<dyn FileChecksumGenerator>,
}

impl RunningFileChecksum {
    /// The next bytes of the file.
    pub fn update(&mut self, bytes: &[u8]) {
        self.generator.update(bytes);
    }

    /// The checksum of all bytes.
    pub fn finish(self) -> FileChecksum {
        FileChecksum { function: self.function, value: self.generator.finish() }
    }
}

#[cfg(test)]
mod tests;
