//! All tables of a family as one walk from key to key.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::choose::{Origin, Version};
use crate::base::{Error, InternalKey, InternalKeyBuf, InternalKeyComparator, ValueType};
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
        // Copies of one write come together, whatever they are now, and in the order of their sources.
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
}

impl Merge {
    /// `sources` are sorted, newest first.
    ///
    /// One that fails at once is reported to `on_error` and left.
    pub(super) fn new(
        order: InternalKeyComparator,
        sources: Vec<(Origin, RemainingEntries)>,
        on_error: &mut dyn FnMut(Error),
    ) -> Self {
        let mut merge = Self { order, heap: BinaryHeap::with_capacity(sources.len()), sources };
        for source in 0..merge.sources.len() {
            merge.advance(source, on_error);
        }
        merge
    }

    fn advance(&mut self, source: usize, on_error: &mut dyn FnMut(Error)) {
        match self.sources[source].1.advance() {
            Ok(true) => {
                let key = self.sources[source].1.entry().0.to_buf();
                self.heap.push(Standing { order: self.order.clone(), key, source });
            }
            Ok(false) => {}
            // It was intact when it was looked at; what of it is left may still be.
            Err(error) => on_error(error),
        }
    }

    /// The next user key with all of its versions, newest first.
    pub(super) fn next_key(&mut self, on_error: &mut dyn FnMut(Error)) -> Option<(Vec<u8>, Vec<Version>)> {
        let key = self.heap.peek()?.key.as_key().user_key().to_vec();
        let mut versions = Vec::new();
        while let Some(top) = self.heap.peek() {
            if self.order.user.compare(top.key.as_key().user_key(), &key).is_ne() {
                break;
            }
            let source = top.source;
            self.heap.pop();
            let (origin, entries) = &self.sources[source];
            let (found, value) = entries.entry();
            versions.push(version(found, value, &key, *origin));
            self.advance(source, on_error);
        }
        Some((key, versions))
    }
}

fn version(found: InternalKey<'_>, value: &[u8], key: &[u8], origin: Origin) -> Version {
    let kind = found.value_type().unwrap_or(ValueType::Value);
    let own_key = Some(found.user_key()).filter(|own| *own != key).map(<[u8]>::to_vec);
    Version { sequence: found.sequence(), kind, value: value.to_vec(), own_key, origin }
}
