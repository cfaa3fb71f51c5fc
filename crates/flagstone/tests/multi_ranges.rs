//! Several ranges of keys by one call.

#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use flagstone::reports::{PerfContext, PerfLevel, PerfMetric, set_perf_level};
use flagstone::{Code, Comparator, Db, Env, Ranges, Result};

type Pair = (Vec<u8>, Vec<u8>);

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// `days` has a key for each day of a year.
fn days(directory: &tempfile::TempDir) -> Db {
    let db = Db::open(directory.path()).unwrap();
    for month in 1..=12 {
        for day in 1..=28 {
            db.put(format!("{month:02}-{day:02}"), format!("{day}")).unwrap();
        }
    }
    db
}

fn keys(ranges: Ranges) -> Vec<Vec<String>> {
    let text = |entry: Result<Pair>| String::from_utf8(entry.unwrap().0).unwrap();
    ranges.map(|range| range.map(text).collect()).collect()
}

fn refused<T: std::fmt::Debug>(outcome: Result<T>, reason: &str) {
    let error = outcome.expect_err("it is refused");
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.to_string().contains(reason), "{error}");
}

/// Each range has what an ordered map has there, from either end.
#[test]
fn ranges_are_those_of_an_ordered_map() {
    let mut random = fastrand::Rng::with_seed(11);
    for comparator in [Comparator::Bytewise, Comparator::ReverseBytewise] {
        let directory = temporary();
        let db = Db::builder(directory.path())
            .options(|options| options.cf.comparator = comparator.clone())
            .open()
            .unwrap();
        let place = |key: u8| if comparator.is_bytewise() { key } else { 255 - key };
        let mut map: BTreeMap<u8, Pair> = BTreeMap::new();
        for round in 0..200 {
            let (key, value) = (random.u8(..), random.u8(..));
            map.insert(place(key), (vec![key], vec![value]));
            db.put([key], [value]).unwrap();
            if round % 50 == 0 {
                db.flush().unwrap();
            }
        }
        for _ in 0..100 {
            let mut ends: Vec<u8> = (0..2 * random.usize(1..6)).map(|_| random.u8(..)).collect();
            ends.sort_unstable();
            ends.dedup();
            // In the order of the keys, and each end excluded.
            let ranges: Vec<(u8, u8)> = ends.chunks_exact(2).map(|two| (two[0], two[1])).collect();
            let bounds = ranges.iter().map(|(start, end)| {
                (Bound::Included([place(*start)]), Bound::Excluded([place(*end)]))
            });
            let expected: Vec<Vec<Pair>> = ranges
                .iter()
                .map(|(start, end)| map.range(*start..*end).map(|(_, pair)| pair.clone()).collect())
                .collect();
            let asked = || db.ranges::<[u8; 1], _>(bounds.clone()).unwrap();
            let found: Vec<Vec<Pair>> =
                asked().map(|range| range.collect::<Result<_>>().unwrap()).collect();
            assert_eq!(found, expected);
            let mut backwards: Vec<Vec<Pair>> =
                asked().rev().map(|range| range.rev().collect::<Result<_>>().unwrap()).collect();
            backwards.iter_mut().for_each(|range| range.reverse());
            backwards.reverse();
            assert_eq!(backwards, expected);
        }
    }
}

