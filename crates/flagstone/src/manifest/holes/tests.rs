use super::*;

/// It was the difference of two sums of which each asked the disk's part for itself: what was
/// punched in between made it less than nothing, which passed for more than all disks hold, and
/// writers were stopped.
#[test]
fn readers_keep_no_more_than_is_promised() {
    let holes = Holes::default();
    assert_eq!(holes.kept_by_readers(100), 0);
    holes.promise(80);
    assert_eq!((holes.kept_by_readers(100), holes.kept_by_readers(50)), (80, 50));
    for (punched, kept) in [(30, 50), (80, 0), (90, 0)] {
        holes.set_punched(punched);
        assert_eq!(holes.kept_by_readers(100), kept);
    }
}
