//! Medians, and how sure they are.

/// What an interval's confidence is to be at least, where there are values enough.
const CONFIDENCE: f64 = 0.95;

/// A median, and the interval that holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// How likely the interval holds the median of all values that there could be.
    pub confidence: f64,
}

/// What an estimate of a ratio says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is above 1.
    Won,
    /// The interval holds 1.
    Even,
    /// The whole interval is below 1.
    Lost,
}

impl Estimate {
    /// What it says as a ratio.
    pub fn verdict(&self) -> Verdict {
        if self.low > 1.0 {
            Verdict::Won
        } else if self.high < 1.0 {
            Verdict::Lost
        } else {
            Verdict::Even
        }
    }
}

/// The median; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// The median with its interval: from one of the values to another, with as many left out at either end. How likely such an
/// interval holds the true median depends on nothing but how many values there are: each lies below that like a coin that is
/// tossed. As many are left out as [`CONFIDENCE`] allows. Of five values and fewer none are, and all the same it is less. Of
/// fewer than three the interval is everything.
pub fn estimate(values: &[f64]) -> Estimate {
    let center = median(values);
    if values.len() < 3 {
        return Estimate { median: center, low: 0.0, high: f64::INFINITY, confidence: 1.0 };
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let most = (sorted.len() - 1) / 2;
    let left_out = (1..=most).take_while(|left_out| confidence(sorted.len(), *left_out) >= CONFIDENCE).last();
    let left_out = left_out.unwrap_or(0);
    let (low, high) = (sorted[left_out], sorted[sorted.len() - 1 - left_out]);
    Estimate { median: center, low, high, confidence: confidence(sorted.len(), left_out) }
}

/// How likely the true median lies between the values, but for so many at either end.
fn confidence(count: usize, left_out: usize) -> f64 {
    // That all lie above it, that all but one do, and so on.
    let (mut outside, mut chance) = (0.0, 0.5f64.powi(count as i32));
    for below in 0..=left_out {
        outside += chance;
        chance *= (count - below) as f64 / (below + 1) as f64;
    }
    1.0 - 2.0 * outside
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Intervals of three rounds, from the least to the greatest, were said to hold the median with 95% confidence. They do
    /// three times of four.
    #[test]
    fn intervals_hold_the_median_as_often_as_is_said() {
        const SAMPLES: usize = 20_000;
        let mut random = SmallRng::seed_from_u64(1);
        for (count, said) in [(3, 75), (4, 88), (5, 94), (6, 97), (7, 98), (8, 99), (9, 96), (20, 96)] {
            let mut held = 0;
            for _ in 0..SAMPLES {
                let drawn: Vec<f64> = (0..count).map(|_| random.random_range(0.0..2.0f64).powi(2)).collect();
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
}
