//! Reads of several places at once, in one file or many, so that the device works on all of them
//! together.
//!
//! 1. Places in files with a system descriptor ([`RandomAccessFile::descriptor`]) go through the
//!    thread's ring (`ring`), if the kernel provides one.
//! 2. The rest is read one by one, after the system was told about all of it: places in other
//!    files, long places, and places that the ring did not fill because the file ends there or the
//!    read failed. So the outcome does not depend on the way.

use std::time::Instant;

use super::read_limits::are_in_force;
use super::{Advice, RandomAccessFile};
use crate::base::Result;
use crate::base::perf::{self, IoMetric};

/// Longer reads keep the device busy by themselves.
#[cfg(all(target_os = "linux", not(miri)))]
pub(super) const SHARED_MAX: usize = 256 << 10;

/// Some bytes of a file.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The file.
    pub file: &'a dyn RandomAccessFile,
    /// Where to start.
    pub offset: u64,
    /// How many there should be.
    pub length: usize,
}

/// Takes what was read of a place, by the place's position in the list: fewer bytes than wanted
/// where the file ends.
pub trait Take: FnMut(usize, Result<&[u8]>) {}

impl<F: FnMut(usize, Result<&[u8]>)> Take for F {}

/// Reads all places and hands each to `take` as soon as it is there, in any order, while others may
/// still be under way. Returns how many the kernel had in hand together; 0 where it cannot, or
/// where there is nothing to gain.
pub fn read_together(places: &[Place<'_>], take: &mut impl Take) -> usize {
    let (left, together) = match places.len() {
        0 | 1 => ((0..places.len()).collect(), 0),
        // Each read is to keep within the limits of the call.
        _ if are_in_force() => ((0..places.len()).collect(), 0),
        _ => {
            let _time = perf::time(IoMetric::ReadNanos);
            let since = now();
            all_at_once(places, &mut |at: usize, bytes: Result<&[u8]>| {
                if let Ok(bytes) = bytes {
                    let Place { file, offset, .. } = places[at];
                    file.note_read((offset, bytes.len()), since);
                }
                take(at, bytes);
            })
        }
    };
    one_by_one(places, &left, take);
    together
}

#[cfg(all(target_os = "linux", not(miri)))]
use super::ring::read as all_at_once;

/// What the kernel has in hand is no part of any simulated world.
#[expect(clippy::disallowed_methods, reason = "reads of the operating system alone are timed")]
fn now() -> Instant {
    Instant::now()
}

/// Elsewhere the system has nothing for it.
#[cfg(not(all(target_os = "linux", not(miri))))]
fn all_at_once(places: &[Place<'_>], _take: &mut impl Take) -> (Vec<usize>, usize) {
    ((0..places.len()).collect(), 0)
}

/// Reads the places at these positions.
fn one_by_one(places: &[Place<'_>], left: &[usize], take: &mut impl Take) {
    if left.len() > 1 {
        for place in left.iter().map(|&at| &places[at]).filter(|place| !place.file.is_direct()) {
            place
                .file
                .advise(Advice::WillNeed { offset: place.offset, length: place.length as u64 });
        }
    }
    let mut buffer = Vec::new();
    for &at in left {
        let Place { file, offset, length } = places[at];
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        match file.read_at(offset, &mut buffer[..length]) {
            Ok(filled) => take(at, Ok(&buffer[..filled])),
            Err(error) => take(at, Err(error)),
        }
    }
}

#[cfg(test)]
mod tests;