#[test]
fn ranges_that_overlap_or_are_out_of_order_are_refused() {
    let directory = temporary();
    let db = days(&directory);
    refused(db.ranges(["03".."02"]), "range 1 of 1: the start of the range is after its end");
    refused(db.ranges(["01".."02", "05".."04"]), "range 2 of 2");
    refused(db.ranges(["02".."03", "01".."02"]), "range 2 of 2 starts at 01");
    refused(db.ranges(["01".."03", "02".."04"]), "join those that overlap");
    refused(db.ranges(["01"..="02", "02"..="03"]), "starts at 02");
    let open = |start, end| (start, end);
    let unbounded = [
        open(Bound::Included("01"), Bound::Unbounded),
        open(Bound::Included("02"), Bound::Excluded("03")),
    ];
    refused(db.ranges::<&str, _>(unbounded), "range 2 of 2");
    let unbounded = [
        open(Bound::Included("01"), Bound::Excluded("02")),
        open(Bound::Unbounded, Bound::Excluded("03")),
    ];
    refused(db.ranges::<&str, _>(unbounded), "has no start");
    // Neighbours do not overlap, and no range is too little.
    assert_eq!(keys(db.ranges(["01-27".."02", "02".."02-02"]).unwrap())[1], ["02-01"]);
    let excluded = [
        open(Bound::Included("01-27"), Bound::Included("01-28")),
        open(Bound::Excluded("01-28"), Bound::Excluded("02-02")),
    ];
    assert_eq!(keys(db.ranges::<&str, _>(excluded).unwrap())[1], ["02-01"]);
    assert_eq!(db.ranges::<&str, std::ops::Range<&str>>([]).unwrap().count(), 0);
    assert_eq!(keys(db.ranges(["02".."02"]).unwrap()), [Vec::<String>::new()]);
}

#[test]
fn limits_hold_for_each_range_and_for_all() {
    let directory = temporary();
    let db = days(&directory);
    db.flush().unwrap();
    let months = || db.ranges(["01".."02", "04".."05", "07".."08"]).unwrap();
    let each = keys(months().limit_each(2));
    assert_eq!(each, [["01-01", "01-02"], ["04-01", "04-02"], ["07-01", "07-02"]]);
    let all = keys(months().limit_each(2).limit_all(3));
    assert_eq!(all, [vec!["01-01", "01-02"], vec!["04-01"]], "then there is no range");
    assert_eq!(keys(months().limit_all(0)), Vec::<Vec<String>>::new());
    assert_eq!(keys(months().limit_each(0)), vec![Vec::<String>::new(); 3]);
    let last: Vec<_> = months().limit_all(1).rev().flatten().map(Result::unwrap).collect();
    assert_eq!(last, [(b"07-01".to_vec(), b"1".to_vec())]);
    // A range that was not gone through to its end takes nothing from the others.
    let mut ranges = months();
    assert_eq!(ranges.next().unwrap().next().unwrap().unwrap().0, b"01-01");
    assert_eq!(keys(ranges).concat().len(), 56);
}

#[test]
fn all_ranges_are_of_one_moment() {
    let directory = temporary();
    let db = days(&directory);
    let mut ranges = db.ranges(["01-27".."02", "03".."03-02"]).unwrap();
    let first = ranges.next().unwrap();
    db.put("01-29", "").unwrap();
    db.delete("03-01").unwrap();
    db.put("03-01x", "").unwrap();
    assert_eq!(first.count(), 2);
    assert_eq!(keys(ranges), [["03-01"]]);
    let snapshot = db.snapshot();
    db.put("03-01", "").unwrap();
    assert_eq!(keys(snapshot.ranges(["03".."03-02"]).unwrap()), [["03-01x"]]);
}

#[test]
fn a_transaction_and_a_family_that_expires_have_ranges() {
    let directory = temporary();
    let db = days(&directory);
    let mut transaction = db.begin();
    transaction.put(&db, "01-29", "").unwrap();
    transaction.delete(&db, "05-01").unwrap();
    let view = transaction.family(&db).unwrap();
    let seen = keys(view.ranges(["01-28".."02", "05".."05-03"]).unwrap());
    assert_eq!(seen, [["01-28", "01-29"].as_slice(), &["05-02"]]);
    let brief = db.create_expiring_family("brief", Duration::from_secs(3600), |_| {}).unwrap();
    brief.put("a", "1").unwrap();
    let range = brief.ranges(["a".."b"]).unwrap().next().unwrap();
    assert_eq!(range.map(Result::unwrap).collect::<Vec<_>>(), [(b"a".to_vec(), b"1".to_vec())]);
}

fn key(number: usize) -> String {
    format!("key{number:04}")
}

