//! Reads ahead for a cursor that goes through a file in order.

use std::sync::Arc;

use super::settings::AutoReadahead;
use crate::base::{Result, prefetch};
use crate::cache::Measured;
use crate::env::{Advice, AlignedBuffer, Coming, DIRECT_BLOCK, File, ReadAhead};

/// From windows of this size on the system is told of the next one: below, a short scan may be over before.
const HINTED_WINDOW: usize = 32 * 1024;

/// Blocks of this size on are read one by one: a window would have each byte copied once more, and what is left of it when a
/// scan ends read in vain.
const ALONE_AT_LEAST: usize = 32 * 1024;

/// Bytes of the next block that are fetched from the window: it lies in memory that nobody has looked at yet.
const FETCHED_MAX: usize = 4 * 1024;

/// A block that begins so few bytes behind the one before follows it: padding lies between.
const PADDING_MAX: u64 = DIRECT_BLOCK as u64;

/// A file that a cursor reads ahead through, in the place of its table's own.
#[derive(Clone)]
pub struct OwnFile {
    /// The file.
    pub file: Arc<dyn File>,
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
    /// Reads `fixed` bytes ahead from the start; with 0 it waits for a pattern, and then does as `automatic` says.
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
        *self = Self { memory, is_mapped, ..Self::new(self.fixed, self.automatic, self.own.take()) };
        self.measure();
    }

    fn measure(&mut self) {
        if let Some(memory) = &mut self.memory {
            let next = self.next.as_ref().map_or(0, |next| next.length);
            memory.set(self.bytes.as_ref().map_or(0, AlignedBuffer::capacity) + next);
        }
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
        let follows = offset.checked_sub(self.expected).is_some_and(|between| between <= PADDING_MAX);
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

    /// Has the system fetch what lies behind a block that is read by itself, when that comes near the end of what it was told of.
    fn hint_alone(&mut self, file_size: u64, file: &dyn File) {
        let end = self.expected;
        if end + self.window as u64 / 2 > self.hinted || self.hinted > end + self.automatic.most as u64 {
            self.hint(end, file_size, file);
            self.hinted = end + self.window as u64;
            self.window = (self.window * 2).min(self.automatic.most);
        }
    }

    /// Has the system fetch the next window while this one is used up.
    fn hint(&self, offset: u64, file_size: u64, file: &dyn File) {
        let file = self.own.as_ref().map_or(file, |own| &*own.file);
        let length = file_size.saturating_sub(offset).min(self.window as u64);
        if self.window >= HINTED_WINDOW && length > 0 && !file.is_direct() {
            file.advise(Advice::WillNeed { offset, length });
        }
    }

    fn held(&self) -> &[u8] {
        self.bytes.as_ref().map_or(&[], AlignedBuffer::as_slice)
    }

    /// Fills the window with `length` bytes from `offset` on; whole blocks of a file that goes around the system's cache.
    fn fetch(&mut self, offset: u64, length: usize, file: &dyn File) -> Result<()> {
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
            let length = (self.window as u64).min(left).next_multiple_of(DIRECT_BLOCK as u64) as usize;
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
        if self.is_mapped { AlignedBuffer::of_its_own(size) } else { AlignedBuffer::with_capacity(size) }
    }

    /// How many of the bytes lie at the end of this window, if all others lie in the next.
    fn tail_before(&self, next: &NextWindow, offset: u64, length: usize) -> Option<usize> {
        let is_near = offset >= self.start && offset + length as u64 <= next.start + next.length as u64;
        is_near.then_some(next.start.saturating_sub(offset) as usize)
    }

    /// Goes over to the window that was fetched meanwhile; the bytes, of which `tail` lie in this one.
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
mod tests {
    use std::path::Path;

    use super::*;
    use crate::env::{Env, OpenMode};
    use crate::sst::tests::support::Counted;

    const SIZE: usize = 1 << 20;

    fn written(env: &Env) -> (Arc<dyn File>, Vec<u8>) {
        env.fs.create_directory(Path::new("/d")).unwrap();
        let file = env.fs.open(Path::new("/d/f"), OpenMode::Create).unwrap();
        let content: Vec<u8> = (0..SIZE as u32).map(|n| (n * 7 / 3) as u8).collect();
        file.write_at(0, &content).unwrap();
        (file, content)
    }

    #[test]
    fn what_is_read_ahead_is_what_the_file_holds() {
        let (file, content) = written(&Env::memory());
        let none = AutoReadahead { most: 0, ..AutoReadahead::default() };
        for (fixed, automatic) in
            [(0, AutoReadahead::default()), (0, none), (1000, none), (50_000, AutoReadahead::default())]
        {
            let mut readahead = Readahead::new(fixed, automatic, None);
            for offset in (0..SIZE).step_by(700).chain([5, SIZE - 1, SIZE - 1000, 0, 50_000]) {
                let length = 700.min(SIZE - offset);
                let bytes = readahead.bytes(&*file, SIZE as u64, offset as u64, length).unwrap();
                assert!(bytes.is_none_or(|bytes| bytes == &content[offset..offset + length]));
                assert!(bytes.is_some() || fixed == 0);
            }
        }
    }

    #[test]
    fn with_a_reader_ahead_the_next_window_is_on_its_way() {
        let (file, content) = written(&Env::memory());
        let none = AutoReadahead { most: 0, ..AutoReadahead::default() };
        let ahead = Arc::new(ReadAhead::new(Env::os().spawner));
        let own = OwnFile { file: file.clone(), ahead: Some(ahead) };
        for window in [DIRECT_BLOCK, 5000, 64 << 10, SIZE, 2 * SIZE] {
            let mut readahead = Readahead::new(window, none, Some(own.clone()));
            // In order, with blocks on both sides of a window's end, and some longer than a window; then here and there.
            let mut places: Vec<(usize, usize)> = Vec::new();
            for at in 0.. {
                let offset = places.last().map_or(0, |(offset, length)| offset + length);
                let length = [700, 5000, 1, 0, 9000][at % 5].min(SIZE - offset);
                places.push((offset, length));
                if offset == SIZE {
                    break;
                }
            }
            places.extend([(SIZE - 1, 1), (5, 700), (SIZE / 2, 9000), (SIZE / 2 + 9000, 20), (0, SIZE)]);
            for (offset, length) in places {
                let bytes = readahead.bytes(&*file, SIZE as u64, offset as u64, length).unwrap();
                assert_eq!(bytes.unwrap(), &content[offset..offset + length], "{window} {offset}");
                let next = readahead.next.as_ref().map(|next| next.start);
                let end = readahead.start + readahead.held().len() as u64;
                assert_eq!(next, (end < SIZE as u64).then_some(end), "{window} {offset}");
            }
        }
    }

    /// A cursor's windows were mappings, too, once it was told how far to read ahead.
    #[test]
    fn windows_are_mappings_for_who_wants_such() {
        let (file, _) = written(&Env::memory());
        for is_mapped in [false, true] {
            let mut readahead = Readahead::new(SIZE, AutoReadahead::default(), None).mapped_if(is_mapped);
            for _ in 0..2 {
                readahead.bytes(&*file, SIZE as u64, 0, 1000).unwrap();
                let window = readahead.bytes.as_ref().unwrap();
                // One of the allocator's is larger, to be aligned.
                let is_one = window.memory() == window.capacity();
                assert_eq!(is_one, is_mapped && !cfg!(miri));
                readahead.forget();
            }
        }
    }

    /// A scan of a few values of 64 KiB read half as much again as it used, and copied all of it twice.
    #[test]
    fn large_blocks_are_read_one_by_one_unless_that_is_to_be() {
        let (file, content) = written(&Env::memory());
        let counted = Counted::new(file);
        for (fixed, length) in [(0, ALONE_AT_LEAST - 1), (0, ALONE_AT_LEAST), (100_000, ALONE_AT_LEAST)] {
            let mut readahead = Readahead::new(fixed, AutoReadahead::default(), None);
            let before = counted.reads();
            let mut alone = 0;
            for offset in (0..SIZE - length).step_by(length) {
                match readahead.bytes(&counted, SIZE as u64, offset as u64, length).unwrap() {
                    Some(bytes) => assert!(bytes == &content[offset..offset + length]),
                    None => alone += 1,
                }
            }
            let is_alone = fixed == 0 && length == ALONE_AT_LEAST;
            assert_eq!(alone, if is_alone { 31 } else { 2 * usize::from(fixed == 0) }, "{fixed} {length}");
            assert_eq!(counted.reads() > before, !is_alone);
        }
    }

    /// The windows that reads of 1000 bytes from `start` on open, as far as they differ.
    fn windows(readahead: &mut Readahead, file: &dyn File, start: usize) -> (usize, Vec<usize>) {
        let (mut alone, mut windows) = (0, Vec::new());
        for offset in (start..SIZE - 1000).step_by(1000) {
            let is_ahead = readahead.bytes(file, SIZE as u64, offset as u64, 1000).unwrap().is_some();
            let size = readahead.held().len();
            if !is_ahead {
                alone += 1;
            } else if windows.last() != Some(&size) {
                windows.push(size);
            }
        }
        (alone, windows)
    }

    /// Of tables with padding each block was a read of its own.
    #[test]
    fn blocks_with_padding_between_follow_one_another() {
        let (file, content) = written(&Env::memory());
        let automatic = AutoReadahead { initial: 4000, most: 30_000, after_reads: 3 };
        for (padding, follow) in [(0, true), (1, true), (4096, true), (4097, false)] {
            let offsets: Vec<usize> = (0..SIZE - 1000).step_by(1000 + padding).collect();
            for (is_back, follow) in [(false, follow), (true, false)] {
                let mut readahead = Readahead::new(0, automatic, None);
                let mut alone = 0;
                for at in 0..offsets.len() {
                    let offset = offsets[if is_back { offsets.len() - 1 - at } else { at }];
                    match readahead.bytes(&*file, SIZE as u64, offset as u64, 1000).unwrap() {
                        Some(bytes) => assert_eq!(bytes, &content[offset..offset + 1000]),
                        None => alone += 1,
                    }
                }
                assert_eq!(alone, if follow { 3 } else { offsets.len() }, "{padding}, back: {is_back}");
            }
        }
    }

    /// The window that was on its way was dropped where a block began behind its first byte, and most of it read again.
    #[test]
    fn padding_where_a_window_ends_has_nothing_read_twice() {
        let (file, content) = written(&Env::memory());
        let none = AutoReadahead { most: 0, ..AutoReadahead::default() };
        let counted = Arc::new(Counted::new(file));
        let ahead = Arc::new(ReadAhead::new(Env::os().spawner));
        let own = OwnFile { file: counted.clone(), ahead: Some(ahead) };
        let mut readahead = Readahead::new(DIRECT_BLOCK, none, Some(own));
        for offset in (0..SIZE - 1000).step_by(1000) {
            let bytes = readahead.bytes(&*counted, SIZE as u64, offset as u64, 500).unwrap().unwrap();
            assert_eq!(bytes, &content[offset..offset + 500]);
        }
        assert_eq!(counted.reads(), SIZE / DIRECT_BLOCK);
    }

    #[test]
    fn windows_double_after_some_reads_and_begin_anew_elsewhere() {
        let (file, _) = written(&Env::memory());
        let automatic = AutoReadahead { initial: 4000, most: 30_000, after_reads: 3 };
        let mut readahead = Readahead::new(0, automatic, None);
        for start in [0, 500_000, 1000] {
            let (alone, sizes) = windows(&mut readahead, &*file, start);
            assert_eq!((alone, &sizes[..4]), (3, &[4000, 8000, 16_000, 30_000][..]));
        }
        let at_once = AutoReadahead { initial: 90_000, most: 30_000, after_reads: 0 };
        let (alone, sizes) = windows(&mut Readahead::new(0, at_once, None), &*file, 0);
        assert_eq!((alone, sizes[0]), (0, 30_000));
        for none in [AutoReadahead { initial: 0, ..at_once }, AutoReadahead { most: 0, ..at_once }] {
            assert_eq!(windows(&mut Readahead::new(0, none, None), &*file, 0).1, []);
        }
    }
}
