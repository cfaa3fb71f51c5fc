//! Large pieces of memory: of huge pages' size, or for a moment, from the system itself, others
//! from the allocator.
//!
//! `malloc` keeps what is freed, and cuts what it is asked for next out of it. What comes from the
//! system and goes there again is resident only while somebody has it, and takes no more than was
//! touched.
#![expect(unsafe_code, reason = "raw memory, owned as a whole")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// What the kernel can map with one entry.
pub const HUGE_PAGE_SIZE: usize = 2 << 20;

/// The alignment of smaller chunks.
pub const ALIGNMENT: usize = 8;

/// Memory that is owned as a whole. One of 2 MiB or a multiple is aligned to huge pages, and the
/// kernel is asked for such: random access then misses fewer address translations.
pub struct Chunk {
    start: NonNull<u8>,
    layout: Layout,
    /// Whether it is a mapping of its own.
    is_mapped: bool,
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
            // SAFETY: the range is the chunk just allocated; the advice changes nothing but how it
            // is mapped. A kernel that does not know it loses us nothing.
            let _ = unsafe { madvise(chunk.start.as_ptr().cast(), size, Advice::LinuxHugepage) };
        }
        chunk
    }

    /// The same without asking the kernel: what is not touched takes no memory.
    pub fn in_small_pages(size: usize) -> Self {
        let alignment =
            if size.is_multiple_of(HUGE_PAGE_SIZE) { HUGE_PAGE_SIZE } else { ALIGNMENT };
        let layout = Layout::from_size_align(size, alignment)
            .expect("a chunk is smaller than the address space");
        assert_ne!(size, 0, "a chunk has bytes");
        if alignment == HUGE_PAGE_SIZE
            && let Some(start) = mapping::make(size)
        {
            return Self { start, layout, is_mapped: true };
        }
        // SAFETY: the layout's size is not zero.
        let start =
            NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        Self { start, layout, is_mapped: false }
    }

    /// `size` bytes, not zero of them, for a moment: from the system; `None` if it gives none.
    pub fn passing(size: usize) -> Option<Self> {
        let layout = Layout::from_size_align(size, ALIGNMENT)
            .expect("a chunk is smaller than the address space");
        mapping::map(size).map(|start| Self { start, layout, is_mapped: true })
    }

    /// Its memory, if it is a mapping, to be given back with [`Self::of_mapping`].
    pub fn into_mapping(self) -> Option<NonNull<u8>> {
        self.is_mapped.then(|| ManuallyDrop::new(self).start)
    }

    /// The chunk of `size` bytes again.
    ///
    /// # Safety
    /// Its memory came from [`Self::into_mapping`], and is the caller's alone.
    pub unsafe fn of_mapping(start: NonNull<u8>, size: usize) -> Self {
        let layout = Layout::from_size_align(size, ALIGNMENT).expect("there was such a chunk");
        Self { start, layout, is_mapped: true }
    }

    /// Where it begins; valid as long as the chunk is.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its bytes.
    pub fn size(&self) -> usize {
        self.layout.size()
    }

    /// Has the system clear all of its memory now, as it else does when that is first touched.
    /// Where the system does not know how (Linux before 5.14), it is cleared as it is touched.
    pub fn populate(&mut self) {
        #[cfg(all(target_os = "linux", not(miri)))]
        if self.is_mapped {
            use rustix::mm::{Advice, madvise};
            let (start, size) = (self.start.as_ptr().cast(), self.size());
            // SAFETY: the range is a mapping that the chunk owns, and what is in it stays.
            let _ = unsafe { madvise(start, size, Advice::LinuxPopulateWrite) };
        }
    }

    /// Whether it came full of zeros, which take no memory where nobody looks at them.
    pub fn is_zeroed(&self) -> bool {
        self.is_mapped
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if self.is_mapped {
            // SAFETY: `make` or `map` returned it for this size, and it is removed nowhere else.
            unsafe { mapping::remove(self.start, self.size()) }
        } else {
            // SAFETY: the memory came from `alloc` with this layout and is freed nowhere else.
            unsafe { dealloc(self.start.as_ptr(), self.layout) }
        }
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod mapping {
    use std::ptr::{NonNull, null_mut};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    use super::HUGE_PAGE_SIZE;

    /// A mapping of zeros, aligned to huge pages; `None` if the system gives none: there are only
    /// so many for a process.
    pub(super) fn make(size: usize) -> Option<NonNull<u8>> {
        // Newer kernels align what is so large.
        let start = map(size)?;
        if start.addr().get().is_multiple_of(HUGE_PAGE_SIZE) {
            return Some(start);
        }
        // SAFETY: it was just made, and nobody knows it.
        unsafe { unmap(start, size) };
        let larger = size.checked_add(HUGE_PAGE_SIZE)?;
        let start = map(larger)?;
        let before = start.align_offset(HUGE_PAGE_SIZE);
        // SAFETY: what is before the aligned part and behind it lies in the mapping, which is
        // larger by a huge page, and nobody knows it.
        unsafe {
            let aligned = start.add(before);
            unmap(start, before);
            unmap(aligned.add(size), larger - before - size);
            Some(aligned)
        }
    }

    /// # Safety
    /// It came from `make` or `map`, of this size, and is not used any more.
    pub(super) unsafe fn remove(start: NonNull<u8>, size: usize) {
        // SAFETY: as the caller says.
        unsafe { unmap(start, size) };
    }

    /// A mapping of zeros; `None` if the system gives none.
    pub(super) fn map(size: usize) -> Option<NonNull<u8>> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a mapping at a place that the system chooses is nobody else's.
        let start = unsafe { mmap_anonymous(null_mut(), size, access, flags) };
        NonNull::new(start.ok()?.cast())
    }

    /// # Safety
    /// The range is of a mapping of this module, and not used any more.
    unsafe fn unmap(start: NonNull<u8>, size: usize) {
        let start = start.as_ptr().cast();
        // SAFETY: as the caller says. To cut a mapping in two may be one too many: then at least
        // its memory goes.
        unsafe {
            if size > 0 && munmap(start, size).is_err() {
                let _ = madvise(start, size, Advice::LinuxDontNeed);
            }
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod mapping {
    use std::ptr::NonNull;

    /// None here.
    pub(super) fn make(_size: usize) -> Option<NonNull<u8>> {
        None
    }

    /// Nor such.
    pub(super) fn map(_size: usize) -> Option<NonNull<u8>> {
        None
    }

    /// # Safety
    /// There is none.
    pub(super) unsafe fn remove(_start: NonNull<u8>, _size: usize) {
        unreachable!("nothing was mapped");
    }
}

#[cfg(test)]
mod tests;
