use super::*;

#[test]
fn the_published_ten_thousandth_numbers() {
    // [rand.predef] of the C++ standard.
    let mut twister = MersenneTwister::new(5489);
    let last = (0..10_000).map(|_| twister.next_u64()).last();
    assert_eq!(last, Some(9_981_545_732_273_789_042));
    let mut lehmer = Lehmer::new(1);
    let last = (0..10_000).map(|_| lehmer.below(u64::MAX)).last();
    assert_eq!(last, Some(1_043_618_065));
}
