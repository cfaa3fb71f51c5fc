use super::*;
use crate::compaction::pick::Speeds;

const MIB: u64 = 1 << 20;

fn delay(verdict: Verdict) -> Duration {
    match verdict {
        Verdict::Delay { wait, .. } => wait,
        _ => Duration::ZERO,
    }
}

/// What was paid for at gigabytes a second, which is what writers are held to who need not wait for
/// a flush, could be written after the rate had fallen to megabytes: 135 MiB at once, of a limit of
/// space that was 15 MiB away.
#[test]
fn what_is_paid_at_a_high_rate_is_not_to_be_had_at_a_low_one() {
    let control = WriteControl::default();
    control.set_delayed(64 << 30, None, None, false);
    assert_eq!(control.charge(1000, 0, true), Verdict::Pass);
    assert!(control.passes(1000));
    control.set_delayed(1_000_000, None, None, false);
    assert!(!control.passes(2_001) && control.passes(2_000), "two milliseconds' worth");
    assert!(
        delay(control.charge(1000, 100_000, true)) < Duration::from_millis(3),
        "nor is it owed"
    );
}

#[test]
fn who_comes_near_a_limit_of_space_brakes_before_anybody_looks_at_the_tree_again() {
    let control = WriteControl::default();
    let speeds = Speeds { writing: 1 << 30, flushing: 0 };
    let headroom =
        WriteHeadroom { left: 32 * MIB, brakes_at: 16 * MIB, speeds, delayed_write_rate: 16 * MIB };
    control.set_watched(headroom);
    assert!(control.lets_go_freely() && control.delayed_rate() == 0);
    let mut now_us = 0;
    let mut mib_us = || {
        let before_us = now_us;
        for _ in 0..16 {
            if !control.passes(MIB / 16) {
                now_us += delay(control.charge(MIB / 16, now_us, true)).as_micros() as u64;
            }
        }
        now_us - before_us
    };
    assert_eq!((0..16).map(|_| mib_us()).sum::<u64>(), 0, "it is far yet");
    let taken: Vec<u64> = (0..15).map(|_| mib_us()).collect();
    assert!(taken[4..].is_sorted() && taken[14] > 300_000, "{taken:?}");
    assert!(!control.lets_go_freely(), "somebody waited");
    control.set_normal();
    assert!(control.lets_go_freely());
}

/// While they are, flushes and compactions do not give way to others that want the processor.
#[test]
fn writers_are_held_up_hard_by_debts_and_seldom_by_a_flush() {
    let control = WriteControl::default();
    let is_hard = || {
        control.charge(MIB, 0, true);
        let Verdict::Delay { is_hard, .. } = control.charge(MIB, 0, true) else {
            panic!("it is not paid off")
        };
        is_hard
    };
    let room = |left| Some(Room { left: left * MIB, whole: 64 * MIB, writing: 80 * MIB });
    control.set_delayed(10 * MIB, room(60), None, false);
    assert!(!is_hard() && !control.is_hard(), "an eighth of what they achieve");
    control.set_delayed(9 * MIB, room(60), None, false);
    assert!(is_hard() && control.is_hard(), "it gets no processor");
    control.set_delayed(40 * MIB, room(0), None, false);
    assert!(is_hard(), "it took longer than was thought");
    control.set_delayed(MIB, None, None, true);
    assert!(is_hard());
    let speeds = Speeds { writing: 160 * MIB, flushing: 0 };
    let headroom =
        |left| WriteHeadroom { left, brakes_at: 64 * MIB, speeds, delayed_write_rate: 16 * MIB };
    // By equal factors from 160 MiB a second to 1.6: a quarter is less than a third of the way.
    control.set_watched(headroom(48 * MIB));
    assert!(!is_hard());
    control.set_watched(headroom(16 * MIB));
    assert!(is_hard());
}

#[test]
fn who_is_delayed_goes_on_when_the_rate_rises() {
    let control = WriteControl::default();
    control.set_delayed(1_000_000, None, None, false);
    assert_eq!(control.charge(1_000_000, 0, true), Verdict::Pass);
    let Verdict::Delay { charged, .. } = control.charge(100, 0, true) else {
        panic!("it is not paid off")
    };
    assert_eq!(control.wait_left(charged, 100_000), Duration::from_millis(902));
    control.set_delayed(100_000_000, None, None, false);
    assert_eq!(control.wait_left(charged, 100_000), Duration::from_micros(9_020));
    control.set_normal();
    assert_eq!(control.wait_left(charged, 100_000), Duration::ZERO);
}

