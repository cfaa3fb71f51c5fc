//! Ranges, prefixes, cursors and streams, as a program uses them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use flagstone::{Code, Comparator, Cursor, Db, ReadOptions, Result};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn code<T: std::fmt::Debug>(outcome: Result<T>) -> Code {
    outcome.expect_err("a refusal").code()
}

/// Ends of ranges, from both sides by turns, against an ordered map.
#[test]
fn a_range_is_what_an_ordered_map_has_there() {
    for comparator in [Comparator::Bytewise, Comparator::ReverseBytewise] {
        let directory = temporary();
        let db = Db::builder(directory.path())
            .options(|options| options.cf.comparator = comparator.clone())
            .open()
            .unwrap();
        let mut random = fastrand::Rng::with_seed(7);
        let place = |key: u8| if comparator.is_bytewise() { key } else { 255 - key };
        let mut map = BTreeMap::new();
        for _ in 0..300 {
            let (key, value) = (random.u8(..60), random.u8(..));
            if random.u8(0..4) == 0 {
                map.remove(&place(key));
                db.delete([key]).unwrap();
            } else {
                map.insert(place(key), (vec![key], vec![value]));
                db.put([key], [value]).unwrap();
            }
            if random.u8(0..40) == 0 {
                db.flush().unwrap();
            }
            let bound = |key: u8, kind: u8| match kind {
                0 => Bound::Included(key),
                1 => Bound::Excluded(key),
                _ => Bound::Unbounded,
            };
            let [mut start, mut end] = [random.u8(..62), random.u8(..62)];
            if place(start) > place(end) {
                (start, end) = (end, start);
            }
            let kinds = [random.u8(..3), random.u8(..3)];
            if start == end && kinds == [1, 1] {
                // A map panics here.
                continue;
            }
            let expected = map.range((bound(place(start), kinds[0]), bound(place(end), kinds[1])));
            let mut expected: std::collections::VecDeque<_> =
                expected.map(|(_, entry)| entry.clone()).collect();
            let bounds =
                (bound(start, kinds[0]).map(|key| [key]), bound(end, kinds[1]).map(|key| [key]));
            let mut range = db.range(bounds);
            loop {
                let (found, wanted) = if random.bool() {
                    (range.next(), expected.pop_front())
                } else {
                    (range.next_back(), expected.pop_back())
                };
                assert_eq!(found.transpose().unwrap(), wanted, "{bounds:?}");
                if wanted.is_none() {
                    break;
                }
            }
            assert!(range.next().is_none() && range.next_back().is_none(), "it has ended");
        }
        let keys: Vec<_> = db.iter().keys().map(Result::unwrap).collect();
        assert!(keys.iter().eq(map.values().map(|(key, _)| key)));
        let keys: Vec<_> = db.iter().keys().rev().map(Result::unwrap).collect();
        assert!(keys.iter().eq(map.values().rev().map(|(key, _)| key)));
    }
}

/// Both ends of a range see one moment, though the second is opened later.
#[test]
fn what_is_written_meanwhile_is_not_in_a_range() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    (0..10u8).for_each(|key| db.put([key], [key]).unwrap());
    let mut range = db.range::<[u8; 1]>(..);
    db.put([20], [20]).unwrap();
    assert_eq!(range.next().unwrap().unwrap(), (vec![0], vec![0]));
    db.delete([9]).unwrap();
    db.flush().unwrap();
    assert_eq!(range.next_back().unwrap().unwrap(), (vec![9], vec![9]));
    assert_eq!(range.count(), 8);
}

#[test]
fn prefixes_end_where_others_begin() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    for key in [&b"a"[..], b"a\xff", b"a\xff\xff", b"b", b"\xff", b"\xff\xff", b"\xff\xff\x01"] {
        db.put(key, "").unwrap();
    }
    let count = |prefix: &[u8]| db.prefix(prefix).keys().map(Result::unwrap).count();
    assert_eq!(count(b"a"), 3);
    assert_eq!(count(b"a\xff"), 2);
    assert_eq!(count(b"\xff"), 3);
    assert_eq!(count(b"\xff\xff"), 2);
    assert_eq!(count(b""), 7);
    assert_eq!(count(b"c"), 0);
    let last = db.prefix(b"\xff").keys().next_back().unwrap().unwrap();
    assert_eq!(last, b"\xff\xff\x01");
}

