//! Scans as text: entries in, keys and values out. Random histories are in the compaction's model
//! tests.

use std::sync::Arc;

use parking_lot::Mutex;

use bytes::Bytes;

use super::*;
use crate::base::merge::StringAppendOperator;
use crate::base::{
    FragmentedRangeTombstones, InternalKeyComparator, PrefixExtractor, RangeTombstone,
};
use crate::iter::testing::{VecIterator, parse_entries, parse_tombstones};
use crate::iter::{DeadRanges, HistoryEpoch, TombstoneSource};

/// Remembers which blobs were fetched.
#[derive(Clone, Default)]
struct Blobs(Arc<Mutex<Vec<String>>>);

impl ValueResolver for Blobs {
    fn resolve_blob(&self, _user_key: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        self.0.lock().push(blob_index.escape_ascii().to_string());
        match blob_index {
            b"bad" => Err(Error::corruption("a bad blob")),
            _ => Ok(blob_index.to_ascii_uppercase().into()),
        }
    }
}

/// Sources are divided by `|`, newest first.
fn cursor(
    sources: &str,
    change: impl FnOnce(&mut DbIterSettings),
) -> (DbIter<VecIterator, Blobs>, Blobs) {
    let mut settings = DbIterSettings::new(Comparator::Bytewise, MAX_SEQUENCE_NUMBER);
    settings.merge_operator = Some(Arc::new(StringAppendOperator::new(",")));
    change(&mut settings);
    let (mut children, mut tombstones) = (Vec::new(), Vec::new());
    for source in sources.split('|') {
        let (ranges, entries): (Vec<_>, Vec<_>) =
            source.split_whitespace().partition(|word| word.starts_with('['));
        let ranges = parse_tombstones(&ranges.join(" "));
        let whole = Arc::new(FragmentedRangeTombstones::new(&Comparator::Bytewise, ranges));
        if !whole.is_empty() {
            tombstones.push((children.len(), TombstoneSource::One(whole.untruncated())));
        }
        children.push(VecIterator::parse(&entries.join(" ")));
    }
    let view = TombstoneView::new(Comparator::Bytewise, settings.snapshot, tombstones);
    let order = InternalKeyComparator::new(Comparator::Bytewise);
    let blobs = Blobs::default();
    (DbIter::new(settings, MergingIterator::new(order, children), view, blobs.clone()), blobs)
}

fn shown(cursor: &mut DbIter<VecIterator, Blobs>) -> String {
    let key = cursor.key().escape_ascii().to_string();
    format!("{key}={}", cursor.value().unwrap().escape_ascii())
}

/// From where the cursor stands to the end.
fn rest(
    cursor: &mut DbIter<VecIterator, Blobs>,
    step: fn(&mut DbIter<VecIterator, Blobs>),
) -> String {
    let mut seen = Vec::new();
    while cursor.valid() {
        seen.push(shown(cursor));
        step(cursor);
    }
    cursor.status().unwrap();
    seen.join(" ")
}

/// The same pairs must come out in both directions, whether versions are stepped over or skipped by
/// seeks.
#[track_caller]
fn shows(sources: &str, snapshot: SequenceNumber, expected: &str) {
    for max_sequential_skips in [0, 1, 8] {
        let change = |settings: &mut DbIterSettings| {
            (settings.snapshot, settings.max_sequential_skips) = (snapshot, max_sequential_skips);
        };
        let (mut cursor, _) = cursor(sources, change);
        cursor.seek_to_first();
        assert_eq!(rest(&mut cursor, DbIter::next), expected, "forward");
        cursor.seek_to_last();
        let backward = rest(&mut cursor, DbIter::prev);
        let backward: Vec<_> = backward.split_whitespace().rev().collect();
        assert_eq!(backward.join(" "), expected, "backward");
    }
}

#[test]
fn each_key_shows_its_newest_visible_version() {
    let sources = "a@9:PUT(9) b@8:DEL d@7:SD | a@5:PUT(5) b@4:PUT(4) c@3:PUT(3) d@2:PUT(2)";
    shows(sources, 100, "a=9 c=3");
    shows(sources, 8, "a=5 c=3");
    shows(sources, 7, "a=5 b=4 c=3");
    shows(sources, 6, "a=5 b=4 c=3 d=2");
    shows(sources, 2, "d=2");
    shows(sources, 1, "");
}

