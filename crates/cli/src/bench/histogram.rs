//! Latencies, in the buckets and the text of `db_bench --histogram`.

use std::fmt;

/// The upper limits of the buckets in nanoseconds: `db_bench`'s, and narrower ones below four
/// microseconds, as most calls take less than that.
fn limits() -> Vec<u64> {
    let narrow = (50..1000).step_by(50).chain((1000..4000).step_by(200));
    let wide = microseconds()
        .into_iter()
        .map(|limit| limit.saturating_mul(1000))
        .skip_while(|limit| *limit < 4000);
    narrow.chain(wide).collect()
}

/// The upper limits of `db_bench`'s buckets in microseconds: two leading digits, growing by half.
fn microseconds() -> Vec<u64> {
    let mut limits: Vec<u64> = vec![1, 2];
    let mut exact = 2.0f64;
    loop {
        exact *= 1.5;
        if exact > u64::MAX as f64 / 1500.0 {
            return limits;
        }
        let mut limit = exact as u64;
        let mut zeros = 1;
        while limit / 10 > 10 {
            limit /= 10;
            zeros *= 10;
        }
        limits.push(limit * zeros);
    }
}

/// Counts of nanoseconds, told in microseconds.
#[derive(Clone)]
pub struct Histogram {
    limits: Vec<u64>,
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    sum_of_squares: f64,
    smallest: u64,
    largest: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let limits = limits();
        let counts = vec![0; limits.len()];
        Self {
            limits,
            counts,
            count: 0,
            sum: 0,
            sum_of_squares: 0.0,
            smallest: u64::MAX,
            largest: 0,
        }
    }
}

impl Histogram {
    /// Counts one operation.
    #[inline]
    pub fn add(&mut self, nanoseconds: u64) {
        let bucket =
            self.limits.partition_point(|limit| *limit < nanoseconds).min(self.limits.len() - 1);
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum += nanoseconds;
        self.sum_of_squares += (nanoseconds as f64) * (nanoseconds as f64);
        self.smallest = self.smallest.min(nanoseconds);
        self.largest = self.largest.max(nanoseconds);
    }

    /// Adds what another thread counted.
    pub fn merge(&mut self, other: &Self) {
        for (count, added) in self.counts.iter_mut().zip(&other.counts) {
            *count += added;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.smallest = self.smallest.min(other.smallest);
        self.largest = self.largest.max(other.largest);
    }

    /// The microseconds below which `percent` of the operations lie, interpolated within their
    /// bucket.
    pub fn percentile(&self, percent: f64) -> f64 {
        let threshold = self.count as f64 * (percent / 100.0);
        let mut before = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            let after = before + count;
            if after as f64 >= threshold && *count > 0 {
                let low = if bucket == 0 { 0 } else { self.limits[bucket - 1] } as f64;
                let high = self.limits[bucket] as f64;
                let value = low + (high - low) * (threshold - before as f64) / *count as f64;
                return us(value.clamp(self.smallest as f64, self.largest as f64));
            }
            before = after;
        }
        us(self.largest as f64)
    }

    fn average(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    fn standard_deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let average = self.average();
        (self.sum_of_squares / self.count as f64 - average * average).max(0.0).sqrt()
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let smallest = if self.count == 0 { 0 } else { self.smallest };
        let p = |percent| self.percentile(percent);
        writeln!(
            f,
            "Count: {} Average: {:.4}  StdDev: {:.2}",
            self.count,
            us(self.average()),
            us(self.standard_deviation())
        )?;
        let (smallest, largest) = (us(smallest as f64), us(self.largest as f64));
        writeln!(f, "Min: {smallest}  Median: {:.4}  Max: {largest}", p(50.0))?;
        writeln!(
            f,
            "Percentiles: P50: {:.2} P75: {:.2} P99: {:.2} P99.9: {:.2} P99.99: {:.2}",
            p(50.0),
            p(75.0),
            p(99.0),
            p(99.9),
            p(99.99)
        )?;
        writeln!(f, "------------------------------------------------------")?;
        let mut before = 0;
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            before += count;
            let share = 100.0 * *count as f64 / self.count as f64;
            let total = 100.0 * before as f64 / self.count as f64;
            let (bracket, low) =
                if bucket == 0 { ('[', 0) } else { ('(', self.limits[bucket - 1]) };
            let marks = "#".repeat((share / 5.0 + 0.5) as usize);
            let (low, high) = (us(low as f64), us(self.limits[bucket] as f64));
            writeln!(
                f,
                "{bracket} {low:>7}, {high:>7} ] {count:>8} {share:>7.3}% {total:>7.3}% {marks}"
            )?;
        }
        Ok(())
    }
}

/// In microseconds.
fn us(nanoseconds: f64) -> f64 {
    nanoseconds / 1000.0
}

#[cfg(test)]
mod tests;
