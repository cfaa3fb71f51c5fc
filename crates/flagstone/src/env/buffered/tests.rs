use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::env::{
    AnyFile, FileAround, FileSystem, IoMode, memory::MemoryFileSystem, os::OsFileSystem, read_file,
};

/// Writes `content` in pieces, flushing now and then; what the file holds afterwards.
fn written(fs: &dyn FileSystem, path: &Path, io: IoMode, content: &[u8], piece: usize) -> Vec<u8> {
    let mut writer = BufferedWriter::new(fs.create_writable(path, io).unwrap(), 0, 8192);
    for (index, piece) in content.chunks(piece).enumerate() {
        writer.append(piece).unwrap();
        if index % 7 == 3 {
            writer.flush().unwrap();
            let expected = &content[..writer.offset() as usize];
            assert!(read_file(fs, path, u64::MAX).unwrap() == expected, "{} bytes", expected.len());
        }
    }
    writer.sync().unwrap();
    read_file(fs, path, u64::MAX).unwrap()
}

/// A file of which one call fails.
struct FailsOnce {
    inner: AnyFile,
    calls_before: AtomicUsize,
}

impl FailsOnce {
    fn call(&self, call: impl FnOnce(&AnyFile) -> Result<()>) -> Result<()> {
        match self.calls_before.fetch_sub(1, Ordering::Relaxed) {
            0 => Err(Error::io("call", self.inner.path(), std::io::Error::other("broken"))),
            _ => call(&self.inner),
        }
    }
}

impl FileAround for FailsOnce {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.call(|file| file.write_at(offset, data))
    }
    fn sync(&self) -> Result<()> {
        self.call(|file| file.sync())
    }
    fn allocate(&self, length: u64, keep_size: bool) -> Result<()> {
        self.call(|file| file.allocate(length, keep_size))
    }
    fn truncate(&self, length: u64) -> Result<()> {
        self.call(|file| file.truncate(length))
    }
}

/// Went wrong: of a direct file, the bytes of the write that failed were forgotten, and with them
/// that it had failed. What came next was written behind a hole.
#[test]
fn what_failed_once_fails_for_good() {
    let content: Vec<u8> = (0..30_000u32).map(|n| (n % 251) as u8).collect();
    let path = Path::new("/d/f");
    for io in [IoMode::Buffered, IoMode::Direct] {
        let mut failures = 0;
        for calls_before in 0.. {
            let fs = MemoryFileSystem::new();
            fs.create_directory(Path::new("/d")).unwrap();
            let inner = fs.create_writable(path, io).unwrap().into();
            let file = Arc::new(FailsOnce { inner, calls_before: AtomicUsize::new(calls_before) });
            let mut writer = BufferedWriter::new(file.clone(), 0, 8192);
            let mut has_failed = false;
            for piece in content.chunks(3000) {
                let appended = writer.append(piece);
                assert!(!has_failed || appended.is_err() || writer.flush().is_err());
                has_failed |= appended.is_err();
            }
            for _ in 0..2 {
                let synced = writer.sync();
                assert!(!has_failed || synced.is_err(), "{io:?}, call {calls_before}");
                has_failed |= synced.is_err();
            }
            if !has_failed {
                assert!(read_file(&fs, path, u64::MAX).unwrap() == content);
            }
            if file.calls_before.load(Ordering::Relaxed) < usize::MAX / 2 {
                break;
            }
            failures += usize::from(has_failed);
        }
        assert!(failures > 4, "{io:?}: {failures}");
    }
}

#[test]
fn every_length_around_a_block_is_written_as_it_is() {
    let content: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
    let directory = tempfile::tempdir().unwrap();
    let memory = MemoryFileSystem::new();
    memory.create_directory(directory.path()).unwrap();
    let path = directory.path().join("f");
    let lengths = (0..3).chain(4094..4099).chain(8190..8195).chain(12_286..12_290).chain([50_000]);
    for length in lengths {
        for piece in [1000, 4096, 5000, 8192, 20_000] {
            for io in [IoMode::Buffered, IoMode::Direct] {
                for fs in [&OsFileSystem as &dyn FileSystem, &memory] {
                    let found = written(fs, &path, io, &content[..length], piece);
                    assert!(found == content[..length], "{length} bytes by {piece}, {io:?}");
                }
            }
        }
    }
}
