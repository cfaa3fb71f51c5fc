use std::path::Path;

use super::*;
use crate::env::{Env, IoMode, RandomAccessFile, WritableFile};
use crate::sst::tests::support::Counted;

const SIZE: usize = 1 << 20;

fn written(env: &Env) -> (Arc<dyn WritableFile>, Vec<u8>) {
    env.fs.create_directory(Path::new("/d")).unwrap();
    let file = env.fs.create_writable(Path::new("/d/f"), IoMode::Buffered).unwrap();
    let content: Vec<u8> = (0..SIZE as u32).map(|n| (n * 7 / 3) as u8).collect();
    file.write_at(0, &content).unwrap();
    (file, content)
}

#[test]
fn what_is_read_ahead_is_what_the_file_holds() {
    let (file, content) = written(&Env::memory());
    let none = AutoReadahead { most: 0, ..AutoReadahead::default() };
    for (fixed, automatic) in
        [(0, AutoReadahead::default()), (0, none), (1000, none), (50_000, AutoReadahead::default())]
    {
        let mut readahead = Readahead::new(fixed, automatic, None);
        for offset in (0..SIZE).step_by(700).chain([5, SIZE - 1, SIZE - 1000, 0, 50_000]) {
            let length = 700.min(SIZE - offset);
            let bytes = readahead.bytes(&*file, SIZE as u64, offset as u64, length).unwrap();
            assert!(bytes.is_none_or(|bytes| bytes == &content[offset..offset + length]));
            assert!(bytes.is_some() || fixed == 0);
        }
    }
}

#[test]
fn with_a_reader_ahead_the_next_window_is_on_its_way() {
    let (file, content) = written(&Env::memory());
    let none = AutoReadahead { most: 0, ..AutoReadahead::default() };
    let ahead = Arc::new(ReadAhead::new(Env::os().spawner));
    let own = OwnFile { file: file.clone(), ahead: Some(ahead) };
    for window in [DIRECT_BLOCK, 5000, 64 << 10, SIZE, 2 * SIZE] {
        let mut readahead = Readahead::new(window, none, Some(own.clone()));
        // In order, with blocks on both sides of a window's end, and some longer than a window;
        // then here and there.
        let mut places: Vec<(usize, usize)> = Vec::new();
        for at in 0.. {
            let offset = places.last().map_or(0, |(offset, length)| offset + length);
            let length = [700, 5000, 1, 0, 9000][at % 5].min(SIZE - offset);
            places.push((offset, length));
            if offset == SIZE {
                break;
            }
        }
        places.extend([
            (SIZE - 1, 1),
            (5, 700),
            (SIZE / 2, 9000),
            (SIZE / 2 + 9000, 20),
            (0, SIZE),
        ]);
        for (offset, length) in places {
            let bytes = readahead.bytes(&*file, SIZE as u64, offset as u64, length).unwrap();
            assert_eq!(bytes.unwrap(), &content[offset..offset + length], "{window} {offset}");
            let next = readahead.next.as_ref().map(|next| next.start);
            let end = readahead.start + readahead.held().len() as u64;
            assert_eq!(next, (end < SIZE as u64).then_some(end), "{window} {offset}");
        }
    }
}

/// A cursor's windows were mappings, too, once it was told how far to read ahead.
#[test]
fn windows_are_mappings_for_who_wants_such() {
    let (file, _) = written(&Env::memory());
    for is_mapped in [false, true] {
        let mut readahead =
            Readahead::new(SIZE, AutoReadahead::default(), None).mapped_if(is_mapped);
        for _ in 0..2 {
            readahead.bytes(&*file, SIZE as u64, 0, 1000).unwrap();
            let window = readahead.bytes.as_ref().unwrap();
            // One of the allocator's is larger, to be aligned.
            let is_one = window.memory() == window.capacity();
            assert_eq!(is_one, is_mapped && !cfg!(miri));
            readahead.forget();
        }
    }
}

