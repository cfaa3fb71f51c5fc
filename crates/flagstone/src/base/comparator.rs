//! The order of user keys.
//!
//! The built-in orders are compared without a virtual call; any other is a [`UserComparator`]. An
//! order may have keys end in timestamps (see [`super::timestamp`]).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::error::{Error, Result};
use super::perf::{self, PerfMetric};
use super::timestamp::{self, U64_SIZE};

/// A total order on user keys, supplied by the application.
///
/// The name is stored in the MANIFEST and must match whenever the database is opened. Two different
/// orders must never share a name.
pub trait UserComparator: Send + Sync {
    /// Name stored in the MANIFEST.
    fn name(&self) -> &str;

    /// Compares two user keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// The bytes of the timestamp that each key ends in; 0 if keys have none.
    ///
    /// With timestamps, `compare` orders by key without timestamp first and then by timestamp,
    /// newest first. The timestamp of only `0xff` bytes must be the newest, that of only zero bytes
    /// the oldest.
    fn timestamp_size(&self) -> usize {
        0
    }

    /// Compares two timestamps: `Greater` if `a` is newer.
    fn compare_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.compare(b, a)
    }

    /// Compares two keys without regard to the timestamps that they end in, where their flags say
    /// that they end in one.
    fn compare_without_timestamps(
        &self,
        (a, a_has_timestamp): (&[u8], bool),
        (b, b_has_timestamp): (&[u8], bool),
    ) -> Ordering {
        let size = self.timestamp_size();
        let bare =
            |key, has_timestamp| if has_timestamp { timestamp::strip(key, size) } else { key };
        let (a, b) = (bare(a, a_has_timestamp), bare(b, b_has_timestamp));
        let oldest_of = |key: &[u8]| -> SmallVec<[u8; 128]> {
            key.iter().copied().chain(std::iter::repeat_n(0, size)).collect()
        };
        self.compare(&oldest_of(a), &oldest_of(b))
    }

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

/// An order of keys with timestamps that does not look at the timestamps.
struct Grouping(Comparator);

impl UserComparator for Grouping {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.compare_keys(a, b)
    }
}

/// An application's order of keys with timestamps, for keys without.
struct Bare(Arc<dyn UserComparator>);

