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

/// The median with its interval: from one of the values to another, with as many left out at either
/// end. How likely such an interval holds the true median depends on nothing but how many values
/// there are: each lies below that like a coin that is tossed. As many are left out as
/// [`CONFIDENCE`] allows. Of five values and fewer none are, and all the same it is less. Of fewer
/// than three the interval is everything.
pub fn estimate(values: &[f64]) -> Estimate {
    let center = median(values);
    if values.len() < 3 {
        return Estimate { median: center, low: 0.0, high: f64::INFINITY, confidence: 1.0 };
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let most = (sorted.len() - 1) / 2;
    let left_out =
        (1..=most).take_while(|left_out| confidence(sorted.len(), *left_out) >= CONFIDENCE).last();
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
mod tests;
