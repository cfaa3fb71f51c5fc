//! Stories of values that are appended as they are committed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::base::compression::CompressionType;
use crate::base::file_name;
use crate::base::{ColumnFamilyId, Error, FileNumber, Result};
use crate::env::memory::MemoryFileSystem;
use crate::env::{self, AnyFile, FileSystem, IoMode, PAGE_RUN};

const FAMILY: ColumnFamilyId = ColumnFamilyId(3);
const NUMBER: FileNumber = FileNumber(10);

/// A file whose writes fail, after half of their bytes, while it is told to.
struct Failing {
    inner: AnyFile,
    fails: AtomicBool,
}

impl env::FileAround for Failing {
    fn inner(&self) -> &AnyFile {
        &self.inner
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if !self.fails.load(Ordering::Relaxed) {
            return self.inner.write_at(offset, data);
        }
        self.inner.write_at(offset, &data[..data.len() / 2])?;
        Err(Error::io("write", self.inner.path(), std::io::Error::other("broken")))
    }
}

fn new_file() -> Arc<Failing> {
    let fs = MemoryFileSystem::new();
    let path: PathBuf = file_name::blob(Path::new("/db"), NUMBER);
    fs.create_directory(Path::new("/db")).unwrap();
    let inner = fs.create_writable(&path, IoMode::Buffered).unwrap();
    Arc::new(Failing { inner: inner.into(), fails: AtomicBool::new(false) })
}

fn appender(file: &Arc<Failing>, compression: CompressionType) -> BlobAppender {
    let settings = BlobBuilderSettings { column_family: FAMILY, compression, ..Default::default() };
    BlobAppender::new(file.clone(), NUMBER, settings).unwrap()
}

fn append(appender: &BlobAppender, key: &str, value: &str) -> Result<BlobIndex> {
    let blob = NewBlob { user_key: key.as_bytes(), value: value.as_bytes() };
    appender.append(&[blob]).map(|indexes| indexes.expect("not sealed")[0])
}

/// The keys of a sealed file's records, read from the front; `total` is what sealing said.
fn keys(file: &Arc<Failing>, total: BlobFileSummary) -> Vec<String> {
    let mut scan = BlobFileScan::new(file.clone()).unwrap();
    let records: Vec<_> = scan.by_ref().map(Result::unwrap).collect();
    assert_eq!(scan.footer().map(|footer| footer.count), Some(total.count));
    assert_eq!(records.len() as u64, total.count);
    assert_eq!(records.iter().map(BlobRecord::size).sum::<u64>(), total.total_bytes);
    records.into_iter().map(|record| String::from_utf8(record.key).unwrap()).collect()
}

#[test]
fn what_is_appended_is_read_at_once_and_after_sealing() {
    for compression in CompressionType::ALL {
        let file = new_file();
        let appender = appender(&file, compression);
        let first = append(&appender, "a", "one").unwrap();
        let reader = BlobFileReader::open_unsealed(file.clone(), FAMILY).unwrap();
        let blobs =
            ["two", "", "three"].map(|value| NewBlob { user_key: b"b", value: value.as_bytes() });
        let rest = appender.append(&blobs).unwrap().unwrap();
        for reader in [reader, {
            let total = appender.seal().unwrap();
            assert_eq!(keys(&file, total), ["a", "b", "b", "b"]);
            BlobFileReader::open(file.clone(), FAMILY).unwrap()
        }] {
            assert_eq!(&*reader.get(b"a", &first, true).unwrap(), b"one");
            for (blob, index) in blobs.iter().zip(&rest) {
                assert_eq!(&*reader.get(b"b", index, true).unwrap(), blob.value, "{compression}");
                reader.check(b"b", index).unwrap();
            }
        }
    }
}

#[test]
fn many_threads_append_and_one_seals() {
    let file = new_file();
    let appender = appender(&file, CompressionType::None);
    let written: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let appender = &appender;
                scope.spawn(move || {
                    let key = format!("key{thread}");
                    let one = || {
                        let value = key.repeat(100);
                        let blob = NewBlob { user_key: key.as_bytes(), value: value.as_bytes() };
                        appender.append(&[blob]).unwrap().is_some()
                    };
                    (0..200).filter(|_| one()).count()
                })
            })
            .collect();
        while appender.end() < 10_000 {
            std::thread::yield_now();
        }
        appender.seal().unwrap();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(keys(&file, appender.seal().unwrap()).len(), written);
    assert!(appender.append(&[NewBlob { user_key: b"k", value: b"v" }]).unwrap().is_none());
}

#[test]
fn a_write_that_failed_last_leaves_nothing() {
    let file = new_file();
    let appender = appender(&file, CompressionType::None);
    append(&appender, "a", "one").unwrap();
    file.fails.store(true, Ordering::Relaxed);
    append(&appender, "b", &"two".repeat(100)).unwrap_err();
    file.fails.store(false, Ordering::Relaxed);
    let third = append(&appender, "c", "three").unwrap();
    let total = appender.seal().unwrap();
    assert_eq!(keys(&file, total), ["a", "c"]);
    let reader = BlobFileReader::open(file, FAMILY).unwrap();
    assert_eq!(&*reader.get(b"c", &third, true).unwrap(), b"three");
}

