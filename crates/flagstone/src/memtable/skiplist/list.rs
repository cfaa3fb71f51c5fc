//! Searches in a skip list.

use std::cmp::Ordering as Order;
use std::ops::ControlFlow;

use super::BRANCHING;
use super::node::Node;
use crate::base::{
    InternalKeyComparator, MAX_SEQUENCE_NUMBER, SequenceNumber, ValueType, pack_sequence_and_type,
};
use crate::memtable::key_prefix::{PrefixOrder, Target};

/// A list: the node before the first, and how many of its levels are in use (at least one).
#[derive(Clone, Copy)]
pub struct List<'a> {
    pub(super) head: Node<'a>,
    pub(super) height: usize,
}

impl<'a> List<'a> {
    pub(super) fn first(self) -> Option<Node<'a>> {
        self.head.next(0)
    }

    pub(super) fn last(self) -> Option<Node<'a>> {
        let mut node = self.head;
        for level in (0..self.height).rev() {
            while let Some(next) = node.next(level) {
                node = next;
            }
        }
        self.unless_head(node)
    }

    pub(super) fn unless_head(self, node: Node<'a>) -> Option<Node<'a>> {
        (node != self.head).then_some(node)
    }
}

/// The order of the nodes in lists.
pub struct ListOrder {
    pub(in crate::memtable) keys: InternalKeyComparator,
    numbers: PrefixOrder,
}

impl ListOrder {
    pub(in crate::memtable) fn new(keys: InternalKeyComparator) -> Self {
        Self { numbers: PrefixOrder::of(&keys.user), keys }
    }

    #[inline]
    pub(super) fn number(&self, user_key: &[u8]) -> u64 {
        self.numbers.number(user_key)
    }

    /// Whether `node` stands before `target`, whose number is `number`.
    #[inline]
    pub(super) fn is_before(&self, node: Node<'_>, number: u64, target: &Target<'_>) -> bool {
        match node.number().cmp(&number) {
            Order::Less => true,
            Order::Greater => false,
            Order::Equal => target.compared_by(&self.keys, node.key()).is_lt(),
        }
    }

    /// Shows, from the highest level down, the last node before `target` and the first at or after
    /// it.
    #[inline]
    pub(super) fn place<'a>(
        &self,
        list: List<'a>,
        number: u64,
        target: &Target<'_>,
        mut show: impl FnMut(usize, Node<'a>, Option<Node<'a>>),
    ) {
        let (mut node, mut known_after) = (list.head, None);
        for level in (0..list.height).rev() {
            // The same node on the level below need not be compared again.
            known_after = loop {
                match node.next(level) {
                    Some(next)
                        if Some(next) != known_after && self.is_before(next, number, target) =>
                    {
                        node = next;
                    }
                    after => break after,
                }
            };
            show(level, node, known_after);
        }
    }

    /// The last node before `target` and the first at or after it.
    #[inline]
    pub(super) fn find<'a>(
        &self,
        list: List<'a>,
        target: &Target<'_>,
    ) -> (Node<'a>, Option<Node<'a>>) {
        let mut found = (list.head, None);
        self.place(list, self.number(target.user_key), target, |_, before, after| {
            found = (before, after)
        });
        found
    }

    /// As `Index::get`, in one list.
    pub(in crate::memtable) fn get<'a>(
        &self,
        list: List<'a>,
        user_key: &[u8],
        snapshot: SequenceNumber,
        mut visit: impl FnMut(SequenceNumber, ValueType, &'a [u8]) -> ControlFlow<()>,
    ) {
        let packed = pack_sequence_and_type(snapshot.min(MAX_SEQUENCE_NUMBER), ValueType::FOR_SEEK);
        let mut found = self.find(list, &Target { user_key, packed }).1;
        while let Some(node) = found {
            let record = node.record();
            let key = record.key();
            if self.keys.user.compare(key.user_key(), user_key).is_ne() {
                return;
            }
            let value_type = key.value_type().expect("only known types are inserted");
            if visit(key.sequence(), value_type, record.value()).is_break() {
                return;
            }
            found = node.next(0);
        }
    }

    /// Counts on the highest level that has some nodes in the range, and multiplies.
    pub(super) fn approximate_count(&self, list: List<'_>, start: &[u8], end: &[u8]) -> u64 {
        const ENOUGH: u64 = 16;
        let [first, last] = [start, end].map(|user_key| Target { user_key, packed: u64::MAX });
        let [first_number, last_number] = [start, end].map(|user_key| self.number(user_key));
        let mut node = list.head;
        for level in (0..list.height).rev() {
            while let Some(next) =
                node.next(level).filter(|&next| self.is_before(next, first_number, &first))
            {
                node = next;
            }
            let mut count = 0;
            let mut within = node.next(level);
            while let Some(next) = within.filter(|&next| self.is_before(next, last_number, &last)) {
                count += 1;
                within = next.next(level);
            }
            if count >= ENOUGH || level == 0 {
                return count * u64::from(BRANCHING).pow(level as u32);
            }
        }
        0
    }
}
