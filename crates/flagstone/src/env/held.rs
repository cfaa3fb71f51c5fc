//! The files of a database that is read without its lock: found once, and held open.
//!
//! **Algorithm.**
//! 1. A file of the database that is opened for reading is locked against changes in place ([`File::share`]) and kept open until
//!    the handle goes. Whatever asks for its name later gets that file: another process may have removed the name, or a log may
//!    have been written over under a new one.
//! 2. A directory still lists the names of the files that are held, and their sizes are those of the open files.
//! 3. An opening that meets a moving directory is repeated. Tables and blob files never change under their names, so that the
//!    next attempt takes over those that the one before has found.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Clock, Env, File, FileSystem, FileSystemAround, Metadata, OpenMode};
use crate::base::file_name::FileKind;
use crate::base::sync::{AtomicBool, Mutex, Ordering};
use crate::base::{Code, Error, Result};

/// How often a file is asked for that a writer is changing in place, which takes it some milliseconds.
const ATTEMPTS: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

type Files = HashMap<PathBuf, Arc<dyn File>>;

/// A [`FileSystem`] in which the files of a database that were opened for reading stay as they were.
pub(crate) struct HeldFiles {
    fs: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    files: Mutex<Files>,
    /// Tables and blob files that an earlier attempt has found.
    found_before: Mutex<Files>,
    /// Nothing is added any more.
    is_sealed: AtomicBool,
}

impl HeldFiles {
    /// A view of `env`'s files; `before` is the view of an attempt that failed.
    pub(crate) fn new(env: &Env, before: Option<&Self>) -> Self {
        let mut found_before = Files::default();
        if let Some(before) = before {
            found_before.extend(before.found_before.lock().drain());
            found_before.extend(before.files.lock().drain());
            found_before.retain(|path, _| never_changes(path));
        }
        Self {
            fs: env.fs.clone(),
            clock: env.clock.clone(),
            files: Mutex::default(),
            found_before: Mutex::new(found_before),
            is_sealed: AtomicBool::new(false),
        }
    }

    /// The attempt was the last one: the files of earlier ones that it did not ask for are closed, and WALs that it has not
    /// opened are no part of the state.
    pub(crate) fn seal(&self) {
        let _closed_without_lock = std::mem::take(&mut *self.found_before.lock());
        self.is_sealed.store(true, Ordering::Release);
    }

    fn held(&self, path: &Path) -> Option<Arc<dyn File>> {
        self.files.lock().get(path).cloned()
    }

    fn find(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        if let Some(file) = self.found_before.lock().remove(path) {
            return Ok(file);
        }
        let file = self.fs.open(path, mode)?;
        for _ in 0..ATTEMPTS {
            if file.share()? {
                return Ok(file);
            }
            self.clock.sleep(PAUSE);
        }
        let message = "another process is changing this file and does not come to an end; try again";
        Err(Error::new(Code::TryAgain, message).at(path))
    }
}

impl FileSystemAround for HeldFiles {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        if !mode.only_reads() || !is_held(path) {
            return self.fs.open(path, mode);
        }
        if let Some(file) = self.held(path) {
            return Ok(file);
        }
        let file = self.find(path, mode)?;
        // Another thread may have been faster: all readers have one.
        Ok(self.files.lock().entry(path.to_path_buf()).or_insert(file).clone())
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        let mut names = self.fs.list(directory)?;
        let files = self.files.lock();
        let held = files.keys().filter(|path| path.parent() == Some(directory));
        names.extend(held.filter_map(|path| path.file_name()?.to_str().map(ToString::to_string)));
        names.sort_unstable();
        names.dedup();
        if self.is_sealed.load(Ordering::Acquire) {
            let is_wal = |name: &str| matches!(FileKind::parse(name), Some(FileKind::Wal(_)));
            names.retain(|name| !is_wal(name) || files.contains_key(&directory.join(name)));
        }
        Ok(names)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        match self.held(path) {
            Some(file) => file.metadata(),
            None => self.fs.metadata(path),
        }
    }
}

fn kind(path: &Path) -> Option<FileKind> {
    FileKind::parse(path.file_name()?.to_str()?)
}

/// Whether what is there is part of the state that a reader sees.
fn is_held(path: &Path) -> bool {
    let kind = kind(path);
    never_changes(path) || matches!(kind, Some(FileKind::Wal(_) | FileKind::Manifest(_) | FileKind::Current))
}

fn never_changes(path: &Path) -> bool {
    matches!(kind(path), Some(FileKind::Table(_) | FileKind::Blob(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(fs: &dyn FileSystem, path: &str, text: &[u8]) {
        fs.open(Path::new(path), OpenMode::Create).unwrap().write_at(0, text).unwrap();
    }

    fn read(fs: &dyn FileSystem, path: &str) -> Vec<u8> {
        super::super::read_file(fs, Path::new(path), 100).unwrap()
    }

    #[test]
    fn what_was_opened_once_stays_as_it_was() {
        let env = Env::memory();
        let held = HeldFiles::new(&env, None);
        let held: &dyn FileSystem = &held;
        env.fs.create_directory(Path::new("/db")).unwrap();
        write(&*env.fs, "/db/000007.sst", b"table");
        write(&*env.fs, "/db/CURRENT", b"old");
        write(&*env.fs, "/db/LOG", b"old");
        for path in ["/db/000007.sst", "/db/CURRENT", "/db/LOG"] {
            read(held, path);
            env.fs.remove(Path::new(path)).unwrap();
        }
        write(&*env.fs, "/db/CURRENT", b"newer");
        write(&*env.fs, "/db/LOG", b"newer");
        assert_eq!(read(held, "/db/000007.sst"), b"table");
        assert_eq!(read(held, "/db/CURRENT"), b"old");
        assert_eq!(read(held, "/db/LOG"), b"newer", "it is no part of the state");
        assert_eq!(held.metadata(Path::new("/db/000007.sst")).unwrap().size, 5);
        assert_eq!(held.list(Path::new("/db")).unwrap(), ["000007.sst", "CURRENT", "LOG"]);
    }

    #[test]
    fn the_next_attempt_finds_anew_what_may_have_changed() {
        let env = Env::memory();
        let first = HeldFiles::new(&env, None);
        env.fs.create_directory(Path::new("/db")).unwrap();
        for path in ["/db/000007.sst", "/db/000008.blob", "/db/000009.log", "/db/CURRENT"] {
            write(&*env.fs, path, b"old");
            read(&first, path);
        }
        let second = HeldFiles::new(&env, Some(&first));
        for path in ["/db/000007.sst", "/db/000008.blob"] {
            env.fs.remove(Path::new(path)).unwrap();
        }
        for path in ["/db/000009.log", "/db/CURRENT"] {
            write(&*env.fs, path, b"newer");
            assert_eq!(read(&second, path), b"newer");
        }
        assert_eq!(read(&second, "/db/000007.sst"), b"old");
        second.seal();
        assert_eq!(read(&second, "/db/000007.sst"), b"old");
        write(&*env.fs, "/db/000010.log", b"newer");
        let listed = FileSystem::list(&second, Path::new("/db")).unwrap();
        assert_eq!(listed, ["000007.sst", "000009.log", "CURRENT"]);
        assert!(FileSystem::open(&second, Path::new("/db/000008.blob"), OpenMode::Read).is_err());
    }
}