/// RocksDB takes tables in whose entries have the sequence number 0, deletions too. Whoever sought
/// behind one of these came to it again, without an end.
#[test]
fn a_deletion_in_the_last_place_of_its_key_is_passed() {
    shows("a@9:PUT(9) b@8:PUT(8) | a@0:DEL | b@0:DEL c@0:PUT(0)", 9, "a=9 b=8 c=0");
    shows("a@0:DEL | a@0:DEL b@0:DEL | b@0:DEL c@0:PUT(0)", 9, "c=0");
    shows("a@9:DEL b@9:DEL | a@2:PUT(2) a@1:PUT(1) a@0:DEL | b@0:DEL c@0:PUT(0)", 9, "c=0");
}

#[test]
fn every_kind_of_value_is_shown() {
    shows("a@1:BLOB(x) b@2:ENTITY(e) c@3:TIMED(t/1)", 9, "a=X b=e c=t");
    shows("a@3:MERGE(3) a@2:MERGE(2) a@1:PUT(1) b@5:MERGE(5) b@4:DEL b@3:PUT(3)", 9, "a=1,2,3 b=5");
    shows("a@3:MERGE(3) | a@2:BLOB(x) b@1:MERGE(1)", 9, "a=X,3 b=1");
    shows("a@3:MERGE(3) a@2:ENTITY(e) b@3:MERGE(3) b@2:TIMED(t/1)", 9, "a=e,3 b=t,3");
}

#[test]
fn range_tombstones_hide_what_is_older() {
    shows("[b,d)@5 b@6:PUT(6) | a@1:PUT(1) b@2:PUT(2) c@3:PUT(3) d@4:PUT(4)", 9, "a=1 b=6 d=4");
    shows("[b,d)@5 b@6:PUT(6) | a@1:PUT(1) b@2:PUT(2) c@3:PUT(3) d@4:PUT(4)", 4, "a=1 b=2 c=3 d=4");
    shows("[a,c)@5 a@6:MERGE(6) | a@4:MERGE(4) a@3:PUT(3) b@1:PUT(1)", 9, "a=6");
}

#[test]
fn a_covered_run_is_leapt_over() {
    let mut old = String::new();
    for number in 100..1100 {
        old.push_str(&format!("k{number:04}@1:PUT() "));
    }
    let (mut cursor, _) = cursor(&format!("[k,k1099)@9 | {old}"), |_| {});
    cursor.seek_to_first();
    assert_eq!(rest(&mut cursor, DbIter::next), "k1099=");
    cursor.seek_to_last();
    assert_eq!(rest(&mut cursor, DbIter::prev), "k1099=");
    let steps = cursor.inner.children()[1].steps;
    assert!(steps < 20, "{steps} steps");
}

/// How many steps the entries were moved over while a cursor went to the last key (back), or else
/// to the first.
fn steps_to_the_end(entries: &str, ranges: &Arc<DeadRanges>, back: bool, expected: &str) -> usize {
    let (mut cursor, _) = cursor(entries, |settings| settings.dead_ranges = Some(ranges.clone()));
    if back {
        cursor.seek_to_last()
    } else {
        cursor.seek_to_first()
    }
    assert_eq!(shown(&mut cursor), expected);
    cursor.inner.children()[0].steps
}

/// Scans back walked over all deletions, each time.
#[test]
fn a_run_of_deleted_keys_is_leapt_over_once_two_scans_have_found_nothing() {
    let below = (1..500).map(|number| format!("k{number:04}@9:DEL k{number:04}@2:PUT()"));
    let above = (501..1000).map(|number| format!("k{number:04}@9:DEL k{number:04}@2:MERGE(x)"));
    let entries: Vec<_> = below.chain(["k0500@1:PUT(there)".to_string()]).chain(above).collect();
    let entries = entries.join(" ");
    for back in [false, true] {
        let ranges = Arc::new(DeadRanges::new(Comparator::Bytewise));
        let steps = || steps_to_the_end(&entries, &ranges, back, "k0500=there");
        assert!(steps() > 490, "nothing is known");
        ranges.write(MAX_SEQUENCE_NUMBER - 1, None);
        assert!(steps() > 490, "what was written meanwhile might not have been seen");
        assert!(steps() < 20, "{} steps", steps());
        // A key in the middle of the range ends it there.
        ranges.write(MAX_SEQUENCE_NUMBER - 1, Some(if back { b"k0750" } else { b"k0250" }));
        let halfway = steps();
        assert!((250..1000).contains(&halfway), "{halfway} steps");
    }
}

