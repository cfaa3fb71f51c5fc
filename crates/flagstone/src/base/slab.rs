//! Memory for blocks, in pieces of a few sizes that lie side by side in huge pages.
//!
//! A lookup in a large cache goes to a block anywhere in it. With memory from the allocator that is
//! a page of 4 KiB the processor has forgotten how to find, nearly each time; in pages of 2 MiB it
//! seldom has. And pieces of one size leave no gaps that only smaller ones fit into, however often
//! they come and go.
//!
//! ```text
//! chunk (2 MiB, a huge page) = 8 spans
//! span (256 KiB)             = pieces of one class, or 8 small spans
//! small span (32 KiB)        = pieces of one class
//! class                      = a size: a multiple of 1/64 of the power of two below it
//! ```
//!
//! A class of which a single piece is owned takes a small span, which no cache is charged for: 32
//! KiB for each size in use, and there are many sizes of which hardly any piece is (the last block
//! of each table). Larger spans have more of their memory in pieces, and are found among fewer: a
//! class takes them from its fifth span on.
//!
//! What is known of a span stands apart from it, in a table by address. A span whose pieces are all
//! free goes back, if its class has others with free ones, and a chunk whose spans are all free
//! goes back to the allocator, but for a few that are kept. The first few chunks ask for no huge
//! pages: what is not used of the last would be much of a small cache, and of so few pages a
//! processor remembers most.
//!
//! Memory that was not touched before can take milliseconds to come, and as long to go: no lock is
//! held meanwhile.
//!
//! **Invariants**
//! 1. A piece lies in a span of its class, between those before and behind it; from `take` to
//!    `give` it is one owner's.
//! 2. A chunk lives while any of its spans is not free, a span is not free while any of its small
//!    ones is not, and either has a class while any of its pieces is owned.
//! 3. All bytes of a span were written (with zeros) before its first class had it, or a part of it,
//!    unless the chunk came full of zeros; a piece holds bytes.
//! 4. A span, small or not, is with one class, or free, or cut into small ones, or one thread's on
//!    its way between these.
#![expect(unsafe_code, reason = "pieces of memory that is owned elsewhere")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

// Not a lock that threads agree by: no schedule depends on it, and it outlives them.
use parking_lot::Mutex;

use super::chunk::{Chunk, HUGE_PAGE_SIZE};

/// Smaller and larger pieces are the allocator's.
const PIECE_MIN: usize = 1 << MIN_BITS;
const PIECE_MAX: usize = 32 << 10;
const MIN_BITS: u32 = 10;
const SPAN_SIZE: usize = 256 << 10;
const SMALL_SPAN_SIZE: usize = 32 << 10;
/// A class that has fewer spans takes a small one.
const SMALL_SPANS: usize = 4;

/// The logarithm of how many classes there are between a power of two and the next.
const STEP_BITS: u32 = 6;
const STEPS: usize = 1 << STEP_BITS;
/// Of all the slab's pieces: what the size of each is a multiple of.
pub const ALIGNMENT: usize = PIECE_MIN / STEPS;
const CLASSES: usize = class_of(PIECE_MAX) + 1;
/// Of pieces that are the allocator's (a box's bytes, and what was asked for with [`ALIGNMENT`]) or
/// mappings of their own.
const BOXED: u16 = u16::MAX;
const ALIGNED: u16 = u16::MAX - 1;
const PASSING: u16 = u16::MAX - 2;
/// Below it, a mapping is not worth the calls.
const PASSING_MIN: usize = 64 << 10;

/// The class of pieces that have room for `size` bytes, from `PIECE_MIN` on.
const fn class_of(size: usize) -> usize {
    let last = size - 1;
    let bits = last.ilog2();
    let step = (last >> (bits - STEP_BITS)) - STEPS;
    (bits + 1 - MIN_BITS) as usize * STEPS + step + 1 - STEPS
}

