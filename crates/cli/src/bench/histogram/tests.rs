use super::*;

#[test]
fn the_buckets_are_db_bench_s() {
    assert_eq!(
        microseconds()[..16],
        [1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110, 170, 250, 380, 580]
    );
    let limits = limits();
    assert!(limits.is_sorted_by(|low, high| low < high), "{limits:?}");
    assert!(microseconds().iter().all(|limit| limits.contains(&(limit * 1000))), "{limits:?}");
}

#[test]
fn percentiles_are_interpolated() {
    let mut histogram = Histogram::default();
    (1..=100).for_each(|value| histogram.add(value * 1000));
    assert!((histogram.percentile(50.0) - 50.0).abs() < 2.0);
    assert_eq!(histogram.percentile(100.0), 100.0);
    let mut other = Histogram::default();
    other.add(5_000_000);
    histogram.merge(&other);
    let text = histogram.to_string();
    assert!(text.starts_with("Count: 101 Average: 99.5050"), "{text}");
    assert!(text.contains("(    4400,    6600 ]        1   0.990% 100.000% \n"), "{text}");
}

/// Counted in whole microseconds the median of such calls was 0.
#[test]
fn a_quarter_of_a_microsecond_is_told() {
    let mut histogram = Histogram::default();
    [180, 230, 240, 250, 1130].into_iter().for_each(|nanoseconds| histogram.add(nanoseconds));
    let median = histogram.percentile(50.0);
    assert!((0.2..=0.25).contains(&median), "{median}");
    let text = histogram.to_string();
    assert!(text.contains("Min: 0.18  ") && text.contains("Max: 1.13\n"), "{text}");
    assert!(text.contains("(     0.2,    0.25 ]        3  60.000%  80.000% "), "{text}");
}

#[test]
fn an_empty_histogram_prints() {
    assert!(Histogram::default().to_string().contains("Count: 0"));
}