/// Tables beyond the bounds were not looked at: what is told of ends there.
#[test]
fn a_run_of_deleted_keys_that_reaches_the_bound_ends_there() {
    let deleted: Vec<_> = (100..200).map(|number| format!("k{number}@9:DEL")).collect();
    let entries = format!("a@1:PUT(1) {}", deleted.join(" "));
    let ranges = Arc::new(DeadRanges::new(Comparator::Bytewise));
    for _ in 0..2 {
        let (mut cursor, _) = cursor(&entries, |settings| {
            settings.bounds.lower = Some(b"c"[..].into());
            settings.dead_ranges = Some(ranges.clone());
        });
        cursor.seek_to_last();
        assert!(!cursor.valid() && cursor.status().is_ok());
        ranges.write(MAX_SEQUENCE_NUMBER - 1, None);
    }
    let end =
        ranges.end_of(b"k150", Towards::Earlier, HistoryEpoch::default(), MAX_SEQUENCE_NUMBER);
    assert_eq!(end.as_deref(), Some(&b"c"[..]));
}

/// Keys that were added since a snapshot are none that are deleted: nobody could leap over them,
/// and writes would watch them.
#[test]
fn keys_that_a_snapshot_does_not_see_yet_are_no_run() {
    let added: Vec<_> = (100..300).map(|number| format!("k{number}@9:PUT()")).collect();
    let entries = format!("a@1:PUT(1) {} z@1:PUT(2)", added.join(" "));
    for max_sequential_skips in [0, 8] {
        let ranges = Arc::new(DeadRanges::new(Comparator::Bytewise));
        let (mut cursor, _) = cursor(&entries, |settings| {
            settings.dead_ranges = Some(ranges.clone());
            (settings.snapshot, settings.max_sequential_skips) = (5, max_sequential_skips);
        });
        cursor.seek_to_last();
        assert_eq!(rest(&mut cursor, DbIter::prev), "z=2 a=1");
        assert!(!ranges.is_watching());
    }
}

#[test]
fn many_versions_of_a_key_are_leapt_over() {
    let mut versions = String::new();
    for sequence in (1..1000).rev() {
        versions.push_str(&format!("k@{sequence}:PUT({sequence}) "));
    }
    let sources = format!("a@1:PUT(a) {versions} z@1:PUT(z)");
    let (mut cursor, _) = cursor(&sources, |settings| settings.snapshot = 500);
    cursor.seek_to_first();
    assert_eq!(rest(&mut cursor, DbIter::next), "a=a k=500 z=z");
    cursor.seek_to_last();
    assert_eq!(rest(&mut cursor, DbIter::prev), "z=z k=500 a=a");
    let steps = cursor.inner.children()[0].steps;
    assert!(steps < 60, "{steps} steps");
}

/// A scan back counted keys, however many entries of each it passed.
#[test]
fn hidden_entries_count_in_both_directions() {
    let sources = "a@1:PUT(1) k@9:DEL k@8:PUT(8) k@7:MERGE(7) k@6:PUT(6) k@5:DEL z@3:PUT(3) z@2:MERGE(2) z@1:PUT(1)";
    // The five of `k`; of `z`, those under its newest value.
    for (limit, back_from) in [(4, None), (5, Some("a=1"))] {
        let (mut cursor, _) = cursor(sources, |settings| settings.max_skippable = limit);
        let mut found = |towards: fn(&mut DbIter<VecIterator, Blobs>)| {
            towards(&mut cursor);
            cursor.status().ok().map(|()| shown(&mut cursor))
        };
        assert_eq!(found(|cursor| cursor.seek(b"b")).as_deref(), back_from.map(|_| "z=3"));
        assert_eq!(found(|cursor| cursor.seek_for_prev(b"y")).as_deref(), back_from);
        assert_eq!(found(|cursor| cursor.seek_to_last()).as_deref(), Some("z=3"));
    }
    for (limit, last) in [(1, None), (2, Some("z=3"))] {
        let (mut cursor, _) = cursor(sources, |settings| settings.max_skippable = limit);
        cursor.seek_to_last();
        assert_eq!(cursor.status().ok().map(|()| shown(&mut cursor)).as_deref(), last);
    }
}

