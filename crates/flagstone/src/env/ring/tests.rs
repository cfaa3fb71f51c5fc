use super::super::os::OsFileSystem;
use super::super::{FileSystem, IoMode};
use super::*;

/// Each buffer began at a page, and was of whole pages: for a compressed block of 2 KiB three of
/// them.
#[test]
fn buffers_are_about_as_large_as_what_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    OsFileSystem
        .create_writable(&path, IoMode::Buffered)
        .unwrap()
        .write_at(0, &[7; 300_000])
        .unwrap();
    for io in [IoMode::Buffered, IoMode::Direct] {
        let file = OsFileSystem.open_random_access(&path, io).unwrap();
        let most = 2560 + 3 * file.read_block();
        let place = |at: u64| Place { file: &*file, offset: at * 4600, length: 2300 };
        let places: Vec<_> = (0..64).map(place).collect();
        let (left, together) = read(&places, &mut |_, bytes| assert_eq!(bytes.unwrap(), [7; 2300]));
        if together == 0 {
            return;
        }
        assert!(left.is_empty());
        let ring = RING.take().expect("it is kept for the next batch");
        let largest = ring.buffers.iter().map(AlignedBuffer::memory).max();
        assert!(
            largest.is_some_and(|largest| largest <= most),
            "{largest:?} bytes for 2300 of {io:?}"
        );
        RING.set(Some(ring));
    }
}

/// Each thread kept 2 MiB after one batch of values of 20 KB.
#[test]
fn a_thread_keeps_few_buffers() {
    for (bytes, kept) in [(8 << 10, DEPTH), (32 << 10, 16), (33 << 10, 0)] {
        let mut buffers: Vec<_> = (0..DEPTH).map(|_| AlignedBuffer::with_capacity(bytes)).collect();
        keep_some(&mut buffers);
        assert_eq!(buffers.iter().filter(|buffer| buffer.capacity() > 0).count(), kept, "{bytes}");
    }
}
