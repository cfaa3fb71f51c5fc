use std::collections::BTreeMap;

use super::*;

const NOW: HistoryEpoch = HistoryEpoch(0);

fn known(ranges: &DeadRanges, key: &str, snapshot: SequenceNumber) -> Option<String> {
    ranges
        .end_of(key.as_bytes(), Towards::Later, NOW, snapshot)
        .map(|end| String::from_utf8(end).unwrap())
}

#[test]
fn a_range_is_leapt_over_once_a_second_scan_has_found_nothing() {
    let ranges = DeadRanges::new(Comparator::Bytewise);
    ranges.report(b"b", b"k", Towards::Later, NOW, 7);
    assert_eq!(known(&ranges, "c", 9), None, "writes that the scan did not see may have set keys");
    assert!(ranges.is_watching());
    ranges.write(8, None);
    ranges.report(b"b", b"k", Towards::Later, NOW, 7);
    assert_eq!(known(&ranges, "c", 9), None, "this one did not see them either");
    ranges.report(b"a", b"i", Towards::Later, NOW, 9);
    assert_eq!(known(&ranges, "c", 9), Some("i".to_string()), "found empty by both");
    assert_eq!(known(&ranges, "c", 8), None, "the key may have been there as of 8");
    assert_eq!(known(&ranges, "a", 9), None);
    assert_eq!(known(&ranges, "i", 9), None);
}

#[test]
fn a_key_that_is_set_ends_the_range() {
    let ranges = DeadRanges::new(Comparator::Bytewise);
    ranges.report(b"b", b"k", Towards::Later, NOW, 7);
    ranges.write(8, Some(b"g"));
    ranges.report(b"b", b"k", Towards::Later, NOW, 9);
    assert_eq!(known(&ranges, "c", 9), Some("g".to_string()), "set while it was watched");
    ranges.write(9, Some(b"e"));
    assert_eq!(known(&ranges, "c", 10), Some("e".to_string()));
    assert_eq!(known(&ranges, "f", 10), None);
    ranges.write(10, Some(b"b"));
    assert_eq!(known(&ranges, "b", 11), None);
}

#[test]
fn scans_back_learn_for_themselves_and_keep_what_lies_above_a_key() {
    let ranges = DeadRanges::new(Comparator::Bytewise);
    let back = |key: &str, snapshot| {
        let end = ranges.end_of(key.as_bytes(), Towards::Earlier, NOW, snapshot);
        end.map(|end| String::from_utf8(end).unwrap())
    };
    ranges.report(b"k", b"b", Towards::Earlier, NOW, 7);
    ranges.write(8, None);
    ranges.report(b"i", b"a", Towards::Earlier, NOW, 9);
    assert_eq!(back("i", 9), Some("b".to_string()), "the first key of the run is in it");
    assert_eq!(back("c", 9), Some("b".to_string()));
    assert_eq!((back("b", 9), back("j", 9)), (None, None), "both ends");
    assert_eq!(known(&ranges, "c", 9), None, "scans forward have reported nothing");
    ranges.write(9, Some(b"e"));
    assert_eq!(back("f", 10), Some("e".to_string()));
    assert_eq!((back("e", 10), back("d", 10)), (None, None));
}

/// A scan of the former super version may go on for long: what it finds says nothing about the new
/// one, nor may it leap by what others have found there.
#[test]
fn what_is_known_is_of_one_past() {
    let ranges = DeadRanges::new(Comparator::Bytewise);
    let new = NOW.next();
    let end = |past| ranges.end_of(b"c", Towards::Later, past, 9);
    let report = |past| ranges.report(b"b", b"k", Towards::Later, past, 9);
    report(NOW);
    ranges.write(8, None);
    report(NOW);
    assert!(end(NOW).is_some() && end(new).is_none());
    report(NOW);
    ranges.begin(new);
    assert!(end(NOW).is_none() && end(new).is_none());
    report(NOW);
    ranges.write(9, None);
    report(NOW);
    report(new);
    assert!(
        end(NOW).is_none() && end(new).is_none(),
        "what the former past reported is no candidate"
    );
    ranges.write(9, None);
    report(new);
    assert!(end(NOW).is_none() && end(new).is_some());
}

/// Of each key the numbers at which it was set or deleted.
type History = BTreeMap<u8, Vec<(SequenceNumber, bool)>>;

fn is_there(history: &History, key: u8, snapshot: SequenceNumber) -> bool {
    let versions = history.get(&key).map_or(&[][..], Vec::as_slice);
    versions.iter().rev().find(|(sequence, _)| *sequence <= snapshot).is_some_and(|(_, set)| *set)
}

/// The keys to which a scan comes from `key` on.
fn course_from(key: u8, towards: Towards) -> Box<dyn Iterator<Item = u8>> {
    match towards {
        Towards::Later => Box::new(key..60),
        Towards::Earlier => Box::new((0..=key).rev()),
    }
}

/// Writes that are published late, scans as of any number, ranges that overlap: whatever is leapt
/// over is empty.
#[test]
fn nothing_that_is_there_is_leapt_over() {
    let mut leaps = [0; 2];
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let ranges = DeadRanges::new(Comparator::Bytewise);
        let mut history = History::new();
        let (mut last, mut published) = (0, 0);
        for _ in 0..400 {
            let key = random.u8(10..50);
            let towards = if random.bool() { Towards::Later } else { Towards::Earlier };
            let snapshot = if random.bool() { published } else { random.u64(..=published) };
            match random.u8(..8) {
                0..3 => {
                    let set = random.u8(..6) == 0;
                    if ranges.is_watching() {
                        ranges.write(last, set.then_some(&[key][..]));
                    }
                    last += 1;
                    history.entry(key).or_default().push((last, set));
                }
                3 => published = random.u64(published..=last),
                4..6 => {
                    let mut course = course_from(key, towards);
                    let end = course.find(|key| is_there(&history, *key, snapshot));
                    let end = end.unwrap_or(if towards == Towards::Later { 60 } else { 0 });
                    ranges.report(&[key], &[end], towards, NOW, snapshot);
                }
                _ => {
                    let Some(end) = ranges.end_of(&[key], towards, NOW, snapshot) else { continue };
                    leaps[towards as usize] += 1;
                    assert_ne!(end, [key]);
                    let mut leapt =
                        course_from(key, towards).take_while(|key| [*key][..] != end[..]);
                    let there = leapt.find(|key| is_there(&history, *key, snapshot));
                    assert_eq!(there, None, "seed {seed}, as of {snapshot}");
                }
            }
        }
    }
    assert!(leaps.iter().all(|leaps| *leaps > 1000), "{leaps:?}");
}