#[test]
fn a_reverse_order_is_followed_throughout() {
    let order = InternalKeyComparator::new(Comparator::ReverseBytewise);
    let entries = parse_entries(
        "e@2:PUT(e) d@5:PUT(d) d@2:DEL c@1:PUT(c) b@4:MERGE(2) b@3:MERGE(1) a@1:PUT(a)",
    );
    let ranges = vec![RangeTombstone { start: b"c".to_vec(), end: b"b".to_vec(), sequence: 9 }];
    let whole = Arc::new(FragmentedRangeTombstones::new(&order.user, ranges));
    let mut settings = DbIterSettings::new(order.user.clone(), 100);
    settings.merge_operator = Some(Arc::new(StringAppendOperator::new(",")));
    settings.bounds = KeyBounds { lower: Some(b"d"[..].into()), upper: Some(b"a"[..].into()) };
    let view = TombstoneView::new(
        order.user.clone(),
        100,
        vec![(0, TombstoneSource::One(whole.untruncated()))],
    );
    let children = vec![VecIterator::new(order.clone(), entries)];
    let mut cursor =
        DbIter::new(settings, MergingIterator::new(order, children), view, Blobs::default());
    cursor.seek_to_first();
    assert_eq!(rest(&mut cursor, DbIter::next), "d=d b=1,2");
    cursor.seek_to_last();
    assert_eq!(rest(&mut cursor, DbIter::prev), "b=1,2 d=d");
    cursor.seek(b"c");
    assert_eq!(shown(&mut cursor), "b=1,2");
    cursor.prev();
    assert_eq!(shown(&mut cursor), "d=d");
    cursor.next();
    assert_eq!(shown(&mut cursor), "b=1,2");
    cursor.seek_for_prev(b"c");
    assert_eq!(shown(&mut cursor), "d=d");
}

#[test]
fn bounds_limit_scans_and_seeks() {
    let sources = "a@1:PUT() b@1:PUT() c@1:PUT() d@1:PUT() e@1:PUT()";
    let bounds = KeyBounds { lower: Some(b"b"[..].into()), upper: Some(b"d"[..].into()) };
    let (mut cursor, _) = cursor(sources, |settings| settings.bounds = bounds);
    cursor.seek_to_first();
    assert_eq!(rest(&mut cursor, DbIter::next), "b= c=");
    cursor.seek_to_last();
    assert_eq!(rest(&mut cursor, DbIter::prev), "c= b=");
    cursor.seek(b"a");
    assert_eq!(cursor.key(), b"b");
    cursor.prev();
    assert!(!cursor.valid());
    cursor.seek_for_prev(b"z");
    assert_eq!(cursor.key(), b"c");
    cursor.next();
    assert!(!cursor.valid());
    cursor.seek(b"d");
    assert!(!cursor.valid());
    cursor.seek_for_prev(b"a");
    assert!(!cursor.valid());
}

#[test]
fn a_scan_stays_in_the_prefix_it_was_started_with() {
    let sources = "a1@1:PUT() a2@1:PUT() b1@1:PUT() b2@1:PUT() c@1:PUT()";
    let (mut cursor, _) =
        cursor(sources, |settings| settings.same_prefix = Some(PrefixExtractor::FixedPrefix(1)));
    cursor.seek(b"a2");
    assert_eq!(rest(&mut cursor, DbIter::next), "a2=");
    cursor.seek(b"b");
    assert_eq!(rest(&mut cursor, DbIter::next), "b1= b2=");
    cursor.seek_for_prev(b"b2");
    assert_eq!(rest(&mut cursor, DbIter::prev), "b2= b1=");
    cursor.seek(b"a3");
    assert!(!cursor.valid());
    cursor.seek_to_first();
    assert_eq!(rest(&mut cursor, DbIter::next), "a1= a2=");
    cursor.seek_to_last();
    assert_eq!(rest(&mut cursor, DbIter::prev), "c=");
    // A key without prefix is a seek in total order.
    cursor.seek(b"");
    assert_eq!(rest(&mut cursor, DbIter::next), "a1= a2= b1= b2= c=");
}

