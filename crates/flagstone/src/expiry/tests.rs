//! Stories of stamps, filters and merges, with a clock in hand.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::base::merge::{MergeOperator, UInt64AddOperator};
use crate::base::sync::{AtomicU64, Ordering};
use crate::base::{
    Code, ColumnFamilyId, CompactionFilter, CompactionFilterContext, CompactionFilterFactory,
    FilterDecision, FilteredKind, KeepEverything, TableFileCreationReason,
};
use crate::env::Clock;

const NOON: u64 = 1_700_000_000;

struct Hands(AtomicU64);

impl Clock for Hands {
    fn now_us(&self) -> u64 {
        self.unix_seconds() * 1_000_000
    }

    fn unix_seconds(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn sleep(&self, duration: Duration) {
        self.0.fetch_add(duration.as_secs(), Ordering::Relaxed);
    }
}

fn life(seconds: u64) -> (Arc<Lifetime>, Arc<Hands>) {
    let hands = Arc::new(Hands(AtomicU64::new(NOON)));
    (Arc::new(Lifetime::new(seconds, hands.clone()).unwrap()), hands)
}

fn filter(factory: &TtlCompactionFilterFactory) -> Box<dyn CompactionFilter> {
    let context = CompactionFilterContext {
        is_full_compaction: true,
        is_manual_compaction: true,
        input_start_level: Some(1),
        output_level: 1,
        column_family_id: ColumnFamilyId(0),
        reason: TableFileCreationReason::Compaction,
    };
    factory.create_compaction_filter(&context).unwrap()
}

/// From a log that RocksDB's `ldb --ttl put a b` wrote.
#[test]
fn the_stamp_is_rocksdbs() {
    let stored = [b'b', 0x43, 0xb3, 0x02, 0x6b];
    assert_eq!(split(&stored), Some((&b"b"[..], 0x6b02_b343)));
    assert_eq!(stamped(b"b", 0x6b02_b343), stored);
    assert_eq!(split(b"abc"), None);
    assert_eq!(split(&stamped(b"", STAMP_MIN as u32 - 1)), None);
    assert_eq!(split(&stamped(b"", STAMP_MAX as u32 + 1)), None);
    assert_eq!(split(&stamped(b"", STAMP_MIN as u32)), Some((&b""[..], STAMP_MIN as u32)));
    assert!(unstamped(b"key", b"0000").unwrap_err().is_corruption());
}

#[test]
fn a_value_lives_to_the_end_of_its_last_second() {
    let (lifetime, hands) = life(60);
    let stamp = lifetime.stamp_of_now();
    assert_eq!(lifetime.expiry_of(stamp), Some(NOON + 60));
    assert!(!lifetime.is_stale(stamp, NOON + 60) && lifetime.is_stale(stamp, NOON + 61));
    lifetime.set_seconds(0).unwrap();
    assert!(!lifetime.is_stale(stamp, u64::MAX));
    lifetime.set_seconds(TTL_MAX).unwrap();
    assert!(!lifetime.is_stale(stamp, NOON + TTL_MAX));
    assert_eq!(lifetime.set_seconds(TTL_MAX + 1).unwrap_err().code(), Code::InvalidArgument);
    hands.0.store(0, Ordering::Relaxed);
    assert_eq!(
        u64::from(lifetime.stamp_of_now()),
        STAMP_MIN,
        "a clock that stands wrong makes no unreadable value"
    );
}

#[test]
fn an_expiry_of_its_own_is_a_stamp_like_any_other() {
    let (lifetime, _) = life(3600);
    for expiry in [NOON, NOON + 1, NOON + 86_400] {
        let stamp = lifetime.stamp_of_expiry(expiry).unwrap();
        assert!(!lifetime.is_stale(stamp, expiry) && lifetime.is_stale(stamp, expiry + 1));
    }
    for wrong in [0, STAMP_MIN + 3599, STAMP_MAX + 3600, STAMP_MAX + 3601, u64::MAX] {
        assert_eq!(lifetime.stamp_of_expiry(wrong).unwrap_err().code(), Code::InvalidArgument);
    }
    lifetime.set_seconds(0).unwrap();
    assert_eq!(lifetime.stamp_of_expiry(NOON).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn the_last_stamp_is_that_of_what_lives_for_ever() {
    let (lifetime, hands) = life(3600);
    assert_eq!(lifetime.expiry_of(STAMP_ETERNAL), None);
    assert!(!lifetime.is_stale(STAMP_ETERNAL, u64::MAX));
    assert_eq!(lifetime.stamp_of_value(7), 7);
    hands.0.store(STAMP_MAX + 1000, Ordering::Relaxed);
    assert_eq!(
        u64::from(lifetime.stamp_of_now()),
        STAMP_MAX - 1,
        "what is written then does expire"
    );
    let eternal = Lifetime::new(3600, hands).unwrap().with_rules(true, true);
    assert_eq!(eternal.stamp_of_value(7), STAMP_ETERNAL);
}

/// Went wrong: how long a merged value lived depended on when a compaction, or a reader, put it
/// together; and what had expired was merged onto, and so came back, as long as no compaction had
/// come by.
#[test]
fn where_readers_are_strict_a_merge_counts_from_its_operands() {
    let (lifetime, hands) = life(60);
    let at = |number: u64, time: u64| stamped(&number.to_le_bytes(), (NOON + time) as u32);
    for (is_eternal, of_result) in [(false, NOON as u32 + 80), (true, STAMP_ETERNAL)] {
        let strict = Lifetime::new(60, hands.clone()).unwrap().with_rules(true, is_eternal);
        let operator = TtlMergeOperator::around(Arc::new(UInt64AddOperator), Arc::new(strict));
        let merge =
            |base: &[u8], operands: &[&[u8]]| operator.full_merge(b"k", Some(base), operands);
        let result = |number: u64| Some(stamped(&number.to_le_bytes(), of_result));
        hands.sleep(Duration::from_secs(10_000));
        // It lived to the end of the second 60.
        assert_eq!(
            merge(&at(1, 0), &[&at(2, 60), &at(3, 80)]),
            result(6),
            "it lived when they came"
        );
        assert_eq!(merge(&at(1, 0), &[&at(2, 61), &at(3, 80)]), result(5), "it did not");
        assert_eq!(merge(&stamped(&1u64.to_le_bytes(), STAMP_ETERNAL), &[&at(3, 80)]), result(4));
        let late = merge(&at(1, 0), &[&at(2, 50), &at(3, 111), &at(4, 80)]);
        assert_eq!(late, result(if is_eternal { 10 } else { 7 }), "what both came to had expired");
        // Whatever lies below is judged by the time of each.
        assert_eq!(operator.partial_merge(b"k", &[&at(2, 61), &at(3, 80)]), None);
        assert_eq!(operator.partial_merge(b"k", &[&at(2, 80), &at(3, 80)]), Some(at(5, 80)));
    }
    assert!(!lifetime.is_strict());
}

#[test]
fn the_filter_drops_what_is_stale_and_nothing_else() {
    let (lifetime, hands) = life(60);
    let stored = stamped(b"value", lifetime.stamp_of_now());
    let factory = TtlCompactionFilterFactory::new(lifetime);
    let judge = |kind, stored: &[u8]| filter(&factory).filter(1, b"k", kind, stored);
    assert_eq!(judge(FilteredKind::Value, &stored), FilterDecision::Keep);
    hands.sleep(Duration::from_secs(61));
    assert_eq!(judge(FilteredKind::Value, &stored), FilterDecision::Remove);
    assert_eq!(judge(FilteredKind::MergeOperand, &stored), FilterDecision::Keep);
    assert_eq!(judge(FilteredKind::WideColumnEntity, &stored), FilterDecision::Keep);
    assert_eq!(judge(FilteredKind::Value, b"no 0000"), FilterDecision::Keep);
    assert_eq!(judge(FilteredKind::Value, b""), FilterDecision::Keep);
}

/// Doubles values, and removes large ones by their key.
struct Doubling;

impl CompactionFilter for Doubling {
    fn name(&self) -> &str {
        "Doubling"
    }

    fn filter(
        &self,
        _level: u32,
        _key: &[u8],
        _kind: FilteredKind,
        value: &[u8],
    ) -> FilterDecision {
        FilterDecision::ChangeValue([value, value].concat())
    }

    fn filter_by_key(&self, _level: u32, key: &[u8]) -> Option<FilterDecision> {
        Some(if key == b"rm" { FilterDecision::Remove } else { FilterDecision::Keep })
    }
}

#[test]
fn the_applications_filter_sees_no_stamp() {
    let (lifetime, _) = life(60);
    let stamp = lifetime.stamp_of_now();
    let factory =
        TtlCompactionFilterFactory::over(lifetime.clone(), Some(Arc::new(Doubling)), None);
    let filter = filter(&factory);
    let decision = filter.filter(0, b"k", FilteredKind::Value, &stamped(b"ab", stamp));
    assert_eq!(decision, FilterDecision::ChangeValue(stamped(b"abab", stamp)));
    assert_eq!(filter.filter_by_key(0, b"rm"), Some(FilterDecision::Remove));
    assert_eq!(filter.filter_by_key(0, b"k"), None, "it may be stale");
    assert_eq!(
        factory.option_text(),
        "{id=TtlCompactionFilterFactory;user_filter_factory=Doubling;ttl=60;}"
    );
}

#[test]
fn what_deals_with_stamps_is_replaced_and_not_wrapped_again() {
    let (lifetime, _) = life(60);
    let named: Arc<dyn CompactionFilterFactory> = Arc::new(KeepEverything::instead_of("Mine"));
    let once = TtlCompactionFilterFactory::over(lifetime.clone(), None, Some(named));
    let twice = TtlCompactionFilterFactory::over(lifetime.clone(), None, Some(Arc::new(once)));
    assert_eq!(
        twice.option_text(),
        "{id=TtlCompactionFilterFactory;user_filter_factory=Mine;ttl=60;}"
    );
    let once = TtlMergeOperator::around(Arc::new(UInt64AddOperator), lifetime.clone());
    let twice = TtlMergeOperator::around(Arc::new(once), lifetime);
    assert_eq!(twice.option_text(), "{id=TtlMergeOperator;user_operator=UInt64AddOperator;}");
}

#[test]
fn to_merge_is_to_write() {
    let (lifetime, hands) = life(60);
    let operator = TtlMergeOperator::around(Arc::new(UInt64AddOperator), lifetime.clone());
    let number = |number: u64| stamped(&number.to_le_bytes(), lifetime.stamp_of_now());
    let (base, operands) = (number(1), [number(2), number(3)]);
    hands.sleep(Duration::from_secs(1000));
    let operands: Vec<&[u8]> = operands.iter().map(Vec::as_slice).collect();
    assert_eq!(operator.full_merge(b"k", Some(&base), &operands), Some(number(6)));
    assert_eq!(operator.full_merge(b"k", None, &operands), Some(number(5)));
    assert_eq!(operator.partial_merge(b"k", &operands), Some(number(5)));
    assert_eq!(operator.full_merge(b"k", Some(b"no 0000"), &operands), None);
    assert_eq!(operator.full_merge(b"k", None, &[b"abc"]), None);
}
