use super::*;

/// Each thread kept a large block that nothing could make use of.
#[test]
fn only_what_another_block_can_have_is_kept() {
    SPARE.set(None);
    reuse(BlockRoom::new(64 << 10));
    assert!(SPARE.take().is_none());
    reuse(BlockRoom::new(4096));
    assert!(SPARE.with_borrow(Option::is_some));
    assert_eq!(room_for(4000, GuideRoom::None).len(), 4000);
    assert!(SPARE.take().is_none());
}
