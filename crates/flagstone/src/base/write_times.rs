//! When sequence numbers were written, about: samples of both.
//!
//! A sample says that all sequence numbers up to `sequence` were written at `time` or before, and
//! all larger ones at `time` or later. So with samples 10 at 500 and 20 at 600, sequence number 15
//! was written between 500 and 600.
//!
//! A table has the samples about its own sequence numbers, in RocksDB's form:
//!
//! ```text
//! samples  count varint64, then of each: sequence varint64, time varint64
//! ```
//!
//! Each number but the first two is the difference to the one in the sample before. No samples are
//! no bytes at all.
//!
//! **Invariant.** Samples ascend strictly, in both numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::coding::{Decoder, put_varint64};
use super::{Error, Result, SequenceNumber};

/// Samples of sequence numbers and their times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteTimes {
    samples: Vec<WriteTime>,
}

/// All sequence numbers up to this one were written at that time or before, and others not before
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteTime {
    /// The sequence number.
    pub sequence: SequenceNumber,
    /// Seconds since 1970.
    pub time: u64,
}

impl WriteTimes {
    /// The most samples that a table has.
    pub const TABLE_MAX: usize = 100;

    /// Samples in any order.
    pub fn of(samples: impl IntoIterator<Item = WriteTime>) -> Self {
        let mut samples: Vec<_> = samples.into_iter().collect();
        samples.sort_unstable();
        let mut times = Self::default();
        samples.into_iter().for_each(|sample| times.append(sample));
        times
    }

    /// Adds a sample with a sequence number that is no smaller than those before. One of sequence
    /// number 0, which stands for any time, does not count.
    ///
    /// If two samples have the same sequence number, the earlier time stays, since nothing was
    /// written in between. If two have the same time, the larger sequence number stays, since all
    /// up to it were written by then. If the clock went back, samples with later times are removed.
    pub fn append(&mut self, sample: WriteTime) {
        let is_told =
            |last: &WriteTime| last.sequence >= sample.sequence && last.time <= sample.time;
        if sample.sequence == 0 || self.samples.last().is_some_and(is_told) {
            return;
        }
        let is_before =
            |other: &WriteTime| other.sequence < sample.sequence && other.time < sample.time;
        self.samples.truncate(self.samples.partition_point(is_before));
        self.samples.push(sample);
    }

    /// The samples, ascending.
    pub fn samples(&self) -> &[WriteTime] {
        &self.samples
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The latest time, in seconds since 1970, at which the sequence number was surely not written
    /// yet; 0 if none is known.
    pub fn time_before(&self, sequence: SequenceNumber) -> u64 {
        let later = self.samples.partition_point(|sample| sample.sequence < sequence);
        self.samples[..later].last().map_or(0, |sample| sample.time)
    }

    /// The largest sequence number that was surely written by that time; 0 if none is known.
    pub fn sequence_at(&self, time: u64) -> SequenceNumber {
        let later = self.samples.partition_point(|sample| sample.time <= time);
        self.samples[..later].last().map_or(0, |sample| sample.sequence)
    }

    /// Forgets what tells only of times more than `span` seconds before `now`, but for one sample.
    #[must_use]
    pub fn within(mut self, now: u64, span: u64) -> Self {
        let Some(begin) = now.checked_sub(span) else { return self };
        let old = self.samples.partition_point(|sample| sample.time <= begin);
        self.samples.drain(..old.saturating_sub(1));
        self
    }

    /// The samples that tell of sequence numbers from `first` to `last`: when they were not written
    /// yet, and by when they were.
    pub fn about(&self, first: SequenceNumber, last: SequenceNumber) -> Self {
        let begin = self.samples.partition_point(|sample| sample.sequence < first);
        let before_last = self.samples.partition_point(|sample| sample.sequence < last);
        let end = (before_last + 1).min(self.samples.len());
        Self { samples: self.samples[begin.saturating_sub(1)..end.max(begin)].to_vec() }
    }

    /// At most `most` samples (and at least two): those go whose neighbours are closest in time.
    #[must_use]
    pub fn limited(mut self, most: usize) -> Self {
        let count = self.samples.len();
        let mut excess = count.saturating_sub(most.max(2));
        // Of each sample its neighbours among those that stay.
        let mut before: Vec<usize> = (0..count).map(|at| at.saturating_sub(1)).collect();
        let mut after: Vec<usize> = (1..=count).collect();
        let samples = &self.samples;
        let gap = |before: &[usize], after: &[usize], at: usize| {
            samples[after[at]].time - samples[before[at]].time
        };
        let inner = 1..count.saturating_sub(1);
        let all = inner.map(|at| Reverse((gap(&before, &after, at), at)));
        let mut closest: BinaryHeap<_> = if excess > 0 { all.collect() } else { BinaryHeap::new() };
        let mut goes = vec![false; count];
        while excess > 0
            && let Some(Reverse((known, at))) = closest.pop()
        {
            let now = gap(&before, &after, at);
            if now != known {
                // A neighbour went meanwhile.
                closest.push(Reverse((now, at)));
                continue;
            }
            goes[at] = true;
            excess -= 1;
            let (left, right) = (before[at], after[at]);
            after[left] = right;
            before[right] = left;
        }
        let mut gone = goes.into_iter();
        self.samples.retain(|_| !gone.next().unwrap_or(false));
        self
    }

    /// The bytes that a table has of them.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.is_empty() {
            return out;
        }
        put_varint64(&mut out, self.samples.len() as u64);
        let mut before = WriteTime { sequence: 0, time: 0 };
        for sample in &self.samples {
            put_varint64(&mut out, sample.sequence - before.sequence);
            put_varint64(&mut out, sample.time - before.time);
            before = *sample;
        }
        out
    }

    /// What a table has of them.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let fault = || Error::corruption("the times of sequence numbers are malformed");
        let mut rest = Decoder::new(bytes);
        let count = rest.varint64().ok_or_else(fault)?;
        let mut samples = Vec::new();
        let mut before = WriteTime { sequence: 0, time: 0 };
        for _ in 0..count {
            let sequence = rest.varint64().ok_or_else(fault)?;
            let time = rest.varint64().ok_or_else(fault)?;
            let sequence = before.sequence.checked_add(sequence).ok_or_else(fault)?;
            let time = before.time.checked_add(time).ok_or_else(fault)?;
            before = WriteTime { sequence, time };
            samples.push(before);
        }
        if !rest.is_empty() {
            return Err(fault());
        }
        Ok(Self::of(samples))
    }
}

#[cfg(test)]
mod tests;
