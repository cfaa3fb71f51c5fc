use super::*;
use crate::base::Code;

/// Whoever opened the table took the block for damaged, when the WAL was gone.
#[test]
fn range_deletions_that_nobody_could_read_are_refused() {
    let tombstone =
        |key: u8| RangeTombstone { start: vec![key; 300], end: vec![key + 1; 70_000], sequence: 9 };
    let all: Vec<_> = (0..40).map(tombstone).collect();
    let block = encode_tombstones(&all, usize::MAX).unwrap();
    Block::new(&block).unwrap();
    let refused = encode_tombstones(&all, block.len() - 1).map(|block| block.len()).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().starts_with("40 range deletions"), "{refused}");
    assert_eq!(encode_tombstones(&all, block.len() + 16).unwrap(), block);
}
