//! One way in which a disk may come out of a crash, and the directory that it leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flagstone::env::FileSystem;
use flagstone::env::memory::MemoryFileSystem;
use xxhash_rust::xxh3::Xxh3;

use super::disk::{BLOCK_SIZE, Bytes, Disk, Entry, Inode, Names, Versions};

/// What becomes of a file that was not synced: one version's bytes, with ranges of others, and a
/// length of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fate {
    pub length: usize,
    /// The version, counted from 0, the synced one.
    pub base: usize,
    /// Bytes that are those of another version.
    pub patches: Vec<(Range<usize>, usize)>,
}

impl Fate {
    /// As after so many of the changes.
    pub fn version(versions: &Versions, index: usize) -> Self {
        Self { length: versions[index].data.len(), base: index, patches: Vec::new() }
    }

    fn bytes(&self, versions: &Versions) -> Bytes {
        let base = &versions[self.base];
        if self.patches.is_empty() && base.data.len() == self.length {
            return base.clone();
        }
        let mut bytes = vec![0; self.length];
        let mut copy = |range: Range<usize>, version: usize| {
            let source = &versions[version].data;
            let written =
                range.start.min(source.len())..range.end.min(source.len()).min(self.length);
            let range = range.start.min(self.length)..range.end.min(self.length);
            bytes[range.clone()].fill(0);
            if !written.is_empty() {
                bytes[written.clone()].copy_from_slice(&source[written]);
            }
        };
        copy(0..self.length, self.base);
        self.patches.iter().for_each(|(range, version)| copy(range.clone(), *version));
        self.whole_blocks(versions).into_iter().for_each(|(range, version)| copy(range, version));
        bytes.into()
    }

    /// A hole comes into being in the file system's list of blocks, not on them: of a block that
    /// was given back a disk shows all or nothing, however finely it tears writes. So the blocks
    /// that are torn between before and after their hole are as their first byte is.
    fn whole_blocks(&self, versions: &Versions) -> Vec<(Range<usize>, usize)> {
        if versions.iter().all(|version| version.given_back.is_empty()) {
            return Vec::new();
        }
        let mut of_bytes = vec![self.base; self.length];
        for (range, version) in &self.patches {
            of_bytes[range.start.min(self.length)..range.end.min(self.length)].fill(*version);
        }
        let mut whole = Vec::new();
        for (punched, after) in versions.iter().enumerate() {
            let given_back = after.given_back.clone();
            for start in given_back.take_while(|at| *at < self.length).step_by(BLOCK_SIZE as usize)
            {
                let block = start..(start + BLOCK_SIZE as usize).min(self.length);
                let is_after = |version: &usize| *version >= punched;
                let of_block = &mut of_bytes[block.clone()];
                if of_block.iter().any(is_after) && !of_block.iter().all(is_after) {
                    let first = of_block[0];
                    of_block.fill(first);
                    whole.push((block, first));
                }
            }
        }
        whole
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, as after change {}", self.length, self.base)?;
        let parts = self.patches.iter();
        parts
            .into_iter()
            .try_for_each(|(range, version)| write!(f, ", {range:?} as after {version}"))
    }
}

/// What becomes of everything that is not durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aftermath {
    /// Of each change of a name; where the list ends, as of all others.
    pub(super) names: Vec<bool>,
    /// Of files; of those that are not listed, as of all others.
    pub(super) files: Vec<(Inode, Fate)>,
    /// What is not said otherwise is kept, or else lost.
    pub(super) others_kept: bool,
}

impl Aftermath {
    /// Everything is lost.
    pub const fn lost() -> Self {
        Self { names: Vec::new(), files: Vec::new(), others_kept: false }
    }

    /// Everything is kept, as if only the process had died.
    pub const fn kept() -> Self {
        Self { names: Vec::new(), files: Vec::new(), others_kept: true }
    }

    /// Whether everything is kept.
    pub fn is_kept(&self) -> bool {
        *self == Self::kept()
    }
}

impl fmt::Display for Aftermath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |kept: bool| if kept { "kept" } else { "lost" };
        if self.names.is_empty() && self.files.is_empty() {
            return write!(f, "all is {}", said(self.others_kept));
        }
        if !self.names.is_empty() {
            let list: Vec<_> = self.names.iter().map(|kept| said(*kept)).collect();
            write!(f, "changes of names: {}; ", list.join(", "))?;
        }
        self.files.iter().try_for_each(|(inode, fate)| write!(f, "file {inode}: {fate}; "))?;
        write!(f, "all else is {}", said(self.others_kept))
    }
}

