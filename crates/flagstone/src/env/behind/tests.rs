use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::env::memory::MemoryFileSystem;
use crate::env::{self, AnyFile, BufferedWriter, Env, FileSystem, IoMode, read_file};

/// A file whose writes wait until they are let go, and fail if they are told to.
struct Held {
    inner: AnyFile,
    held: Mutex<()>,
    fails: AtomicBool,
}

impl env::FileAround for Held {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let _held = self.held.lock();
        if self.fails.load(Ordering::Relaxed) {
            Err(Error::io("write", self.path(), std::io::Error::other("broken")))
        } else {
            self.inner.write_at(offset, data)
        }
    }
}

fn held(fs: &MemoryFileSystem) -> Arc<Held> {
    fs.create_directory(Path::new("/d")).unwrap();
    let inner = fs.create_writable(Path::new("/d/f"), IoMode::Direct).unwrap();
    Arc::new(Held { inner: inner.into(), held: Mutex::default(), fails: AtomicBool::default() })
}

#[test]
fn the_next_bytes_are_made_while_those_before_are_written() {
    let fs = MemoryFileSystem::new();
    let file = held(&fs);
    let behind = Arc::new(WriteBehind::new(file.clone(), Env::os().spawner));
    let mut writer = BufferedWriter::new(behind, 0, 4096);
    let content: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
    let still = file.held.lock();
    // One buffer is on its way, another is full.
    writer.append(&content[..8192]).unwrap();
    assert_eq!(file.size().unwrap(), 0);
    drop(still);
    content[8192..].chunks(700).for_each(|piece| writer.append(piece).unwrap());
    writer.sync().unwrap();
    assert!(read_file(&fs, Path::new("/d/f"), u64::MAX).unwrap() == content);
}

#[test]
fn a_write_that_failed_is_heard_of_by_whoever_calls_next() {
    for call in 0..4 {
        let file = held(&MemoryFileSystem::new());
        let behind = WriteBehind::new(file.clone(), Env::os().spawner);
        let mut buffer = AlignedBuffer::with_capacity(4096);
        buffer.resize(4096);
        let mut buffer = behind.write_owned(0, buffer).unwrap();
        behind.sync().unwrap();
        file.fails.store(true, Ordering::Relaxed);
        buffer.resize(4096);
        let mut buffer = behind.write_owned(4096, buffer).unwrap();
        buffer.resize(4096);
        let error = match call {
            0 => behind.write_owned(8192, buffer).map(drop),
            1 => behind.write_at(8192, buffer.as_slice()),
            2 => behind.truncate(100),
            _ => behind.sync(),
        };
        assert!(error.unwrap_err().to_string().contains("broken"), "{call}");
        // Not forgotten by having been told once.
        behind.sync().unwrap_err();
    }
}