impl UserComparator for Bare {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.compare_without_timestamps((a, false), (b, false))
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
    /// `Bytewise` with 64-bit timestamps: `leveldb.BytewiseComparator.u64ts`.
    BytewiseU64Ts,
    /// `ReverseBytewise` with 64-bit timestamps: `rocksdb.ReverseBytewiseComparator.u64ts`.
    ReverseBytewiseU64Ts,
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
            "leveldb.BytewiseComparator.u64ts" => Ok(Self::BytewiseU64Ts),
            "rocksdb.ReverseBytewiseComparator.u64ts" => Ok(Self::ReverseBytewiseU64Ts),
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
            Self::BytewiseU64Ts => "leveldb.BytewiseComparator.u64ts",
            Self::ReverseBytewiseU64Ts => "rocksdb.ReverseBytewiseComparator.u64ts",
            Self::Custom(custom) => custom.name(),
        }
    }

    /// Compares two user keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        perf::count(PerfMetric::UserKeyComparisonCount, 1);
        match self {
            Self::Bytewise => a.cmp(b),
            Self::ReverseBytewise => b.cmp(a),
            Self::Custom(custom) => order_of_short(custom.timestamp_size(), a, b)
                .unwrap_or_else(|| custom.compare(a, b)),
            Self::BytewiseU64Ts | Self::ReverseBytewiseU64Ts => {
                let timestamp = |key| timestamp::split(key, U64_SIZE).1;
                let newest_first = || self.compare_timestamps(timestamp(b), timestamp(a));
                self.order_of_keys(a, b).then_with(newest_first)
            }
        }
    }

    /// The bytes of the timestamp that each key ends in; 0 if keys have none.
    #[inline]
    pub fn timestamp_size(&self) -> usize {
        match self {
            Self::Bytewise | Self::ReverseBytewise => 0,
            Self::BytewiseU64Ts | Self::ReverseBytewiseU64Ts => U64_SIZE,
            Self::Custom(custom) => custom.timestamp_size(),
        }
    }

    /// Compares two keys without regard to the timestamps that they end in.
    pub fn compare_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        perf::count(PerfMetric::UserKeyComparisonCount, 1);
        self.order_of_keys(a, b)
    }

    fn order_of_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        let bare = |key| timestamp::strip(key, U64_SIZE);
        match self {
            Self::Bytewise => a.cmp(b),
            Self::ReverseBytewise => b.cmp(a),
            Self::BytewiseU64Ts => bare(a).cmp(bare(b)),
            Self::ReverseBytewiseU64Ts => bare(b).cmp(bare(a)),
            Self::Custom(custom) if custom.timestamp_size() == 0 => custom.compare(a, b),
            Self::Custom(custom) => order_of_short(custom.timestamp_size(), a, b)
                .unwrap_or_else(|| custom.compare_without_timestamps((a, true), (b, true))),
        }
    }

    /// Compares two timestamps: `Greater` if `a` is newer.
    pub fn compare_timestamps(&self, a: &[u8], b: &[u8]) -> Ordering {
        match (self, timestamp::to_u64(a), timestamp::to_u64(b)) {
            (Self::Custom(custom), _, _) if [a.len(), b.len()] == [custom.timestamp_size(); 2] => {
                custom.compare_timestamps(a, b)
            }
            (_, Some(a), Some(b)) => a.cmp(&b),
            // From a damaged file.
            _ => a.cmp(b),
        }
    }

    /// The order of keys that end in timestamps by which all versions of a key are equal; for keys
    /// without timestamps, this order.
    #[must_use]
    pub fn grouping(&self) -> Self {
        match self.timestamp_size() {
            0 => self.clone(),
            _ => Self::Custom(Arc::new(Grouping(self.clone()))),
        }
    }

    /// The order of the same keys without their timestamps.
    #[must_use]
    pub fn without_timestamps(&self) -> Self {
        match self {
            Self::Bytewise | Self::BytewiseU64Ts => Self::Bytewise,
            Self::ReverseBytewise | Self::ReverseBytewiseU64Ts => Self::ReverseBytewise,
            Self::Custom(custom) if custom.timestamp_size() == 0 => self.clone(),
            Self::Custom(custom) => Self::Custom(Arc::new(Bare(custom.clone()))),
        }
    }

    /// Whether this is plain byte order, in which prefixes may be compared as integers.
    #[inline]
    pub fn is_bytewise(&self) -> bool {
        matches!(self, Self::Bytewise)
    }

    /// Whether this is none of an application's own: keys without timestamps are then the same only
    /// if their bytes are.
    #[inline]
    pub fn is_built_in(&self) -> bool {
        !matches!(self, Self::Custom(_))
    }

    /// Whether a key that a program looks for is stored with just these bytes. An application's
    /// order may treat different bytes as equal, and timestamps are given beside the key.
    #[inline]
    pub fn tells_bytes_apart(&self) -> bool {
        matches!(self, Self::Bytewise | Self::ReverseBytewise)
    }

    /// Shortens `start` to some `k` with `start <= k < limit`, if that is simple.
    pub fn find_shortest_separator(&self, start: &mut Vec<u8>, limit: &[u8]) {
        match self {
            Self::Bytewise => bytewise_separator(start, limit),
            Self::ReverseBytewise => reverse_bytewise_separator(start, limit),
            Self::BytewiseU64Ts | Self::ReverseBytewiseU64Ts => {}
            Self::Custom(custom) if start.len().min(limit.len()) < custom.timestamp_size() => {}
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
            Self::ReverseBytewise | Self::BytewiseU64Ts | Self::ReverseBytewiseU64Ts => {}
            Self::Custom(custom) if key.len() < custom.timestamp_size() => {}
            Self::Custom(custom) => custom.find_short_successor(key),
        }
    }
}

/// The order of two keys of which one is too short for a timestamp of that size: it is from a
/// damaged file, and no application is asked about it. It comes before all that are not.
#[inline]
fn order_of_short(size: usize, a: &[u8], b: &[u8]) -> Option<Ordering> {
    match (a.len() < size, b.len() < size) {
        (false, false) => None,
        (true, true) => Some(a.cmp(b)),
        (a_is_short, b_is_short) => Some(b_is_short.cmp(&a_is_short)),
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
