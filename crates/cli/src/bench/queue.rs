//! A queue: appended to at one end, taken from at the other, and its head sought before each is
//! taken.
//!
//! Deletions pile up before the head until compactions remove them. What is measured is whether
//! that slows the search.

use std::time::Duration;

use flagstone::base::{Error, Result};
use flagstone::batch::WriteBatch;

use super::data::{Values, fill_key};
use super::workloads::Thread;

/// How many messages wait, at most.
const BACKLOG: u64 = 1000;
/// Parts of the run whose latencies are compared.
const PARTS: u64 = 10;
/// Latencies of so many tenths of a microsecond and more count as one.
const LONGEST: usize = 1 << 20;

/// How many searches took how many tenths of a microsecond. Most take one or two microseconds:
/// counted whole, twice as long could not be told from a little longer.
struct Latencies(Vec<u64>);

impl Latencies {
    fn new() -> Self {
        Self(vec![0; LONGEST])
    }

    fn add(&mut self, latency: Duration) {
        let tenths = latency.as_nanos() / 100;
        self.0[tenths.min(LONGEST as u128 - 1) as usize] += 1;
    }

    /// The latency in tenths of a microsecond that so many of a thousand do not exceed.
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
        let (flags, db) = (self.shared.flags, self.shared.db);
        let (read, write) = (self.read_options(), self.write_options());
        let mut values = Values::new(flags.compression_ratio, flags.value_size);
        let (mut tail, mut head) = (self.key(), self.key());
        let family = db.default_column_family();
        let mut batch = WriteBatch::new();
        let per_part = (flags.num / PARTS).max(1);
        let backlog = BACKLOG.min(per_part);
        let mut parts: Vec<Latencies> = Vec::new();
        let (start_us, mut written) = (self.now_us(), 0);
        for number in 0..flags.num {
            fill_key(number, &mut tail);
            batch.clear();
            batch.put_cf(family, &tail, values.next(flags.value_size))?;
            self.pace(start_us, written);
            db.write_ref(&write, &mut batch)?;
            written += (tail.len() + flags.value_size) as u64;
            let Some(taken) = number.checked_sub(backlog) else { continue };
            fill_key(taken, &mut head);
            let started_ns = self.shared.stopwatch.now_ns();
            let mut iter = db.iter(&read)?;
            iter.seek_to_first();
            let took = Duration::from_nanos(self.shared.stopwatch.now_ns() - started_ns);
            iter.status()?;
            if !iter.valid() || iter.key() != head {
                return Err(Error::corruption(format!(
                    "message {taken} is not at the head of the queue"
                )));
            }
            drop(iter);
            batch.clear();
            batch.delete_cf(family, &head)?;
            db.write_ref(&write, &mut batch)?;
            written += head.len() as u64;
            if taken % per_part == 0 {
                parts.push(Latencies::new());
            }
            parts.iter_mut().last().into_iter().for_each(|part| part.add(took));
            self.finished(1);
        }
        let [p50, p99] = [500, 990].map(|permille| {
            let tenths = parts.iter().map(|part| part.permille(permille));
            tenths
                .map(|tenths| format!("{}.{}", tenths / 10, tenths % 10))
                .collect::<Vec<_>>()
                .join(" ")
        });
        self.report.remark(format!("(seek us from beginning to end: p50 {p50}; p99 {p99})"));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
