//! The keys of an index, decoded for searching. There are as many as blocks, and they stay in
//! memory: in byte order each takes nine bytes mostly, since what most of them say stands in one
//! integer each. Internal keys, which the index of a user key in two blocks has, take twelve more.
//!
//! ```text
//! user key = common, the next eight bytes (prefix), [the rest: tail]      in byte order
//! user key = tail                                                         in another
//! ```
//!
//! The tail of an internal key ends with its packed sequence number and type.

use std::cmp::Ordering;
use std::ops::{Deref, Range};

use crate::base::slab::Piece;
use crate::base::{Comparator, Error, InternalKey, PACKED_SIZE, Result, prefetch};

use super::common_prefix;

/// How many entries apart the fences of an index are: eight cache lines of integers.
const FENCE_DISTANCE: usize = 64;

/// Keys on their way into [`IndexKeys`], one behind the other, and where each ends.
pub(super) struct KeyList {
    comparator: Comparator,
    user_keys: bool,
    bytes: PassingBytes,
    ends: Vec<u32>,
}

/// Bytes that become more, all of them for a moment.
struct PassingBytes {
    piece: Piece,
    len: usize,
}

impl PassingBytes {
    fn new() -> Self {
        Self { piece: Vec::new().into(), len: 0 }
    }

    /// Makes room for so many bytes more, less than 4 GiB together.
    fn reserve(&mut self, more: usize) {
        let wanted = self.len + more;
        if wanted > self.piece.size() {
            // The slab is for what stays: for each size it takes some pages.
            let mut piece = if Piece::is_for_slab(wanted) {
                vec![0; wanted].into()
            } else {
                Piece::passing(wanted)
            };
            piece[..self.len].copy_from_slice(self);
            self.piece = piece;
        }
    }

    /// Appends some; whether they are still less than 4 GiB.
    fn extend(&mut self, bytes: &[u8]) -> bool {
        let len = self.len + bytes.len();
        if u32::try_from(len).is_err() {
            return false;
        }
        if len > self.piece.size() {
            self.reserve(bytes.len().max(self.len).min(u32::MAX as usize - self.len));
        }
        self.piece[self.len..len].copy_from_slice(bytes);
        self.len = len;
        true
    }
}

impl Deref for PassingBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.piece[..self.len]
    }
}

impl KeyList {
    pub fn new(user_keys: bool, comparator: &Comparator) -> Self {
        Self {
            comparator: comparator.clone(),
            user_keys,
            bytes: PassingBytes::new(),
            ends: Vec::new(),
        }
    }

    /// Makes room for so many keys of so many bytes.
    pub fn reserve(&mut self, keys: usize, bytes: usize) {
        self.ends.reserve_exact(keys);
        self.bytes.reserve(bytes);
    }

    /// # Errors
    /// `Corruption` for what is no key, or is below the one before.
    pub fn push(&mut self, key: &[u8]) -> Result<()> {
        if !self.user_keys && key.len() < PACKED_SIZE {
            return Err(Error::corruption("index key is too short to be an internal key"));
        }
        if let Some(last) = self.ends.len().checked_sub(1)
            && self.compare(self.key(last), key).is_gt()
            && !self.comparator.is_unknown()
        {
            return Err(Error::corruption("index keys are out of order"));
        }
        if !self.bytes.extend(key) {
            return Err(Error::corruption("index block is too large"));
        }
        self.ends.push(self.bytes.len() as u32);
        Ok(())
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.user_keys {
            return self.comparator.compare(a, b);
        }
        let (a, b) = (InternalKey::from_checked(a), InternalKey::from_checked(b));
        self.comparator
            .compare(a.user_key(), b.user_key())
            .then_with(|| b.packed().cmp(&a.packed()))
    }

