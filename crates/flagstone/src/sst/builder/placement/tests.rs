use super::*;

/// Blocks that take half of what they have and forty bytes.
fn noted() -> Placement {
    let mut placement = Placement::new(4096, 512, 4096);
    for n in 0..40 {
        let raw = 2000 + n * 977 % 2000;
        placement.note(raw, raw / 2 + 40);
    }
    placement
}

#[test]
fn nothing_is_ended_early_before_it_is_known_how_blocks_compress() {
    assert_eq!(Placement::new(4096, 512, 4096).limit(100), Limit::NONE);
}

#[test]
fn limits_follow_from_the_room_up_to_the_boundary() {
    let limit = |offset| noted().limit(offset);
    // (4096 - 5 - 40) * 2 bytes in two blocks; the same behind padding.
    for offset in [0, 4096, 4096 - 512, 8 * 4096 - 1] {
        let Limit { enough, most, least } = limit(offset);
        assert!((8085..=8102).contains(&most), "{most}");
        assert_eq!((enough, least), (most / 2, 1024));
    }
    // (2000 - 5 - 40) * 2 bytes, in one.
    let Limit { enough, most, least } = limit(2096);
    assert!((3893..=3910).contains(&most), "{most}");
    assert_eq!((enough, least), (usize::MAX, 1024));
    // Too little for a block, too much for padding.
    assert_eq!(limit(4096 - 530), Limit::NONE);
}

#[test]
fn one_huge_block_changes_nothing() {
    let mut placement = noted();
    let before = placement.limit(0);
    placement.note(1 << 20, 1 << 10);
    assert_eq!(placement.limit(0), before);
}

#[test]
fn a_block_ends_before_what_takes_it_over_the_boundary() {
    let limit = Limit { enough: usize::MAX, most: 3000, least: 1000 };
    let ends = |size, after| limit.ends(size, || after + 20, || after);
    assert!(ends(2900, 3001) && ends(1000, 4000));
    assert!(!ends(2900, 3000), "it fits");
    assert!(!ends(999, 4000), "too small");
    assert!(!ends(3001, 3100), "it lies across anyway");
    assert!(Limit { enough: 1500, ..limit }.ends(1500, || 0, || 0), "another fits behind it");
    assert!(!Limit::NONE.ends(1 << 30, || usize::MAX, || usize::MAX));
}

#[test]
fn only_blocks_that_fit_behind_it_have_padding_before_them() {
    let placement = Placement::new(4096, 512, 4096);
    assert_eq!(placement.padding(4096 - 512, 513), 512);
    assert_eq!(placement.padding(4096 - 512, 512), 0, "it ends at the boundary");
    assert_eq!(placement.padding(4096 - 513, 514), 0, "too much would be skipped");
    assert_eq!(placement.padding(4000, 4096), 96);
    assert_eq!(placement.padding(4000, 4097), 0, "larger than a super block");
    assert_eq!(placement.padding(8192, 4096), 0);
}
