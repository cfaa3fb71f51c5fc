//! Reads ahead for a cursor that goes through a file in order.

use std::sync::Arc;

use super::settings::AutoReadahead;
use crate::base::{Result, prefetch};
use crate::cache::Measured;
use crate::env::{Advice, AlignedBuffer, Coming, DIRECT_BLOCK, RandomAccessFile, ReadAhead};

/// From windows of this size on the system is told of the next one: below, a short scan may be over
/// before.
const HINTED_WINDOW: usize = 32 * 1024;

/// Blocks of this size on are read one by one: a window would have each byte copied once more, and
/// what is left of it when a scan ends read in vain.
const ALONE_AT_LEAST: usize = 32 * 1024;

/// Bytes of the next block that are fetched from the window: it lies in memory that nobody has
/// looked at yet.
const FETCHED_MAX: usize = 4 * 1024;

/// A block that begins so few bytes behind the one before follows it: padding lies between.
const PADDING_MAX: u64 = DIRECT_BLOCK as u64;

/// A file that a cursor reads ahead through, in the place of its table's own.
#[derive(Clone)]
pub struct OwnFile {
    /// The file.
    pub file: Arc<dyn RandomAccessFile>,
    /// Who fetches the next window while one is used up.
    pub ahead: Option<Arc<ReadAhead>>,
}

/// The window behind the one that is being used up.
struct NextWindow {
    start: u64,
    length: usize,
    coming: Coming,
}

/// The window of bytes read ahead.
pub(super) struct Readahead {
    own: Option<OwnFile>,
    bytes: Option<AlignedBuffer>,
    next: Option<NextWindow>,
    /// A block that ends in another window than it begins in.
    straddling: Vec<u8>,
    /// What the window takes.
    memory: Option<Measured>,
    /// Whether a large window is a mapping of its own.
    is_mapped: bool,
    start: u64,
    /// How much the next read fetches.
    window: usize,
    /// Bytes to read ahead from the start; 0 waits for a pattern.
    fixed: usize,
    automatic: AutoReadahead,
    in_order: u32,
    /// Where the last read ended.
    expected: u64,
    /// Up to where the system was told to read ahead of blocks that are read one by one.
    hinted: u64,
}

impl Readahead {
    /// Reads `fixed` bytes ahead from the start; with 0 it waits for a pattern, and then does as
    /// `automatic` says.
    pub fn new(fixed: usize, automatic: AutoReadahead, own: Option<OwnFile>) -> Self {
        let window = if fixed > 0 { fixed } else { automatic.initial.min(automatic.most) };
        Self {
            own,
            bytes: None,
            next: None,
            straddling: Vec::new(),
            memory: None,
            is_mapped: false,
            start: 0,
            window,
            fixed,
            automatic,
            in_order: 0,
            expected: u64::MAX,
            hinted: 0,
        }
    }

    /// The same, whose window is noted there.
    pub fn noted_as(self, memory: Option<Measured>) -> Self {
        Self { memory, ..self }
    }

    /// The same, whose windows lie where [`super::IterSettings::maps_readahead`] says.
    pub fn mapped_if(self, is_mapped: bool) -> Self {
        Self { is_mapped, ..self }
    }

    /// Starts anew, without the window.
    pub fn forget(&mut self) {
        let (memory, is_mapped) = (self.memory.take(), self.is_mapped);
        *self =
            Self { memory, is_mapped, ..Self::new(self.fixed, self.automatic, self.own.take()) };
        self.measure();
    }

    fn measure(&mut self) {
        if let Some(memory) = &mut self.memory {
            let next = self.next.as_ref().map_or(0, |next| next.length);
            memory.set(self.bytes.as_ref().map_or(0, AlignedBuffer::capacity) + next);
        }
    }

    /// `length` bytes at `offset` in place, fewer at the file's end; `None` where reading ahead
    /// does not pay (yet) and the caller reads for itself.
    ///
    /// # Errors
    /// `IoError`.
    pub fn bytes(
        &mut self,
        file: &dyn RandomAccessFile,
        file_size: u64,
        offset: u64,
        length: usize,
    ) -> Result<Option<&[u8]>> {
        let follows =
            offset.checked_sub(self.expected).is_some_and(|between| between <= PADDING_MAX);
        self.in_order = if follows { self.in_order + 1 } else { 0 };
        self.expected = offset + length as u64;
        if let Some(at) = self.find(offset, length) {
            let (block, rest) = self.held()[at..].split_at(length);
            // It is about as long as this one.
            prefetch(rest.as_ptr(), length.min(rest.len()).min(FETCHED_MAX).div_ceil(64));
            return Ok(Some(block));
        }
        if let Some(next) = self.next.take()
            && let Some(tail) = self.tail_before(&next, offset, length)
        {
            return self.go_on(next, tail, (offset, length), file_size).map(Some);
        }
        if self.fixed == 0 {
            if !follows {
                self.window = self.automatic.initial.min(self.automatic.most);
            }
            if self.in_order < self.automatic.after_reads || self.window == 0 {
                return Ok(None);
            }
            let own = self.own.as_ref().map_or(file, |own| &*own.file);
            if length >= ALONE_AT_LEAST && !own.is_direct() {
                self.hint_alone(file_size, file);
                return Ok(None);
            }
        }
        let wanted = length.max(self.window).min(file_size.saturating_sub(offset) as usize);
        self.fetch(offset, wanted, file)?;
        if self.fixed == 0 {
            self.window = (self.window * 2).min(self.automatic.most);
        }
        self.hint(offset + wanted as u64, file_size, file);
        self.ask_for_next(AlignedBuffer::default(), file_size)?;
        let held = self.held();
        let at = ((offset - self.start) as usize).min(held.len());
        Ok(Some(&held[at..held.len().min(at + length)]))
    }

