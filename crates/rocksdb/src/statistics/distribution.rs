//! How often which values came: what a histogram of RocksDB's says.
//!
//! Values below four have a bucket each. Above, each power of two is cut into four buckets, so that
//! a percentile is off by a fifth at most; within its bucket it is taken to lie as far along as the
//! values that it counts.

/// Buckets for all values of 64 bits.
const BUCKETS: usize = 4 * 63;

/// Values that were measured.
pub(super) struct Distribution {
    buckets: [u64; BUCKETS],
    count: u64,
    sum: u64,
    sum_of_squares: f64,
    min: u64,
    max: u64,
}

fn bucket_of(value: u64) -> usize {
    if value < 4 {
        return value as usize;
    }
    let exponent = value.ilog2() as usize;
    let quarter = (value >> (exponent - 2)) as usize & 3;
    4 * (exponent - 1) + quarter
}

/// The smallest value of a bucket.
fn first_of(bucket: usize) -> f64 {
    if bucket < 4 {
        return bucket as f64;
    }
    let (exponent, quarter) = (bucket / 4 + 1, bucket % 4);
    (4 + quarter) as f64 * 2f64.powi(exponent as i32 - 2)
}

impl Default for Distribution {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], count: 0, sum: 0, sum_of_squares: 0.0, min: u64::MAX, max: 0 }
    }
}

impl Distribution {
    pub(super) fn add(&mut self, value: u64) {
        self.buckets[bucket_of(value)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.sum_of_squares += value as f64 * value as f64;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The value that so many percent of the values do not exceed; 0 without values.
    fn percentile(&self, percent: f64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let wanted = self.count as f64 * percent / 100.0;
        let mut below = 0.0;
        for (bucket, &count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = count as f64;
            if below + count >= wanted {
                let (first, end) = (first_of(bucket), first_of(bucket + 1));
                let value = first + (end - first) * (wanted - below) / count;
                return value.clamp(self.min as f64, self.max as f64);
            }
            below += count;
        }
        self.max as f64
    }

    pub(super) fn data(&self) -> HistogramData {
        if self.count == 0 {
            return HistogramData::default();
        }
        let average = self.sum as f64 / self.count as f64;
        let variance = self.sum_of_squares / self.count as f64 - average * average;
        HistogramData {
            median: self.percentile(50.0),
            p95: self.percentile(95.0),
            p99: self.percentile(99.0),
            average,
            std_dev: variance.max(0.0).sqrt(),
            min: self.min as f64,
            max: self.max as f64,
            count: self.count,
            sum: self.sum,
        }
    }
}

/// What a distribution says; all of it is 0 where nothing was measured.
#[derive(Debug, Default)]
pub struct HistogramData {
    median: f64,
    p95: f64,
    p99: f64,
    average: f64,
    std_dev: f64,
    min: f64,
    max: f64,
    count: u64,
    sum: u64,
}

impl HistogramData {
    /// That of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value that half of the values do not exceed.
    pub fn median(&self) -> f64 {
        self.median
    }

    /// The mean.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// The value that 95% of the values do not exceed.
    pub fn p95(&self) -> f64 {
        self.p95
    }

    /// The value that 99% of the values do not exceed.
    pub fn p99(&self) -> f64 {
        self.p99
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// The smallest value.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// The sum of the values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The standard deviation.
    pub fn std_dev(&self) -> f64 {
        self.std_dev
    }
}
