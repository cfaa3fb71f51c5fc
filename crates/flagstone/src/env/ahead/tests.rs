use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::env::{AnyFile, Env, FileAround, IoMode};

/// A file whose reads wait until they are let go, are counted, and fail or panic beyond some
/// offsets.
struct Held {
    inner: AnyFile,
    held: Mutex<()>,
    reads: AtomicU64,
}

const FAILS_FROM: u64 = 1 << 20;
const PANICS_FROM: u64 = 2 << 20;

impl FileAround for Held {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let _held = self.held.lock();
        self.reads.fetch_add(1, Ordering::Relaxed);
        assert!(offset < PANICS_FROM);
        if offset < FAILS_FROM {
            self.inner.read_at(offset, buffer)
        } else {
            Err(Error::io("read", self.path(), std::io::Error::other("broken")))
        }
    }
}

fn held() -> (Arc<Held>, Vec<u8>) {
    let env = Env::memory();
    env.fs.create_directory(Path::new("/d")).unwrap();
    let inner = env.fs.create_writable(Path::new("/d/f"), IoMode::Buffered).unwrap();
    let content: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
    inner.write_at(0, &content).unwrap();
    (
        Arc::new(Held { inner: inner.into(), held: Mutex::default(), reads: AtomicU64::default() }),
        content,
    )
}

fn room(length: usize) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::with_capacity(length);
    buffer.resize(length);
    buffer
}

#[test]
fn what_was_asked_for_comes_while_others_go_on() {
    let (file, content) = held();
    let ahead = ReadAhead::new(Env::os().spawner);
    let still = file.held.lock();
    let offsets = [0u64, 4096, 49_152, 60_000];
    let coming = offsets.map(|offset| ahead.ask(file.clone(), offset, room(4096)).unwrap());
    drop(still);
    for (offset, coming) in offsets.into_iter().zip(coming) {
        let (buffer, read) = coming.wait();
        let expected = content.get(offset as usize..).unwrap_or_default();
        let expected = &expected[..expected.len().min(4096)];
        assert_eq!((buffer.as_slice(), read.unwrap()), (expected, expected.len()), "{offset}");
    }
}

#[test]
fn who_waits_hears_of_an_error_and_of_a_panic_and_others_go_on() {
    let (file, content) = held();
    let ahead = ReadAhead::new(Env::os().spawner);
    for (offset, words) in [(FAILS_FROM, "broken"), (PANICS_FROM, "reading panicked")] {
        let (buffer, read) = ahead.ask(file.clone(), offset, room(100)).unwrap().wait();
        assert!(buffer.is_empty());
        assert!(read.unwrap_err().to_string().contains(words));
    }
    let (buffer, _) = ahead.ask(file, 7, room(100)).unwrap().wait();
    assert_eq!(buffer.as_slice(), &content[7..107]);
}

#[test]
fn what_nobody_waits_for_is_not_read_and_what_somebody_waits_for_is() {
    let (file, _) = held();
    let ahead = ReadAhead::new(Env::os().spawner);
    let still = file.held.lock();
    let first = ahead.ask(file.clone(), 0, room(100)).unwrap();
    (0..10).for_each(|_| drop(ahead.ask(file.clone(), 100, room(100)).unwrap()));
    let last = ahead.ask(file.clone(), 200, room(100)).unwrap();
    drop(still);
    drop(ahead);
    assert_eq!((first.wait().1.unwrap(), last.wait().1.unwrap()), (100, 100));
    assert_eq!(file.reads.load(Ordering::Relaxed), 2);
}
