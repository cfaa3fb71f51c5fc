use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::base::{Comparator, FileNumber};
use crate::env::FileSystem;
use crate::env::memory::MemoryFileSystem;
use crate::manifest::FileNumbers;
use crate::salvage::runs::Runs;

fn fail(error: Error) {
    panic!("{error}");
}

/// All versions of a key that is written again and again were in memory at once, with their values.
#[test]
fn what_a_value_hides_is_not_kept() {
    let fs: Arc<dyn FileSystem> = Arc::new(MemoryFileSystem::new());
    let directory = Path::new("/new");
    fs.create_directory(directory).unwrap();
    let numbers = FileNumbers::starting_at(FileNumber(1));
    let mut runs = Runs::new(&fs, directory, &numbers, 20_000);
    let mut add = |sequence, kind| {
        let key = InternalKeyBuf::new(b"key", sequence, kind);
        runs.add("family", &Comparator::Bytewise, key.as_key(), &[b'x'; 100]).unwrap();
    };
    (0..1000).for_each(|sequence| add(sequence, ValueType::Value));
    add(1000, ValueType::BlobIndex);
    add(1001, ValueType::Merge);
    let walks = runs.take("family").unwrap().into_iter().map(|run| (Origin::Log, run.entries()));
    let order = InternalKeyComparator::new(Comparator::Bytewise);
    let mut merge = Merge::new(order, walks.collect(), &mut fail);
    let (_, versions) = merge.next_key(&mut fail).unwrap();
    let sequences: Vec<_> = versions.iter().map(|version| version.sequence).collect();
    assert_eq!(sequences, [1001, 1000, 999, 0]);
    assert!(merge.passed == 1002 && merge.next_key(&mut fail).is_none());
}
