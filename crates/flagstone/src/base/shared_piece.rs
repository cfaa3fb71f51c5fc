//! Bytes that several own, with what is known of them, in one piece of memory.
//!
//! ```text
//! piece = how many own it (8 bytes), the piece itself (16), where the bytes begin (4), the margin's length (2) and whether it
//!         is filled in (1), what is known of them, the margin, the bytes
//! ```
//!
//! The margin is room for what is found out about the bytes later, of a size that is chosen when
//! the memory is taken.
//!
//! All of it lies side by side, in the slab's huge pages where the slab has pieces of that size:
//! whoever takes a share waits for no memory that a look at the bytes would not wait for, and a
//! block is found with one address translation.
//!
//! **Invariants**
//! 1. The count is that of the handles, and the memory lives while there is one.
//! 2. The bytes do not change once there is a handle, nor what is known of them but by its own,
//!    shared means.
//! 3. A companion is the memory's from the moment it is set, and is taken once, by who gives up the
//!    last handle.
//! 4. The margin lies right before the bytes. It is written to by who moves its state from `BLANK`
//!    to `BUSY`, which one does, and looked at when the state is `FILLED`, after which nobody
//!    writes to it.
//! 5. All bytes of a room's piece were written if it says so, and the margin's in any case. A
//!    handle has only such.
#![expect(unsafe_code, reason = "a count, the memory's owner and a margin within the memory")]

use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
// Like that of an `Arc`: no schedule depends on it.
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering, fence};

use super::prefetch;
use super::slab::{ALIGNMENT, Piece};

/// What stands before the bytes. Without gaps up to what is known, so that a handle that does not
/// know it may look at the rest.
#[repr(C)]
struct Head<K> {
    count: AtomicUsize,
    piece: Piece,
    begin: u32,
    margin: u16,
    state: AtomicU8,
    /// What goes with the memory; null if nothing does.
    companion: AtomicPtr<Companion>,
    known: K,
}

impl<K> Head<K> {
    const SIZE: usize = {
        assert!(align_of::<Self>() <= ALIGNMENT && size_of::<Piece>() == 16);
        size_of::<Self>()
    };
}

/// Nothing is in the margin yet.
const BLANK: u8 = 0;
/// Somebody is at work there.
const BUSY: u8 = 1;
const FILLED: u8 = 2;
/// There is nothing to put into it.
const REFUSED: u8 = 3;

/// What is dropped when nobody has a share any more; in a box of its own, as a pointer of one word
/// leads to it.
type Companion = Box<dyn Send>;

/// Room for bytes that are to be shared, and for what will be known of them.
pub struct SharedRoom<K = ()> {
    piece: Piece,
    margin: u16,
    is_written: bool,
    known: PhantomData<K>,
}

/// Room of which it does not matter whether anything was written there.
pub struct Unwritten<'a> {
    bytes: &'a mut [MaybeUninit<u8>],
    is_written: &'a mut bool,
}

impl Unwritten<'_> {
    /// Copies as many bytes there as there is room for.
    ///
    /// # Panics
    /// If they are more or fewer.
    pub fn copy_from(self, bytes: &[u8]) {
        self.bytes.write_copy_of_slice(bytes);
        *self.is_written = true;
    }

    /// Has them written; whether all were.
    ///
    /// # Safety
    /// `write` writes bytes there and nothing else, and all of them if it says so.
    pub unsafe fn fill(self, write: impl FnOnce(&mut [MaybeUninit<u8>]) -> bool) -> bool {
        let all = write(self.bytes);
        *self.is_written |= all;
        all
    }
}

impl<K> SharedRoom<K> {
    /// For `length` bytes, of any content; with them and the head they are less than 4 GiB.
    pub fn new(length: usize) -> Self {
        Self::with_margin(length, 0)
    }

    /// The same, with a margin of so many bytes.
    pub fn with_margin(length: usize, margin: u16) -> Self {
        let begin = Self::begin(margin);
        // SAFETY: if it is not the slab's the room says that its bytes were not written, but for
        // the margin and what lies before.
        let piece = unsafe { Piece::unwritten(begin + length) };
        let is_written = piece.is_of_slab();
        if !is_written {
            // SAFETY: the piece has so many bytes and more, and is ours.
            unsafe { piece.start().write_bytes(0, begin) };
        }
        Self { piece, margin, is_written, known: PhantomData }
    }

    /// The same for a moment: what is large comes from the system, and goes back to it.
    pub fn passing(length: usize) -> Self {
        let piece = Piece::passing(Self::begin(0) + length);
        Self { piece, margin: 0, is_written: true, known: PhantomData }
    }

    fn begin(margin: u16) -> usize {
        Head::<K>::SIZE + usize::from(margin)
    }

    /// Makes it `length` bytes long, with a margin of so many; `false` if those want memory of
    /// another size.
    pub fn resize(&mut self, length: usize, margin: u16) -> bool {
        let fits = self.piece.resize(Self::begin(margin) + length);
        if fits {
            self.margin = margin;
        }
        fits
    }

