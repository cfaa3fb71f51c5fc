use super::*;
use crate::cache::CacheSettings;

/// A scan over the keys from `start` on, and after how many of its keys it asked for more.
fn scan(asked: &mut Asked, start: u64, keys: u64) -> Vec<u64> {
    let cache = BlockCache::new(&CacheSettings::with_capacity(1 << 20));
    let key = |offset| CacheKey { file: 7, offset };
    let mut asked_at = Vec::new();
    for at in 0..keys {
        asked.come_to(key(start + at), &cache, |visit| {
            asked_at.push(at);
            let _ = (start + at + 1..).map(key).take_while(|key| visit(*key)).count();
        });
    }
    asked_at
}

#[test]
fn a_few_values_are_asked_for_where_a_scan_begins_and_more_where_it_goes_on() {
    let mut asked = Asked::default();
    assert_eq!(scan(&mut asked, 0, 22), [0, 4, 12, 20]);
    assert_eq!(scan(&mut asked, 1000, 6), [0, 4], "a seek is a beginning");
    assert_eq!(scan(&mut asked, 1006, 10), [6], "the same scan goes on");
    assert_eq!(scan(&mut asked, 5, 1), [0]);
}

#[test]
fn values_that_a_scan_passes_over_are_not_waited_for() {
    let (mut asked, cache) =
        (Asked::default(), BlockCache::new(&CacheSettings::with_capacity(1 << 20)));
    let key = |offset| CacheKey { file: 7, offset };
    let mut times = 0;
    for at in [0, 2, 3, 4, 9, 10] {
        asked.come_to(key(at), &cache, |visit| {
            times += 1;
            let _ = (at + 1..).map(key).take_while(|key| visit(*key)).count();
        });
    }
    assert_eq!(times, 2, "0 with 1 to 3, and 4 with 5 to 11");
}