    /// Has the system fetch what lies behind a block that is read by itself, when that comes near
    /// the end of what it was told of.
    fn hint_alone(&mut self, file_size: u64, file: &dyn RandomAccessFile) {
        let end = self.expected;
        if end + self.window as u64 / 2 > self.hinted
            || self.hinted > end + self.automatic.most as u64
        {
            self.hint(end, file_size, file);
            self.hinted = end + self.window as u64;
            self.window = (self.window * 2).min(self.automatic.most);
        }
    }

    /// Has the system fetch the next window while this one is used up.
    fn hint(&self, offset: u64, file_size: u64, file: &dyn RandomAccessFile) {
        let file = self.own.as_ref().map_or(file, |own| &*own.file);
        let length = file_size.saturating_sub(offset).min(self.window as u64);
        if self.window >= HINTED_WINDOW && length > 0 && !file.is_direct() {
            file.advise(Advice::WillNeed { offset, length });
        }
    }

    fn held(&self) -> &[u8] {
        self.bytes.as_ref().map_or(&[], AlignedBuffer::as_slice)
    }

    /// Fills the window with `length` bytes from `offset` on; whole blocks of a file that goes
    /// around the system's cache.
    fn fetch(&mut self, offset: u64, length: usize, file: &dyn RandomAccessFile) -> Result<()> {
        let file = self.own.as_ref().map_or(file, |own| &*own.file);
        let (mut start, mut end) = (offset, offset + length as u64);
        if file.is_direct() {
            start -= start % DIRECT_BLOCK as u64;
            end = end.next_multiple_of(DIRECT_BLOCK as u64);
        }
        let size = (end - start) as usize;
        let mut bytes = match self.bytes.take() {
            Some(bytes) if bytes.capacity() >= size => bytes,
            _ => self.room(size),
        };
        bytes.resize(size);
        self.start = start;
        let read = file.read_at(start, bytes.as_mut_slice());
        bytes.resize(*read.as_ref().unwrap_or(&0));
        self.bytes = Some(bytes);
        self.measure();
        read.map(drop)
    }

    /// Has the window behind this one fetched, into `spare` if that has room for it.
    fn ask_for_next(&mut self, spare: AlignedBuffer, file_size: u64) -> Result<()> {
        self.next = None;
        let start = self.start + self.held().len() as u64;
        let left = file_size.saturating_sub(start);
        if let Some(OwnFile { file, ahead: Some(ahead) }) = &self.own
            && left > 0
        {
            let length =
                (self.window as u64).min(left).next_multiple_of(DIRECT_BLOCK as u64) as usize;
            let mut buffer = if spare.capacity() >= length { spare } else { self.room(length) };
            buffer.resize(length);
            let coming = ahead.ask(file.clone(), start, buffer)?;
            self.next = Some(NextWindow { start, length, coming });
        }
        self.measure();
        Ok(())
    }

    /// A buffer for a window.
    fn room(&self, size: usize) -> AlignedBuffer {
        if self.is_mapped {
            AlignedBuffer::of_its_own(size)
        } else {
            AlignedBuffer::with_capacity(size)
        }
    }

    /// How many of the bytes lie at the end of this window, if all others lie in the next.
    fn tail_before(&self, next: &NextWindow, offset: u64, length: usize) -> Option<usize> {
        let is_near =
            offset >= self.start && offset + length as u64 <= next.start + next.length as u64;
        is_near.then_some(next.start.saturating_sub(offset) as usize)
    }

    /// Goes over to the window that was fetched meanwhile; the bytes, of which `tail` lie in this
    /// one.
    fn go_on(
        &mut self,
        next: NextWindow,
        tail: usize,
        (offset, length): (u64, usize),
        file_size: u64,
    ) -> Result<&[u8]> {
        let (bytes, read) = next.coming.wait();
        read?;
        let used = self.bytes.replace(bytes).unwrap_or_default();
        self.straddling.clear();
        self.straddling.extend_from_slice(&used.as_slice()[used.len() - tail..]);
        self.start = next.start;
        self.ask_for_next(used, file_size)?;
        let held = self.bytes.as_ref().map_or(&[][..], AlignedBuffer::as_slice);
        if tail == 0 {
            let at = ((offset - next.start) as usize).min(held.len());
            return Ok(&held[at..held.len().min(at + length)]);
        }
        self.straddling.extend_from_slice(&held[..held.len().min(length - tail)]);
        Ok(&self.straddling)
    }

    /// Where in the window the bytes lie, if all of them do.
    fn find(&self, offset: u64, length: usize) -> Option<usize> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.held().get(at..)?.get(..length).map(|_| at)
    }
}

#[cfg(test)]
mod tests;
