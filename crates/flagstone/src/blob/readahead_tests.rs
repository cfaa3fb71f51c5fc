//! Scans over the values of blob files, by what they read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::*;
use crate::base::compression::CompressionType;
use crate::base::file_name;
use crate::base::{ColumnFamilyId, Error, FileNumber, Result};
use crate::env::memory::MemoryFileSystem;
use crate::env::{self, Advice, AnyFile, FileSystem, IoMode};

const FAMILY: ColumnFamilyId = ColumnFamilyId(3);

/// A file that notes what is read of it, and cannot read what lies beyond some place.
struct Watched {
    file: AnyFile,
    reads: Mutex<Vec<(u64, usize)>>,
    hints: Mutex<Vec<Advice>>,
    unreadable_from: Mutex<u64>,
}

impl env::FileAround for Watched {
    fn inner(&self) -> &AnyFile {
        &self.file
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.reads.lock().push((offset, buffer.len()));
        if offset + buffer.len() as u64 > *self.unreadable_from.lock() {
            return Err(Error::io("read", self.file.path(), std::io::Error::other("a bad sector")));
        }
        self.file.read_at(offset, buffer)
    }

    fn advise(&self, advice: Advice) {
        self.hints.lock().push(advice);
    }
}

type Entry = (Vec<u8>, Vec<u8>, BlobIndex);

/// Blob files with values of one size each, in the order of their keys, and a scan over them.
struct Scene {
    files: Vec<(FileNumber, Arc<Watched>, Arc<BlobFileReader>)>,
    values: Vec<Vec<Entry>>,
    ahead: BlobReadahead,
}

impl Scene {
    fn new(files: u64, values: usize, size: usize, compression: CompressionType) -> Self {
        let fs = MemoryFileSystem::new();
        fs.create_directory(Path::new("/db")).unwrap();
        let mut scene =
            Self { files: Vec::new(), values: Vec::new(), ahead: BlobReadahead::default() };
        for number in (1..=files).map(FileNumber) {
            let path: PathBuf = file_name::blob(Path::new("/db"), number);
            let settings =
                BlobBuilderSettings { column_family: FAMILY, compression, ..Default::default() };
            let file = fs.create_writable(&path, IoMode::Buffered).unwrap();
            let mut builder = BlobFileBuilder::new(file, number, &settings).unwrap();
            let entries = (0..values).map(|at| {
                let key = format!("key{at:06}").into_bytes();
                let value: Vec<u8> =
                    (0..size).map(|byte| (byte * 7 + at + number.0 as usize) as u8).collect();
                let index = builder.add(&key, &value).unwrap();
                (key, value, index)
            });
            scene.values.push(entries.collect());
            builder.finish().unwrap();
            let watched = Arc::new(Watched {
                file: fs.reopen_writable(&path).unwrap().into(),
                reads: Mutex::default(),
                hints: Mutex::default(),
                unreadable_from: Mutex::new(u64::MAX),
            });
            let reader = Arc::new(BlobFileReader::open(watched.clone(), FAMILY).unwrap());
            watched.reads.lock().clear();
            scene.files.push((number, watched, reader));
        }
        scene
    }

    fn read(&mut self, file: usize, at: usize) -> Result<Bytes> {
        let (key, _, index) = &self.values[file][at];
        let reader = self.files[file].2.clone();
        self.ahead.read(key, index, true, || Ok(reader))
    }

    /// Reads a value, lets go of it, and sees to it that it is the right one.
    fn check(&mut self, file: usize, at: usize) {
        assert_eq!(
            self.read(file, at).unwrap(),
            self.values[file][at].1,
            "value {at} of file {file}"
        );
    }

    fn reads(&self, file: usize) -> usize {
        self.files[file].1.reads.lock().len()
    }

    fn largest_read(&self, file: usize) -> usize {
        self.files[file].1.reads.lock().iter().map(|&(_, length)| length).max().unwrap()
    }
}

/// The windows of files that a compaction had done with stayed: those of twelve took three times
/// what is said.
#[test]
fn all_windows_together_keep_to_their_limit() {
    let mut scene = Scene::new(12, 50, 100_000, CompressionType::None);
    scene.ahead = BlobReadahead::of_size(4 << 20);
    for file in 0..12 {
        (0..50).for_each(|at| scene.check(file, at));
        // And the buffer for records that are read alone.
        assert!(
            scene.ahead.memory() <= scene.ahead.windows_bytes_max() + (1 << 20),
            "{file}: {}",
            scene.ahead.memory()
        );
    }
}