/// The size of its pieces.
const fn size_of_class(class: usize) -> usize {
    let at = class + STEPS - 1;
    let bits = (at >> STEP_BITS) as u32 + MIN_BITS - 1;
    (at % STEPS + STEPS + 1) << (bits - STEP_BITS)
}

static CLASS: [Mutex<Class>; CLASSES] = [const { Mutex::new(Class::new()) }; CLASSES];
static SMALL: Mutex<SmallSpans> =
    Mutex::new(SmallSpans { all: BTreeMap::new(), with_room: BTreeSet::new() });
static CHUNKS: Mutex<Chunks> =
    Mutex::new(Chunks { all: BTreeMap::new(), with_room: BTreeSet::new(), unused: 0 });

/// Bytes that are owned as a box's are, of a length that can change within the piece.
pub struct Piece {
    start: NonNull<u8>,
    len: u32,
    class: u16,
}

// SAFETY: the bytes are the owner's alone, as a box's are.
unsafe impl Send for Piece {}
// SAFETY: the same.
unsafe impl Sync for Piece {}

impl Piece {
    /// `len` bytes, less than 4 GiB, of any content.
    pub fn new(len: usize) -> Self {
        if !Self::is_for_slab(len) {
            return vec![0; len].into();
        }
        let class = class_of(len);
        Self { start: take(class), len: len as u32, class: class as u16 }
    }

    /// `len` bytes, not none and less than 4 GiB, of any content, [`ALIGNMENT`]-aligned.
    pub fn aligned(len: usize) -> Self {
        // SAFETY: zeros are written everywhere.
        unsafe { Self::aligned_by(alloc_zeroed, len) }
    }

    /// The same, which the allocator may have for less if nothing is written to it.
    ///
    /// # Safety
    /// Nobody looks at bytes of a piece for which [`Piece::is_for_slab`] is not, before they are
    /// written.
    pub unsafe fn unwritten(len: usize) -> Self {
        // SAFETY: the caller's part.
        unsafe { Self::aligned_by(alloc, len) }
    }

    /// A piece that is the slab's, or comes from `allocate`.
    ///
    /// # Safety
    /// Nobody looks at bytes from there before they are written.
    unsafe fn aligned_by(allocate: unsafe fn(Layout) -> *mut u8, len: usize) -> Self {
        if Self::is_for_slab(len) {
            return Self::new(len);
        }
        let layout = aligned_layout(len);
        assert_ne!(len, 0, "an aligned piece has bytes");
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { allocate(layout) });
        Self {
            start: start.unwrap_or_else(|| handle_alloc_error(layout)),
            len: len as u32,
            class: ALIGNED,
        }
    }

    /// [`Piece::aligned`] for a moment: if there are many, what the system gives, and gets back; an
    /// allocator would keep them.
    pub fn passing(len: usize) -> Self {
        if len >= PASSING_MIN
            && u32::try_from(len).is_ok()
            && let Some(start) = Chunk::passing(len).and_then(Chunk::into_mapping)
        {
            return Self { start, len: len as u32, class: PASSING };
        }
        Self::aligned(len)
    }

    /// Whether pieces of `len` bytes lie in the slab.
    pub fn is_for_slab(len: usize) -> bool {
        (PIECE_MIN..=PIECE_MAX).contains(&len)
    }

    /// Whether it lies in the slab.
    pub fn is_of_slab(&self) -> bool {
        usize::from(self.class) < CLASSES
    }

    /// How many bytes it has; `len` would borrow them to tell.
    pub fn size(&self) -> usize {
        self.len as usize
    }

    /// Where it begins; valid as long as the piece is.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Makes it `len` bytes long; `false` if those want a piece of another size.
    pub fn resize(&mut self, len: usize) -> bool {
        let fits = Self::is_for_slab(len) && class_of(len) == usize::from(self.class);
        if fits {
            self.len = len as u32;
        }
        fits
    }

    /// What it takes in memory, in bytes.
    pub fn capacity(&self) -> usize {
        if self.is_of_slab() { size_of_class(self.class.into()) } else { self.len as usize }
    }
}

