//! Files of the operating system, and what it says of itself.

use super::*;
use crate::base::SubCode;
use crate::env::{Spawn, Task};

#[test]
fn reading_past_the_end_is_short() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let file = OsFileSystem.create_writable(&path, IoMode::Buffered).unwrap();
    file.write_at(3, b"abc").unwrap();
    let mut buffer = [9; 10];
    assert_eq!(file.read_at(0, &mut buffer).unwrap(), 6);
    assert_eq!(&buffer[..6], b"\0\0\0abc");
    assert_eq!(file.size().unwrap(), 6);
}

#[test]
fn devices_are_no_files_even_those_with_blocks() {
    for path in fs::read_dir("/dev").unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(kind) = fs::metadata(&path).map(|found| found.file_type()) else { continue };
        let opened = OsFileSystem
            .open_random_access(&path, IoMode::Buffered)
            .map_err(|error| error.to_string());
        let is_refused = opened.err().is_some_and(|error| error.contains("it is a device"));
        assert_eq!(is_refused, kind.is_char_device() || kind.is_block_device(), "{path:?}");
    }
}

#[test]
fn what_is_read_onto_a_buffer_is_what_there_is_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let content: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    fs::write(&path, &content).unwrap();
    let file = OsFileSystem.open_random_access(&path, IoMode::Buffered).unwrap();
    for (offset, length) in [(0, 0), (0, 1), (7, 60_000), (99_990, 10), (99_990, 11), (100_001, 5)]
    {
        // With no room, a little more than is wanted, and much more.
        for capacity in [0, 3 + length, 3 + length + 4000, 3 + length + 50_000] {
            let mut buffer = Vec::with_capacity(capacity);
            buffer.extend_from_slice(b"abc");
            let filled = file.read_onto(offset as u64, length, &mut buffer).unwrap();
            let wanted = content.get(offset..).unwrap_or(&[]);
            let wanted = &wanted[..length.min(wanted.len())];
            assert_eq!(filled, wanted.len(), "{offset} {length} {capacity}");
            assert!(
                buffer.starts_with(b"abc") && &buffer[3..] == wanted,
                "{offset} {length} {capacity}"
            );
        }
    }
}

#[test]
fn direct_reads_may_begin_and_end_anywhere() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let content: Vec<u8> = (0..3_000_007u32).map(|n| (n % 251) as u8).collect();
    let cached = OsFileSystem.create_writable(&path, IoMode::Buffered).unwrap();
    cached.write_at(0, &content).unwrap();
    let file = OsFileSystem.open_random_access(&path, IoMode::Direct).unwrap();
    for offset in [0, 1, 4095, 4096, 4097, 2_999_000, 3_000_000, 3_000_006, 3_000_007, 4_000_000] {
        for length in [0, 1, 100, 4095, 4096, 4097, 8192, 1 << 20, (1 << 20) + 1, 3_100_000] {
            let mut buffer = vec![0; length];
            let read = file.read_at(offset, &mut buffer).unwrap();
            let expected = content.get(offset as usize..).unwrap_or_default();
            assert!(
                buffer[..read] == expected[..expected.len().min(length)],
                "{length} at {offset}"
            );
        }
    }
    let mut aligned = AlignedBuffer::with_capacity(8192);
    aligned.resize(8192);
    assert_eq!(file.read_at(2_998_272, aligned.as_mut_slice()).unwrap(), 1735);
}

#[test]
fn parts_are_written_one_behind_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let file = OsFileSystem.create_writable(&directory.path().join("f"), IoMode::Buffered).unwrap();
    // A few and many, more than the system takes at once; empty ones are among them.
    for count in [0, 2, VECTOR_FEW, VECTOR_FEW + 1, 5 * VECTOR_MAX] {
        let parts: Vec<Vec<u8>> = (0..count).map(|i| vec![(count + i) as u8; i % 7]).collect();
        let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        file.truncate(0).unwrap();
        file.write_at(0, &[7; 3]).unwrap();
        file.write_vectored_at(3, &slices).unwrap();
        let expected = [&[7; 3], parts.concat().as_slice()].concat();
        let mut bytes = vec![0; expected.len() + 1];
        assert_eq!(file.read_at(0, &mut bytes).unwrap(), expected.len());
        assert_eq!(bytes[..expected.len()], expected);
    }
}

#[test]
fn what_is_written_to_a_mapping_is_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = OsFileSystem.create_log(&directory.path().join("f")).unwrap();
    assert!(file.map(0, 1 << 16).unwrap().is_none(), "there is no byte yet");
    file.allocate(3 << 16, false).unwrap();
    let mut mapping = file.map(1 << 16, 2 << 16).unwrap().unwrap();
    mapping.populate(0..2 << 16).unwrap();
    mapping.write(5, b"hello");
    mapping.write((2 << 16) - 1, b"!");
    drop(mapping);
    let mut all = vec![9; 4 << 16];
    assert_eq!(file.read_at(0, &mut all).unwrap(), 3 << 16);
    assert_eq!(&all[(1 << 16) + 4..(1 << 16) + 11], b"\0hello\0");
    assert_eq!(all[(3 << 16) - 1], b'!');
}

#[test]
fn tasks_run_at_the_same_time_and_are_waited_for() {
    let meeting = std::sync::Barrier::new(3);
    let ended = std::sync::atomic::AtomicU64::new(0);
    let task = || {
        meeting.wait();
        ended.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let tasks: Vec<Task<'_>> = (0..3).map(|_| Box::new(task) as Task<'_>).collect();
    System::new().run_all("test", tasks);
    assert_eq!(ended.load(std::sync::atomic::Ordering::Relaxed), 3);
    System::new().run_all("test", Vec::new());
}

/// Opening waited for somebody who writes into it, for ever.
#[test]
#[cfg(target_os = "linux")]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("LOCK");
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let opened = [IoMode::Buffered, IoMode::Direct]
        .map(|io| OsFileSystem.open_random_access(&path, io).err());
    for error in opened.into_iter().chain([OsFileSystem.lock_for_reading(&path).err()]) {
        let error = error.expect("it is no file");
        assert!(error.to_string().contains("pipe") && error.path() == Some(&*path), "{error}");
    }
}

#[test]
fn a_missing_file_is_an_error_with_its_path() {
    let error = OsFileSystem
        .open_random_access(Path::new("/nowhere/at/all"), IoMode::Buffered)
        .err()
        .unwrap();
    assert_eq!(error.subcode(), SubCode::PathNotFound);
    assert!(error.to_string().contains("/nowhere/at/all"));
}
