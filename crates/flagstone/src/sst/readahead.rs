//! Reads ahead for a cursor that goes through a file in order.

use std::sync::Arc;

use crate::base::Result;
use crate::env::{AlignedBuffer, DIRECT_BLOCK, File};

/// The first window of a cursor that was not told how far to read ahead, and the largest.
const FIRST_WINDOW: usize = 8 * 1024;
const LAST_WINDOW: usize = 256 * 1024;
/// So many reads in a row must follow one another before a window is opened unasked.
const PATIENCE: u32 = 2;

/// The window of bytes read ahead.
#[derive(Default)]
pub(super) struct Readahead {
    /// Read from in the place of the table's own.
    file: Option<Arc<dyn File>>,
    bytes: Option<AlignedBuffer>,
    start: u64,
    /// How much the next read fetches; 0 at first.
    window: usize,
    fixed: bool,
    in_order: u32,
    /// Where the last read ended.
    expected: u64,
}

impl Readahead {
    /// Reads `size` bytes ahead from the start; 0 waits for a pattern and then doubles from 8 KiB to 256 KiB.
    pub fn new(size: usize, file: Option<Arc<dyn File>>) -> Self {
        Self { file, window: if size > 0 { size } else { FIRST_WINDOW }, fixed: size > 0, ..Self::default() }
    }

    /// Starts anew, without the window.
    pub fn forget(&mut self) {
        let size = if self.fixed { self.window } else { 0 };
        *self = Self::new(size, self.file.take());
    }

    /// `length` bytes at `offset` in place, fewer at the file's end; `None` where reading ahead does not pay (yet) and
    /// the caller reads for itself.
    ///
    /// # Errors
    /// `IoError`.
    pub fn bytes(
        &mut self,
        file: &dyn File,
        file_size: u64,
        offset: u64,
        length: usize,
    ) -> Result<Option<&[u8]>> {
        let follows = offset == self.expected;
        self.in_order = if follows { self.in_order + 1 } else { 0 };
        self.expected = offset + length as u64;
        if let Some(at) = self.find(offset, length) {
            return Ok(Some(&self.held()[at..at + length]));
        }
        if !self.fixed && self.in_order < PATIENCE {
            if !follows {
                self.window = FIRST_WINDOW;
            }
            return Ok(None);
        }
        let wanted = length.max(self.window).min(file_size.saturating_sub(offset) as usize);
        self.fetch(offset, wanted, file)?;
        if !self.fixed {
            self.window = (self.window * 2).min(LAST_WINDOW);
        }
        let held = self.held();
        let at = ((offset - self.start) as usize).min(held.len());
        Ok(Some(&held[at..held.len().min(at + length)]))
    }

    fn held(&self) -> &[u8] {
        self.bytes.as_ref().map_or(&[], AlignedBuffer::as_slice)
    }

    /// Fills the window with `length` bytes from `offset` on; whole blocks of a file that goes around the system's cache.
    fn fetch(&mut self, offset: u64, length: usize, file: &dyn File) -> Result<()> {
        let file = self.file.as_deref().unwrap_or(file);
        let (mut start, mut end) = (offset, offset + length as u64);
        if file.is_direct() {
            start -= start % DIRECT_BLOCK as u64;
            end = end.next_multiple_of(DIRECT_BLOCK as u64);
        }
        let size = (end - start) as usize;
        let mut bytes = match self.bytes.take() {
            Some(bytes) if bytes.capacity() >= size => bytes,
            _ => AlignedBuffer::with_capacity(size),
        };
        bytes.resize(size);
        self.start = start;
        let read = file.read_at(start, bytes.as_mut_slice());
        bytes.resize(*read.as_ref().unwrap_or(&0));
        self.bytes = Some(bytes);
        read.map(drop)
    }

    /// Where in the window the bytes lie, if all of them do.
    fn find(&self, offset: u64, length: usize) -> Option<usize> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.held().get(at..)?.get(..length).map(|_| at)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::env::{Env, OpenMode};

    #[test]
    fn what_is_read_ahead_is_what_the_file_holds() {
        let env = Env::memory();
        env.fs.create_directory(Path::new("/d")).unwrap();
        let file = env.fs.open(Path::new("/d/f"), OpenMode::Create).unwrap();
        let content: Vec<u8> = (0..100_000u32).map(|n| (n * 7 / 3) as u8).collect();
        file.write_at(0, &content).unwrap();
        for fixed in [0, 1000, 50_000] {
            let mut readahead = Readahead::new(fixed, None);
            for offset in (0..100_000).step_by(700).chain([5, 99_999, 99_000, 0, 50_000]) {
                let length = 700.min(100_000 - offset);
                let bytes = readahead.bytes(&*file, 100_000, offset as u64, length).unwrap();
                assert!(bytes.is_none_or(|bytes| bytes == &content[offset..offset + length]));
                assert!(bytes.is_some() || fixed == 0);
            }
        }
    }
}