impl From<Vec<u8>> for Piece {
    /// Keeps the memory, if there is no room left in it.
    ///
    /// # Panics
    /// If the vector has 4 GiB or more.
    fn from(bytes: Vec<u8>) -> Self {
        let bytes = bytes.into_boxed_slice();
        let len = u32::try_from(bytes.len()).expect("a piece has less than 4 GiB");
        let start = NonNull::from(Box::leak(bytes)).cast();
        Self { start, len, class: BOXED }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        match self.class {
            BOXED => {}
            ALIGNED => {
                // SAFETY: it came from `alloc` or `alloc_zeroed` with this layout (`resize` leaves
                // such alone), and is freed once.
                return unsafe { dealloc(self.start.as_ptr(), aligned_layout(self.len as usize)) };
            }
            PASSING => {
                // SAFETY: it came from `into_mapping`, of this length (`resize` leaves such alone),
                // and goes back once.
                return drop(unsafe { Chunk::of_mapping(self.start, self.len as usize) });
            }
            class => return give(self.start, class.into()),
        }
        let bytes = NonNull::slice_from_raw_parts(self.start, self.len as usize);
        // SAFETY: such a one came from a box of this length (`resize` leaves such alone), and is
        // freed once.
        drop(unsafe { Box::from_raw(bytes.as_ptr()) });
    }
}

impl Deref for Piece {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the piece has room for so many bytes, all written (3), and they are this owner's
        // (1) as long as it lives (2).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len as usize) }
    }
}

impl DerefMut for Piece {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the owner is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len as usize) }
    }
}

/// Of pieces that are [`ALIGNED`].
fn aligned_layout(len: usize) -> Layout {
    assert!(u32::try_from(len).is_ok(), "a piece has less than 4 GiB");
    Layout::from_size_align(len, ALIGNMENT).expect("a piece is smaller than the address space")
}

/// A piece nobody owns.
fn take(class: usize) -> NonNull<u8> {
    loop {
        let mut locked = CLASS[class].lock();
        if let Some(piece) = locked.take(class) {
            return piece;
        }
        let is_small = locked.spans.len() < SMALL_SPANS;
        drop(locked);
        let span = if is_small { take_small_span() } else { take_span() };
        let size = if is_small { SMALL_SPAN_SIZE } else { SPAN_SIZE };
        // Others may be faster, and take all of it.
        CLASS[class].lock().add(span, size);
    }
}

/// A span that no class has, whose bytes are all written.
fn take_span() -> NonNull<u8> {
    let (span, is_written) = CHUNKS.lock().take();
    if !is_written {
        // SAFETY: the span has so many bytes of a chunk that lives (2), and is this thread's alone
        // (4).
        unsafe { span.write_bytes(0, SPAN_SIZE) };
    }
    span
}

/// The same of a small one.
fn take_small_span() -> NonNull<u8> {
    loop {
        let small = SMALL.lock().take();
        if let Some(small) = small {
            return small;
        }
        let span = take_span();
        // Others may be faster here, too.
        SMALL.lock().add(span);
    }
}

/// Takes a piece back.
fn give(piece: NonNull<u8>, class: usize) {
    let spans = CLASS[class].lock().give(piece, class);
    for (span, size) in spans {
        let span = if size == SPAN_SIZE { Some(span) } else { SMALL.lock().give(span) };
        let chunk = span.and_then(|span| CHUNKS.lock().give(span));
        drop(chunk);
    }
}

/// The spans of one class, by address.
struct Class {
    spans: BTreeMap<usize, Span>,
    /// Those with free pieces.
    with_room: BTreeSet<usize>,
    /// How many pieces are owned, of all spans.
    owned: usize,
}

