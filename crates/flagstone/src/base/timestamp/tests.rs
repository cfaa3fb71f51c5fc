use super::{before_all, check_size, from_u64, join, last_of, split, to_u64};
use crate::base::{Comparator, UserComparator};
use std::cmp::Ordering;
use std::sync::Arc;

fn at(key: &str, timestamp: u64) -> Vec<u8> {
    join(key.as_bytes(), &from_u64(timestamp))
}

#[test]
fn the_newest_version_of_a_key_comes_first() {
    let order = Comparator::BytewiseU64Ts;
    let sorted = [at("", 7), at("a", u64::MAX), at("a", 256), at("a", 1), at("a", 0), at("ab", 9)];
    for (at_a, a) in sorted.iter().enumerate() {
        for (at_b, b) in sorted.iter().enumerate() {
            assert_eq!(order.compare(a, b), at_a.cmp(&at_b), "{a:?} and {b:?}");
        }
    }
    let reverse = Comparator::ReverseBytewiseU64Ts;
    assert_eq!(reverse.compare(&at("b", 1), &at("a", 9)), Ordering::Less);
    assert_eq!(reverse.compare(&at("a", 9), &at("a", 1)), Ordering::Less);
}

#[test]
fn keys_that_are_too_short_for_a_timestamp_have_an_order() {
    let order = Comparator::BytewiseU64Ts;
    let keys: [&[u8]; 5] = [b"", b"\x01", b"\x01\0", b"1234567", b"12345678"];
    for a in keys {
        for b in keys {
            assert_eq!(order.compare(a, b), order.compare(b, a).reverse(), "{a:?} and {b:?}");
            assert_eq!(order.compare(a, b).is_eq(), a == b, "{a:?} and {b:?}");
        }
    }
}

#[test]
fn bounds_enclose_all_versions() {
    let order = Comparator::BytewiseU64Ts;
    assert_eq!(order.compare(&before_all(b"k", 8), &at("k", u64::MAX)), Ordering::Equal);
    assert_eq!(order.compare(&last_of(b"k", 8), &at("k", 0)), Ordering::Equal);
    assert_eq!(split(&at("k", 3), 8), (&b"k"[..], &from_u64(3)[..]));
    assert_eq!(to_u64(&from_u64(77)), Some(77));
    assert_eq!(to_u64(b"short"), None);
}

#[test]
fn keys_alone_have_the_order_without_timestamps() {
    for (with, without) in [
        (Comparator::BytewiseU64Ts, Comparator::Bytewise),
        (Comparator::ReverseBytewiseU64Ts, Comparator::ReverseBytewise),
    ] {
        assert_eq!(with.without_timestamps(), without);
        assert_eq!(with.grouping().compare(&at("a", 1), &at("a", 2)), Ordering::Equal);
        let (a, b) = (at("a", 1), at("b", 2));
        assert_eq!(with.grouping().compare(&a, &b), without.compare(b"a", b"b"));
        assert_eq!(with.grouping().name(), with.name());
    }
}

struct Days;

impl UserComparator for Days {
    fn name(&self) -> &str {
        "days"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let ((a, day_a), (b, day_b)) = (split(a, 2), split(b, 2));
        a.cmp(b).then_with(|| day_b.cmp(day_a))
    }

    fn timestamp_size(&self) -> usize {
        2
    }
}

#[test]
fn an_order_of_the_application_may_have_timestamps() {
    let order = Comparator::Custom(Arc::new(Days));
    assert_eq!(order.timestamp_size(), 2);
    assert_eq!(order.compare_timestamps(b"\0\x01", b"\0\x02"), Ordering::Less);
    assert_eq!(order.compare_keys(b"k\0\x01", b"k\0\x02"), Ordering::Equal);
    assert_eq!(order.without_timestamps().compare(b"a", b"b"), Ordering::Less);
    assert_eq!(order.without_timestamps().timestamp_size(), 0);
}

#[test]
fn a_timestamp_of_another_size_is_refused() {
    assert!(check_size("f", 8, 8).is_ok());
    let text =
        |size, timestamp: &[u8]| check_size("f", size, timestamp.len()).unwrap_err().to_string();
    assert!(text(8, b"1234").contains("those of column family 'f' have 8"));
    assert!(text(0, b"1234").contains("has no timestamps"));
}
