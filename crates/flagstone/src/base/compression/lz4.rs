//! LZ4 blocks through the C library, whose speed no safe implementation reaches.
//!
//! A dictionary counts as the (up to 64 KiB of) bytes just before a block. It is indexed once per
//! encoder and then attached to the working stream for each block; the library drops it at the
//! block's end.
//!
//! **Invariants**: a stream is created and initialised by the library, used by one encoder at a
//! time, and freed once. A dictionary's bytes do not move or change while its stream lives.

#![expect(unsafe_code, reason = "calls into the LZ4 library")]

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::LZ4_RAW_SIZE_MAX;
use crate::base::shared_piece::Unwritten;

/// A block of no bytes: a token that announces none.
const EMPTY_BLOCK: u8 = 0;

// What the `lz4-sys` crate links but does not declare; the signatures are those of lz4.h and
// lz4hc.h, version 1.10.
unsafe extern "C" {
    fn LZ4_loadDict(stream: *mut c_void, dictionary: *const c_char, size: c_int) -> c_int;
    fn LZ4_attach_dictionary(working: *mut c_void, dictionary: *const c_void);
    fn LZ4_resetStream_fast(stream: *mut c_void);
    fn LZ4_compress_fast_extState(
        state: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_size: c_int,
        target_capacity: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_compress_fast_continue(
        stream: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_size: c_int,
        target_capacity: c_int,
        acceleration: c_int,
    ) -> c_int;
    fn LZ4_createStreamHC() -> *mut c_void;
    fn LZ4_freeStreamHC(stream: *mut c_void) -> c_int;
    fn LZ4_resetStreamHC_fast(stream: *mut c_void, level: c_int);
    fn LZ4_loadDictHC(stream: *mut c_void, dictionary: *const c_char, size: c_int) -> c_int;
    fn LZ4_attach_HC_dictionary(working: *mut c_void, dictionary: *const c_void);
    fn LZ4_compress_HC_continue(
        stream: *mut c_void,
        source: *const c_char,
        target: *mut c_char,
        source_size: c_int,
        target_capacity: c_int,
    ) -> c_int;
    fn LZ4_decompress_safe_usingDict(
        source: *const c_char,
        target: *mut c_char,
        source_size: c_int,
        target_capacity: c_int,
        dictionary: *const c_char,
        dictionary_size: c_int,
    ) -> c_int;
}

/// How thoroughly to look for repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// LZ4; 1 is normal, more is faster and worse.
    Fast {
        /// The library's acceleration factor.
        acceleration: i32,
    },
    /// LZ4HC at a level of 1 to 12; 0 is the library's default.
    High {
        /// The level.
        level: i32,
    },
}

/// The library's working memory for one kind of effort.
struct Stream {
    raw: NonNull<c_void>,
    high: bool,
}

// SAFETY: a stream is plain memory without ties to a thread.
unsafe impl Send for Stream {}

impl Stream {
    /// `None` if memory is short.
    fn new(high: bool) -> Option<Self> {
        let raw = if high {
            // SAFETY: takes nothing; returns an initialised stream or null.
            unsafe { LZ4_createStreamHC() }
        } else {
            // SAFETY: as above.
            unsafe { lz4_sys::LZ4_createStream() }.cast()
        };
        Some(Self { raw: NonNull::new(raw)?, high })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.high {
            // SAFETY: the stream came from LZ4_createStreamHC and is freed only here.
            unsafe { LZ4_freeStreamHC(self.raw.as_ptr()) };
        } else {
            // SAFETY: the stream came from LZ4_createStream and is freed only here.
            unsafe { lz4_sys::LZ4_freeStream(self.raw.as_ptr().cast()) };
        }
    }
}

/// An indexed dictionary: the stream points into the bytes.
struct LoadedDictionary {
    stream: Stream,
    _bytes: Box<[u8]>,
}

/// Makes LZ4 blocks.
pub struct Encoder {
    effort: Effort,
    working: Stream,
    dictionary: Option<LoadedDictionary>,
}

impl Encoder {
    /// `None` if memory is short. An empty dictionary is none.
    pub fn new(effort: Effort, dictionary: &[u8]) -> Option<Self> {
        let high = matches!(effort, Effort::High { .. });
        let dictionary =
            if dictionary.is_empty() { None } else { Some(Self::load(high, effort, dictionary)?) };
        Some(Self { effort, working: Stream::new(high)?, dictionary })
    }

    fn load(high: bool, effort: Effort, dictionary: &[u8]) -> Option<LoadedDictionary> {
        // Only the last 64 KiB can be referred to; keeping no more also keeps the length within
        // c_int.
        let kept = &dictionary[dictionary.len().saturating_sub(64 << 10)..];
        let bytes: Box<[u8]> = kept.into();
        let stream = Stream::new(high)?;
        let (raw, start, size) = (stream.raw.as_ptr(), bytes.as_ptr().cast(), bytes.len() as c_int);
        match effort {
            Effort::Fast { .. } => {
                // SAFETY: the stream is fresh; `start` and `size` describe `bytes`, whose heap
                // memory stays in place as long as the stream, because both move into one
                // LoadedDictionary.
                unsafe { LZ4_loadDict(raw, start, size) };
            }
            Effort::High { level } => {
                // SAFETY: as above.
                unsafe {
                    LZ4_resetStreamHC_fast(raw, level);
                    LZ4_loadDictHC(raw, start, size);
                }
            }
        }
        Some(LoadedDictionary { stream, _bytes: bytes })
    }

