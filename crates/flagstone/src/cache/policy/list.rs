//! Doubly linked lists of slots, several over the same slots.

use super::{Incoming, at_slot, memory_of};

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    newer: u32,
    older: u32,
    charge: u64,
    /// The caller's.
    id: u64,
    list: u32,
}

impl Node {
    const FREE: Self = Self { newer: NONE, older: NONE, charge: 0, id: 0, list: NONE };
}

#[derive(Debug, Clone, Copy)]
struct Ends {
    newest: u32,
    oldest: u32,
    charge: u64,
}

/// `N` lists; a slot is in one of them at most. Each knows the sum of its charges.
#[derive(Debug)]
pub(super) struct Lists<const N: usize> {
    nodes: Vec<Node>,
    ends: [Ends; N],
}

impl<const N: usize> Default for Lists<N> {
    fn default() -> Self {
        Self { nodes: Vec::new(), ends: [Ends { newest: NONE, oldest: NONE, charge: 0 }; N] }
    }
}

impl<const N: usize> Lists<N> {
    /// Puts a slot that is in no list at the newer end of one.
    #[inline]
    pub(super) fn push(&mut self, list: usize, slot: u32, entry: Incoming) {
        let Incoming { id, charge, .. } = entry;
        let node = at_slot(&mut self.nodes, slot, Node::FREE);
        debug_assert_eq!(node.list, NONE, "slot {slot} is in a list already");
        *node = Node { charge, id, ..Node::FREE };
        self.link(list, slot, charge);
    }

    #[inline]
    fn link(&mut self, list: usize, slot: u32, charge: u64) {
        let ends = &mut self.ends[list];
        ends.charge += charge;
        let older = std::mem::replace(&mut ends.newest, slot);
        match older {
            NONE => ends.oldest = slot,
            older => self.nodes[older as usize].newer = slot,
        }
        let node = &mut self.nodes[slot as usize];
        (node.newer, node.older, node.list) = (NONE, older, list as u32);
    }

    /// Takes a slot out of its list and returns its charge.
    #[inline]
    pub(super) fn unlink(&mut self, slot: u32) -> u64 {
        let node = &mut self.nodes[slot as usize];
        let Node { newer, older, charge, list, .. } = *node;
        node.list = NONE;
        let ends = &mut self.ends[list as usize];
        ends.charge -= charge;
        match newer {
            NONE => ends.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.ends[list as usize].oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        charge
    }

    /// Puts a slot at the newer end of a list, wherever it is now.
    #[inline]
    pub(super) fn shift(&mut self, slot: u32, list: usize) {
        if self.ends[list].newest != slot {
            let charge = self.unlink(slot);
            self.link(list, slot, charge);
        }
    }

    /// Takes out the oldest slot of a list.
    #[inline]
    pub(super) fn pop(&mut self, list: usize) -> Option<u32> {
        let slot = self.oldest(list)?;
        self.unlink(slot);
        Some(slot)
    }

    #[inline]
    pub(super) fn oldest(&self, list: usize) -> Option<u32> {
        Some(self.ends[list].oldest).filter(|slot| *slot != NONE)
    }

    /// The next newer slot of the same list.
    #[inline]
    pub(super) fn newer(&self, slot: u32) -> Option<u32> {
        Some(self.nodes[slot as usize].newer).filter(|slot| *slot != NONE)
    }

    /// The id that a slot has, or had last.
    #[inline]
    pub(super) fn id(&self, slot: u32) -> u64 {
        self.nodes[slot as usize].id
    }

    /// Which list a slot is in.
    #[inline]
    pub(super) fn list_of(&self, slot: u32) -> usize {
        self.nodes[slot as usize].list as usize
    }

    /// The sum of a list's charges.
    #[inline]
    pub(super) fn charge(&self, list: usize) -> u64 {
        self.ends[list].charge
    }

    /// The sum of all charges.
    #[inline]
    pub(super) fn total(&self) -> u64 {
        self.ends.iter().map(|ends| ends.charge).sum()
    }

    /// See [`super::Policy::memory`].
    #[inline]
    pub(super) fn memory(&self) -> u64 {
        memory_of(&self.nodes)
    }

    /// Whether a list has just one slot, or none.
    #[inline]
    pub(super) fn is_single(&self, list: usize) -> bool {
        self.ends[list].newest == self.ends[list].oldest
    }
}
