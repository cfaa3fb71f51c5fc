use std::path::Path;

use super::*;
use crate::base::checksum::crc32c;
use crate::base::{FILE_CHECKSUM_CRC32C, FileChecksums};
use crate::env::{Env, FileSystem, IoMode};

fn running() -> RunningFileChecksum {
    FileChecksums::default().of_function(FILE_CHECKSUM_CRC32C).unwrap()
}

fn summed(fs: &dyn FileSystem) -> SummedFile {
    fs.create_directory(Path::new("/dir")).unwrap();
    let file = fs.create_writable(Path::new("/dir/file"), IoMode::Buffered).unwrap();
    SummedFile::new(file, running())
}

#[test]
fn what_is_written_in_order_is_summed_and_not_read_again() {
    let env = Env::memory();
    let file = summed(&*env.fs);
    file.write_at(0, b"one").unwrap();
    file.write_vectored_at(3, &[b"two", b"three"]).unwrap();
    assert_eq!(file.take_checksum(11), Some(FileChecksum::crc32c(crc32c(b"onetwothree"))));
    let read = read_for_checksum(&file, 11, running()).unwrap();
    assert_eq!(read, FileChecksum::crc32c(crc32c(b"onetwothree")));
}

#[test]
fn what_is_written_out_of_order_must_be_read_again() {
    let env = Env::memory();
    let file = summed(&*env.fs);
    file.write_at(0, b"one").unwrap();
    file.write_at(1, b"N").unwrap();
    assert_eq!(file.take_checksum(3), None);
}

#[test]
fn a_file_of_another_size_must_be_read_again() {
    let env = Env::memory();
    let file = summed(&*env.fs);
    file.write_at(0, b"one and padding").unwrap();
    file.truncate(3).unwrap();
    assert_eq!(file.take_checksum(3), None);
}

#[test]
fn a_file_that_ends_early_is_named() {
    let env = Env::memory();
    let file = summed(&*env.fs);
    file.write_at(0, b"one").unwrap();
    let error = read_for_checksum(&file, 4, running()).unwrap_err();
    assert!(error.is_corruption());
    assert_eq!((error.path(), error.offset()), (Some(Path::new("/dir/file")), Some(3)));
}
