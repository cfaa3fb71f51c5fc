use super::*;

const MB: u64 = 1_000_000;

#[test]
fn only_holes_that_stay_slow_are_slow_and_not_for_ever() {
    let speed = HoleSpeed::default();
    assert_eq!(speed.lately(0), 0, "nobody knows");
    let mut now = 1_000_000;
    for _ in 0..4 {
        speed.note(MB, MB, now, now + 100_000);
        now += 100_000;
    }
    assert!(speed.lately(now) > 200 * MB, "a busy moment: {}", speed.lately(now));
    for _ in 0..20 {
        speed.note(MB, MB, now, now + 100_000);
        now += 100_000;
    }
    assert!((10 * MB..20 * MB).contains(&speed.lately(now)), "{}", speed.lately(now));
    assert_eq!(speed.lately(now + 11_000_000), 0);
}

/// They were not counted: it was forgotten that holes are slow, and then all came at once.
#[test]
fn holes_that_give_nothing_back_are_slow_as_others_are() {
    let (speed, mut now) = (HoleSpeed::default(), 0);
    let mut punch = |given_back, rest, took| {
        now += rest;
        speed.note(MB, given_back, now, now + took);
        now += took;
        speed.lately(now)
    };
    assert_eq!(punch(0, 0, 100_000), 0, "nobody knows what others take");
    for _ in 0..24 {
        punch(MB, 0, 100_000);
    }
    for _ in 0..10 {
        let known = punch(0, 9_000_000, 100_000);
        assert!((10 * MB..20 * MB).contains(&known), "{known}");
    }
    let known = punch(0, 2_000_000, 10);
    assert!((10 * MB..20 * MB).contains(&known), "a fast one takes nothing back: {known}");
    assert_eq!(punch(0, 9_000_000, 10), 0, "and confirms nothing");
}

/// Each was the first: that holes are so slow was never known.
#[test]
fn holes_that_take_longer_than_their_speed_lasts_are_slow() {
    let speed = HoleSpeed::default();
    for nth in 0..40 {
        speed.note(MB, MB, nth * 11_000_000, (nth + 1) * 11_000_000);
    }
    assert!(speed.lately(40 * 11_000_000) < 20 * MB, "{}", speed.lately(40 * 11_000_000));
}
