//! Deadlocks: the search for a cycle of owners that wait for each other.
//!
//! **Algorithm.** Breadth first, from the owner that begins to wait, along what each owner waits
//! for as the tables say now. The parts of a path are not read at one moment. So a path that is
//! found is read again: if each of its owners is still in the same wait then, all of them waited at
//! the moment between, and an owner that waits neither takes nor releases a lock.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::base::ColumnFamilyId;
use crate::transactions::locks::lock::LockMode;
use crate::transactions::locks::owner::{Owner, Wait};

/// Transactions that waited for each other in a circle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deadlock {
    /// Each step's transaction waits for that of the next step, and the last one's for the first.
    /// The first one was refused. Empty if `limit_exceeded`.
    pub path: Vec<DeadlockStep>,
    /// The search met more waiting transactions than `deadlock_detect_depth`, and took that for a
    /// deadlock.
    pub limit_exceeded: bool,
    /// When it was found, in seconds since 1970.
    pub unix_seconds: u64,
}

/// A transaction of a [`Deadlock`], and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadlockStep {
    /// The transaction's id.
    pub transaction: u64,
    /// The number of the column family of the key that it waits for.
    pub family: ColumnFamilyId,
    /// That key.
    pub key: Vec<u8>,
    /// How it wants to lock the key.
    pub mode: LockMode,
}

/// What a search found.
pub(super) enum Cycle {
    Path(Vec<DeadlockStep>),
    /// More owners wait than the search may look at.
    TooDeep,
}

/// An owner that the search came to.
struct Node {
    owner: Arc<Owner>,
    /// What it waits for, once it was looked at.
    wait: Option<Arc<Wait>>,
    /// The node that waits for it.
    parent: usize,
}

/// Looks for a cycle that `start` is part of, among up to `depth` owners that wait.
pub(super) fn find_cycle(start: &Arc<Owner>, depth: usize) -> Option<Cycle> {
    loop {
        match search(start, depth) {
            Search::Nothing => return None,
            Search::TooDeep => return Some(Cycle::TooDeep),
            Search::Path(path) if is_still_there(&path) => {
                return Some(Cycle::Path(
                    path.iter().map(|(owner, wait)| step(owner, wait)).collect(),
                ));
            }
            // An owner of it goes on. There may be another path.
            Search::Path(_) => {}
        }
    }
}

enum Search {
    Nothing,
    TooDeep,
    Path(Vec<(Arc<Owner>, Arc<Wait>)>),
}

fn search(start: &Arc<Owner>, depth: usize) -> Search {
    let mut nodes = vec![Node { owner: start.clone(), wait: None, parent: 0 }];
    let mut seen = HashSet::from([start.id()]);
    let mut at = 0;
    while at < nodes.len() {
        let owner = nodes[at].owner.clone();
        if let Some(wait) = owner.waits() {
            if at >= depth {
                return Search::TooDeep;
            }
            nodes[at].wait = Some(wait.clone());
            for blocker in wait.table.blockers(&owner, &wait.key, wait.mode) {
                if blocker.id() == start.id() {
                    return Search::Path(path_to(&nodes, at));
                }
                if seen.insert(blocker.id()) {
                    nodes.push(Node { owner: blocker, wait: None, parent: at });
                }
            }
        }
        at += 1;
    }
    Search::Nothing
}

/// The nodes from the first one to that at `at`.
fn path_to(nodes: &[Node], mut at: usize) -> Vec<(Arc<Owner>, Arc<Wait>)> {
    let mut path = VecDeque::new();
    loop {
        let node = &nodes[at];
        path.extend(node.wait.clone().map(|wait| (node.owner.clone(), wait)));
        path.rotate_right(1);
        if at == 0 {
            return path.into();
        }
        at = node.parent;
    }
}

fn is_still_there(path: &[(Arc<Owner>, Arc<Wait>)]) -> bool {
    let next = path.iter().cycle().skip(1);
    path.iter().zip(next).all(|((owner, wait), (blocker, _))| {
        let is_same_wait = owner.waits().is_some_and(|now| Arc::ptr_eq(&now, wait));
        let blockers = wait.table.blockers(owner, &wait.key, wait.mode);
        is_same_wait && blockers.iter().any(|other| other.id() == blocker.id())
    })
}

fn step(owner: &Owner, wait: &Wait) -> DeadlockStep {
    DeadlockStep {
        transaction: owner.id(),
        family: wait.table.family(),
        key: wait.key.to_vec(),
        mode: wait.mode,
    }
}

/// The deadlocks that were found last.
pub(super) struct Recent {
    most: usize,
    /// The newest one last.
    found: VecDeque<Deadlock>,
}

impl Recent {
    pub(super) fn new(most: usize) -> Self {
        Self { most, found: VecDeque::new() }
    }

    pub(super) fn push(&mut self, deadlock: Deadlock) {
        if self.most == 0 {
            return;
        }
        if self.found.len() == self.most {
            self.found.pop_front();
        }
        self.found.push_back(deadlock);
    }

    /// The newest one first.
    pub(super) fn list(&self) -> Vec<Deadlock> {
        self.found.iter().rev().cloned().collect()
    }
}
