//! Taking decisions and pieces off the front of a fuzzer's input, and files in memory.

use std::path::Path;
use std::sync::Arc;

use flagstone::base::{Code, Error};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{FileSystem, IoMode, WritableFile};

/// What is left of an input. At its end it gives zeros and empty pieces.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn u8(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    pub fn u16(&mut self) -> u16 {
        u16::from(self.u8()) | u16::from(self.u8()) << 8
    }

    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// Up to `count` bytes.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A piece whose length stands in the byte before it.
    pub fn piece(&mut self) -> &'a [u8] {
        let length = usize::from(self.u8());
        self.bytes(length)
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// One of `choices`.
    pub fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.u8()) % choices.len()]
    }
}

/// A file at `path` with these bytes.
pub fn put_file(
    fs: &MemoryFileSystem,
    path: impl AsRef<Path>,
    bytes: &[u8],
) -> Arc<dyn WritableFile> {
    let file = fs.create_writable(path.as_ref(), IoMode::Buffered).expect("memory");
    file.write_at(0, bytes).expect("memory");
    file
}

/// A file alone in the world.
pub fn file_of(bytes: &[u8]) -> Arc<dyn WritableFile> {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/alone")).expect("memory");
    put_file(&fs, "/alone/file", bytes)
}

/// Errors are fine; an error that stands for a caught panic is not.
pub fn check_error(error: &Error) {
    let panicked = error.code() == Code::Aborted && error.to_string().contains("panicked");
    assert!(!panicked, "a job panicked: {error}");
}

/// The value, if there is one; see [`check_error`].
pub fn ok<T>(result: flagstone::base::Result<T>) -> Option<T> {
    result.inspect_err(check_error).ok()
}