    /// Appends one block holding `raw` to `out`; `None` (and `out` as it was) if `raw` exceeds
    /// [`LZ4_RAW_SIZE_MAX`].
    pub fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if raw.len() > LZ4_RAW_SIZE_MAX {
            return None;
        }
        if raw.is_empty() {
            // What the library makes of nothing. LZ4HC takes off a dozen bytes of the address
            // first, which for an empty vector's leads below 0, and then reads there.
            out.push(EMPTY_BLOCK);
            return Some(());
        }
        let bound = raw.len() + raw.len() / 255 + 16;
        out.reserve(bound);
        let start = out.len();
        let (source, source_size) = (raw.as_ptr().cast::<c_char>(), raw.len() as c_int);
        let target = out.spare_capacity_mut().as_mut_ptr().cast::<c_char>();
        let stream = self.working.raw.as_ptr();
        let dictionary = self.dictionary.as_ref().map(|d| d.stream.raw.as_ptr().cast_const());
        // The bound fits: LZ4_RAW_SIZE_MAX / 255 + 16 more is still below 2^31.
        let bound = bound as c_int;
        let written = match (self.effort, dictionary) {
            // Three times as fast for a block of 4 KiB as a stream that is reset, which keeps a
            // table for longer distances.
            (Effort::Fast { acceleration }, None) => {
                // SAFETY: the stream is aligned and large enough for the library's state, which
                // this call initialises; source and target are valid for the sizes given, not
                // empty, and do not overlap.
                unsafe {
                    LZ4_compress_fast_extState(
                        stream,
                        source,
                        target,
                        source_size,
                        bound,
                        acceleration,
                    )
                }
            }
            (Effort::Fast { acceleration }, Some(dictionary)) => {
                // SAFETY: the stream is initialised (by creation, and kept so by calls that cannot
                // fail because the target has the library's worst-case size); source and target are
                // valid for the sizes given and do not overlap; the dictionary's stream is loaded
                // and outlives the call. Resetting first forgets the previous block, whose memory
                // may be gone.
                unsafe {
                    LZ4_resetStream_fast(stream);
                    LZ4_attach_dictionary(stream, dictionary);
                    LZ4_compress_fast_continue(
                        stream,
                        source,
                        target,
                        source_size,
                        bound,
                        acceleration,
                    )
                }
            }
            (Effort::High { level }, dictionary) => {
                // SAFETY: as above; without a dictionary null is attached.
                unsafe {
                    LZ4_resetStreamHC_fast(stream, level);
                    LZ4_attach_HC_dictionary(stream, dictionary.unwrap_or(std::ptr::null()));
                    LZ4_compress_HC_continue(stream, source, target, source_size, bound)
                }
            }
        };
        assert!(written > 0 && written <= bound, "a block within the worst-case size");
        // SAFETY: the library wrote `written` bytes from `start` on, within the reserved capacity.
        unsafe { out.set_len(start + written as usize) };
        Some(())
    }
}

/// The bytes of a block that holds exactly `raw_size` of them; `None` if it does not.
///
/// The caller has checked `raw_size` against what the block can hold, since so much is allocated.
pub fn decompress(block: &[u8], raw_size: usize, dictionary: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::<u8>::with_capacity(raw_size);
    decompress_to(block, &mut out.spare_capacity_mut()[..raw_size], dictionary)?;
    // SAFETY: the library wrote exactly `raw_size` bytes.
    unsafe { out.set_len(raw_size) };
    Some(out)
}

/// [`decompress`], if it is exactly as many bytes as `out` has room for, all of which are written
/// then.
pub fn decompress_to(block: &[u8], out: &mut [MaybeUninit<u8>], dictionary: &[u8]) -> Option<()> {
    let (source_size, target_size) =
        (c_int::try_from(block.len()).ok()?, c_int::try_from(out.len()).ok()?);
    let dictionary = &dictionary[dictionary.len().saturating_sub(64 << 10)..];
    // SAFETY: source, target and dictionary are valid for the sizes given; the library reads and
    // writes only within them whatever the source holds.
    let written = unsafe {
        LZ4_decompress_safe_usingDict(
            block.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            source_size,
            target_size,
            dictionary.as_ptr().cast(),
            dictionary.len() as c_int,
        )
    };
    (written == target_size).then_some(())
}

/// [`decompress_to`] into room that is to be shared.
pub fn decompress_into(block: &[u8], room: Unwritten<'_>, dictionary: &[u8]) -> Option<()> {
    // SAFETY: what the library writes are bytes, and it wrote all of them if it says so.
    let is_filled = unsafe { room.fill(|room| decompress_to(block, room, dictionary).is_some()) };
    is_filled.then_some(())
}
