use super::*;
use crate::base::Error;
use crate::env::{AnyFile, FileAround};

/// A file of which these bytes cannot be read.
pub struct BadSector(pub AnyFile, pub Range<u64>);

impl FileAround for BadSector {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if offset < self.1.end && self.1.start < offset + buffer.len() as u64 {
            let cause = std::io::Error::from_raw_os_error(5);
            return Err(Error::io("read", self.0.path(), cause).at_offset(offset));
        }
        self.0.read_at(offset, buffer)
    }
}
