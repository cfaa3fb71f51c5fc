//! A queue: appended to at one end, taken from at the other, and its head sought before each is taken.
//!
//! Deletions pile up before the head until compactions remove them. What is measured is whether that slows the search.

use flagstone::base::{Error, Result};
use flagstone::batch::WriteBatch;

use super::data::{Values, fill_key};
use super::workloads::Thread;

/// How many messages wait, at most.
const BACKLOG: u64 = 1000;
/// Parts of the run whose latencies are compared.
const PARTS: u64 = 10;
/// Latencies of so many microseconds and more count as one.
const LONGEST_US: usize = 1 << 16;

/// How many searches took how many microseconds.
struct Latencies(Vec<u64>);

impl Latencies {
    fn new() -> Self {
        Self(vec![0; LONGEST_US])
    }

    fn add(&mut self, latency_us: u64) {
        self.0[(latency_us as usize).min(LONGEST_US - 1)] += 1;
    }

    /// The latency in microseconds that so many of a thousand do not exceed.
    fn permille(&self, permille: u64) -> usize {
        let wanted = (self.0.iter().sum::<u64>() * permille).div_ceil(1000);
        let mut counted = 0;
        let reached = self.0.iter().position(|count| {
            counted += count;
            counted >= wanted
        });
        reached.unwrap_or(0)
    }
}

impl Thread<'_> {
    /// Appends `--num` messages and takes all but the backlog.
    pub(super) fn queue(&mut self) -> Result<()> {
        let (flags, db, clock) = (self.shared.flags, self.shared.db, &self.shared.env.clock);
        let (read, write) = (self.read_options(), self.write_options());
        let mut values = Values::new(flags.compression_ratio, flags.value_size);
        let (mut tail, mut head) = (self.key(), self.key());
        let family = db.default_column_family();
        let mut batch = WriteBatch::new();
        let per_part = (flags.num / PARTS).max(1);
        let backlog = BACKLOG.min(per_part);
        let mut parts: Vec<Latencies> = Vec::new();
        for number in 0..flags.num {
            fill_key(number, &mut tail);
            batch.clear();
            batch.put_cf(family, &tail, values.next(flags.value_size))?;
            db.write_ref(&write, &mut batch)?;
            let Some(taken) = number.checked_sub(backlog) else { continue };
            fill_key(taken, &mut head);
            let started_us = clock.now_us();
            let mut iter = db.iter(&read)?;
            iter.seek_to_first();
            let took_us = clock.now_us() - started_us;
            iter.status()?;
            if !iter.valid() || iter.key() != head {
                return Err(Error::corruption(format!("message {taken} is not at the head of the queue")));
            }
            drop(iter);
            batch.clear();
            batch.delete_cf(family, &head)?;
            db.write_ref(&write, &mut batch)?;
            if taken % per_part == 0 {
                parts.push(Latencies::new());
            }
            parts.iter_mut().last().into_iter().for_each(|part| part.add(took_us));
            self.finished(1);
        }
        let p99: Vec<String> = parts.iter().map(|part| part.permille(990).to_string()).collect();
        let p50: Vec<String> = parts.iter().map(|part| part.permille(500).to_string()).collect();
        self.report.remark(format!(
            "(seek us from beginning to end: p50 {}; p99 {})",
            p50.join(" "),
            p99.join(" ")
        ));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permilles_are_exact() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.permille(990), 0);
        for latency_us in 1..=1000 {
            latencies.add(latency_us);
        }
        assert_eq!((latencies.permille(500), latencies.permille(990)), (500, 990));
        latencies.add(u64::MAX);
        assert_eq!(latencies.permille(1000), LONGEST_US - 1);
    }
}
