use super::*;
use crate::base::FileNumber;

fn blob(offset: u64, size: u64) -> BlobIndex {
    BlobIndex { file: FileNumber(1), offset, size, compression: 0 }
}

/// A file of 100 blocks of 4096 bytes, less header and footer, with so many records.
fn map_of(records: u64) -> BlockMap {
    BlockMap::new(100 * 4096 - (HEADER_SIZE + FOOTER_SIZE) as u64, records, 4096)
}

fn map() -> BlockMap {
    map_of(5)
}

/// The blocks of the holes, as text.
fn holes(map: &BlockMap) -> String {
    let holes = map.holes(0).map(|hole| format!("{}-{}", hole.start / 4096, hole.end / 4096));
    holes.collect::<Vec<_>>().join(" ")
}

#[test]
fn without_live_records_only_header_and_footer_are_in_use() {
    let map = map();
    assert_eq!(holes(&map), "1-99");
    assert!(map.holds(0, 0));
}

#[test]
fn a_block_that_a_record_touches_is_in_use() {
    let mut map = map();
    // Its header ends one block and its value ends with the next but one.
    map.mark(10, &blob(3 * 4096 + 41, 2 * 4096 - 41));
    assert_eq!(holes(&map), "5-99", "a single block stays");
    // Another begins where that ends.
    map.mark(10, &blob(5 * 4096 + 42, 1));
    assert_eq!(holes(&map), "6-99");
    assert!(map.holds(2, 2 * 4096 + 1 + 43) && !map.holds(1, 2 * 4096 + 1));
}

#[test]
fn holes_are_as_long_as_what_a_record_leaves() {
    let holes_among = |records| {
        let mut map = map_of(records);
        [1, 3, 6, 10].iter().for_each(|block| map.mark(10, &blob(block * 4096 + 42, 1)));
        holes(&map)
    };
    assert_eq!(holes_among(24), "7-10 11-99", "four blocks");
    assert_eq!(holes_among(32), "4-6 7-10 11-99", "three blocks");
    assert_eq!(holes_among(48), "2-3 4-6 7-10 11-99", "two blocks");
    assert_eq!(holes_among(4000), "2-3 4-6 7-10 11-99", "less than one");
}

#[test]
fn records_that_the_file_cannot_have_are_noticed() {
    for wrong in [
        blob(10, 5),
        blob(50 * 4096, 60 * 4096),
        blob(u64::MAX - 2, 100),
        blob(100 * 4096 - 40, 20),
    ] {
        let mut map = map();
        map.mark(3, &wrong);
        assert!(!map.holds(1, 3 + 32 + wrong.size) && !map.holds(0, 0), "{wrong:?}");
    }
}

#[test]
fn small_blocks_and_files_are_like_others() {
    assert_eq!(BlockMap::new(0, 0, 4096).holes(0).count(), 0);
    let mut map = BlockMap::new(1000, 2, 64);
    map.mark(2, &blob(30 + 34 + 200, 100));
    assert!(map.holes(0).eq(std::iter::once(384..1024)));
    assert!(map.holes(500).eq(std::iter::once(448..1024)));
    assert_eq!(map.memory_usage(), 8);
}