/// A documented loop over an iterator never ended behind an error.
#[test]
fn an_error_is_returned_once() {
    let directory = temporary();
    let db = Db::builder(directory.path())
        .options(|options| {
            options.cf.merge_with("never", |_, _, _| None);
        })
        .open()
        .unwrap();
    db.put("key", "value").unwrap();
    db.merge("like", "no").unwrap();
    db.put("more", "value").unwrap();
    let mut backwards = db.range("m".."a");
    assert_eq!(code(backwards.next().unwrap()), Code::InvalidArgument);
    assert!(backwards.next().is_none() && backwards.next_back().is_none());
    let mut all = db.iter();
    assert_eq!(all.next().unwrap().unwrap().0, b"key");
    assert_eq!(code(all.next().unwrap()), Code::Corruption);
    assert!(all.next().is_none() && all.next_back().is_none());
    assert_eq!(db.iter().filter(Result::is_err).count(), 1);
}

#[test]
fn what_has_no_order_of_bytes_has_no_prefixes() {
    let directory = temporary();
    let db = Db::builder(directory.path())
        .options(|options| options.cf.comparator = Comparator::ReverseBytewise)
        .open()
        .unwrap();
    db.put("key", "value").unwrap();
    let mut prefix = db.prefix("k");
    assert_eq!(code(prefix.next().unwrap()), Code::NotSupported);
    assert!(prefix.next().is_none());
}

#[test]
fn a_cursor_lends_out_what_it_stands_on() {
    let directory = temporary();
    let db = Db::open(directory.path()).unwrap();
    ["cats/kit", "cats/tom", "dogs/rex"].iter().for_each(|key| db.put(key, "x").unwrap());
    let mut cursor: Cursor = db.cursor(&ReadOptions::default()).unwrap();
    cursor.seek("cats/l");
    assert_eq!(cursor.key(), b"cats/tom");
    assert_eq!(cursor.value().unwrap(), b"x");
}

/// As the iterator, whatever of it was taken before, in memory and on the disk.
#[test]
fn a_stream_is_what_is_left_of_a_range() {
    let directory = temporary();
    let db = Db::builder(directory.path())
        .options(|options| options.block_cache_size = Some(0))
        .expiring_family("sessions", Duration::from_secs(3600), |_| {})
        .open()
        .unwrap();
    let sessions = db.column_family("sessions").unwrap();
    for key in 0..100u8 {
        for family in [&*db, &sessions] {
            family.put([key, 1], vec![key; 10_000]).unwrap();
            family.put([key, 2], [key]).unwrap();
        }
        if key % 40 == 20 {
            db.flush().unwrap();
        }
    }
    let bounds = [
        (Bound::Unbounded, Bound::Unbounded),
        (Bound::Included([20, 1]), Bound::Included([90, 1])),
        (Bound::Excluded([20, 1]), Bound::Excluded([90, 1])),
        (Bound::Included([20, 0]), Bound::Included([90, 3])),
        (Bound::Excluded([20, 1]), Bound::Included([20, 1])),
        (Bound::Included([99, 2]), Bound::Unbounded),
    ];
    testkit::history::block_on(async {
        for view in [&**db, &*sessions, &db.snapshot()] {
            for (bounds, taken) in bounds.into_iter().flat_map(|bounds| [(bounds, 0), (bounds, 2)])
            {
                let range = || {
                    let mut range = view.range(bounds);
                    (0..taken).for_each(|_| drop(range.next()));
                    (0..taken).for_each(|_| drop(range.next_back()));
                    range
                };
                let mut stream = range().stream();
                for expected in range() {
                    let found = stream.next().await.expect("an entry").unwrap();
                    assert!(found == expected.unwrap(), "{bounds:?}");
                }
                assert!(stream.next().await.is_none() && stream.next().await.is_none());
            }
        }
        let mut wrong = db.range([2]..[1]).stream();
        assert_eq!(code(wrong.next().await.unwrap()), Code::InvalidArgument);
        assert!(wrong.next().await.is_none());
    });
}
