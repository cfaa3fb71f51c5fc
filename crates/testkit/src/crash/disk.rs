//! What a disk holds for sure, and what is on the way to it.
//!
//! A file is kept as it was synced and as it was after each change since; names as they were
//! synced, and the changes since. Contents are shared, never copied: cloning a disk, and making a
//! directory out of it, costs little.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use flagstone::env::directory_of;
use xxhash_rust::xxh3::xxh3_128;

use super::aftermath::{Aftermath, State};
use super::record::Change;

/// A file, whatever its names.
pub(super) type Inode = usize;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Entry {
    File(Inode),
    Directory,
}

/// Names and what they stand for; a directory comes before what is in it.
pub(super) type Names = BTreeMap<Arc<Path>, Entry>;

/// Bytes of a block: so few that small files have holes.
pub const BLOCK_SIZE: u64 = 64;

/// How a disk writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grain {
    /// Bytes that the system writes back together, or not.
    pub page: usize,
    /// Bytes that the device writes as a whole.
    pub sector: usize,
}

impl Grain {
    /// As disks are.
    pub const REAL: Self = Self { page: 4096, sector: 512 };
    /// So that small files have many of each.
    pub const FINE: Self = Self { page: 128, sector: 16 };
}

/// Bytes, shared, with their hash.
#[derive(Debug, Clone)]
pub(super) struct Bytes {
    pub data: Arc<Vec<u8>>,
    pub hash: u128,
    /// The blocks that the change before gave back, if it punched a hole.
    pub given_back: Range<usize>,
}

impl From<Vec<u8>> for Bytes {
    fn from(data: Vec<u8>) -> Self {
        Self { hash: xxh3_128(&data), data: Arc::new(data), given_back: 0..0 }
    }
}

impl Bytes {
    fn written(&self, offset: u64, data: &[u8]) -> Self {
        let mut bytes = (*self.data).clone();
        let (start, end) = (offset as usize, offset as usize + data.len());
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[start..end].copy_from_slice(data);
        bytes.into()
    }

    /// Of blocks that are given back other bytes are never seen: there are zeros, or what was there
    /// before. The part of a block is written over with zeros.
    fn punched(&self, range: &Range<u64>) -> Self {
        let mut bytes = (*self.data).clone();
        let (start, end) =
            ((range.start as usize).min(bytes.len()), (range.end as usize).min(bytes.len()));
        bytes[start..end].fill(0);
        let block = BLOCK_SIZE as usize;
        let given_back =
            (range.start as usize).next_multiple_of(block)..range.end as usize / block * block;
        Self { given_back, ..bytes.into() }
    }

    fn resized(&self, length: u64) -> Self {
        let mut bytes = (*self.data).clone();
        bytes.resize(length as usize, 0);
        bytes.into()
    }
}

/// A file as it was synced (empty, if it never was) and after each change since. Never none.
pub(super) type Versions = Vec<Bytes>;

/// A change of names that is not durable yet.
#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Add(Arc<Path>, Entry),
    Move { source: Arc<Path>, target: Arc<Path>, inode: Inode },
    Remove(Arc<Path>),
}

impl NameChange {
    pub fn apply(&self, names: &mut Names) {
        match self {
            Self::Add(path, entry) => drop(names.insert(path.clone(), *entry)),
            Self::Move { source, target, inode } => {
                names.remove(source);
                names.insert(target.clone(), Entry::File(*inode));
            }
            // A directory was empty when it was removed.
            Self::Remove(path) => names.retain(|name, _| !name.starts_with(path)),
        }
    }

    fn directory(&self) -> std::path::PathBuf {
        match self {
            Self::Add(path, _) | Self::Remove(path) => directory_of(path),
            Self::Move { target, .. } => directory_of(target),
        }
    }
}

/// A disk at one moment.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    pub(super) files: BTreeMap<Inode, Versions>,
    pub(super) names: Names,
    /// In the order of the calls.
    pub(super) pending: Vec<NameChange>,
    /// Files that are being synced, with the version that will then be durable.
    begun: BTreeMap<Inode, usize>,
    /// As the process sees them. A name may go on from here to a directory that is synced, though
    /// it was lost itself.
    seen: Names,
}

impl Disk {
    /// One on which all of this is durable.
    pub fn holding(state: &State) -> Self {
        let mut disk = Self::default();
        for directory in &state.directories {
            disk.names.insert(directory.clone(), Entry::Directory);
        }
        for (path, (inode, bytes)) in &state.files {
            disk.names.insert(path.clone(), Entry::File(*inode));
            disk.files.insert(*inode, vec![bytes.clone()]);
        }
        disk.seen = disk.names.clone();
        disk
    }

