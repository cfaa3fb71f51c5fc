//! Medians, and how sure they are.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Samples drawn from the sample.
const RESAMPLES: usize = 10_000;
/// The part of them that the interval holds.
const CONFIDENCE: f64 = 0.95;

/// A median, and the interval that holds it with 95% confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
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

/// The median with its interval, by drawing from the values with repetition (percentile bootstrap). The same values
/// always give the same interval. Of fewer than three values the interval is everything.
pub fn estimate(values: &[f64]) -> Estimate {
    let center = median(values);
    if values.len() < 3 {
        return Estimate { median: center, low: 0.0, high: f64::INFINITY };
    }
    let mut random = SmallRng::seed_from_u64(1);
    let mut drawn = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            drawn.fill_with(|| values[random.random_range(0..values.len())]);
            median(&drawn)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let tail = ((1.0 - CONFIDENCE) / 2.0 * RESAMPLES as f64) as usize;
    Estimate { median: center, low: medians[tail], high: medians[RESAMPLES - 1 - tail] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn five_pairs_must_all_win() {
        // Three of five draws fall on one given value with a probability of 5.8%, more than either tail.
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
