use super::*;
use crate::env::memory::MemoryFileSystem;
use crate::env::{FileSystem, IoMode};
use std::path::Path;

fn separator(min_blob_size: u64, blob_file_size: u64) -> BlobSeparator<impl OpenBlobFile> {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/db")).unwrap();
    let mut next = 10;
    let open = move || {
        next += 1;
        let path = crate::base::file_name::blob(Path::new("/db"), FileNumber(next));
        Ok((FileNumber(next), fs.create_writable(&path, IoMode::Buffered)?))
    };
    let policy = SeparationPolicy::AtLeast { min_blob_size };
    BlobSeparator::new(policy, BlobBuilderSettings::default(), blob_file_size, open)
}

#[test]
fn small_and_empty_values_stay() {
    let mut separator = separator(4, 1 << 20);
    assert_eq!(separator.separate(b"a", b"").unwrap(), None);
    assert_eq!(separator.separate(b"b", b"123").unwrap(), None);
    assert!(separator.current.is_none());
    assert!(separator.separate(b"c", b"1234").unwrap().is_some());
    assert!(!SeparationPolicy::AtLeast { min_blob_size: 0 }.separates(0));
    assert!(!SeparationPolicy::Never.separates(1 << 30));
}

/// A flush failed for a value that LZ4 cannot compress, and so did each opening after it.
#[test]
fn what_the_codec_cannot_compress_stays() {
    let mut separator = separator(4, 1 << 20);
    assert_eq!(separator.value_size_max, u32::MAX as usize);
    separator.value_size_max = 5;
    assert!(separator.separate(b"a", b"12345").unwrap().is_some());
    assert_eq!(separator.separate(b"b", b"123456").unwrap(), None);
    assert_eq!(CompressionType::Lz4.raw_size_max(), 0x7e00_0000);
}

#[test]
fn a_file_is_sealed_once_it_is_large_enough() {
    let mut separator = separator(0, 300);
    let files: Vec<_> = (0..5)
        .map(|i| separator.separate(&[b'a' + i], &[0; 100]).unwrap().unwrap().file.0)
        .collect();
    assert_eq!(files, [11, 11, 12, 12, 13]);
    let finished = separator.finish().unwrap();
    let counts: Vec<_> = finished.iter().map(|file| file.summary.count).collect();
    assert_eq!(counts, [2, 2, 1]);
    assert!(finished.iter().all(|file| file.file.size().unwrap() > 0));
}

#[test]
fn without_values_there_is_no_file() {
    assert!(separator(0, 300).finish().unwrap().is_empty());
}
