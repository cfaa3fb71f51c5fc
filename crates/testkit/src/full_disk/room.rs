//! The disk: how it is filled, and how space is given back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flagstone::base::{Result, SubCode};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, IoMode};

use crate::QuotaFs;

/// The least that the ballast is made longer by.
const STEP_MIN: u64 = 4096;

/// A small disk.
pub struct Room {
    env: Env,
    directory: PathBuf,
    kind: Kind,
}

enum Kind {
    /// A file system of its own, on which a file takes the space.
    Ballast(PathBuf),
    /// Memory, with a limit.
    Quota(QuotaFs, u64),
}

impl Room {
    /// A directory on a small file system that nobody else uses.
    pub fn mounted(directory: &Path) -> Self {
        let kind = Kind::Ballast(directory.join("ballast"));
        Self { env: Env::os(), directory: directory.to_path_buf(), kind }
    }

    /// So many bytes of memory, with threads and time of the real world.
    ///
    /// # Errors
    /// None in practice.
    pub fn in_memory(bytes: u64) -> Result<Self> {
        let directory = PathBuf::from("/small");
        let fs = QuotaFs::new(Arc::new(MemoryFileSystem::new()), &directory, bytes)?;
        let env = Env::os().with_fs(Arc::new(fs.clone()));
        Ok(Self { env, directory, kind: Kind::Quota(fs, bytes) })
    }

    /// The world that databases here live in.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Whether there are no real files.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.kind, Kind::Quota(..))
    }

    /// Where the database is.
    pub fn database(&self) -> PathBuf {
        self.directory.join("db")
    }

    /// Removes what an earlier life left.
    ///
    /// # Errors
    /// `IoError`.
    pub fn clear(&self) -> Result<()> {
        self.relieve()?;
        let fs = &self.env.fs;
        for name in fs.list(&self.database()).unwrap_or_default() {
            fs.remove(&self.database().join(name))?;
        }
        Ok(())
    }

    /// Takes all space but about `remainder` bytes.
    ///
    /// # Errors
    /// `IoError`, but for a full disk.
    pub fn fill(&self, remainder: u64) -> Result<()> {
        let path = match &self.kind {
            Kind::Quota(fs, _) => {
                fs.set_limit(fs.used() + remainder);
                return Ok(());
            }
            Kind::Ballast(path) => path,
        };
        let file = self.env.fs.create_writable(path, IoMode::Buffered)?;
        let free = || Ok(self.env.fs.free_space(&self.directory)?.unwrap_or(0));
        let (mut size, mut step) = (0, free()?.saturating_sub(remainder));
        // The database takes its part meanwhile.
        while step >= STEP_MIN && (remainder == 0 || free()? > remainder) {
            match file.allocate(size + step, false) {
                Ok(()) => size += step,
                Err(error) if error.subcode() == SubCode::NoSpace => {}
                Err(error) => return Err(error),
            }
            step /= 2;
        }
        Ok(())
    }

    /// Gives the space back.
    ///
    /// # Errors
    /// `IoError`.
    pub fn relieve(&self) -> Result<()> {
        match &self.kind {
            Kind::Quota(fs, bytes) => fs.set_limit(*bytes),
            Kind::Ballast(path) => match self.env.fs.remove(path) {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            },
        }
        Ok(())
    }
}
