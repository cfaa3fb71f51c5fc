use std::path::Path;

use super::test_support::BadSector;
use super::*;
use crate::env::memory::MemoryFileSystem;
use crate::env::{FileSystem, IoMode};

#[test]
fn a_page_that_cannot_be_read_costs_no_other() {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/db")).unwrap();
    let file = fs.create_writable(Path::new("/db/file"), IoMode::Buffered).unwrap();
    let bytes: Vec<u8> = (0..20_000).map(|at| (at % 251) as u8).collect();
    file.write_at(0, &bytes).unwrap();
    let bad = BadSector(file.into(), 9000..9512);
    let mut buffer = vec![0; 30_000];
    assert_eq!(read_around_failures(&bad, 1000, &mut buffer).unwrap(), 19_000);
    let mut expected = bytes;
    expected[8192..12_288].fill(FILLER);
    assert!(buffer[..19_000] == expected[1000..]);
    assert_eq!(read_around_failures(&bad, 25_000, &mut buffer).unwrap(), 0);
    assert_eq!(read_around_failures(&bad, 12_288, &mut buffer[..10]).unwrap(), 10);
}
