//! The identity of a table file across copies and restores, and the identity of a session that it
//! contains.
//!
//! 1. A session's identity is 20 digits of base 36: the last 12 are the number `B`, those before
//!    are `A`.
//! 2. `upper = A >> 2`, `lower = A << 62 | B without its top two bits`.
//! 3. `d` = XXH3-128 of the database's identity with seed `upper`.
//! 4. The id is `lower`, then the high half of `d` xor the file's number, each as fixed64.

use std::fmt;

use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use super::FileNumber;

/// Digits of the number `B`.
const LOWER_DIGITS: usize = 12;

/// Digits of the number `A` in the sessions that are made here.
const UPPER_DIGITS: usize = 8;

/// The most characters that a session's identity may have.
const MAX_SESSION_DIGITS: usize = 24;

const LOW_62_BITS: u64 = u64::MAX >> 2;

/// The identity of a table file, as the MANIFEST stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniqueId(pub [u8; 16]);

impl UniqueId {
    /// The id of the file that was first numbered `number`, by the session `session` of the
    /// database `db_identity`.
    ///
    /// A session's identity of another form is hashed instead; the caller leaves the id out if any
    /// part is unknown.
    pub fn new(db_identity: &str, session: &str, number: FileNumber) -> Self {
        let (upper, lower) = parse_session(session).unwrap_or_else(|| {
            let hash = xxh3_128(session.as_bytes());
            ((hash >> 64) as u64, hash as u64)
        });
        let database = xxh3_128_with_seed(db_identity.as_bytes(), upper);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&lower.to_le_bytes());
        id[8..].copy_from_slice(&(((database >> 64) as u64) ^ number.0).to_le_bytes());
        Self(id)
    }
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// A session's identity of 20 characters, from 128 random bits (of which some 103 are used).
pub fn session_identity(upper: u64, lower: u64) -> String {
    let mut digits = [b'0'; UPPER_DIGITS + LOWER_DIGITS];
    put_base36(&mut digits[..UPPER_DIGITS], (upper << 2) | (lower >> 62));
    put_base36(&mut digits[UPPER_DIGITS..], lower & LOW_62_BITS);
    digits.iter().map(|&digit| char::from(digit)).collect()
}

/// Fills `digits` with the last digits of `value`.
fn put_base36(digits: &mut [u8], mut value: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(value % 36) as usize];
        value /= 36;
    }
}

/// The numbers `upper` and `lower` of a well-formed identity.
fn parse_session(session: &str) -> Option<(u64, u64)> {
    let split = session.len().checked_sub(LOWER_DIGITS)?;
    if split == 0 || session.len() > MAX_SESSION_DIGITS {
        return None;
    }
    let (a, b) = session.as_bytes().split_at(split);
    let (a, b) = (parse_base36(a)?, parse_base36(b)?);
    Some((a >> 2, (b & LOW_62_BITS) | (a << 62)))
}

fn parse_base36(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |value, &digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'A'..=b'Z' => digit - b'A' + 10,
            b'a'..=b'z' => digit - b'a' + 10,
            _ => return None,
        };
        Some(value.wrapping_mul(36).wrapping_add(u64::from(digit)))
    })
}

#[cfg(test)]
mod tests;
