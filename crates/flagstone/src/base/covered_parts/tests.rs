use super::*;

/// Ascending ranges that may touch, the numbers of which differ by multiples of `1 << unit`.
fn drawn(random: &mut fastrand::Rng, unit: u32) -> Vec<(u64, u64)> {
    let most = [20, 3000, u64::MAX >> unit][random.usize(..3)];
    let mut ends: Vec<u64> = (0..random.usize(..400)).map(|_| random.u64(..=most)).collect();
    ends.sort_unstable();
    ends.dedup();
    let base = random.u64(..=u64::MAX - (most << unit));
    let ends: Vec<u64> = ends.iter().map(|end| base + (end << unit)).collect();
    let (touching, narrow) = (random.bool(), random.bool());
    let pairs = ends.windows(2).enumerate().filter(|&(at, _)| touching || at % 2 == 0);
    let least = |from: u64| from.saturating_add((1 << unit) - 1);
    pairs.map(|(_, pair)| (pair[0], if narrow { least(pair[0]) } else { pair[1] - 1 })).collect()
}

#[test]
fn bits_know_of_what_is_in_no_range_and_of_all_where_ranges_end_between_parts() {
    let (mut sure, mut unsure, mut filtered, mut unseen) = (0, 0, 0, 0);
    for round in 0..1000 {
        let mut random = fastrand::Rng::with_seed(round);
        let unit = random.u32(..50);
        let ranges = drawn(&mut random, unit);
        let known = random.bool().then_some(unit);
        let parts = CoveredParts::of(ranges.iter().copied(), known);
        assert!(parts.memory_usage() <= 8 + 4 * ranges.len(), "{} ranges", ranges.len());
        let near =
            ranges.iter().flat_map(|&(from, to)| [from, to].map(|end| (end, random.u64(..3))));
        let near: Vec<u64> = near.map(|(end, off)| (end + off).saturating_sub(1)).collect();
        let others = (0..50).map(|_| random.u64(..)).chain([0, u64::MAX]);
        for number in near.into_iter().chain(others) {
            let covered = ranges.iter().any(|&(from, to)| (from..=to).contains(&number));
            match parts.at(number) {
                Covered::No => assert!(!covered, "{number} among {ranges:?}"),
                Covered::Yes => assert!(covered && known.is_some(), "{number} among {ranges:?}"),
                Covered::Maybe => unseen += u32::from(!covered),
            }
            *match parts.form {
                Form::Exact => &mut sure,
                Form::Ordered => &mut unsure,
                Form::Filter => &mut filtered,
            } += 1;
        }
    }
    let counts = [sure, unsure, filtered];
    assert!(counts.iter().all(|&count| count > 10_000) && unseen > 1000, "{counts:?} {unseen}");
}

/// Of ranges of one number each, in digits or hashes or both, however dense these lie, most other
/// numbers of the kind are known to lie in none.
#[test]
fn narrow_ranges_of_numbers_that_are_not_spread_evenly_are_told_apart() {
    let text = |text: String| u64::from_be_bytes(*text.as_bytes().first_chunk().unwrap());
    let hash = |n: u64| n.wrapping_mul(0xff51_afd7_ed55_8ccd);
    let shapes: [&dyn Fn(u64) -> u64; 4] = [
        &|n| text(format!("{n:08}")),
        &hash,
        &|n| text(format!("{:08x}", hash(n) >> 32)),
        // Close together, but for a few.
        &|n| n << 20 | u64::from(n % 100 == 0) << 63,
    ];
    for (shape, number) in shapes.iter().enumerate() {
        let mut ranges: Vec<_> = (0..10_000).map(|n| (number(4 * n), number(4 * n))).collect();
        ranges.sort_unstable();
        let parts = CoveredParts::of(ranges.iter().copied(), None);
        let others = (0..40_000).filter(|n| n % 4 > 0);
        let unseen = others.filter(|&n| parts.at(number(n)) == Covered::Maybe).count();
        assert!(unseen < 30_000 / 20, "{unseen} of 30,000, {shape}");
    }
}
