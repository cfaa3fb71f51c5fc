//! The keys that a transaction uses: which it locked or must find unchanged, and how often it read
//! and wrote them.
//!
//! The counts say whether a key was used before a save point: what a rollback takes back may be all
//! that was done with it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::base::{ColumnFamilyId, SequenceNumber};
use crate::db::ColumnFamily;
use crate::transactions::locks::{FamilyLocks, LockMode, Owner};

/// How often a key was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    reads: u32,
    writes: u32,
}

/// A key that a transaction uses.
#[derive(Debug, Clone, Copy)]
pub struct Tracked {
    /// No other transaction has written the key since this sequence number.
    pub since: SequenceNumber,
    /// How it is locked, where keys are.
    pub mode: LockMode,
    counts: Counts,
}

/// What is done with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It is read for update.
    Read,
    /// It is changed.
    Write,
}

struct TrackedFamily {
    family: ColumnFamily,
    /// None in a database without locks.
    locks: Option<Arc<FamilyLocks>>,
    keys: HashMap<Arc<[u8]>, Tracked>,
}

/// The keys that were used since a save point.
type Since = BTreeMap<ColumnFamilyId, HashMap<Arc<[u8]>, Counts>>;

/// The keys of a transaction.
#[derive(Default)]
pub struct TrackedKeys {
    families: BTreeMap<ColumnFamilyId, TrackedFamily>,
    save_points: Vec<Since>,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.reads = self.reads.saturating_add(other.reads);
        self.writes = self.writes.saturating_add(other.writes);
    }

    fn subtract(&mut self, other: Self) {
        self.reads = self.reads.saturating_sub(other.reads);
        self.writes = self.writes.saturating_sub(other.writes);
    }

    fn is_zero(self) -> bool {
        self == Self::default()
    }
}

impl From<Use> for Counts {
    fn from(used: Use) -> Self {
        match used {
            Use::Read => Self { reads: 1, writes: 0 },
            Use::Write => Self { reads: 0, writes: 1 },
        }
    }
}

impl TrackedKeys {
    /// What is known of a key.
    pub fn get(&self, family: ColumnFamilyId, key: &[u8]) -> Option<&Tracked> {
        self.families.get(&family)?.keys.get(key)
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.families.values().map(|family| family.keys.len()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.families.values().all(|family| family.keys.is_empty())
    }

    /// The families of which keys are tracked.
    pub fn families(&self) -> impl Iterator<Item = &ColumnFamily> {
        let tracked = self.families.values().filter(|tracked| !tracked.keys.is_empty());
        tracked.map(|tracked| &tracked.family)
    }

    /// All keys.
    pub fn iter(&self) -> impl Iterator<Item = (&ColumnFamily, &[u8], &Tracked)> {
        self.families.values().flat_map(|tracked| {
            tracked.keys.iter().map(|(key, state)| (&tracked.family, &**key, state))
        })
    }

    /// Counts one more use of a key that is tracked already. Returns whether it is.
    pub fn count(&mut self, family: ColumnFamilyId, key: &[u8], used: Use) -> bool {
        let Some(of_family) = self.families.get_mut(&family) else { return false };
        let Some(tracked) = of_family.keys.get_mut(key) else { return false };
        tracked.counts.add(used.into());
        if let Some(newest) = self.save_points.last_mut()
            && let Some((key, _)) = of_family.keys.get_key_value(key)
        {
            newest.entry(family).or_default().entry(key.clone()).or_default().add(used.into());
        }
        true
    }

    /// Begins to track keys of a family, whose locks `locks` finds.
    ///
    /// # Errors
    /// As `locks`.
    pub fn open<E>(
        &mut self,
        family: &ColumnFamily,
        locks: impl FnOnce() -> Result<Option<Arc<FamilyLocks>>, E>,
    ) -> Result<(), E> {
        if let Entry::Vacant(vacant) = self.families.entry(family.id()) {
            let locks = locks()?;
            vacant.insert(TrackedFamily { family: family.clone(), locks, keys: HashMap::new() });
        }
        Ok(())
    }

    /// The locks of a family that was opened, if it has locks.
    pub fn locks(&self, family: ColumnFamilyId) -> Option<&Arc<FamilyLocks>> {
        self.families.get(&family)?.locks.as_ref()
    }

    /// Adds a key of a family that was opened, or what is new of the key, and counts the use.
    pub fn add(
        &mut self,
        family: ColumnFamilyId,
        key: Arc<[u8]>,
        (since, mode): (SequenceNumber, LockMode),
        used: Use,
    ) {
        let Some(of_family) = self.families.get_mut(&family) else { return };
        if let Some(newest) = self.save_points.last_mut() {
            newest.entry(family).or_default().entry(key.clone()).or_default().add(used.into());
        }
        let new = || Tracked { since, mode, counts: Counts::default() };
        let tracked = of_family.keys.entry(key).or_insert_with(new);
        tracked.since = tracked.since.min(since);
        if mode == LockMode::Exclusive {
            tracked.mode = mode;
        }
        tracked.counts.add(used.into());
    }

    /// Takes back one read for update; within a save point only one that was made since. The key is
    /// released, if `owner` locked it, unless it was used more often.
    pub fn undo_read(&mut self, family: ColumnFamilyId, key: &[u8], owner: Option<&Owner>) {
        let read = Counts::from(Use::Read);
        if let Some(newest) = self.save_points.last_mut() {
            let counts = newest.get_mut(&family).and_then(|keys| keys.get_mut(key));
            match counts {
                Some(counts) if counts.reads > 0 => counts.subtract(read),
                _ => return,
            }
        }
        self.subtract(family, key, read, owner);
    }

    /// Takes back uses of a key, and releases it if none is left.
    fn subtract(
        &mut self,
        family: ColumnFamilyId,
        key: &[u8],
        counts: Counts,
        owner: Option<&Owner>,
    ) {
        let Some(of_family) = self.families.get_mut(&family) else { return };
        let Some(tracked) = of_family.keys.get_mut(key) else { return };
        tracked.counts.subtract(counts);
        if tracked.counts.is_zero() {
            of_family.keys.remove(key);
            if let (Some(locks), Some(owner)) = (&of_family.locks, owner) {
                locks.release(owner, key);
            }
        }
    }

    /// Begins to note what is used.
    pub fn set_save_point(&mut self) {
        self.save_points.push(Since::new());
    }

    /// Takes back all uses since the newest save point, and that save point.
    pub fn rollback_to_save_point(&mut self, owner: Option<&Owner>) {
        for (family, keys) in self.save_points.pop().unwrap_or_default() {
            for (key, counts) in keys {
                self.subtract(family, &key, counts, owner);
            }
        }
    }

    /// Removes the newest save point, and counts what it noted for the one before.
    pub fn pop_save_point(&mut self) {
        let newer = self.save_points.pop().unwrap_or_default();
        let Some(older) = self.save_points.last_mut() else { return };
        for (family, keys) in newer {
            let of_family = older.entry(family).or_default();
            for (key, counts) in keys {
                of_family.entry(key).or_default().add(counts);
            }
        }
    }

    /// Removes all keys and save points, and releases what `owner` locked.
    pub fn clear(&mut self, owner: Option<&Owner>) {
        self.save_points.clear();
        for (_, TrackedFamily { locks, keys, .. }) in std::mem::take(&mut self.families) {
            if let (Some(locks), Some(owner)) = (locks, owner) {
                keys.keys().for_each(|key| locks.release(owner, key));
            }
        }
    }
}
