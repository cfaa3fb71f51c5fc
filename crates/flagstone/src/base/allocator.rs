//! What the engine asks of the allocator.
#![allow(unsafe_code, reason = "a function of the C library")]

#[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
unsafe extern "C" {
    // SAFETY: as the GNU C library declares it (malloc.h). It may be called at any time, from any
    // thread.
    safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
}

/// Gives memory that was freed back to the system, where the C library's `malloc` keeps it.
///
/// That of GNU returns by itself only what lies at the end of a heap, and has a heap for each of
/// several threads: what one thread frees, others cannot use. Costs some milliseconds for each
/// hundred MiB that are free, in which other threads' allocations may wait. Does nothing with other
/// C libraries, or where the program does not allocate with `malloc`.
pub fn release_free_memory() {
    #[cfg(test)]
    RELEASES.set(RELEASES.get() + 1);
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    malloc_trim(0);
}

#[cfg(test)]
thread_local! {
    /// How often this thread has asked.
    pub static RELEASES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What is freed before this is dropped goes back to the system then, if it is worth the time.
#[derive(Debug, Default)]
pub struct ReleasedAtEnd {
    bytes: usize,
}

impl ReleasedAtEnd {
    /// Bytes that are worth it: to take as many from the system again takes about as long.
    const AT_LEAST: usize = 16 << 20;

    /// So many bytes are about to be freed.
    pub fn expect(&mut self, bytes: usize) {
        self.bytes = bytes;
    }
}

impl Drop for ReleasedAtEnd {
    fn drop(&mut self) {
        if self.bytes >= Self::AT_LEAST {
            release_free_memory();
        }
    }
}
