//! Blob files with holes where dead records lie, scanned and read.

use std::path::Path;

use super::*;
use crate::base::compression::CompressionType;
use crate::base::{ColumnFamilyId, FileNumber};
use crate::env::memory::MemoryFileSystem;
use crate::env::{FileSystem, IoMode, read_until_end};

const BLOCK: u64 = 64;
const NUMBER: FileNumber = FileNumber(10);
const FAMILY: ColumnFamilyId = ColumnFamilyId(3);

const PATH: &str = "/db/000010.blob";

type Records = Vec<(Vec<u8>, BlobIndex)>;

/// Some keys, and where their values lie, in a sealed file with values of up to so many bytes.
fn written(random: &mut fastrand::Rng, longest: usize) -> (MemoryFileSystem, Records) {
    let fs = MemoryFileSystem::with_block_size(BLOCK);
    fs.create_directory(Path::new("/db")).unwrap();
    let file = fs.create_writable(Path::new(PATH), IoMode::Buffered).unwrap();
    let settings = BlobBuilderSettings {
        column_family: FAMILY,
        compression: CompressionType::None,
        ..Default::default()
    };
    let mut builder = BlobFileBuilder::new(file.clone(), NUMBER, &settings).unwrap();
    let keys = (0..40).map(|number| format!("key{number}").into_bytes());
    let records = keys.map(|key| {
        let value: Vec<u8> = (0..random.usize(1..longest)).map(|_| random.u8(..3)).collect();
        let index = builder.add(&key, &value).unwrap();
        (key, index)
    });
    let records = records.collect();
    builder.finish().unwrap();
    (fs, records)
}

#[test]
fn what_is_live_is_found_between_whole_and_torn_holes() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let longest = random.choice([2, 40, 300, 3000]).unwrap();
        let (fs, records) = written(&mut random, longest);
        let file = fs.open_reclaimable(Path::new(PATH)).unwrap();
        let live_part = random.f64();
        let (live, dead): (Vec<_>, Vec<_>) = records.iter().partition(|_| random.f64() < live_part);
        let total = records.iter().map(|(key, index)| index.record_bytes(key.len())).sum();
        let mut map = BlockMap::new(total, records.len() as u64, BLOCK);
        live.iter().for_each(|(key, index)| map.mark(key.len(), index));
        let torn = random.bool();
        for hole in map.holes(0) {
            for piece in hole.step_by(BLOCK as usize) {
                if !torn || random.bool() {
                    assert!(file.punch_hole(piece..piece + BLOCK).unwrap());
                }
            }
        }
        let mut scan = BlobFileScan::new(file.clone()).unwrap();
        let found: Vec<_> = scan.by_ref().map(|record| record.unwrap().key).collect();
        for (key, _) in &live {
            assert!(found.contains(key), "seed {seed}: {}", key.escape_ascii());
        }
        assert!(scan.footer().is_some(), "seed {seed}");
        assert!(scan.has_holes() || found.len() == live.len() + dead.len(), "seed {seed}");
        let reader = BlobFileReader::open(file, FAMILY).unwrap();
        live.iter().for_each(|(key, index)| drop(reader.get(key, index, true).unwrap()));
    }
}

#[test]
fn a_damaged_record_is_no_hole() {
    let mut random = fastrand::Rng::with_seed(1);
    let (fs, records) = written(&mut random, 300);
    let file = fs.reopen_writable(Path::new(PATH)).unwrap();
    let (_, index) = &records[20];
    let mut byte = [0];
    read_until_end(&*file, index.offset, &mut byte).unwrap();
    file.write_at(index.offset, &[byte[0] ^ 1]).unwrap();
    let mut scan = BlobFileScan::new(file).unwrap();
    assert_eq!(scan.by_ref().filter(|record| record.is_err()).count(), 1);
    assert!(!scan.has_holes());
}