/// A part of a chunk that is cut into pieces.
struct Span {
    start: NonNull<u8>,
    /// In bytes.
    size: usize,
    /// Pieces that came back, by number.
    free: Vec<u16>,
    /// How many were ever cut, and how many are owned.
    cut: u16,
    owned: u16,
}

// SAFETY: a span is a place in a chunk, which any thread may hand out under the class's lock.
unsafe impl Send for Span {}

impl Class {
    const fn new() -> Self {
        Self { spans: BTreeMap::new(), with_room: BTreeSet::new(), owned: 0 }
    }

    /// Takes in a span whose bytes are all written.
    fn add(&mut self, start: NonNull<u8>, size: usize) {
        let address = start.addr().get();
        self.spans.insert(address, Span { start, size, free: Vec::new(), cut: 0, owned: 0 });
        self.with_room.insert(address);
    }

    /// A piece nobody owns, if there is room. The lowest span with room has it, so that the others
    /// can become free.
    fn take(&mut self, class: usize) -> Option<NonNull<u8>> {
        let size = size_of_class(class);
        let address = *self.with_room.first()?;
        let span = self.spans.get_mut(&address).expect("a span with room is there");
        let number = span.free.pop().unwrap_or_else(|| {
            span.cut += 1;
            span.cut - 1
        });
        span.owned += 1;
        self.owned += 1;
        if usize::from(span.owned) == span.size / size {
            self.with_room.remove(&address);
        }
        // SAFETY: there are `span.size / size` pieces in a span, and numbers are below that: more
        // are never owned.
        Some(unsafe { span.start.add(usize::from(number) * size) })
    }

    /// Takes a piece back; the spans that are no longer needed, and the size of each.
    fn give(&mut self, piece: NonNull<u8>, class: usize) -> Vec<(NonNull<u8>, usize)> {
        let mut up_to_it = self.spans.range_mut(..=piece.addr().get());
        let (&address, span) = up_to_it.next_back().expect("a piece lies in a span of its class");
        span.free.push(((piece.addr().get() - address) / size_of_class(class)) as u16);
        span.owned -= 1;
        self.owned -= 1;
        self.with_room.insert(address);
        if self.owned == 0 {
            // Also the one that stayed as the last with room.
            self.with_room.clear();
            return std::mem::take(&mut self.spans)
                .into_values()
                .map(|span| (span.start, span.size))
                .collect();
        }
        // The last one with room stays.
        if span.owned > 0 || self.with_room.len() == 1 {
            return Vec::new();
        }
        self.with_room.remove(&address);
        self.spans.remove(&address).map(|span| (span.start, span.size)).into_iter().collect()
    }
}

/// All spans that are cut into small ones, by address.
struct SmallSpans {
    all: BTreeMap<usize, CutSpan>,
    /// Those with small spans that are free.
    with_room: BTreeSet<usize>,
}

/// A span, and which of its small ones are free, by bit.
struct CutSpan {
    start: NonNull<u8>,
    free: u8,
}

// SAFETY: a place in a chunk, which any thread may hand out under the lock.
unsafe impl Send for CutSpan {}

const _: () =
    assert!(SPAN_SIZE / SMALL_SPAN_SIZE == u8::BITS as usize, "a bit for each small span");
const _: () =
    assert!(size_of_class(CLASSES - 1) <= SMALL_SPAN_SIZE, "a piece of any class in a small span");

impl SmallSpans {
    /// Takes in a span whose bytes are all written.
    fn add(&mut self, start: NonNull<u8>) {
        let address = start.addr().get();
        self.all.insert(address, CutSpan { start, free: u8::MAX });
        self.with_room.insert(address);
    }

    /// A small span that no class has, if there is one.
    fn take(&mut self) -> Option<NonNull<u8>> {
        let address = *self.with_room.first()?;
        let cut = self.all.get_mut(&address).expect("a span with room is there");
        let number = cut.free.trailing_zeros() as usize;
        cut.free &= !(1 << number);
        if cut.free == 0 {
            self.with_room.remove(&address);
        }
        // SAFETY: a span with room has a free bit, whose number is below that of its small spans:
        // it lies within the span.
        Some(unsafe { cut.start.add(number * SMALL_SPAN_SIZE) })
    }

