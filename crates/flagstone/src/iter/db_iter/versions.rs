//! The versions of one key that make up its value, copied out of the tree.

use bytes::Bytes;

use crate::base::{MergeOperator, PinnedValue, Result, SequenceNumber, ValueType, WideColumns};
use crate::iter::ValueResolver;
use crate::iter::lookup::{Stored, columns_of, locate_value, merge_over, merge_whole};

/// A base and the operands over it. Keeps its allocations.
#[derive(Debug, Default)]
pub(super) struct Versions {
    base: Option<ValueType>,
    base_value: Vec<u8>,
    /// The base's value where it lies, in place of a copy of it.
    pinned: Option<PinnedValue>,
    /// The operands one after another, in the order in which the scan met them, and where each
    /// ends.
    operands: Vec<u8>,
    ends: Vec<usize>,
    newest_first: bool,
    /// Where keys end in timestamps.
    keys: Option<Box<Keys>>,
}

/// The stored keys of versions.
#[derive(Debug, Default)]
struct Keys {
    newest: Vec<u8>,
    newest_sequence: SequenceNumber,
    /// Of the version noted last, which is the base if there is one, or the deletion that ended a
    /// collection over history.
    last: Vec<u8>,
    any: bool,
}

/// Finds the base's value by the key that it was stored with.
struct OfBase<'a, R> {
    resolver: &'a R,
    user_key: &'a [u8],
}

impl<R: ValueResolver> ValueResolver for OfBase<'_, R> {
    fn resolve_blob(&self, _: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        self.resolver.resolve_blob(self.user_key, blob_index)
    }
}

/// Where the value of collected versions is.
pub(super) enum Collected {
    /// In this part of [`Versions::base_value()`].
    InBase(usize, usize),
    /// Merged, or read from a blob file.
    Made(Bytes),
}

impl Versions {
    /// Forgets everything; versions will come in the given order.
    pub(super) fn start(&mut self, newest_first: bool) {
        self.newest_first = newest_first;
        self.delete();
    }

    /// Forgets everything and keeps at most so many bytes of each buffer.
    pub(super) fn shrink(&mut self, kept: usize) {
        self.delete();
        self.base_value.clear();
        self.base_value.shrink_to(kept);
        self.operands.shrink_to(kept);
        self.ends.shrink_to(kept / size_of::<usize>());
    }

    /// A deletion was met; coming from the oldest version, it hides what was collected.
    pub(super) fn delete(&mut self) {
        self.base = None;
        self.pinned = None;
        self.operands.clear();
        self.ends.clear();
        if let Some(keys) = &mut self.keys {
            keys.any = false;
        }
    }

    /// Notes the stored key of a version that is met: before its value where the newest comes
    /// first, else behind it.
    pub(super) fn note_key(&mut self, user_key: &[u8], sequence: SequenceNumber) {
        let newest_first = self.newest_first;
        let has_base = self.base.is_some();
        let keys = self.keys.get_or_insert_default();
        if !(newest_first && keys.any) {
            keys.newest.clear();
            keys.newest.extend_from_slice(user_key);
            keys.newest_sequence = sequence;
        }
        // Coming from the oldest version, what follows the base are operands.
        if newest_first || !(keys.any && has_base) {
            keys.last.clear();
            keys.last.extend_from_slice(user_key);
        }
        keys.any = true;
    }

    /// The stored key of the newest version, if it was noted.
    pub(super) fn newest_key(&self) -> Option<&[u8]> {
        self.keys.as_ref().filter(|keys| keys.any).map(|keys| &keys.newest[..])
    }

    /// The sequence number of the newest version; 0 if it was not noted.
    pub(super) fn newest_sequence(&self) -> SequenceNumber {
        self.keys.as_ref().filter(|keys| keys.any).map_or(0, |keys| keys.newest_sequence)
    }

    /// The stored key of the version noted last: the oldest that the value is made of.
    pub(super) fn last_key(&self) -> Option<&[u8]> {
        self.keys.as_ref().filter(|keys| keys.any).map(|keys| &keys.last[..])
    }