    fn key(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    fn user_key(&self, index: usize) -> &[u8] {
        user_part(self.key(index), self.user_keys)
    }

    /// Makes them ready for searching.
    pub fn finish(self) -> IndexKeys {
        let count = self.ends.len();
        let mut keys = IndexKeys {
            comparator: self.comparator.clone(),
            user_keys: self.user_keys,
            len: count,
            common: Box::default(),
            prefixes: Box::default(),
            fences: Box::default(),
            lengths: Box::default(),
            with_tail: Box::default(),
            tails: Box::default(),
            ends: Box::default(),
        };
        let Some(last) = count.checked_sub(1).filter(|_| self.comparator.is_bytewise()) else {
            (keys.tails, keys.ends) = ((*self.bytes).into(), self.ends.into());
            return keys;
        };
        let common = common_prefix(self.user_key(0), self.user_key(last));
        keys.common = self.user_key(0)[..common].into();
        keys.prefixes =
            (0..count).map(|at| leading_integer(&self.user_key(at)[common..])).collect();
        keys.fences = keys.prefixes.iter().step_by(FENCE_DISTANCE).copied().collect();
        let length = |at: usize| (self.user_key(at).len() - common).min(PREFIX_SIZE);
        if (0..count).any(|at| length(at) != length_without_zeros(keys.prefixes[at])) {
            keys.lengths = (0..count).map(|at| length(at) as u8).collect();
        }
        let tail = |at: usize| &self.key(at)[common + length(at)..];
        let with_tail = || (0..count).filter(|&at| !tail(at).is_empty());
        if with_tail().count() < count {
            // There is an end, of 32 bits, for each of them here.
            keys.with_tail = with_tail().map(|at| at as u32).collect();
        }
        let mut tails = Vec::with_capacity(with_tail().map(|at| tail(at).len()).sum());
        let end_after = |at| {
            tails.extend_from_slice(tail(at));
            // They are parts of keys that have less than 4 GiB.
            tails.len() as u32
        };
        keys.ends = with_tail().map(end_after).collect();
        keys.tails = tails.into();
        keys
    }
}

/// Bytes of a prefix.
const PREFIX_SIZE: usize = size_of::<u64>();

/// See the head of this file.
#[derive(Debug)]
pub(super) struct IndexKeys {
    comparator: Comparator,
    user_keys: bool,
    len: usize,
    /// In byte order: what all user keys start with.
    common: Box<[u8]>,
    /// In byte order: the next eight bytes of each user key as one integer; what it has not counts
    /// as zeros.
    prefixes: Box<[u64]>,
    /// Every so many of the prefixes: they tell with few cache misses where to look among all.
    fences: Box<[u64]>,
    /// How many of the eight bytes each user key has. Empty if they are all but the zeros at the
    /// end, as with text.
    lengths: Box<[u8]>,
    /// The entries that have a tail, if not all have one: often that is the last, whose key is not
    /// shortened.
    with_tail: Box<[u32]>,
    /// Their tails, one behind the other, and where each ends.
    tails: Box<[u8]>,
    ends: Box<[u32]>,
}

impl IndexKeys {
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether they are user keys, not internal keys.
    pub fn are_user_keys(&self) -> bool {
        self.user_keys
    }

    /// Their order.
    pub fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    fn tail(&self, index: usize) -> &[u8] {
        // Fewer than `len` ends are those of the entries that have a tail.
        let at = if self.ends.len() < self.len {
            self.with_tail.binary_search(&(index as u32))
        } else {
            Ok(index)
        };
        let Ok(at) = at else { return &[] };
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.tails[start as usize..self.ends[at] as usize]
    }

    /// The part of the tail that belongs to the user key.
    fn user_tail(&self, index: usize) -> &[u8] {
        user_part(self.tail(index), self.user_keys)
    }

    /// How many bytes of the user key stand in its prefix.
    fn length(&self, index: usize) -> usize {
        match self.lengths.get(index) {
            Some(length) => usize::from(*length),
            None => length_without_zeros(self.prefixes[index]),
        }
    }

    /// What stands in front of the tail, and then the tail.
    fn with(&self, index: usize, tail: &[u8]) -> Vec<u8> {
        let Some(prefix) = self.prefixes.get(index) else { return tail.to_vec() };
        [&self.common, &prefix.to_be_bytes()[..self.length(index)], tail].concat()
    }

    /// The stored key: an internal key, or a user key.
    pub fn key(&self, index: usize) -> Vec<u8> {
        self.with(index, self.tail(index))
    }

    /// The user key of an entry's key.
    pub fn user_key(&self, index: usize) -> Vec<u8> {
        self.with(index, self.user_tail(index))
    }

    /// How an entry's user key stands to another.
    pub fn compare(&self, index: usize, user_key: &[u8]) -> Ordering {
        let Some(prefix) = self.prefixes.get(index) else {
            return self.comparator.compare(self.user_tail(index), user_key);
        };
        let rest = match self.behind_common(user_key) {
            Ok(rest) => rest,
            Err(order) => return order.reverse(),
        };
        let (start, tail) = rest.split_at(rest.len().min(PREFIX_SIZE));
        let order = prefix.cmp(&leading_integer(start));
        // Zeros at the end of one may be missing in the other.
        let order = order.then_with(|| self.length(index).cmp(&start.len()));
        order.then_with(|| self.user_tail(index).cmp(tail))
    }

    /// The first entry whose key is at least `target`, or the number of entries.
    #[inline]
    pub fn seek(&self, target: InternalKey<'_>) -> usize {
        match self.narrow(target.user_key()) {
            Ok(range) => self.search(range, target),
            Err(found) => found,
        }
    }

