use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn delays_begin_gently_and_grow_by_equal_factors() {
    let fast = Speeds { writing: 160 * MIB, flushing: 0 };
    let rate = |severity| fast.rate_in_debt(severity, 16 * MIB) as f64 / MIB as f64;
    let cases = [(0.0, 160.0), (0.5, 16.0), (1.0, 1.6), (7.0, 1.6)];
    for (severity, expected) in cases {
        assert!(
            (rate(severity) - expected).abs() < 0.01,
            "at {severity}: {} MiB/s",
            rate(severity)
        );
    }
    let unknown = Speeds::default();
    assert_eq!(unknown.rate_in_debt(0.0, 16 * MIB), 16 * MIB);
    assert_eq!(unknown.rate_in_debt(1.0, 0), 1);
}

#[test]
fn less_than_a_quarter_of_what_writers_achieve_is_hard() {
    let fast = Speeds { writing: 160 * MIB, flushing: 0 };
    assert_eq!([40 * MIB, 40 * MIB - 1].map(|rate| fast.is_hard(rate, 16 * MIB)), [false, true]);
    // They may achieve as much as where delays begin.
    assert_eq!(
        [4 * MIB, 4 * MIB - 1].map(|rate| Speeds::default().is_hard(rate, 16 * MIB)),
        [false, true]
    );
}

#[test]
fn a_memtable_fills_no_faster_than_others_are_flushed() {
    let speeds = Speeds { writing: 0, flushing: 100 * MIB };
    assert_eq!(speeds.rate_while_flushing(64 * MIB, 64 * MIB), Some(110 * MIB));
    assert_eq!(speeds.rate_while_flushing(64 * MIB, 128 * MIB), Some(55 * MIB));
    assert_eq!(Speeds::default().rate_while_flushing(64 * MIB, 64 * MIB), None);
}

/// Writers achieve `writing` bytes a second, and flushes of so many bytes took so many
/// microseconds.
fn meter(writing: u64, flushes: &[(u64, u64)]) -> Speedometer {
    let mut meter = Speedometer::default();
    meter.note_writes(0, 0, true);
    meter.note_writes(1_000_000, writing, true);
    let mut now_us = 1_000_000;
    for (bytes, took_us) in flushes {
        meter.begin_flushes(now_us);
        now_us += took_us;
        meter.note_flush(*bytes, now_us);
    }
    meter
}

/// A program wrote a little, flushed it, and then began to load: until its first full memtable was
/// flushed it was held to kilobytes a second, as the flushes of a few bytes had been as slow as the
/// disk was to answer. So it was where it had written a little for long, and flushed nothing.
#[test]
fn what_was_flushed_in_little_pieces_does_not_tell_how_long_a_memtable_takes() {
    let rate = |meter: Speedometer, bytes: u64| {
        meter.rate_while_flushing(bytes, bytes, 16 * MIB).expect("a rate") as f64 / MIB as f64
    };
    let little = vec![(1000, 50_000); 30];
    assert!(
        (rate(meter(80 * MIB, &little), 64 * MIB) - 44.0).abs() < 0.1,
        "half of what writers achieve"
    );
    assert!(rate(meter(80 * MIB, &little), 2000) < 0.1, "they tell of others as small");
    assert!((rate(meter(80 * MIB, &[]), 64 * MIB) - 44.0).abs() < 0.1, "none was timed");
    assert!(
        (rate(meter(10_000, &[]), 64 * MIB) - 8.8).abs() < 0.1,
        "they may be faster than lately"
    );
    let full = vec![(64 * MIB, 6_400_000); 5];
    assert!((rate(meter(80 * MIB, &full), 64 * MIB) - 11.0).abs() < 0.1, "a slow disk is believed");
    assert!((rate(meter(80 * MIB, &full), 192 * MIB) - 11.0).abs() < 0.1, "also for several");
    assert_eq!(
        Speedometer::default().rate_while_flushing(MIB, MIB, 16 * MIB),
        None,
        "nobody knows anything"
    );
}