    /// The key by which the base's value is found in a blob file.
    fn key_of_base<'a>(&'a self, user_key: &'a [u8]) -> &'a [u8] {
        self.keys.as_ref().filter(|keys| keys.any).map_or(user_key, |keys| &keys.last)
    }

    /// An entry with a value was met; coming from the oldest version, it hides what was collected.
    pub(super) fn set_base(&mut self, value_type: ValueType, value: &[u8]) {
        if !self.newest_first {
            self.delete();
        }
        self.base = Some(value_type);
        self.base_value.clear();
        self.base_value.extend_from_slice(value);
        self.pinned = None;
    }

    /// The same without a copy of the value.
    pub(super) fn pin_base(&mut self, value_type: ValueType, value: PinnedValue) {
        if !self.newest_first {
            self.delete();
        }
        self.base = Some(value_type);
        self.pinned = Some(value);
    }

    /// An operand was met.
    pub(super) fn push_operand(&mut self, operand: &[u8]) {
        self.operands.extend_from_slice(operand);
        self.ends.push(self.operands.len());
    }

    /// Whether the key exists.
    pub(super) fn exist(&self) -> bool {
        self.base.is_some() || !self.ends.is_empty()
    }

    /// Whether operands were collected.
    pub(super) fn have_operands(&self) -> bool {
        !self.ends.is_empty()
    }

    /// The type of the entry under the operands, if there is one.
    pub(super) fn base(&self) -> Option<ValueType> {
        self.base
    }

    /// How many entries the value is made of.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.ends.len() as u64 + u64::from(self.base.is_some())
    }

    /// The base as it is stored.
    pub(super) fn base_value(&self) -> &[u8] {
        self.pinned.as_ref().map_or(&self.base_value, PinnedValue::as_bytes)
    }

    /// What leads to the value, if that lies in a blob file as it is.
    pub(super) fn blob_index(&self) -> Option<&[u8]> {
        let is_alone = self.ends.is_empty() && self.base == Some(ValueType::BlobIndex);
        is_alone.then(|| self.base_value())
    }

    /// Makes the value.
    pub(super) fn resolve(
        &self,
        user_key: &[u8],
        operator: Option<&dyn MergeOperator>,
        resolver: &impl ValueResolver,
    ) -> Result<Collected> {
        let base = self.base.map(|value_type| (value_type, self.base_value()));
        let resolver = OfBase { resolver, user_key: self.key_of_base(user_key) };
        if let (Some((value_type, stored)), true) = (base, self.ends.is_empty()) {
            return Ok(match locate_value(user_key, value_type, stored)? {
                Stored::Inline(range) => Collected::InBase(range.start, range.end),
                Stored::Blob(index) => {
                    Collected::Made(resolver.resolve_blob(user_key, &stored[index])?)
                }
            });
        }
        merge_over(user_key, base, &self.oldest_first(), operator, &resolver)
            .map(|merged| Collected::Made(merged.into()))
    }

    /// Makes all columns.
    pub(super) fn resolve_columns(
        &self,
        user_key: &[u8],
        operator: Option<&dyn MergeOperator>,
        resolver: &impl ValueResolver,
    ) -> Result<WideColumns> {
        let base = self.base.map(|value_type| (value_type, self.base_value()));
        let resolver = &OfBase { resolver, user_key: self.key_of_base(user_key) };
        let (value_type, stored) = match base {
            Some((value_type, stored)) if self.ends.is_empty() => {
                (value_type, Bytes::copy_from_slice(stored))
            }
            _ => {
                let operands = self.oldest_first();
                let (value_type, merged) =
                    merge_whole(user_key, base, &operands, operator, resolver)?;
                (value_type, merged.into())
            }
        };
        columns_of(user_key, value_type, stored, resolver)
    }

    fn oldest_first(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let mut operands: Vec<&[u8]> =
            starts.zip(&self.ends).map(|(start, &end)| &self.operands[start..end]).collect();
        if self.newest_first {
            operands.reverse();
        }
        operands
    }
}