    /// The same, as a process finds it that begins now.
    pub(super) fn found(mut self) -> Self {
        self.seen = self.names_after(&Aftermath::kept());
        self.begun.clear();
        self
    }

    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::CreateDirectory(path) => {
                self.change_name(NameChange::Add(path.clone(), Entry::Directory))
            }
            Change::Create { path, inode } => {
                self.files.insert(*inode, vec![Vec::new().into()]);
                self.change_name(NameChange::Add(path.clone(), Entry::File(*inode)));
            }
            Change::Link { inode, target } => {
                self.change_name(NameChange::Add(target.clone(), Entry::File(*inode)));
            }
            Change::Rename { source, target, inode } => {
                let (source, target) = (source.clone(), target.clone());
                self.change_name(NameChange::Move { source, target, inode: *inode });
            }
            Change::Remove(path) | Change::RemoveDirectory(path) => {
                self.change_name(NameChange::Remove(path.clone()));
            }
            Change::SyncDirectory(directory) => self.settle_names(directory),
            Change::Write { inode, offset, data } => {
                self.change_file(*inode, |now| now.written(*offset, data))
            }
            Change::Truncate { inode, length } => {
                self.change_file(*inode, |now| now.resized(*length))
            }
            Change::Allocate { inode, length, keep_size } => {
                self.change_file(*inode, |now| {
                    if *keep_size || now.data.len() as u64 >= *length {
                        now.clone()
                    } else {
                        now.resized(*length)
                    }
                });
            }
            Change::Punch { inode, range } => self.change_file(*inode, |now| now.punched(range)),
            Change::BeginSync(inode) => {
                let newest = self.versions_mut(*inode).len() - 1;
                self.begun.insert(*inode, newest);
            }
            Change::Sync(inode) => {
                let begun = self.begun.remove(inode);
                let versions = self.versions_mut(*inode);
                versions.drain(..begun.unwrap_or(versions.len() - 1));
            }
            Change::LoseUnsynced(inode) => {
                self.begun.remove(inode);
                self.versions_mut(*inode).truncate(1);
            }
            Change::LoseNames(directory) => {
                self.pending.retain(|change| change.directory() != **directory)
            }
        }
        if matches!(
            change,
            Change::Remove(_)
                | Change::Rename { .. }
                | Change::SyncDirectory(_)
                | Change::LoseNames(_)
        ) {
            self.forget_unreachable();
        }
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.seen);
        self.pending.push(change);
    }

    fn versions_mut(&mut self, inode: Inode) -> &mut Versions {
        self.files.entry(inode).or_insert_with(|| vec![Vec::new().into()])
    }

    fn change_file(&mut self, inode: Inode, change: impl FnOnce(&Bytes) -> Bytes) {
        let versions = self.versions_mut(inode);
        let next = change(versions.last().expect("never none"));
        if next.hash != versions[versions.len() - 1].hash {
            versions.push(next);
        }
    }

    fn settle_names(&mut self, directory: &Path) {
        for change in std::mem::take(&mut self.pending) {
            if change.directory() == directory {
                change.apply(&mut self.names)
            } else {
                self.pending.push(change)
            }
        }
    }

    /// Files that no name leads to, durable, on the way or seen by the process, are gone however a
    /// crash goes.
    fn forget_unreachable(&mut self) {
        let changed = self.pending.iter().filter_map(|change| match change {
            NameChange::Add(_, entry) => Some(*entry),
            NameChange::Move { inode, .. } => Some(Entry::File(*inode)),
            NameChange::Remove(_) => None,
        });
        let named: HashSet<Entry> =
            self.names.values().chain(self.seen.values()).copied().chain(changed).collect();
        self.files.retain(|inode, _| named.contains(&Entry::File(*inode)));
        self.begun.retain(|inode, _| self.files.contains_key(inode));
    }

    /// A number above those of all files.
    pub(super) fn next_inode(&self) -> Inode {
        self.files.keys().next_back().map_or(0, |last| last + 1)
    }

    /// The files whose contents are not durable.
    pub(super) fn unsynced(&self) -> impl Iterator<Item = (Inode, &Versions)> {
        self.files
            .iter()
            .filter(|(_, versions)| versions.len() > 1)
            .map(|(inode, versions)| (*inode, versions))
    }
}
