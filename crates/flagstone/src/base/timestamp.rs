//! User timestamps: the bytes that a key ends in, where the order of its family has them.
//!
//! ```text
//! user key = key, timestamp        as stored, compared and told apart by the engine
//! order    = key ascending, then timestamp descending (newest first)
//! ```
//!
//! A program gives keys without timestamps, and timestamps beside them. The least timestamp is all
//! zero bytes and the greatest all `0xff`, in every order that has timestamps.

use std::borrow::Cow;

use super::error::{Error, Result};
use super::key::key_in_words;

/// The bytes of a timestamp of the built-in orders: a little-endian number.
pub const U64_SIZE: usize = 8;

/// The largest timestamp, in bytes, that a log can say the size of.
pub const SIZE_MAX: usize = u16::MAX as usize;

/// The timestamp of the built-in orders that stands for this number.
pub const fn from_u64(number: u64) -> [u8; U64_SIZE] {
    number.to_le_bytes()
}

/// The number that a timestamp of the built-in orders stands for; `None` if it has another size.
pub fn to_u64(timestamp: &[u8]) -> Option<u64> {
    timestamp.try_into().ok().map(u64::from_le_bytes)
}

/// Takes a stored key apart, into the key and its timestamp of `size` bytes. A key from a damaged
/// file may be shorter; it is all timestamp then.
#[inline]
pub fn split(user_key: &[u8], size: usize) -> (&[u8], &[u8]) {
    user_key.split_at(user_key.len().saturating_sub(size))
}

/// A stored key without its timestamp.
#[inline]
pub fn strip(user_key: &[u8], size: usize) -> &[u8] {
    split(user_key, size).0
}

/// A key with its timestamp, as it is stored.
pub fn join(key: &[u8], timestamp: &[u8]) -> Vec<u8> {
    [key, timestamp].concat()
}

/// A key with the greatest timestamp: the place before all its versions.
pub fn before_all(key: &[u8], size: usize) -> Vec<u8> {
    padded(key, size, 0xff)
}

/// A key with the least timestamp: the last of its versions.
pub fn last_of(key: &[u8], size: usize) -> Vec<u8> {
    padded(key, size, 0)
}

/// The place before all versions of the key that is stored with a timestamp.
pub fn opening(user_key: &[u8], size: usize) -> Cow<'_, [u8]> {
    match size {
        0 => Cow::Borrowed(user_key),
        _ => Cow::Owned(before_all(strip(user_key, size), size)),
    }
}

fn padded(key: &[u8], size: usize, byte: u8) -> Vec<u8> {
    let mut padded = Vec::with_capacity(key.len() + size);
    padded.extend_from_slice(key);
    padded.resize(key.len() + size, byte);
    padded
}

/// Refuses a timestamp of `given` bytes where those of the family have `size`.
///
/// # Errors
/// `InvalidArgument`.
pub fn check_size(family: &str, size: usize, given: usize) -> Result<()> {
    if given == size {
        return Ok(());
    }
    Err(Error::invalid_argument(match size {
        0 => format!(
            "column family '{family}' has no timestamps, as its comparator does not enable timestamps; leave them out"
        ),
        _ => format!(
            "a timestamp of {given} bytes was given, but those of column family '{family}' have {size}"
        ),
    }))
}

/// Refuses a key that is too short for its timestamp.
///
/// # Errors
/// `Corruption`.
pub fn check_length(user_key: &[u8], size: usize) -> Result<()> {
    if user_key.len() < size { Err(is_too_short(user_key, size)) } else { Ok(()) }
}

/// The error for a key that is too short for its timestamp.
#[cold]
pub fn is_too_short(user_key: &[u8], size: usize) -> Error {
    let (key, given) = (key_in_words(user_key), user_key.len());
    Error::corruption(format!(
        "key '{key}' of {given} bytes is too short for its timestamp of {size} bytes"
    ))
}

#[cfg(test)]
mod tests;