/// A window has the record that is asked for, however large that is; with 64 files there were 64
/// such records.
#[test]
fn windows_of_large_records_keep_to_their_limit_too() {
    let mut scene = Scene::new(6, 6, 1_000_000, CompressionType::None);
    scene.ahead = BlobReadahead::of_size(1 << 20);
    for at in 0..6 {
        (0..6).for_each(|file| scene.check(file, at));
        assert!(
            scene.ahead.memory() <= scene.ahead.windows_bytes_max() + (2 << 20),
            "{at}: {}",
            scene.ahead.memory()
        );
    }
}

#[test]
fn a_scan_reads_neighbours_together_in_either_direction() {
    for compression in [CompressionType::None, CompressionType::Lz4] {
        let mut scene = Scene::new(1, 2000, 1000, compression);
        (0..2000).for_each(|at| scene.check(0, at));
        assert!(scene.reads(0) < 30, "{} reads forward", scene.reads(0));
        scene.files[0].1.reads.lock().clear();
        (0..2000).rev().for_each(|at| scene.check(0, at));
        assert!(scene.reads(0) < 30, "{} reads back", scene.reads(0));
        assert!(scene.largest_read(0) <= 256 << 10);
    }
}

#[test]
fn files_between_which_a_scan_alternates_have_a_window_each() {
    let mut scene = Scene::new(40, 300, 900, CompressionType::None);
    for at in 0..300 {
        (0..40).for_each(|file| scene.check(file, (at + file * 3) % 300));
    }
    for file in 0..40 {
        assert!(scene.reads(file) < 20, "{} reads of file {file}", scene.reads(file));
        // The less each, the more there are.
        assert!(scene.largest_read(file) <= (4 << 20) / 40);
    }
}

#[test]
fn memory_is_bounded_and_known() {
    let mut scene = Scene::new(40, 300, 900, CompressionType::None);
    for at in 0..300 {
        (0..40).for_each(|file| scene.check(file, at));
        assert!(scene.ahead.memory() <= 4 << 20);
    }
    assert!(scene.ahead.memory() > 2 << 20, "{}", scene.ahead.memory());
    scene.ahead.forget();
    assert_eq!(scene.ahead.memory(), 0);
}

#[test]
fn more_files_than_are_watched_are_read_value_by_value() {
    let mut scene = Scene::new(70, 5, 100, CompressionType::None);
    for at in 0..5 {
        (0..70).for_each(|file| scene.check(file, at));
    }
    assert!((0..70).all(|file| scene.reads(file) == 5));
}

#[test]
fn lookups_here_and_there_read_what_they_need() {
    let mut scene = Scene::new(1, 2000, 1000, CompressionType::None);
    for at in 0..500 {
        scene.check(0, at * 7919 % 2000);
    }
    let record = 1000 + 32 + 9;
    assert!(scene.files[0].1.reads.lock().iter().all(|&(_, length)| length == record));
    assert!(scene.files[0].1.hints.lock().is_empty());
}

#[test]
fn a_short_scan_does_not_read_far_and_the_next_starts_small_again() {
    let mut scene = Scene::new(1, 4000, 1000, CompressionType::None);
    (0..1500).for_each(|at| scene.check(0, at));
    for start in [3000, 2000, 3500, 100] {
        scene.files[0].1.reads.lock().clear();
        (start..start + 10).for_each(|at| scene.check(0, at));
        assert!(scene.largest_read(0) <= 16 << 10, "{}", scene.largest_read(0));
        assert_eq!(scene.reads(0), 3);
    }
}

#[test]
fn values_of_any_size_are_read_once() {
    for size in [1, 5000, 60_000, 300_000, 5 << 20] {
        let count = ((8 << 20) / size).clamp(3, 1000);
        let mut scene = Scene::new(1, count, size, CompressionType::None);
        (0..count).for_each(|at| scene.check(0, at));
        let read: usize = scene.files[0].1.reads.lock().iter().map(|&(_, length)| length).sum();
        let stored = count * (size + 32 + 9);
        assert!(read <= stored, "{read} bytes read of {stored}");
    }
}