/// With two of four waiting, writers were held to half of what one flush achieved: the second
/// thread had nothing to do.
#[test]
fn as_many_memtables_may_wait_as_are_left_before_writers_are_slower_than_flushes() {
    let speeds = Speeds { writing: 0, flushing: 100 * MIB };
    let rate = |waiting: usize, most: usize| {
        let left = memtables_left(waiting, most)?;
        speeds
            .rate_while_flushing(left * 64 * MIB, waiting as u64 * 64 * MIB)
            .map(|rate| rate / MIB)
    };
    let rates = |most: usize| (0..=most).map(|waiting| rate(waiting, most)).collect::<Vec<_>>();
    assert_eq!(rates(2), [None, Some(110), Some(55)]);
    assert_eq!(rates(4), [None, Some(330), Some(110), Some(36), Some(27)]);
    assert_eq!(rates(8)[..6], [None, None, None, Some(183), Some(110), Some(66)]);
    assert_eq!(memtables_left(9, 4), Some(1), "flushes that were asked for may leave more");
}

#[test]
fn the_last_quarter_of_a_memtable_is_filled_ever_more_gently() {
    let rate = |left| Room { left: left * MIB, whole: 64 * MIB, writing: 0 }.brake(160);
    let cases = [(64, 160), (16, 160), (8, 80), (2, 20), (1, 10), (0, 10)];
    cases.iter().for_each(|&(left, expected)| assert_eq!(rate(left), expected, "{left} MiB left"));
    assert_eq!(
        Room { left: 0, whole: 0, writing: 0 }.brake(160),
        0,
        "nobody holds writers to less than the least rate"
    );
}

#[test]
fn flushes_are_as_fast_as_what_they_free_writers_of() {
    let mut meter = Speedometer::default();
    meter.begin_flushes(0);
    meter.note_flush(64 * MIB, 1_000_000);
    assert_eq!((meter.speeds().flushing, meter.written(MIB)), (64 * MIB, MIB), "not known yet");
    meter.note_full(64 * MIB, 48 * MIB);
    assert_eq!(meter.written(64 * MIB), 48 * MIB);
    meter.note_full(32 * MIB, 72 * MIB);
    assert_eq!(meter.written(64 * MIB), 48 * MIB);
    meter.note_full(64 * MIB, 200 * MIB);
    assert!(meter.written(MIB) > MIB, "values in blob files are in no memtable");
    let mut other = Speedometer::default();
    other.note_full(64 * MIB, 48 * MIB);
    other.begin_flushes(0);
    other.note_flush(64 * MIB, 1_000_000);
    assert_eq!(other.speeds().flushing, 48 * MIB);
}

#[test]
fn only_what_is_written_freely_tells_how_fast_writers_are() {
    let mut meter = Speedometer::default();
    meter.note_writes(0, 0, true);
    meter.note_writes(10_000, 9 * MIB, true);
    assert_eq!(meter.speeds().writing, 0, "too short to tell");
    meter.note_writes(100_000, 10 * MIB, true);
    assert_eq!(meter.speeds().writing, 100 * MIB);
    meter.note_writes(200_000, 20 * MIB, false);
    meter.note_writes(900_000, 21 * MIB, true);
    assert_eq!(meter.speeds().writing, 100 * MIB, "they were held up");
}

/// Somebody flushed a few bytes thirty times, on a slow disk: a full memtable that came next then
/// held writers to kilobytes a second for as long as its flush took.
#[test]
fn flushes_of_a_few_bytes_do_not_pass_for_slow_ones() {
    let mut meter = Speedometer::default();
    let mut now = 0;
    let mut flush = |meter: &mut Speedometer, bytes, took_us| {
        meter.begin_flushes(now);
        now += took_us;
        meter.note_flush(bytes, now);
    };
    (0..4).for_each(|_| flush(&mut meter, 64 * MIB, 1_000_000));
    (0..30).for_each(|_| flush(&mut meter, 1000, 50_000));
    assert_eq!(meter.speeds().flushing / MIB, 64);
    // Were all small for good, they would count.
    (0..200).for_each(|_| flush(&mut meter, 1000, 50_000));
    assert!(meter.speeds().flushing < 21_000, "{}", meter.speeds().flushing);
}

#[test]
fn flushes_that_run_at_once_are_faster_together() {
    let mut meter = Speedometer::default();
    meter.begin_flushes(1_000_000);
    meter.note_flush(50 * MIB, 1_500_000);
    assert_eq!(meter.speeds().flushing, 100 * MIB);
    meter.begin_flushes(7_000_000);
    meter.note_flush(50 * MIB, 7_400_000);
    meter.note_flush(50 * MIB, 7_500_000);
    assert!(meter.speeds().flushing > 130 * MIB, "{}", meter.speeds().flushing);
}