/// A scan of a few values of 64 KiB read half as much again as it used, and copied all of it twice.
#[test]
fn large_blocks_are_read_one_by_one_unless_that_is_to_be() {
    let (file, content) = written(&Env::memory());
    let counted = Counted::new(file);
    for (fixed, length) in [(0, ALONE_AT_LEAST - 1), (0, ALONE_AT_LEAST), (100_000, ALONE_AT_LEAST)]
    {
        let mut readahead = Readahead::new(fixed, AutoReadahead::default(), None);
        let before = counted.reads();
        let mut alone = 0;
        for offset in (0..SIZE - length).step_by(length) {
            match readahead.bytes(&counted, SIZE as u64, offset as u64, length).unwrap() {
                Some(bytes) => assert!(bytes == &content[offset..offset + length]),
                None => alone += 1,
            }
        }
        let is_alone = fixed == 0 && length == ALONE_AT_LEAST;
        assert_eq!(
            alone,
            if is_alone { 31 } else { 2 * usize::from(fixed == 0) },
            "{fixed} {length}"
        );
        assert_eq!(counted.reads() > before, !is_alone);
    }
}

/// The windows that reads of 1000 bytes from `start` on open, as far as they differ.
fn windows(
    readahead: &mut Readahead,
    file: &dyn RandomAccessFile,
    start: usize,
) -> (usize, Vec<usize>) {
    let (mut alone, mut windows) = (0, Vec::new());
    for offset in (start..SIZE - 1000).step_by(1000) {
        let is_ahead = readahead.bytes(file, SIZE as u64, offset as u64, 1000).unwrap().is_some();
        let size = readahead.held().len();
        if !is_ahead {
            alone += 1;
        } else if windows.last() != Some(&size) {
            windows.push(size);
        }
    }
    (alone, windows)
}

/// Of tables with padding each block was a read of its own.
#[test]
fn blocks_with_padding_between_follow_one_another() {
    let (file, content) = written(&Env::memory());
    let automatic = AutoReadahead { initial: 4000, most: 30_000, after_reads: 3 };
    for (padding, follow) in [(0, true), (1, true), (4096, true), (4097, false)] {
        let offsets: Vec<usize> = (0..SIZE - 1000).step_by(1000 + padding).collect();
        for (is_back, follow) in [(false, follow), (true, false)] {
            let mut readahead = Readahead::new(0, automatic, None);
            let mut alone = 0;
            for at in 0..offsets.len() {
                let offset = offsets[if is_back { offsets.len() - 1 - at } else { at }];
                match readahead.bytes(&*file, SIZE as u64, offset as u64, 1000).unwrap() {
                    Some(bytes) => assert_eq!(bytes, &content[offset..offset + 1000]),
                    None => alone += 1,
                }
            }
            assert_eq!(alone, if follow { 3 } else { offsets.len() }, "{padding}, back: {is_back}");
        }
    }
}

/// The window that was on its way was dropped where a block began behind its first byte, and most
/// of it read again.
#[test]
fn padding_where_a_window_ends_has_nothing_read_twice() {
    let (file, content) = written(&Env::memory());
    let none = AutoReadahead { most: 0, ..AutoReadahead::default() };
    let counted = Arc::new(Counted::new(file));
    let ahead = Arc::new(ReadAhead::new(Env::os().spawner));
    let own = OwnFile { file: counted.clone(), ahead: Some(ahead) };
    let mut readahead = Readahead::new(DIRECT_BLOCK, none, Some(own));
    for offset in (0..SIZE - 1000).step_by(1000) {
        let bytes = readahead.bytes(&*counted, SIZE as u64, offset as u64, 500).unwrap().unwrap();
        assert_eq!(bytes, &content[offset..offset + 500]);
    }
    assert_eq!(counted.reads(), SIZE / DIRECT_BLOCK);
}

#[test]
fn windows_double_after_some_reads_and_begin_anew_elsewhere() {
    let (file, _) = written(&Env::memory());
    let automatic = AutoReadahead { initial: 4000, most: 30_000, after_reads: 3 };
    let mut readahead = Readahead::new(0, automatic, None);
    for start in [0, 500_000, 1000] {
        let (alone, sizes) = windows(&mut readahead, &*file, start);
        assert_eq!((alone, &sizes[..4]), (3, &[4000, 8000, 16_000, 30_000][..]));
    }
    let at_once = AutoReadahead { initial: 90_000, most: 30_000, after_reads: 0 };
    let (alone, sizes) = windows(&mut Readahead::new(0, at_once, None), &*file, 0);
    assert_eq!((alone, sizes[0]), (0, 30_000));
    for none in [AutoReadahead { initial: 0, ..at_once }, AutoReadahead { most: 0, ..at_once }] {
        assert_eq!(windows(&mut Readahead::new(0, none, None), &*file, 0).1, []);
    }
}
