//! The order of user keys.
//!
//! The two built-in orders are compared without a virtual call; any other is a [`UserComparator`].

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::error::{Error, Result};

/// A total order on user keys, supplied by the application.
///
/// The name is stored in the MANIFEST and must match whenever the database is opened. Two different
/// orders must never share a name.
pub trait UserComparator: Send + Sync {
    /// Name stored in the MANIFEST.
    fn name(&self) -> &str;

    /// Compares two user keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// May shorten `start` to any key `k` with `start <= k < limit`, to make index blocks smaller.
    fn find_shortest_separator(&self, _start: &mut Vec<u8>, _limit: &[u8]) {}

    /// May shorten `key` to any key that is not smaller.
    fn find_short_successor(&self, _key: &mut Vec<u8>) {}

    /// Whether this is a placeholder for an unknown order: see [`Comparator::unknown`].
    #[doc(hidden)]
    fn is_unknown(&self) -> bool {
        false
    }
}

/// Placeholder for an order of which only the name is known.
struct UnknownOrder(String);

impl UserComparator for UnknownOrder {
    fn name(&self) -> &str {
        &self.0
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn is_unknown(&self) -> bool {
        true
    }
}

/// The order of a column family's keys.
#[derive(Clone, Default)]
pub enum Comparator {
    /// Unsigned byte order, a prefix before its extensions: `leveldb.BytewiseComparator`.
    #[default]
    Bytewise,
    /// The reverse of `Bytewise`: `rocksdb.ReverseBytewiseComparator`.
    ReverseBytewise,
    /// The application's own.
    Custom(Arc<dyn UserComparator>),
}

impl Comparator {
    /// The built-in order called `name`.
    ///
    /// # Errors
    /// `NotSupported` if `name` is not built in; the application must then pass its own comparator.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "leveldb.BytewiseComparator" => Ok(Self::Bytewise),
            "rocksdb.ReverseBytewiseComparator" => Ok(Self::ReverseBytewise),
            _ => Err(Error::not_supported(format!(
                "comparator '{name}' is not built in; open the database from a program that supplies it"
            ))),
        }
    }

    /// A placeholder for an application's order, for reading single tables from beginning to end.
    /// It finds no keys and does not check that entries ascend. No database opens with it.
    pub fn unknown(name: &str) -> Self {
        Self::Custom(Arc::new(UnknownOrder(name.to_owned())))
    }

    /// Whether this is an [unknown](Self::unknown) order.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Custom(custom) if custom.is_unknown())
    }

    /// The name stored in the MANIFEST.
    pub fn name(&self) -> &str {
        match self {
            Self::Bytewise => "leveldb.BytewiseComparator",
            Self::ReverseBytewise => "rocksdb.ReverseBytewiseComparator",
            Self::Custom(custom) => custom.name(),
        }
    }

    /// Compares two user keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Bytewise => a.cmp(b),
            Self::ReverseBytewise => b.cmp(a),
            Self::Custom(custom) => custom.compare(a, b),
        }
    }

    /// Whether this is plain byte order, in which prefixes may be compared as integers.
    #[inline]
    pub fn is_bytewise(&self) -> bool {
        matches!(self, Self::Bytewise)
    }

    /// Whether keys with different bytes are always different. An application's order may treat
    /// some as equal.
    #[inline]
    pub fn tells_bytes_apart(&self) -> bool {
        !matches!(self, Self::Custom(_))
    }

    /// Shortens `start` to some `k` with `start <= k < limit`, if that is simple.
    pub fn find_shortest_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        match self {
            Self::Bytewise => bytewise_separator(start, limit),
            Self::ReverseBytewise => reverse_bytewise_separator(start, limit),
            Self::Custom(custom) => custom.find_shortest_separator(start, limit),
        }
    }

    /// Shortens `key` to some key that is not smaller, if that is simple.
    pub fn find_short_successor(&self, key: &mut Vec<u8>) {
        match self {
            Self::Bytewise => {
                if let Some(at) = key.iter().position(|&byte| byte != 0xff) {
                    key[at] += 1;
                    key.truncate(at + 1);
                }
            }
            Self::ReverseBytewise => {}
            Self::Custom(custom) => custom.find_short_successor(key),
        }
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

fn bytewise_separator(start: &mut Vec<u8>, limit: &[u8]) {
    let at = common_prefix(start, limit);
    if at >= start.len() || at >= limit.len() || start[at] >= limit[at] {
        return;
    }
    if at + 1 < limit.len() || start[at] + 1 < limit[at] {
        start[at] += 1;
        start.truncate(at + 1);
    } else if let Some(skipped) = start[at + 1..].iter().position(|&byte| byte != 0xff) {
        let next = at + 1 + skipped;
        start[next] += 1;
        start.truncate(next + 1);
    }
}

fn reverse_bytewise_separator(start: &mut Vec<u8>, limit: &[u8]) {
    let at = common_prefix(start, limit);
    if at < start.len() && at < limit.len() && start[at] > limit[at] {
        // Cutting right after the difference keeps start <= result in the reversed order.
        start.truncate(at + 1);
    }
}

impl PartialEq for Comparator {
    /// Two comparators are taken to be equal when their names are.
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
