//! The tables and blob files of a database that another process writes, under a follower's names.
//!
//! **Algorithm.**
//! 1. A table or blob file that is opened for reading first gets a second name in the follower's
//!    directory: a hard link or, where a link fails, a copy. The file is opened under that name, so
//!    the other process may remove its own.
//! 2. A name that an earlier follower left is used only if it leads to the file that the database
//!    has now: a database that was made anew, or restored, gives old numbers to new files. A copy
//!    never passes this check, and is made again.
//! 3. [`LinkedFiles::sweep`] removes the names of files that nothing has open.
//!
//! A copy is written under a temporary name and synced before it gets its own. Its source is locked
//! meanwhile, so that a writer punches no holes into it.
//!
//! **Thread safety.** One lock guards the names. It is held while one is made or removed.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::followed::{is_kept, open_shared};
use super::{
    AnyFile, Clock, Env, FileSystem, FileSystemAround, IoMode, Metadata, OpenMode, copy_file,
    remove_if_there,
};
use crate::base::file_name::FileKind;
use crate::base::sync::Mutex;
use crate::base::{Result, file_name};

/// The follower's names; of each the file that it is a second name of, or nothing where an earlier
/// follower, or an attempt that failed, has left it.
type SecondNames = BTreeMap<String, Option<PathBuf>>;

/// A [`FileSystem`] in which tables and blob files are opened under names in `own`.
pub(crate) struct LinkedFiles {
    fs: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    own: PathBuf,
    names: Mutex<SecondNames>,
}

impl LinkedFiles {
    /// A view of `env`'s files; `own` is the follower's directory, which has no tables or blob
    /// files but those that a follower has left.
    ///
    /// # Errors
    /// `IoError`.
    pub(crate) fn new(env: &Env, own: &Path) -> Result<Self> {
        let is_left = |name: &String| {
            let kind = FileKind::parse(name);
            matches!(kind, Some(FileKind::Table(_) | FileKind::Blob(_) | FileKind::Temporary(_)))
        };
        let left = env.fs.list(own)?.into_iter().filter(is_left);
        let names = Mutex::new(left.map(|name| (name, None)).collect());
        Ok(Self { fs: env.fs.clone(), clock: env.clock.clone(), own: own.to_path_buf(), names })
    }

    /// Removes the second names of all files but those that are `open`. A name that cannot be
    /// removed now is tried again by the next call.
    pub(crate) fn sweep(&self, open: &HashSet<PathBuf>) {
        self.names.lock().retain(|name, first| {
            if first.as_ref().is_some_and(|first| open.contains(first)) {
                return true;
            }
            let path = self.own.join(name);
            match remove_if_there(&*self.fs, &path) {
                Ok(()) => false,
                Err(error) => {
                    tracing::warn!(%error, "cannot remove a file that the follower no longer needs");
                    *first = None;
                    true
                }
            }
        });
    }

    /// The second name of a file that has one.
    fn second_name(&self, path: &Path) -> Option<PathBuf> {
        let name = path.file_name()?.to_str()?;
        let names = self.names.lock();
        let first = names.get(name)?.as_ref()?;
        (first == path).then(|| self.own.join(name))
    }

    /// Gives a file its second name, unless it has one, and returns that.
    fn give_second_name(&self, path: &Path) -> Result<PathBuf> {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name else { return Ok(path.to_path_buf()) };
        let own = self.own.join(name);
        let mut names = self.names.lock();
        match names.get(name) {
            Some(Some(first)) if first == path => return Ok(own),
            Some(_) if self.is_same_file(path, &own)? => {}
            Some(_) => {
                remove_if_there(&*self.fs, &own)?;
                self.link_or_copy(path, &own, &mut names)?;
            }
            None => {
                // What an attempt leaves that fails is swept.
                names.insert(name.to_string(), None);
                self.link_or_copy(path, &own, &mut names)?;
            }
        }
        names.insert(name.to_string(), Some(path.to_path_buf()));
        Ok(own)
    }

    fn is_same_file(&self, path: &Path, own: &Path) -> Result<bool> {
        let source = self.fs.metadata(path)?;
        match self.fs.metadata(own) {
            Ok(found) => Ok(found.id.is_some() && found.id == source.id),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn link_or_copy(&self, path: &Path, own: &Path, names: &mut SecondNames) -> Result<()> {
        match self.fs.link(path, own) {
            Ok(()) => return Ok(()),
            // If the file is gone, the error names it.
            Err(error) if error.is_not_found() => drop(self.fs.metadata(path)?),
            Err(_) => {}
        }
        // It may have been linked all the same: the copy would be written over the original.
        remove_if_there(&*self.fs, own)?;
        let source = open_shared(&*self.fs, &*self.clock, path, IoMode::Buffered)?;
        let number = path.file_name().and_then(|name| FileKind::parse(name.to_str()?)?.number());
        let temporary = file_name::temporary(&self.own, number.unwrap_or_default());
        if let Some(name) = temporary.file_name().and_then(|name| name.to_str()) {
            names.insert(name.to_string(), None);
        }
        copy_file(&*self.fs, path, &temporary, source.size()?, false)?;
        self.fs.rename(&temporary, own)
    }
}

impl FileSystemAround for LinkedFiles {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        match mode {
            OpenMode::RandomAccess(_) if is_kept(path) => {
                mode.open(&*self.fs, &self.give_second_name(path)?)
            }
            _ => mode.open(&*self.fs, path),
        }
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        let second = self.second_name(source);
        self.fs.link(second.as_deref().unwrap_or(source), target)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let second = self.second_name(path);
        self.fs.metadata(second.as_deref().unwrap_or(path))
    }
}

#[cfg(test)]
mod tests;