/// Went wrong: nothing cut off what the last write had left when it failed. The footer did not end
/// the file, and the file could not be opened.
#[test]
fn what_a_failed_write_left_does_not_lie_behind_the_footer() {
    let file = new_file();
    let appender = appender(&file, CompressionType::None);
    // No zeros go ahead of values of this size, which would be cut off anyway.
    let large = "x".repeat(256 << 10);
    let first = append(&appender, "a", &large).unwrap();
    file.fails.store(true, Ordering::Relaxed);
    // Half of the key and what precedes it are longer than a footer.
    append(&appender, &"b".repeat(1000), &large).unwrap_err();
    file.fails.store(false, Ordering::Relaxed);
    let total = appender.seal().unwrap();
    assert_eq!(keys(&file, total), ["a"]);
    let reader = BlobFileReader::open(file, FAMILY).unwrap();
    assert_eq!(&*reader.get(b"a", &first, true).unwrap(), large.as_bytes());
}

#[test]
fn zeros_go_ahead_of_small_values_and_are_cut_off() {
    let file = new_file();
    let appender = appender(&file, CompressionType::None);
    let value = |n: usize| format!("{n}").repeat(1_000);
    let mut indexes: Vec<_> = (0..50).map(|n| append(&appender, "k", &value(n)).unwrap()).collect();
    let ahead = file.inner.size().unwrap();
    assert!(ahead > appender.end() && ahead.is_multiple_of(PAGE_RUN), "{ahead}");
    // Zeros that cannot be written take nothing with them.
    file.fails.store(true, Ordering::Relaxed);
    append(&appender, "k", &"x".repeat((ahead - appender.end()) as usize)).unwrap_err();
    file.fails.store(false, Ordering::Relaxed);
    indexes.extend((50..90).map(|n| append(&appender, "k", &value(n)).unwrap()));
    let total = appender.seal().unwrap();
    assert_eq!(keys(&file, total).len(), 90);
    let reader = BlobFileReader::open(file, FAMILY).unwrap();
    for (n, index) in indexes.iter().enumerate() {
        assert_eq!(&*reader.get(b"k", index, true).unwrap(), value(n).as_bytes());
    }
}

#[test]
fn longer_values_have_longer_runs_once_the_file_is_large() {
    let file = new_file();
    let appender = appender(&file, CompressionType::None);
    let value = "value".repeat(8_000);
    let mut ahead = Vec::new();
    let indexes: Vec<_> = (0..40)
        .map(|_| {
            let index = append(&appender, "k", &value).unwrap();
            ahead.push(file.inner.size().unwrap() - appender.end());
            index
        })
        .collect();
    let is_little = |(n, bytes): (usize, &u64)| *bytes <= (n as u64 + 1) * 40_000 / 4;
    assert!(ahead.iter().enumerate().all(is_little), "at most a quarter of the file: {ahead:?}");
    assert!(ahead.iter().max() > Some(&(64 << 10)), "{ahead:?}");
    assert_eq!(keys(&file, appender.seal().unwrap()).len(), 40);
    let reader = BlobFileReader::open(file, FAMILY).unwrap();
    assert!(
        indexes.iter().all(|index| *reader.get(b"k", index, true).unwrap() == *value.as_bytes())
    );
}

#[test]
fn a_file_that_is_synced_with_each_value_gets_no_zeros() {
    let file = new_file();
    let appender = appender(&file, CompressionType::None);
    appender.note_sync();
    for _ in 0..50 {
        append(&appender, "k", &"value".repeat(1_000)).unwrap();
        appender.note_sync();
        assert_eq!(file.inner.size().unwrap(), appender.end());
    }
}

#[test]
fn a_write_that_failed_before_another_leaves_a_record_of_no_key() {
    // Smaller and larger than what zeros are written for at once.
    for size in [3 * 32 + 100, 3 << 20] {
        let file = new_file();
        let appender = appender(&file, CompressionType::None);
        append(&appender, "a", "one").unwrap();
        // As if it were still being written when the next one comes.
        let lost = appender.reserve(size, 3).unwrap().unwrap();
        let next = append(&appender, "c", "three").unwrap();
        drop(lost);
        file.fails.store(true, Ordering::Relaxed);
        appender.seal().unwrap_err();
        file.fails.store(false, Ordering::Relaxed);
        let total = appender.seal().unwrap();
        assert_eq!(keys(&file, total), ["a", "", "c"]);
        let reader = BlobFileReader::open(file, FAMILY).unwrap();
        assert_eq!(&*reader.get(b"c", &next, true).unwrap(), b"three");
    }
}

#[test]
fn a_value_in_pieces_has_a_file_of_its_own() {
    let file = new_file();
    let mut stream = BlobStream::new(file.clone(), NUMBER, FAMILY, b"key").unwrap();
    let value: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
    for piece in value.chunks(77_777) {
        stream.write(piece).unwrap();
    }
    assert!(BlobFileReader::open_unsealed(file.clone(), FAMILY).is_err(), "not finished");
    let (index, total) = stream.finish().unwrap();
    assert_eq!(keys(&file, total), ["key"]);
    let reader = BlobFileReader::open(file.clone(), FAMILY).unwrap();
    assert_eq!(&*reader.get(b"key", &index, true).unwrap(), value.as_slice());
    reader.check(b"key", &index).unwrap();
    assert!(reader.check(b"KEY", &index).unwrap_err().is_corruption());
    file.inner.write_at(index.offset + 999_999, b"x").unwrap();
    assert!(reader.check(b"key", &index).unwrap_err().is_corruption());
}
