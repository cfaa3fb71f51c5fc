use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::*;

/// Intervals of three rounds, from the least to the greatest, were said to hold the median with 95%
/// confidence. They do three times of four.
#[test]
fn intervals_hold_the_median_as_often_as_is_said() {
    const SAMPLES: usize = 20_000;
    let mut random = SmallRng::seed_from_u64(1);
    for (count, said) in [(3, 75), (4, 88), (5, 94), (6, 97), (7, 98), (8, 99), (9, 96), (20, 96)] {
        let mut held = 0;
        for _ in 0..SAMPLES {
            let drawn: Vec<f64> =
                (0..count).map(|_| random.random_range(0.0..2.0f64).powi(2)).collect();
            let estimate = estimate(&drawn);
            assert_eq!((estimate.confidence * 100.0).round(), f64::from(said), "of {count}");
            held += usize::from(estimate.low <= 1.0 && 1.0 <= estimate.high);
        }
        let percent = held as f64 / SAMPLES as f64 * 100.0;
        assert!((percent - f64::from(said)).abs() < 1.5, "{percent}% of {count}");
    }
}

#[test]
fn medians() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    assert!(median(&[]).is_nan());
}

#[test]
fn five_pairs_must_all_win() {
    let all = estimate(&[1.9, 2.0, 2.1, 2.2, 1.8]);
    assert_eq!((all.median, all.low, all.high), (2.0, 1.8, 2.2));
    assert_eq!(all.verdict(), Verdict::Won);
    assert_eq!(estimate(&[1.9, 2.0, 2.1, 2.2, 0.9]).verdict(), Verdict::Even);
    assert_eq!(estimate(&[0.9, 0.8, 0.7, 0.95, 0.9]).verdict(), Verdict::Lost);
}

#[test]
fn many_values_narrow_the_interval() {
    let values: Vec<f64> = (0..101).map(|index| 1.0 + f64::from(index) / 100.0).collect();
    let estimate = estimate(&values);
    assert_eq!(estimate.median, 1.5);
    // Of 101 ranks the 95% interval of the median takes about the 41st to the 61st.
    assert!((1.37..1.43).contains(&estimate.low), "{estimate:?}");
    assert!((1.57..1.63).contains(&estimate.high), "{estimate:?}");
}

#[test]
fn two_values_say_nothing() {
    assert_eq!(estimate(&[2.0, 3.0]).verdict(), Verdict::Even);
}
