use super::*;
use crate::cache::slot_size;

/// It had 40 bytes, for which a slot took two cache lines: a fiftieth of a cache's memory, and a
/// second line to wait for.
#[test]
fn an_entry_fits_into_a_slot() {
    assert_eq!(size_of::<CachedBlock>(), 32);
    assert_eq!(slot_size::<CachedBlock>(), 64);
}

/// What is noted of the memory does not change what is known of the file.
#[test]
fn whereabouts_keep_a_handle_of_any_size_that_fits() {
    let block = Block::new(&[0, 0, 0, 0, 1, 0, 0, 0]).unwrap();
    for (offset, size) in [(0, 0), (1, 0xffff), (0xf_ffff_ffff, 0xffff), (0x8_0000_0001, 4096)] {
        let handle = BlockHandle { offset, size };
        let seen = Whereabouts::new(handle).unwrap();
        assert_eq!(seen.handle(), handle);
        assert!(!seen.prefetch_block(false), "nobody has seen it");
        seen.note(&block);
        assert_eq!(seen.handle(), handle);
        assert!(seen.prefetch_block(true));
    }
    assert!(Whereabouts::new(BlockHandle { offset: 0, size: 0x1_0000 }).is_none());
    assert!(Whereabouts::new(BlockHandle { offset: 0x10_0000_0000, size: 1 }).is_none());
}