#[test]
fn blobs_are_fetched_only_when_their_values_are_asked_for() {
    let (mut cursor, blobs) = cursor("a@1:BLOB(x) b@1:BLOB(y) c@2:MERGE(m) c@1:BLOB(z)", |_| {});
    cursor.seek_to_first();
    while cursor.valid() {
        cursor.next();
    }
    assert!(blobs.0.lock().is_empty());
    cursor.seek(b"b");
    assert_eq!((shown(&mut cursor), shown(&mut cursor)), ("b=Y".into(), "b=Y".into()));
    assert_eq!(*blobs.0.lock(), ["y"]);
    cursor.next();
    assert_eq!(shown(&mut cursor), "c=Z,m");
}

#[test]
fn a_value_that_cannot_be_had_leaves_the_cursor_in_place() {
    let (mut cursor, _) = cursor("a@1:BLOB(bad) b@1:PUT(b)", |_| {});
    cursor.seek_to_first();
    assert!(cursor.value().unwrap_err().is_corruption());
    assert!(cursor.valid() && cursor.status().is_ok());
    cursor.next();
    assert_eq!(shown(&mut cursor), "b=b");
    let (mut cursor, _) = self::cursor("a@1:MERGE(x)", |settings| settings.merge_operator = None);
    cursor.seek_to_first();
    assert_eq!(cursor.value().unwrap_err().code(), crate::base::Code::InvalidArgument);
}

#[test]
fn a_failing_source_ends_the_scan_with_its_error() {
    let order = InternalKeyComparator::new(Comparator::Bytewise);
    for fails_at in 0..4 {
        for backward in [false, true] {
            let text = "a@2:MERGE(2) a@1:PUT(1) b@4:PUT(4) b@3:PUT(3)";
            let children = vec![
                VecIterator::parse(text).failing_after(fails_at),
                VecIterator::parse("c@1:PUT()"),
            ];
            let mut settings = DbIterSettings::new(Comparator::Bytewise, 9);
            settings.max_sequential_skips = fails_at % 2;
            let view = TombstoneView::new(Comparator::Bytewise, 0, Vec::new());
            let inner = MergingIterator::new(order.clone(), children);
            let mut cursor = DbIter::new(settings, inner, view, Blobs::default());
            if backward {
                cursor.seek_to_last()
            } else {
                cursor.seek_to_first()
            }
            while cursor.valid() {
                if backward { cursor.prev() } else { cursor.next() }
            }
            assert!(cursor.status().unwrap_err().is_corruption(), "{fails_at} {backward}");
        }
    }
}

/// A scan went round in circles: having passed many of these it sought the first version that it
/// sees, which was among them.
#[test]
fn range_tombstones_among_the_entries_are_damage() {
    for max_sequential_skips in [0, 8] {
        for backward in [false, true] {
            let order = InternalKeyComparator::new(Comparator::Bytewise);
            let strange =
                |at| (InternalKeyBuf::new(b"a", at, ValueType::RangeDeletion), Vec::new());
            let entries = (1..=12).rev().map(strange).chain(parse_entries("b@1:PUT(1)")).collect();
            let inner = MergingIterator::new(order.clone(), vec![VecIterator::new(order, entries)]);
            let settings = DbIterSettings {
                max_sequential_skips,
                ..DbIterSettings::new(Comparator::Bytewise, 100)
            };
            let view = TombstoneView::new(Comparator::Bytewise, 0, Vec::new());
            let mut cursor = DbIter::new(settings, inner, view, Blobs::default());
            if backward {
                cursor.seek_to_last();
                assert_eq!(cursor.key(), b"b");
                cursor.prev();
            } else {
                cursor.seek_to_first();
            }
            assert!(!cursor.valid() && cursor.status().unwrap_err().is_corruption());
        }
    }
}

#[test]
fn plain_values_are_shown_where_they_are_stored() {
    let (mut cursor, _) = cursor("a@1:PUT(x)", |_| {});
    cursor.seek_to_first();
    let stored = cursor.inner.value().as_ptr();
    assert_eq!(cursor.value().unwrap().as_ptr(), stored);
}