/// One level of 400 keys, and a table of level 0 with every tenth of them; no block is cached.
fn two_levels(directory: &tempfile::TempDir) -> Db {
    let opened = || {
        let builder = Db::builder(directory.path()).options(|options| {
            options.cf.set("compression", "kNoCompression").unwrap();
            options.cf.set("block_size", "1024").unwrap();
            options.cf.disable_auto_compactions = true;
        });
        builder.open().unwrap()
    };
    let db = opened();
    (0..400).for_each(|number| db.put(key(number), [7; 100]).unwrap());
    db.compact().unwrap();
    (0..400).step_by(10).for_each(|number| db.put(key(number), [8; 100]).unwrap());
    db.flush().unwrap();
    db.close().unwrap();
    drop(db);
    opened()
}

/// How much the calling thread counts while `work` goes on.
fn counted<const N: usize>(metrics: [PerfMetric; N], work: impl FnOnce()) -> [u64; N] {
    set_perf_level(PerfLevel::EnableCount);
    let before = PerfContext::now();
    work();
    let after = PerfContext::now();
    set_perf_level(PerfLevel::Disable);
    metrics.map(|metric| after.get(metric) - before.get(metric))
}

/// From the first key to the last, the last of each range excluded.
fn ranges(db: &Db, ranges: &[(usize, usize)]) -> Ranges {
    db.ranges(ranges.iter().map(|(start, end)| key(*start)..key(*end))).unwrap()
}

const READ: PerfMetric = PerfMetric::BlockReadCount;
const AHEAD: PerfMetric = PerfMetric::MultiscanBlocksPrefetched;

#[test]
fn blocks_of_all_ranges_are_read_together_before_the_first_is_gone_through() {
    let directory = temporary();
    let db = two_levels(&directory);
    // The tables are open then, and with them their indexes.
    db.get_many(&[key(399), key(390)]).unwrap();
    let some = [(10, 60), (200, 240)];
    let mut going = ranges(&db, &some);
    let together = db.statistics().get(flagstone::Ticker::ReadsTogether);
    let mut first = None;
    let [read, ahead, requests, bytes] = counted(
        [READ, AHEAD, PerfMetric::MultiscanIoRequests, PerfMetric::MultiscanPrefetchBytes],
        || first = going.next(),
    );
    assert!(ahead > 10 && ahead == read && ahead == requests, "{ahead} {read} {requests}");
    assert!(bytes > ahead * 500, "{bytes}");
    assert!(db.statistics().get(flagstone::Ticker::ReadsTogether) >= together + ahead);
    let [read] = counted([READ], || {
        assert_eq!(first.take().unwrap().count(), 50);
        assert_eq!(going.next().unwrap().count(), 40);
    });
    assert_eq!(read, 0, "all was there");
    let [ahead_again, cached] = counted([AHEAD, PerfMetric::MultiscanBlocksFromCache], || {
        assert_eq!(ranges(&db, &some).rev().flatten().count(), 90);
    });
    assert_eq!((ahead_again, cached), (0, ahead));
}

#[test]
fn no_more_is_read_ahead_than_was_asked_for() {
    let directory = temporary();
    let all = [(0, 100), (110, 290), (300, 390)];
    let ahead = |db: &Db, with: fn(Ranges) -> Ranges| {
        let mut going = with(ranges(db, &all));
        counted([AHEAD, PerfMetric::MultiscanPrefetchBytes], || drop(going.next()))
    };
    let db = two_levels(&directory);
    assert_eq!(ahead(&db, |ranges| ranges.read_ahead_bytes(0))[0], 0);
    assert_eq!(ahead(&db, |ranges| ranges.limit_each(5))[0], 6, "one a range and table");
    drop(db);
    let db = two_levels(&directory);
    assert_eq!(ahead(&db, |ranges| ranges.limit_all(1))[0], 2, "no other range returns anything");
    drop(db);
    let db = two_levels(&directory);
    let [_, bytes] = ahead(&db, |ranges| ranges.read_ahead_bytes(5_000));
    assert!((2_000..=5_000).contains(&bytes), "{bytes}");
    // What was not come to is read when its turn comes.
    let mut count = 0;
    let [ahead] = counted([AHEAD], || {
        count = ranges(&db, &all).read_ahead_bytes(20_000).flatten().count();
    });
    assert_eq!(count, 370);
    assert!(ahead > 20, "{ahead}");
}

