//! Eight bytes of a key as one number, so that most comparisons need not touch the key.

use std::cmp::Ordering;

use crate::base::{Comparator, InternalKey, InternalKeyComparator};

/// How a comparator's order shows in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PrefixOrder {
    /// Smaller keys have smaller or equal big-endian numbers.
    Ascending,
    /// The reverse.
    Descending,
    /// Unknown: all keys have the same number.
    None,
}

impl PrefixOrder {
    pub(super) fn of(comparator: &Comparator) -> Self {
        match comparator {
            Comparator::Bytewise => Self::Ascending,
            Comparator::ReverseBytewise => Self::Descending,
            // The bytes of a timestamp may follow a short key, and have an order of their own.
            Comparator::BytewiseU64Ts
            | Comparator::ReverseBytewiseU64Ts
            | Comparator::Custom(_) => Self::None,
        }
    }

    /// A number that never contradicts the order: if `a < b` then `number(a) <= number(b)`.
    #[inline]
    pub(super) fn number(self, user_key: &[u8]) -> u64 {
        match self {
            Self::Ascending => leading_bytes(user_key),
            Self::Descending => !leading_bytes(user_key),
            Self::None => 0,
        }
    }
}

/// The first eight bytes, big-endian; missing ones count as zero.
#[inline]
pub(super) fn leading_bytes(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 8];
            bytes[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(bytes)
        }
    }
}

/// A place to search for.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) user_key: &'a [u8],
    pub(super) packed: u64,
}

impl<'a> Target<'a> {
    #[inline]
    pub(super) fn of(key: InternalKey<'a>) -> Self {
        Self { user_key: key.user_key(), packed: key.packed() }
    }

    /// How `key` stands to this place.
    #[inline]
    pub(super) fn compared_by(
        &self,
        order: &InternalKeyComparator,
        key: InternalKey<'_>,
    ) -> Ordering {
        order
            .user
            .compare(key.user_key(), self.user_key)
            .then_with(|| self.packed.cmp(&key.packed()))
    }
}