    /// Takes a small span back; the span that is no longer needed, if there is one.
    fn give(&mut self, small: NonNull<u8>) -> Option<NonNull<u8>> {
        let address = small.addr().get() / SPAN_SIZE * SPAN_SIZE;
        let cut = self.all.get_mut(&address).expect("a small span lies in a span that was cut");
        cut.free |= 1 << ((small.addr().get() - address) / SMALL_SPAN_SIZE);
        self.with_room.insert(address);
        if cut.free != u8::MAX {
            return None;
        }
        self.with_room.remove(&address);
        self.all.remove(&address).map(|cut| cut.start)
    }
}

/// All chunks, by address.
struct Chunks {
    all: BTreeMap<usize, Cut>,
    /// Those with spans that are free.
    with_room: BTreeSet<usize>,
    /// How many have all their spans free.
    unused: usize,
}

/// A chunk, and which of its spans are free, and which hold bytes, by bit.
struct Cut {
    chunk: Chunk,
    free: u8,
    written: u8,
}

/// So many chunks are kept while nobody uses them, and one more for each so many that there are.
const UNUSED_MAX: usize = 4;
const UNUSED_PART: usize = 16;

/// So many chunks lie in small pages: 16 MiB.
const IN_SMALL_PAGES: usize = 8;

const _: () = assert!(HUGE_PAGE_SIZE / SPAN_SIZE == u8::BITS as usize, "a bit for each span");

impl Chunks {
    /// A span that no class has, and whether its bytes are written; if not, they will be before
    /// anybody reads them.
    fn take(&mut self) -> (NonNull<u8>, bool) {
        let address = self.with_room.first().copied().unwrap_or_else(|| {
            let chunk = if self.all.len() < IN_SMALL_PAGES {
                Chunk::in_small_pages(HUGE_PAGE_SIZE)
            } else {
                Chunk::new(HUGE_PAGE_SIZE)
            };
            let address = chunk.start().addr().get();
            let written = if chunk.is_zeroed() { u8::MAX } else { 0 };
            self.all.insert(address, Cut { chunk, free: u8::MAX, written });
            self.with_room.insert(address);
            self.unused += 1;
            address
        });
        let cut = self.all.get_mut(&address).expect("a chunk with room is there");
        self.unused -= usize::from(cut.free == u8::MAX);
        let number = cut.free.trailing_zeros() as usize;
        let is_written = cut.written & (1 << number) != 0;
        cut.written |= 1 << number;
        cut.free &= !(1 << number);
        if cut.free == 0 {
            self.with_room.remove(&address);
        }
        // SAFETY: a chunk with room has a free span, whose number is below that of its bits: it
        // lies within the chunk.
        (unsafe { cut.chunk.start().add(number * SPAN_SIZE) }, is_written)
    }

    /// Takes a span back; the chunk that is no longer needed, if there is one.
    fn give(&mut self, span: NonNull<u8>) -> Option<Chunk> {
        let address = span.addr().get() / HUGE_PAGE_SIZE * HUGE_PAGE_SIZE;
        let cut = self.all.get_mut(&address).expect("a span lies in a chunk");
        cut.free |= 1 << ((span.addr().get() - address) / SPAN_SIZE);
        self.with_room.insert(address);
        if cut.free != u8::MAX {
            return None;
        }
        if self.unused < UNUSED_MAX + self.all.len() / UNUSED_PART {
            self.unused += 1;
            return None;
        }
        self.with_room.remove(&address);
        self.all.remove(&address).map(|cut| cut.chunk)
    }
}

#[cfg(test)]
#[path = "slab_tests.rs"]
mod tests;
