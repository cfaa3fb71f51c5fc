//! Bytes that several own, in a piece of the slab.
//!
//! ```text
//! piece = how many own it (8 bytes), the piece itself (16), the bytes
//! ```
//!
//! The count lies before the bytes: whoever takes a share waits for no memory that a look at the bytes would not wait for.
//!
//! **Invariants**
//! 1. The count is that of the handles, and the memory lives while there is one.
//! 2. Nothing but the count changes once there is a handle.
#![expect(unsafe_code, reason = "a count and the memory's owner within the memory")]

use std::fmt;
use std::ops::Deref;
use std::ptr::{self, NonNull};
// Like that of an `Arc`: no schedule depends on it.
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use super::prefetch;
use super::slab::{ALIGNMENT, Piece};

/// What stands before the bytes.
#[repr(C)]
struct Head {
    count: AtomicUsize,
    piece: Piece,
}

const HEAD_SIZE: usize = size_of::<Head>();

const _: () = assert!(align_of::<Head>() <= ALIGNMENT);

/// A share of bytes that stay as they are. A clone is another.
pub struct SharedPiece {
    head: NonNull<Head>,
}

// SAFETY: what the handles share does not change but for an atomic count (2), and the piece may be dropped by any thread.
unsafe impl Send for SharedPiece {}
// SAFETY: the same.
unsafe impl Sync for SharedPiece {}

impl SharedPiece {
    /// A copy of `bytes`; `None` if the slab has no pieces of that size.
    pub fn copy_of(bytes: &[u8]) -> Option<Self> {
        let mut piece = Piece::of_slab(HEAD_SIZE + bytes.len())?;
        piece[HEAD_SIZE..].copy_from_slice(bytes);
        let head = piece.start().cast::<Head>();
        // SAFETY: a piece of the slab is aligned, and this one has room for the head, which nobody else looks at yet. It
        // moves into its own memory, which stays where it is.
        unsafe { head.write(Head { count: AtomicUsize::new(1), piece }) };
        Some(Self { head })
    }

    fn head(&self) -> &Head {
        // SAFETY: written when the first handle was made, and alive (1).
        unsafe { self.head.as_ref() }
    }

    /// Whether nobody else has a share.
    pub fn is_unique(&self) -> bool {
        self.head().count.load(Ordering::Acquire) == 1
    }

    /// What it takes in memory, in bytes.
    pub fn capacity(&self) -> usize {
        self.head().piece.capacity()
    }

    /// Asks for the memory of the count and the first bytes.
    pub fn prefetch(&self) {
        prefetch(self.head.as_ptr(), 1);
    }
}

impl Deref for SharedPiece {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let length = self.head().piece.size() - HEAD_SIZE;
        // SAFETY: the piece has so many bytes behind the head, copied there when it was made; nobody writes to them (2), and
        // they live as long as this handle (1).
        unsafe { std::slice::from_raw_parts(self.head.add(1).cast().as_ptr(), length) }
    }
}

impl AsRef<[u8]> for SharedPiece {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Clone for SharedPiece {
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

impl Drop for SharedPiece {
    #[inline]
    fn drop(&mut self) {
        if self.head().count.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        // What other handles' owners did with the bytes came before.
        fence(Ordering::Acquire);
        // SAFETY: this was the last handle (1), so nobody looks at the head again, and the piece is moved out once.
        drop(unsafe { ptr::read(&raw const (*self.head.as_ptr()).piece) });
    }
}

impl fmt::Debug for SharedPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedPiece({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_that_were_copied() {
        for length in [1100, 4096, 30_000] {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let shared = SharedPiece::copy_of(&bytes).expect("the slab has such pieces");
            assert_eq!(&shared[..], &bytes[..]);
            assert!((length..length + length / 16 + 64).contains(&shared.capacity()));
        }
        for length in [0, 10, 33_000] {
            assert!(SharedPiece::copy_of(&vec![0; length]).is_none(), "{length} bytes are the allocator's");
        }
    }

    #[test]
    fn the_last_of_several_owners_gives_it_back() {
        let shared = SharedPiece::copy_of(&[7; 2000]).expect("the slab has such pieces");
        assert!(shared.is_unique());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let share = shared.clone();
                assert!(!shared.is_unique());
                scope.spawn(move || assert!(share.clone().iter().all(|&byte| byte == 7)));
            }
        });
        assert!(shared.is_unique());
        drop(shared);
        // Its memory, as likely as not: nothing of the old head may be left in use.
        let other = SharedPiece::copy_of(&[8; 2000]).expect("the slab has such pieces");
        assert!(other.is_unique() && other.iter().all(|&byte| byte == 8));
    }
}
