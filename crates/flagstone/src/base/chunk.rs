//! Large pieces of memory from the allocator.
#![expect(unsafe_code, reason = "raw memory, owned as a whole")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// What the kernel can map with one entry.
pub const HUGE_PAGE_SIZE: usize = 2 << 20;

/// The alignment of smaller chunks.
pub const ALIGNMENT: usize = 8;

/// Memory that is owned as a whole. One of 2 MiB or a multiple is aligned to huge pages, and the kernel is asked for such:
/// random access then misses fewer address translations.
pub struct Chunk {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the chunk owns its memory; what others do with pieces of it is their own proof.
unsafe impl Send for Chunk {}

impl Chunk {
    /// `size` bytes, not zero of them, which hold nothing yet.
    pub fn new(size: usize) -> Self {
        let chunk = Self::in_small_pages(size);
        #[cfg(all(target_os = "linux", not(miri)))]
        if chunk.layout.align() == HUGE_PAGE_SIZE {
            use rustix::mm::{Advice, madvise};
            // SAFETY: the range is the chunk just allocated; the advice changes nothing but how it is mapped. A kernel
            // that does not know it loses us nothing.
            let _ = unsafe { madvise(chunk.start.as_ptr().cast(), size, Advice::LinuxHugepage) };
        }
        chunk
    }

    /// The same without asking the kernel: what is not touched takes no memory.
    pub fn in_small_pages(size: usize) -> Self {
        let alignment = if size.is_multiple_of(HUGE_PAGE_SIZE) { HUGE_PAGE_SIZE } else { ALIGNMENT };
        let layout =
            Layout::from_size_align(size, alignment).expect("a chunk is smaller than the address space");
        assert_ne!(size, 0, "a chunk has bytes");
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        Self { start, layout }
    }

    /// Where it begins; valid as long as the chunk is.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its bytes.
    pub fn size(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: the memory came from `alloc` with this layout and is freed nowhere else.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