/// The directories and files that a crash leaves.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub(super) directories: BTreeSet<Arc<Path>>,
    pub(super) files: BTreeMap<Arc<Path>, (Inode, Bytes)>,
}

impl State {
    /// All names and contents in one number.
    pub fn hash(&self) -> u128 {
        let mut hash = Xxh3::new();
        for directory in &self.directories {
            hash.update(directory.as_os_str().as_encoded_bytes());
            hash.update(b"/\0");
        }
        for (path, (_, bytes)) in &self.files {
            hash.update(path.as_os_str().as_encoded_bytes());
            hash.update(b"\0");
            hash.update(&bytes.hash.to_le_bytes());
        }
        hash.digest128()
    }

    /// A file system that holds this, and may be written to.
    pub fn to_memory(&self) -> MemoryFileSystem {
        let fs = MemoryFileSystem::with_block_size(BLOCK_SIZE);
        for directory in &self.directories {
            fs.create_directory(directory).expect("a directory in memory");
        }
        let mut first: BTreeMap<Inode, &Path> = BTreeMap::new();
        for (path, (inode, bytes)) in &self.files {
            match first.get(inode) {
                Some(other) => fs.link(other, path).expect("a link in memory"),
                None => fs.put(path, bytes.data.clone()),
            }
            first.entry(*inode).or_insert(path);
        }
        fs
    }

    /// The bytes of a file.
    pub fn file(&self, path: &Path) -> Option<&Arc<Vec<u8>>> {
        self.files.get(path).map(|(_, bytes)| &bytes.data)
    }

    /// The paths of the files directly in a directory.
    pub fn list<'a>(&'a self, directory: &'a Path) -> impl Iterator<Item = &'a Path> {
        self.files.keys().map(|path| &**path).filter(move |path| path.parent() == Some(directory))
    }

    /// The files of another file system.
    pub fn of(fs: &MemoryFileSystem) -> Self {
        let mut state = Self::default();
        for (inode, (path, data)) in fs.files().into_iter().enumerate() {
            let above = path.ancestors().skip(1).filter(|directory| directory.parent().is_some());
            state.directories.extend(above.map(Into::into));
            state.files.insert(path.into(), (inode, (*data).clone().into()));
        }
        state
    }
}

impl Disk {
    pub(super) fn names_after(&self, aftermath: &Aftermath) -> Names {
        let mut names = self.names.clone();
        for (index, change) in self.pending.iter().enumerate() {
            if *aftermath.names.get(index).unwrap_or(&aftermath.others_kept) {
                change.apply(&mut names);
            }
        }
        names
    }

    /// What is found after a crash.
    pub fn after(&self, aftermath: &Aftermath) -> State {
        let mut state = State::default();
        let mut settled: BTreeMap<Inode, Bytes> = BTreeMap::new();
        for (path, entry) in self.names_after(aftermath) {
            let parent = path.parent().unwrap_or(Path::new("/"));
            if parent.parent().is_some() && !state.directories.contains(parent) {
                continue;
            }
            match entry {
                Entry::Directory => drop(state.directories.insert(path)),
                Entry::File(inode) => {
                    let bytes =
                        settled.entry(inode).or_insert_with(|| self.settle(inode, aftermath));
                    state.files.insert(path, (inode, bytes.clone()));
                }
            }
        }
        state
    }

    fn settle(&self, inode: Inode, aftermath: &Aftermath) -> Bytes {
        let versions = &self.files[&inode];
        match aftermath.files.iter().find(|(listed, _)| *listed == inode) {
            Some((_, fate)) => fate.bytes(versions),
            None if aftermath.others_kept => versions[versions.len() - 1].clone(),
            None => versions[0].clone(),
        }
    }
}

/// Paths for messages.
pub(super) fn list(state: &State) -> String {
    let line = |(path, (_, bytes)): (&Arc<Path>, &(Inode, Bytes))| {
        format!("{} {}", PathBuf::from(&**path).display(), bytes.data.len())
    };
    state.files.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