    /// The first entry of a range whose key is at least `target`, else its end.
    #[inline]
    pub fn seek_within(&self, range: Range<usize>, target: InternalKey<'_>) -> usize {
        // Where blocks are many, the integers find the place with fewer cache misses than the keys.
        if range.len() > 8 {
            self.seek(target).clamp(range.start, range.end)
        } else {
            self.search(range, target)
        }
    }

    /// The first entry whose user key is at least `user_key`, or the number of entries.
    pub fn seek_user_key(&self, user_key: &[u8]) -> usize {
        match self.narrow(user_key) {
            Ok(range) => first_at_or_after(range, |at| self.compare(at, user_key).is_lt()),
            Err(found) => found,
        }
    }

    /// The entries whose user keys start like `wanted` as far as the integers tell; `Err` if they
    /// tell all.
    #[inline]
    fn narrow(&self, wanted: &[u8]) -> Result<Range<usize>, usize> {
        if self.prefixes.is_empty() {
            return Ok(0..self.len);
        }
        let prefix = match self.behind_common(wanted) {
            Ok(rest) => leading_integer(rest),
            Err(Ordering::Greater) => return Err(self.len),
            Err(_) => return Err(0),
        };
        let low = self.first_at_least(prefix);
        if self.prefixes.get(low) != Some(&prefix) {
            return Err(low);
        }
        let high = low + self.prefixes[low..].partition_point(|&other| other == prefix);
        Ok(low..high)
    }

    /// What a key has behind that which all begin with; if it does not begin so, how it stands to
    /// all of them.
    #[inline]
    fn behind_common<'a>(&self, user_key: &'a [u8]) -> Result<&'a [u8], Ordering> {
        let (start, rest) = user_key.split_at(self.common.len().min(user_key.len()));
        match start.cmp(&self.common) {
            Ordering::Equal => Ok(rest),
            order => Err(order),
        }
    }

    /// The first entry whose integer is at least `prefix`, or the number of entries.
    #[inline]
    fn first_at_least(&self, prefix: u64) -> usize {
        let range = self.between_fences(prefix);
        let start = range.start;
        let between = &self.prefixes[range];
        // All at once rather than one bisected line after the other.
        prefetch(between.as_ptr(), size_of_val(between).div_ceil(64));
        start + between.partition_point(|&other| other < prefix)
    }

    /// Among which entries the first one is whose integer is at least `prefix`, if not behind them.
    #[inline]
    fn between_fences(&self, prefix: u64) -> Range<usize> {
        let fence = self.fences.partition_point(|&other| other < prefix);
        let start = fence.saturating_sub(1) * FENCE_DISTANCE;
        start..(fence * FENCE_DISTANCE).min(self.len)
    }

    /// Asks for the memory that [`Self::seek`] waits for first.
    #[inline]
    pub fn prefetch(&self, wanted: &[u8]) {
        if let Some(rest) =
            wanted.get(self.common.len()..).filter(|_| self.prefixes.len() > FENCE_DISTANCE)
        {
            let between = &self.prefixes[self.between_fences(leading_integer(rest))];
            prefetch(between.as_ptr(), size_of_val(between).div_ceil(64));
        }
    }

    /// The first entry of a range at or after `target`, else its end.
    fn search(&self, range: Range<usize>, target: InternalKey<'_>) -> usize {
        first_at_or_after(range, |at| match self.compare(at, target.user_key()) {
            Ordering::Equal if !self.user_keys => {
                InternalKey::from_checked(self.packed_part(at)).packed() > target.packed()
            }
            order => order.is_lt(),
        })
    }

    /// What an internal key has behind its user key.
    fn packed_part(&self, index: usize) -> &[u8] {
        let tail = self.tail(index);
        &tail[tail.len() - PACKED_SIZE..]
    }

    /// What they take in memory, in bytes.
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.prefixes)
            + size_of_val(&*self.fences)
            + size_of_val(&*self.ends)
            + size_of_val(&*self.with_tail)
            + self.common.len()
            + self.lengths.len()
            + self.tails.len()
    }
}

/// The first of a range that is not below, else its end.
#[inline]
fn first_at_or_after(range: Range<usize>, is_below: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut low, end: mut high } = range;
    while low < high {
        let middle = low + (high - low) / 2;
        if is_below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// A key, or the end of one, without what an internal key has behind its user key.
fn user_part(key: &[u8], is_user_key: bool) -> &[u8] {
    if is_user_key { key } else { &key[..key.len() - PACKED_SIZE] }
}

/// The first eight bytes as a big-endian number; what is missing counts as zeros.
#[inline]
fn leading_integer(bytes: &[u8]) -> u64 {
    if let Some(first) = bytes.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; PREFIX_SIZE];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(padded)
}

/// Of how many bytes such a number is, if the last of them is no zero.
fn length_without_zeros(prefix: u64) -> usize {
    PREFIX_SIZE - prefix.trailing_zeros() as usize / 8
}