/// What was paid for as long as the end was far off was had a second time when the tree was looked
/// at meanwhile.
#[test]
fn what_is_paid_for_is_part_of_the_way_to_a_limit() {
    let control = WriteControl::default();
    let speeds = Speeds { writing: 1 << 30, flushing: 0 };
    let headroom =
        |left| WriteHeadroom { left, brakes_at: 16 * MIB, speeds, delayed_write_rate: 16 * MIB };
    control.set_watched(headroom(80 * MIB));
    assert_eq!(control.charge(0, 0, true), Verdict::Pass);
    control.set_watched(headroom(80 * MIB));
    let taken = (0..).take_while(|_| {
        control.passes(MIB)
            || !control.wants_look() && control.charge(MIB, 0, true) == Verdict::Pass
    });
    assert!((62..68).contains(&taken.count()), "the rest is where they brake");
}

/// Whoever tried again instead of waiting paid each time, had what others pay for in advance, and
/// so went on at any speed.
#[test]
fn who_must_not_wait_does_not_pay() {
    let control = WriteControl::default();
    control.set_delayed(1_000_000, None, None, false);
    assert_eq!(control.charge(1_000_000, 0, true), Verdict::Pass);
    while control.passes(100) {}
    for _ in 0..1000 {
        assert!(delay(control.charge(100, 0, false)) > Duration::ZERO && !control.passes(100));
    }
    let Verdict::Delay { charged, .. } = control.charge(100, 0, true) else {
        panic!("it is not paid off")
    };
    assert_eq!(
        control.wait_left(charged, 0),
        Duration::from_millis(1002),
        "nobody owes more for that"
    );
}

#[test]
fn delayed_writers_keep_to_the_rate() {
    let control = WriteControl::default();
    assert_eq!(control.charge(1 << 20, 0, true), Verdict::Pass);
    control.set_delayed(1_000_000, None, None, false);
    assert_eq!(control.charge(500_000, 0, true), Verdict::Pass, "the first pays afterwards");
    assert_eq!(delay(control.charge(1, 0, true)), Duration::from_millis(502));
    assert_eq!(control.charge(1, 600_000, true), Verdict::Pass, "time heals");
    control.set_stopped(600_000);
    assert_eq!(control.charge(1, 0, true), Verdict::Stop);
    assert!(!control.passes(1));
    control.set_normal();
    assert!(control.condition() == StallCondition::Normal && control.passes(u64::MAX));
}

/// What was charged at the lowest rate was waited out at any: after one batch of a mebibyte, each
/// write took a second for a minute, however fast flushes were again.
#[test]
fn what_is_owed_is_paid_off_at_the_rate_of_the_day() {
    let control = WriteControl::default();
    control.set_delayed(16 << 10, None, None, false);
    assert_eq!(control.charge(1 << 20, 0, true), Verdict::Pass, "the first pays afterwards");
    assert_eq!(delay(control.charge(100, 0, true)), Duration::from_secs(1));
    control.set_delayed(16 << 20, None, None, false);
    let delays = (0..5).map(|nth| delay(control.charge(100, 20_000 * nth, true)));
    let all: Duration = delays.sum();
    assert!(all < Duration::from_millis(200), "{all:?}");
    assert_eq!(control.charge(100, 200_000, true), Verdict::Pass);
}

#[test]
fn nobody_looks_at_the_clock_for_what_is_paid() {
    let control = WriteControl::default();
    control.set_delayed(1_000_000, None, None, false);
    assert!(!control.passes(1), "nothing is paid yet");
    assert_eq!(control.charge(100, 0, true), Verdict::Pass);
    for _ in 0..20 {
        assert!(control.passes(100));
    }
    assert!(!control.passes(100), "two milliseconds' worth");
    assert_eq!(delay(control.charge(100, 0, true)), Duration::from_micros(2_100));
    assert!(!control.passes(2_001) && control.passes(2_000), "what was refused was not taken off");
}

#[test]
fn who_fills_the_last_memtable_brakes() {
    let control = WriteControl::default();
    control.set_delayed(
        1_000_000,
        Some(Room { left: 400_000, whole: 400_000, writing: 0 }),
        None,
        false,
    );
    let mut now_us = 0;
    let mut filled_us = |bytes: u64| {
        let before_us = now_us;
        for _ in 0..bytes / 100 {
            if !control.passes(100)
                && let Verdict::Delay { wait: duration, .. } = control.charge(100, now_us, true)
            {
                now_us += duration.as_micros() as u64;
            }
        }
        now_us - before_us
    };
    assert!((290_000..310_000).contains(&filled_us(300_000)), "as fast as it may");
    assert!((65_000..75_000).contains(&filled_us(50_000)), "half of the last quarter");
    assert!((65_000..75_000).contains(&filled_us(25_000)));
    assert!((110_000..240_000).contains(&filled_us(20_000)));
    assert!((150_000..170_000).contains(&filled_us(10_000)), "at a sixteenth");
}
