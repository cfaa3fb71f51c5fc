//! What the fuzz targets share: an allocator that stops at an absurd request, and the entry that
//! calls a body.

use std::alloc::{GlobalAlloc, Layout, System};

pub use libfuzzer_sys::fuzz_target;

/// No input of a few kilobytes is a reason to ask for more than this at once.
const ALLOCATION_MAX: usize = 256 << 20;

/// The system's allocator, which aborts at a request above [`ALLOCATION_MAX`]: libFuzzer's own
/// `-malloc_limit_mb` works only under a sanitizer.
struct Limited;

fn check(size: usize) {
    if size > ALLOCATION_MAX {
        // The message must not allocate.
        eprintln!("ABORT: an allocation of {size} bytes");
        std::process::abort();
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// The whole of a file in `fuzz_targets`: runs the body of that name.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        $crate::fuzz_target!(|data: &[u8]| testkit::fuzz::run($name, data));
    };
}