#[test]
fn gaps_that_overwritten_values_left_are_read_over() {
    let mut scene = Scene::new(1, 900, 3000, CompressionType::None);
    (0..900).step_by(2).for_each(|at| scene.check(0, at));
    assert!(scene.reads(0) < 40, "{} reads", scene.reads(0));
    let mut scene = Scene::new(1, 100, 50_000, CompressionType::None);
    (0..100).step_by(2).for_each(|at| scene.check(0, at));
    assert_eq!(scene.largest_read(0), 50_000 + 32 + 9);
}

#[test]
fn a_damaged_value_fails_alone_and_by_its_place() {
    let mut scene = Scene::new(1, 200, 1000, CompressionType::None);
    let index = scene.values[0][100].2;
    scene.files[0].1.file.write_at(index.offset + 500, b"!").unwrap();
    for at in 0..200 {
        if at == 100 {
            let error = scene.read(0, at).unwrap_err();
            assert!(
                error.is_corruption() && error.to_string().contains("checksum mismatch"),
                "{error}"
            );
        } else {
            scene.check(0, at);
        }
    }
}

/// What a window holds of a file that is still written may be older than the value.
#[test]
fn a_value_written_after_its_place_was_read_ahead_is_read_again() {
    let mut scene = Scene::new(1, 200, 1000, CompressionType::None);
    let index = scene.values[0][20].2;
    let whole = scene.values[0][20].1.clone();
    scene.files[0].1.file.write_at(index.offset, &[0; 1000]).unwrap();
    (0..15).for_each(|at| scene.check(0, at));
    scene.files[0].1.file.write_at(index.offset, &whole).unwrap();
    (15..200).for_each(|at| scene.check(0, at));
}

#[test]
fn what_cannot_be_read_ahead_is_no_error_of_what_can_be_read() {
    let mut scene = Scene::new(1, 100, 1000, CompressionType::None);
    *scene.files[0].1.unreadable_from.lock() = scene.values[0][51].2.offset - 32 - 9;
    (0..51).for_each(|at| scene.check(0, at));
    assert!(scene.read(0, 51).unwrap_err().to_string().contains("a bad sector"));
    *scene.files[0].1.unreadable_from.lock() = u64::MAX;
    (51..100).for_each(|at| scene.check(0, at));
}

#[test]
fn a_value_that_is_held_stays_what_it_was() {
    let mut scene = Scene::new(1, 3000, 1000, CompressionType::None);
    let held: Vec<_> = (0..3000).map(|at| scene.read(0, at).unwrap()).collect();
    for (at, value) in held.iter().enumerate() {
        assert_eq!(value, &scene.values[0][at].1);
    }
}

#[test]
fn the_system_is_told_what_comes_next_once() {
    let mut scene = Scene::new(1, 3000, 1000, CompressionType::None);
    (0..3000).for_each(|at| scene.check(0, at));
    let mut told = 0;
    for hint in scene.files[0].1.hints.lock().iter() {
        let Advice::WillNeed { offset, length } = *hint else { panic!("{hint:?}") };
        assert!(offset >= told, "{offset} was told before");
        told = offset + length;
    }
    assert_eq!(told, scene.files[0].2.file().size().unwrap() - FOOTER_SIZE as u64);
}

#[test]
fn an_index_that_leads_astray_is_an_error() {
    let mut scene = Scene::new(1, 10, 100, CompressionType::None);
    (0..9).for_each(|at| scene.check(0, at));
    for (offset, size) in [(0, 100), (u64::MAX, 100), (5, u64::MAX), (200, 1 << 40)] {
        let index = BlobIndex { offset, size, ..scene.values[0][9].2 };
        let error =
            scene.ahead.read(b"key000009", &index, true, || panic!("it is open")).unwrap_err();
        assert!(error.is_corruption(), "{error}");
    }
    let (_, _, other) = scene.values[0][3];
    assert!(
        scene
            .ahead
            .read(b"key000009", &other, true, || panic!("it is open"))
            .unwrap_err()
            .is_corruption()
    );
    scene.check(0, 9);
}
