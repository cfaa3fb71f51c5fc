//! A hint to the processor, which fetches memory while the program goes on.
#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    expect(unsafe_code, reason = "the instruction for it is offered as an intrinsic only")
)]

/// Asks for the cache lines from `at` on, so many; any address will do.
#[inline]
pub(crate) fn prefetch<T>(at: *const T, lines: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in 0..lines {
        // SAFETY: a hint; any address will do.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                at.cast::<i8>().wrapping_add(64 * line),
            );
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (at, lines);
}
