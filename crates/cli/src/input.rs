//! Files that are read from their beginning to their end, pipes (`<(command)`) among them.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use flagstone::base::Error;

/// What a user named to be read, and its place.
pub struct Input {
    file: File,
    path: PathBuf,
}

impl Input {
    /// Opens it.
    #[expect(
        clippy::disallowed_methods,
        reason = "files of env::FileSystem are read at offsets, which a pipe does not have"
    )]
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        // Before anything is made of it: that it cannot be read would else be found late.
        if file.metadata().is_ok_and(|found| found.is_dir()) {
            return Err(Error::io("open", path, io::ErrorKind::IsADirectory.into()));
        }
        Ok(Self { file, path: path.to_path_buf() })
    }

    /// Reads the next bytes; 0 at the end.
    pub fn next(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        self.read(buffer).map_err(|error| self.error(error))
    }

    /// Reads all that is left.
    pub fn rest(&mut self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes).map_err(|error| self.error(error))?;
        Ok(bytes)
    }

    fn error(&self, error: io::Error) -> Error {
        Error::io("read", &self.path, error)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
