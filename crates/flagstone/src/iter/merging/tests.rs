use super::super::testing::{VecIterator, entry_key};
use super::*;
use crate::base::ValueType;

fn merged(children: Vec<VecIterator>) -> MergingIterator<VecIterator> {
    MergingIterator::new(InternalKeyComparator::new(Comparator::Bytewise), children)
}

#[test]
fn no_children_make_an_empty_cursor() {
    let mut cursor = merged(vec![]);
    cursor.seek_to_first();
    assert!(!cursor.valid());
    cursor.seek_to_last();
    assert!(!cursor.valid() && cursor.status().is_ok());
}

#[test]
fn a_failed_child_ends_the_scan_and_says_why() {
    let mut cursor = merged(vec![
        VecIterator::parse("a@1:PUT(1) c@1:PUT(3)"),
        VecIterator::parse("b@1:PUT(2) d@1:PUT(4)").failing_after(1),
    ]);
    cursor.seek_to_first();
    cursor.next();
    assert_eq!(cursor.key().user_key(), b"b");
    cursor.next();
    assert!(!cursor.valid());
    assert!(cursor.status().unwrap_err().is_corruption());
    cursor.seek_to_first();
    assert!(cursor.valid() && cursor.status().is_ok());
}

#[test]
fn long_and_short_keys_with_equal_beginnings_are_in_order() {
    let mut cursor = merged(vec![
        VecIterator::parse("abcdefgh@1:PUT() abcdefghi@1:PUT()"),
        VecIterator::parse("abcdefg@1:PUT() abcdefgh@2:PUT()"),
    ]);
    let mut seen = Vec::new();
    cursor.seek_to_first();
    while cursor.valid() {
        seen.push(format!("{:?}", cursor.key()));
        cursor.next();
    }
    assert_eq!(
        seen,
        [
            "abcdefg@1:Some(Value)",
            "abcdefgh@2:Some(Value)",
            "abcdefgh@1:Some(Value)",
            "abcdefghi@1:Some(Value)"
        ]
    );
}

/// A random walk over random children against the sorted union.
#[test]
fn every_walk_follows_the_sorted_union() {
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..600 {
        let order = if round % 3 == 0 { Comparator::ReverseBytewise } else { Comparator::Bytewise };
        let comparator = InternalKeyComparator::new(order);
        let count = random.usize(1..7);
        let mut union = Vec::new();
        let children: Vec<_> = (0..count)
            .map(|child| {
                let mut entries: Vec<_> = (0..random.usize(..8))
                    .map(|_| {
                        let key = vec![b'a' + random.u8(..4); random.usize(1..3)];
                        InternalKeyBuf::new(&key, random.u64(1..5), ValueType::Value)
                    })
                    .collect();
                entries.sort_by(|a, b| comparator.compare(a.as_key(), b.as_key()));
                entries.dedup();
                union.extend(entries.iter().map(|key| (key.clone(), child)));
                let entries = entries.into_iter().map(|key| (key, vec![child as u8])).collect();
                VecIterator::new(comparator.clone(), entries)
            })
            .collect();
        union.sort_by(|a, b| comparator.compare(a.0.as_key(), b.0.as_key()).then(a.1.cmp(&b.1)));
        let mut cursor = MergingIterator::new(comparator.clone(), children);
        let mut at: Option<usize> = None;
        for _ in 0..40 {
            let target = entry_key(&[b'a' + random.u8(..5)], random.u64(..6));
            let before =
                |key: &InternalKeyBuf| comparator.compare(key.as_key(), target.as_key()).is_lt();
            let not_after =
                |key: &InternalKeyBuf| comparator.compare(key.as_key(), target.as_key()).is_le();
            match (random.u8(..12), at) {
                (0, _) => {
                    cursor.seek_to_first();
                    at = Some(0);
                }
                (1, _) => {
                    cursor.seek_to_last();
                    at = union.len().checked_sub(1);
                }
                (2, _) => {
                    cursor.seek(target.as_key());
                    at = Some(union.partition_point(|(key, _)| before(key)));
                }
                (3, _) => {
                    cursor.seek_for_prev(target.as_key());
                    at = union.partition_point(|(key, _)| not_after(key)).checked_sub(1);
                }
                (4..8, Some(position)) => {
                    cursor.next();
                    at = Some(position + 1);
                }
                (8.., Some(position)) => {
                    cursor.prev();
                    at = position.checked_sub(1);
                }
                _ => {}
            }
            at = at.filter(|&position| position < union.len());
            assert_eq!(cursor.valid(), at.is_some());
            if let Some(position) = at {
                let (key, child) = &union[position];
                assert_eq!((cursor.key(), cursor.value()), (key.as_key(), &[*child as u8][..]));
            }
        }
    }
}
