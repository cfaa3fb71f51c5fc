//! What the engine asks of the allocator.
#![allow(unsafe_code, reason = "a function of the C library")]

#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
unsafe extern "C" {
    // SAFETY: as the GNU C library declares it (malloc.h). It may be called at any time, from any thread.
    safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
}

/// Gives memory that was freed back to the system, where the C library's `malloc` keeps it.
///
/// That of GNU returns by itself only what lies at the end of a heap, and has a heap for each of several threads: what one
/// thread frees, others cannot use. Costs some milliseconds for each hundred MiB that are free, in which other threads'
/// allocations may wait. Does nothing with other C libraries, or where the program does not allocate with `malloc`.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    malloc_trim(0);
}
