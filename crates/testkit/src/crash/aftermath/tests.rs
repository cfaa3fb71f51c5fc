use flagstone::env::{IoMode, read_file};

use super::super::choices::aftermaths;
use super::super::disk::Grain;
use super::super::record::CrashFs;
use super::*;

/// Sectors of a block that was given back were zeros, and the others what had been there: a state
/// that no file system leaves, and for which records around the hole were called damaged.
#[test]
fn a_crash_tears_no_block_that_was_given_back() {
    const BLOCK: usize = BLOCK_SIZE as usize;
    let fs = CrashFs::new();
    fs.create_directory(Path::new("/d")).unwrap();
    fs.sync_directory(Path::new("/")).unwrap();
    let path = Path::new("/d/f");
    let file = fs.create_writable(path, IoMode::Buffered).unwrap();
    fs.sync_directory(Path::new("/d")).unwrap();
    file.write_at(0, &[1; 8 * BLOCK]).unwrap();
    file.sync().unwrap();
    // Five bytes of the second block are written over, and three blocks are given back.
    let file = fs.open_reclaimable(path).unwrap();
    file.punch_hole(2 * BLOCK as u64 - 5..5 * BLOCK as u64).unwrap();
    let (mut disk, changes) = fs.recorded();
    changes.iter().for_each(|change| disk.apply(change));
    let (mut torn_holes, mut torn_write) = (0, false);
    for aftermath in aftermaths(&disk, changes.last(), Grain::FINE, 1) {
        let after = read_file(&disk.after(&aftermath).to_memory(), path, 10_000).unwrap();
        let is_hole = |block: usize| {
            let bytes = &after[block * BLOCK..(block + 1) * BLOCK];
            let zeros = bytes.iter().filter(|byte| **byte == 0).count();
            assert!(zeros == 0 || zeros == BLOCK, "{aftermath}: {zeros} bytes of a block");
            zeros > 0
        };
        let holes = (2..5).filter(|block| is_hole(*block)).count();
        torn_holes += usize::from((1..3).contains(&holes));
        torn_write |= (after[2 * BLOCK - 1] == 0) != (holes > 0);
    }
    assert!(torn_holes > 1 && torn_write, "{torn_holes} with some of the blocks, {torn_write}");
}