    /// All of the bytes, to be written. Where the memory is the allocator's, it spares zeros that
    /// [`DerefMut`] writes first.
    pub fn unwritten(&mut self) -> Unwritten<'_> {
        let begin = Self::begin(self.margin);
        let length = self.piece.size() - begin;
        // SAFETY: the piece has so many bytes there, and is borrowed for writing as long as they
        // are. Only bytes are written (`Unwritten` asks for no less), so those that were written
        // stay so.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(
                self.piece.start().add(begin).cast::<MaybeUninit<u8>>().as_ptr(),
                length,
            )
        };
        Unwritten { bytes, is_written: &mut self.is_written }
    }

    /// Whether it is a piece of the slab's, which [`SharedRoom::resize`] may make use of.
    pub fn is_of_slab(&self) -> bool {
        self.piece.is_of_slab()
    }

    /// The bytes, owned by one handle so far.
    ///
    /// # Panics
    /// If they were not written.
    pub fn share(self, known: K) -> SharedPiece<K> {
        let Self { piece, margin, is_written, .. } = self;
        assert!(is_written, "who shares bytes has written them");
        let head = piece.start().cast::<Head<K>>();
        // SAFETY: the piece is aligned and has room for the head, and nobody else looks at it yet.
        // It moves into its own memory, which stays where it is.
        unsafe {
            head.write(Head {
                count: AtomicUsize::new(1),
                piece,
                begin: Self::begin(margin) as u32,
                margin,
                state: AtomicU8::new(BLANK),
                companion: AtomicPtr::new(ptr::null_mut()),
                known,
            });
        }
        SharedPiece { head }
    }
}

impl<K> Deref for SharedRoom<K> {
    type Target = [u8];

    /// # Panics
    /// If they were not written.
    fn deref(&self) -> &[u8] {
        assert!(self.is_written, "who looks at bytes has written them");
        &self.piece[Self::begin(self.margin)..]
    }
}

impl<K> DerefMut for SharedRoom<K> {
    /// Zeros where nothing was written.
    fn deref_mut(&mut self) -> &mut [u8] {
        if !self.is_written {
            // SAFETY: the piece has so many bytes, and is borrowed for writing.
            unsafe { self.piece.start().write_bytes(0, self.piece.size()) };
            self.is_written = true;
        }
        &mut self.piece[Self::begin(self.margin)..]
    }
}

/// A share of bytes that stay as they are. A clone is another.
pub struct SharedPiece<K = ()> {
    head: NonNull<Head<K>>,
}

// SAFETY: the handles share bytes that do not change (2), an atomic count, and what is known, which
// any thread may look at (`Sync`) and, as the piece, drop (`Send`).
unsafe impl<K: Send + Sync> Send for SharedPiece<K> {}
// SAFETY: the same.
unsafe impl<K: Send + Sync> Sync for SharedPiece<K> {}

impl SharedPiece {
    /// A copy of `bytes`; `None` if the slab has no pieces of that size.
    pub fn copy_of(bytes: &[u8]) -> Option<Self> {
        if !Piece::is_for_slab(Head::<()>::SIZE.saturating_add(bytes.len())) {
            return None;
        }
        let mut room: SharedRoom = SharedRoom::new(bytes.len());
        room.unwritten().copy_from(bytes);
        Some(room.share(()))
    }
}

impl<K> SharedPiece<K> {
    #[inline]
    fn head(&self) -> &Head<K> {
        // SAFETY: written when the first handle was made, and alive (1).
        unsafe { self.head.as_ref() }
    }

    /// What is known of the bytes.
    #[inline]
    pub fn known(&self) -> &K {
        &self.head().known
    }

    /// Whether nobody else has a share.
    pub fn is_unique(&self) -> bool {
        self.head().count.load(Ordering::Acquire) == 1
    }

    /// What it takes in memory, in bytes.
    pub fn capacity(&self) -> usize {
        self.head().piece.capacity()
    }

    /// What was put into the margin, if it is filled in.
    #[inline]
    pub fn margin(&self) -> Option<&[u8]> {
        let Head { begin, margin, state, .. } = self.head();
        let (begin, length) = (*begin as usize, usize::from(*margin));
        // What was written there is seen.
        if state.load(Ordering::Acquire) != FILLED {
            return None;
        }
        // SAFETY: the memory has the margin right before `begin`, all of it bytes since the piece
        // was taken; nobody writes to it any more (4), and it lives as long as this handle (1).
        Some(unsafe {
            std::slice::from_raw_parts(self.head.cast::<u8>().as_ptr().add(begin - length), length)
        })
    }

