use super::*;

/// A database with a `compressed_secondary_cache_size` of 1 PiB asked for 2 TiB at once, and the
/// process ended.
#[test]
fn what_a_huge_tier_remembers_fits_into_memory() {
    assert_eq!(seen_by(1 << 30), 1 << 20);
    assert_eq!(seen_by(1 << 50), SEEN_MAX);
}

#[test]
fn reads_are_remembered_for_a_while() {
    let seen = Seen::new(4096);
    let key = |offset| CacheKey { file: 3, offset };
    let again = |range: std::ops::Range<u64>| range.filter(|&n| seen.again(key(n))).count();
    assert!(again(0..1000) < 5, "hardly one is taken for another");
    assert!(again(0..1000) > 990);
    again(10_000..40_000);
    assert!(again(0..1000) < 20, "others were read meanwhile");
    assert_eq!((Seen::new(0).memory_usage(), Seen::new(4096).memory_usage()), (8, 8192));
}