/// From the back the wrong end of a large range was read, and then its other end by the cursor.
#[test]
fn from_the_back_only_whole_ranges_are_read_ahead() {
    let some = [(10, 200), (210, 230), (240, 260)];
    let directory = temporary();
    let db = two_levels(&directory);
    let small = ranges(&db, &some[1..]).rev();
    let [both] = counted([AHEAD], || assert_eq!(small.map(Iterator::count).sum::<usize>(), 40));
    assert!(both >= 6, "{both}");
    drop(db);
    let directory = temporary();
    let db = two_levels(&directory);
    let mut going = ranges(&db, &some).read_ahead_bytes(20_000).rev();
    let [ahead] = counted([AHEAD], || assert_eq!(going.next().unwrap().count(), 20));
    assert_eq!(ahead, both, "nothing of the large range");
    let [ahead, read] = counted([AHEAD, READ], || assert_eq!(going.next().unwrap().count(), 20));
    assert_eq!((ahead, read), (0, 0));
    let [ahead] = counted([AHEAD], || assert_eq!(going.next().unwrap().rev().count(), 190));
    assert_eq!(ahead, 0, "its start would be read first, and is asked for last");
}

/// The one table took all the room, and the cursor found no block of the others.
#[test]
fn tables_that_are_read_side_by_side_share_the_room() {
    let directory = temporary();
    let db = two_levels(&directory);
    (0..400).for_each(|number| db.put(key(number), [9; 100]).unwrap());
    db.flush().unwrap();
    let mut going = ranges(&db, &[(0, 400)]).read_ahead_bytes(12_000);
    let mut first = None;
    let [ahead] = counted([AHEAD], || first = going.next());
    assert!(ahead >= 8, "{ahead}");
    let [read] = counted([READ], || assert_eq!(first.unwrap().take(15).count(), 15));
    assert_eq!(read, 0, "the first blocks of all three tables were there");
}

/// With a cache that has no room, each step looked at all ranges that were left.
#[test]
fn many_ranges_cost_no_more_each_than_few() {
    let directory = temporary();
    let db = days(&directory);
    db.flush().unwrap();
    let prepared = |with: fn(Ranges) -> Ranges| {
        let many = (0..5_000_u32).map(|number| (2 * number)..(2 * number + 1));
        let many = many.map(|range| range.start.to_be_bytes()..range.end.to_be_bytes());
        let going = with(db.ranges(many).unwrap());
        let [prepared] = counted([PerfMetric::MultiscanPrepareCount], || {
            going.for_each(|range| assert_eq!(range.count(), 0));
        });
        prepared
    };
    assert_eq!(prepared(|ranges| ranges), 5, "up to 1,024 at a time");
    assert_eq!(prepared(|ranges| ranges.limit_each(0)), 0);
    assert_eq!(prepared(|ranges| ranges.read_ahead_bytes(0)), 0);
}

#[test]
fn a_damaged_block_fails_the_range_that_has_it() {
    let directory = temporary();
    let db = two_levels(&directory);
    let damaged = db.live_files().into_iter().max_by_key(|file| file.size).unwrap();
    let path = directory.path().join(format!("{:06}.sst", damaged.number.0));
    db.close().unwrap();
    drop(db);
    let file = Env::os().fs.reopen_writable(&path).unwrap();
    file.write_at(10, b"damage").unwrap();
    drop(file);
    let db = Db::open(directory.path()).unwrap();
    let mut going = ranges(&db, &[(0, 100), (300, 390)]);
    let mut first = going.next().unwrap();
    let error = first.find_map(Result::err).expect("its first block is damaged");
    assert_eq!(error.code(), Code::Corruption, "{error}");
    assert!(first.next().is_none());
    assert_eq!(going.next().unwrap().map(Result::unwrap).count(), 90);
}
