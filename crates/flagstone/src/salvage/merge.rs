//! All tables of a family, walked together from key to key.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::choose::{Body, Origin, Version};
use crate::base::{
    Error, InternalKey, InternalKeyBuf, InternalKeyComparator, SequenceNumber, ValueType,
};
use crate::sst::RemainingEntries;

/// Where a source stands.
struct Standing {
    order: InternalKeyComparator,
    key: InternalKeyBuf,
    source: usize,
}

impl Ord for Standing {
    /// The heap has the greatest on top: that is the first here.
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.key.as_key(), other.key.as_key());
        // Copies of one write come together, whatever they are now, and in the order of their
        // sources.
        let order = self.order.user.compare(a.user_key(), b.user_key());
        order
            .then_with(|| b.sequence().cmp(&a.sequence()))
            .then_with(|| self.source.cmp(&other.source))
            .then_with(|| b.packed().cmp(&a.packed()))
            .reverse()
    }
}

impl PartialOrd for Standing {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Standing {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Standing {}

/// The sources merged, newest first.
pub(super) struct Merge {
    order: InternalKeyComparator,
    sources: Vec<(Origin, RemainingEntries)>,
    heap: BinaryHeap<Standing>,
    /// Entries that were passed.
    pub(super) passed: u64,
}

impl Merge {
    /// `sources` are sorted, newest first.
    ///
    /// What was intact when they were looked at, and cannot be read any longer, is reported to
    /// `on_error` and passed over.
    pub(super) fn new(
        order: InternalKeyComparator,
        sources: Vec<(Origin, RemainingEntries)>,
        on_error: &mut dyn FnMut(Error),
    ) -> Self {
        let mut merge =
            Self { order, heap: BinaryHeap::with_capacity(sources.len()), sources, passed: 0 };
        for source in 0..merge.sources.len() {
            merge.advance(source, on_error);
        }
        merge
    }

    fn advance(&mut self, source: usize, on_error: &mut dyn FnMut(Error)) {
        let entries = &mut self.sources[source].1;
        if entries.advance_past(on_error) {
            let key = entries.entry().0.to_buf();
            self.heap.push(Standing { order: self.order.clone(), key, source });
        }
    }

    /// The next user key with its versions, newest first. Of those below a value or a deletion only
    /// such are among them that have lost their sequence number: nobody asks for others, and there
    /// may be millions.
    pub(super) fn next_key(
        &mut self,
        on_error: &mut dyn FnMut(Error),
    ) -> Option<(Vec<u8>, Vec<Version>)> {
        let key = self.heap.peek()?.key.as_key().user_key().to_vec();
        let mut versions = Vec::new();
        let mut hidden_below: SequenceNumber = 0;
        while let Some(top) = self.heap.peek() {
            if self.order.user.compare(top.key.as_key().user_key(), &key).is_ne() {
                break;
            }
            let source = top.source;
            self.heap.pop();
            let (origin, entries) = &self.sources[source];
            let (found, value) = entries.entry();
            self.passed += 1;
            if !(1..hidden_below).contains(&found.sequence()) {
                let version = version(found, value, &key, *origin);
                if hides_older(version.kind) {
                    hidden_below = hidden_below.max(version.sequence);
                }
                versions.push(version);
            }
            self.advance(source, on_error);
        }
        Some((key, versions))
    }
}

/// Whether nothing older counts, whatever becomes of it: a range deletion that covers it covers
/// that, too. Of a large value or an entity it must be seen first whether it can be read.
fn hides_older(kind: ValueType) -> bool {
    matches!(
        kind,
        ValueType::Value
            | ValueType::Deletion
            | ValueType::SingleDeletion
            | ValueType::DeletionWithTimestamp
    )
}

fn version(found: InternalKey<'_>, value: &[u8], key: &[u8], origin: Origin) -> Version {
    let kind = found.value_type().unwrap_or(ValueType::Value);
    let own_key = Some(found.user_key()).filter(|own| *own != key).map(<[u8]>::to_vec);
    Version {
        sequence: found.sequence(),
        kind,
        value: value.to_vec(),
        own_key,
        origin,
        body: Body::Found,
    }
}

#[cfg(test)]
mod tests;