    /// Has `fill` put something into the margin, if there is one, and nobody has tried to or does
    /// now; `false` from it says that there is nothing to put there. What there is then.
    #[cold]
    pub fn fill_margin(&self, fill: impl FnOnce(&mut [u8]) -> bool) -> Option<&[u8]> {
        let Head { begin, margin, state, .. } = self.head();
        let (begin, length) = (*begin as usize, usize::from(*margin));
        if length == 0 || !self.is_margin_blank() {
            return self.margin();
        }
        if state.compare_exchange(BLANK, BUSY, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            // SAFETY: as in `margin`; that nobody else writes to it or looks at it is since this
            // call made the state `BUSY` (4).
            let place = unsafe {
                std::slice::from_raw_parts_mut(
                    self.head.cast::<u8>().as_ptr().add(begin - length),
                    length,
                )
            };
            // If it panics, nobody tries again.
            let outcome = if fill(place) { FILLED } else { REFUSED };
            state.store(outcome, Ordering::Release);
        }
        self.margin()
    }

    /// Whether [`SharedPiece::fill_margin`] may still do something.
    #[inline]
    pub fn is_margin_blank(&self) -> bool {
        let Head { margin, state, .. } = self.head();
        *margin > 0 && state.load(Ordering::Relaxed) == BLANK
    }

    /// Where its memory begins, to be asked for ahead: the count, what is known of the bytes, and
    /// the bytes.
    #[inline]
    pub fn start(&self) -> *const u8 {
        self.head.as_ptr().cast()
    }

    /// Asks for the memory of the count, of what is known of the bytes, and of so many bytes more,
    /// for what lies there, or did once: any address will do.
    #[inline]
    pub fn prefetch_at(start: *const u8, more: usize) {
        prefetch(start, (Head::<K>::SIZE + more).div_ceil(64));
    }

    /// Has what `make` returns dropped when nobody has a share any more, unless something is to be
    /// already.
    pub fn accompany(&self, make: impl FnOnce() -> Box<dyn Send>) {
        let place = &self.head().companion;
        if !place.load(Ordering::Relaxed).is_null() {
            return;
        }
        let made = Box::into_raw(Box::new(make()));
        // What was written there is seen by who takes it: he gives up the last share after this
        // one.
        if place
            .compare_exchange(ptr::null_mut(), made, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            // SAFETY: it is this call's own, since another's was set.
            drop(unsafe { Box::from_raw(made) });
        }
    }

    /// The same share, for who only wants the bytes.
    pub fn without_known(self) -> SharedPiece {
        const {
            assert!(
                !needs_drop::<K>(),
                "the last handle may not know that there is something to drop"
            )
        };
        // Both heads are the same up to what is known.
        SharedPiece { head: ManuallyDrop::new(self).head.cast() }
    }

    /// Gives up this share; the memory, to be used again, if it was the last.
    pub fn into_room(self) -> Option<SharedRoom<K>> {
        let this = ManuallyDrop::new(self);
        // SAFETY: this share is given up once, here, since it is not dropped.
        let piece = unsafe { Self::give_up(this.head) };
        piece.map(|piece| SharedRoom { piece, margin: 0, is_written: true, known: PhantomData })
    }

    /// Counts a share out; the piece, if it was the last.
    ///
    /// # Safety
    /// The handle whose share it is is not used any more.
    #[inline]
    unsafe fn give_up(head: NonNull<Head<K>>) -> Option<Piece> {
        // SAFETY: the share that is being given up keeps it alive until here (1).
        if unsafe { head.as_ref() }.count.fetch_sub(1, Ordering::Release) != 1 {
            return None;
        }
        // What other handles' owners did with the bytes came before.
        fence(Ordering::Acquire);
        // SAFETY: this was the last handle (1), so nobody looks at the head again, and it is moved
        // out once.
        let Head { piece, begin, companion, .. } = unsafe { ptr::read(head.as_ptr()) };
        // SAFETY: the head lies in the first `begin` bytes of the piece, which is this thread's
        // alone now. What is left of it may not be bytes (gaps, what was never set), and who has
        // the piece next is to find some.
        unsafe { head.cast::<u8>().write_bytes(0, begin as usize) };
        let companion = companion.into_inner();
        if !companion.is_null() {
            // SAFETY: `accompany` made it of a box, and it is taken once (3).
            drop(unsafe { Box::from_raw(companion) });
        }
        Some(piece)
    }
}

impl<K> Deref for SharedPiece<K> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let Head { piece, begin, .. } = self.head();
        // SAFETY: the piece has so many bytes behind the head, written before it was shared; nobody
        // writes to them (2), and they live as long as this handle (1).
        unsafe {
            let begin = *begin as usize;
            std::slice::from_raw_parts(
                self.head.cast::<u8>().as_ptr().add(begin),
                piece.size() - begin,
            )
        }
    }
}

impl<K> AsRef<[u8]> for SharedPiece<K> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<K> Clone for SharedPiece<K> {
    #[inline]
    fn clone(&self) -> Self {
        let before = self.head().count.fetch_add(1, Ordering::Relaxed);
        assert!(
            before <= isize::MAX as usize,
            "handles that are forgotten, not dropped, by the thousand million"
        );
        Self { head: self.head }
    }
}

impl<K> Drop for SharedPiece<K> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: a handle is dropped once.
        drop(unsafe { Self::give_up(self.head) });
    }
}

impl<K> fmt::Debug for SharedPiece<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedPiece({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests;
