//! What one thread of a benchmark does.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use flagstone::base::Result;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::Env;
use flagstone::options::{ReadOptions, WriteOptions};

use super::data::{KeyNumbers, KeyOrder, Values, fill_key};
use super::flags::Flags;
use super::plan::{Plan, Work};
use super::random::MersenneTwister;
use super::report::Report;
use super::stopwatch::Stopwatch;
use crate::progress::{Progress, TOLD_EVERY};

/// What all threads of a benchmark share.
pub struct Shared<'a> {
    /// The database.
    pub db: &'a Db,
    /// The command line.
    pub flags: &'a Flags,
    /// The benchmark.
    pub plan: &'a Plan,
    /// The clock.
    pub env: &'a Env,
    /// The clock for latencies.
    pub stopwatch: Stopwatch,
    /// Readers that are still at it; the writer of readwhilewriting ends with the last of them.
    pub readers: AtomicUsize,
    /// The seed of the whole run.
    pub seed: u64,
    /// Operations of all threads, if they are reported.
    pub done: Option<&'a AtomicU64>,
    /// What a terminal shows of them.
    pub progress: Option<&'a Progress>,
}

/// One thread.
pub struct Thread<'a> {
    /// What it shares with the others.
    pub shared: &'a Shared<'a>,
    /// Its number.
    pub index: usize,
    /// Its random numbers.
    pub random: MersenneTwister,
    /// What it counted.
    pub report: Report,
    /// Operations that the progress does not have yet.
    pub unshown: u64,
}

/// One of those that the writer beside them waits for: it is at it no longer also if it panics.
struct Reader<'a>(&'a AtomicUsize);

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Says when a thread has done enough: after so many operations or so much time.
struct Quota {
    left: u64,
    deadline_us: Option<u64>,
    unchecked: u64,
}

impl Thread<'_> {
    /// Does the benchmark's work.
    pub fn work(&mut self) -> Result<()> {
        match self.shared.plan.work {
            Work::Write(order) => self.write(order),
            Work::Delete { sequential } => self.delete(sequential),
            Work::DeleteRange => self.delete_ranges(),
            Work::ReadRandom => self.read_random(false),
            Work::ReadMissing => self.read_random(true),
            Work::MultiReadRandom => self.multi_read_random(),
            Work::Iterate { reverse } => self.iterate(reverse),
            Work::Seek { ordered } => self.seek(ordered),
            Work::Queue => self.queue(),
            work if work.has_writer_beside() && self.index == 0 => self.write_while_others_read(),
            work @ (Work::ReadWhileWriting | Work::SeekWhileWriting) => {
                let _reader = Reader(&self.shared.readers);
                match work {
                    Work::ReadWhileWriting => self.read_random(false),
                    _ => self.seek(false),
                }
            }
            Work::Update => self.update(),
            Work::Compact | Work::Flush | Work::WaitForCompaction | Work::Properties(_) => Ok(()),
        }
    }

    pub(super) fn now_us(&self) -> u64 {
        self.shared.env.clock.now_us()
    }

    /// So many operations, or as many as `--duration` allows if `timed`.
    fn quota(&self, operations: u64, timed: bool) -> Quota {
        let seconds = if timed { self.shared.flags.duration } else { 0 };
        let deadline_us = (seconds > 0).then(|| self.now_us() + seconds * 1_000_000);
        Quota { left: operations, deadline_us, unchecked: 0 }
    }

    /// Takes `count` operations from the quota; `false` if it is used up.
    #[inline]
    fn take(&self, quota: &mut Quota, count: u64) -> bool {
        let Some(deadline_us) = quota.deadline_us else {
            let enough = quota.left > 0;
            quota.left = quota.left.saturating_sub(count);
            return enough;
        };
        quota.unchecked += count;
        if quota.unchecked < self.shared.flags.ops_between_duration_checks {
            return true;
        }
        quota.unchecked = 0;
        self.now_us() < deadline_us
    }

    #[inline]
    pub(super) fn finished(&mut self, count: u64) {
        let stopwatch = &self.shared.stopwatch;
        self.report.finished(count, || stopwatch.now_ns());
        if let Some(done) = self.shared.done {
            done.fetch_add(count, Ordering::Relaxed);
        }
        if let Some(progress) = self.shared.progress {
            self.unshown += count;
            if self.unshown >= TOLD_EVERY {
                progress.add(std::mem::take(&mut self.unshown));
            }
        }
    }

    pub(super) fn read_options(&self) -> ReadOptions {
        let flags = self.shared.flags;
        ReadOptions {
            verify_checksums: flags.verify_checksum,
            readahead_size: flags.readahead_size,
            ..ReadOptions::default()
        }
    }

    pub(super) fn write_options(&self) -> WriteOptions {
        let (flags, plan) = (self.shared.flags, self.shared.plan);
        WriteOptions { sync: plan.sync, disable_wal: flags.disable_wal, ..WriteOptions::default() }
    }

    pub(super) fn key(&self) -> Vec<u8> {
        vec![0; self.shared.flags.key_size]
    }

    /// The number of a random key, drawn as `db_bench` draws it.
    #[inline]
    fn random_number(&mut self) -> u64 {
        self.random.next_u64();
        self.random.next_u64() % self.shared.plan.num.max(1)
    }

    /// The number of a key to look up: with `--read_random_exp_range` some much more often than
    /// others, and these anywhere.
    #[inline]
    fn number_to_read(&mut self) -> u64 {
        /// Where numbers are drawn from as fractions.
        const WHOLE: u64 = 1 << 62;
        /// Spreads neighbours.
        const PRIME: u64 = 0x5bd1_e995;
        let (range, num) = (self.shared.flags.read_random_exp_range, self.shared.plan.num.max(1));
        if range == 0.0 {
            return self.random_number();
        }
        self.random.next_u64();
        let fraction = (self.random.next_u64() % WHOLE) as f64 / WHOLE as f64;
        let drawn = ((-fraction * range).exp() * num as f64) as u64;
        drawn.wrapping_mul(PRIME) % num
    }

    fn write(&mut self, order: KeyOrder) -> Result<()> {
        let (flags, plan) = (self.shared.flags, self.shared.plan);
        let mut numbers = KeyNumbers::new(order, plan.num, self.shared.seed);
        let mut values = Values::new(flags.compression_ratio, plan.value_size);
        let mut quota = self.quota(plan.writes, order == KeyOrder::Random);
        let options = self.write_options();
        let family = self.shared.db.default_column_family();
        let (mut key, mut batch) = (self.key(), WriteBatch::new());
        let (start_us, mut written) = (self.now_us(), 0);
        while self.take(&mut quota, flags.batch_size) {
            self.pace(start_us, written);
            batch.clear();
            for _ in 0..flags.batch_size {
                fill_key(numbers.next(&mut self.random), &mut key);
                batch.put_cf(family, &key, values.next(plan.value_size))?;
            }
            self.shared.db.write_ref(&options, &mut batch)?;
            let bytes = flags.batch_size * (key.len() + plan.value_size) as u64;
            written += bytes;
            self.report.add_bytes(bytes);
            self.finished(flags.batch_size);
        }
        if plan.num != flags.num {
            self.report.remark(format!("({} ops)", plan.num));
        }
        Ok(())
    }

    fn delete(&mut self, sequential: bool) -> Result<()> {
        let (flags, db) = (self.shared.flags, self.shared.db);
        let mut quota = self.quota(flags.or_num(flags.deletes), !sequential);
        let options = self.write_options();
        let (mut key, mut batch, mut next) = (self.key(), WriteBatch::new(), 0);
        let (start_us, mut written) = (self.now_us(), 0);
        while self.take(&mut quota, flags.batch_size) {
            self.pace(start_us, written);
            batch.clear();
            for _ in 0..flags.batch_size {
                let number = if sequential { next } else { self.random_number() };
                next += 1;
                fill_key(number, &mut key);
                batch.delete_cf(db.default_column_family(), &key)?;
            }
            db.write_ref(&options, &mut batch)?;
            written += flags.batch_size * key.len() as u64;
            self.finished(flags.batch_size);
        }
        Ok(())
    }

    /// Deletes as many ranges as `--max_num_range_tombstones` says, at the same distance from one
    /// another, in random order.
    fn delete_ranges(&mut self) -> Result<()> {
        let (flags, db) = (self.shared.flags, self.shared.db);
        let ranges = flags.max_num_range_tombstones.max(1);
        let options = self.write_options();
        let (mut begin, mut end, mut batch) = (self.key(), self.key(), WriteBatch::new());
        let mut order = KeyNumbers::new(KeyOrder::UniqueRandom, ranges, self.shared.seed);
        let mut quota = self.quota(ranges, false);
        let (start_us, mut written) = (self.now_us(), 0);
        while self.take(&mut quota, 1) {
            self.pace(start_us, written);
            let first = (u128::from(order.next(&mut self.random)) * u128::from(flags.num)
                / u128::from(ranges)) as u64;
            fill_key(first, &mut begin);
            fill_key(first.saturating_add(flags.range_tombstone_width), &mut end);
            batch.clear();
            batch.delete_range_cf(db.default_column_family(), &begin, &end)?;
            db.write_ref(&options, &mut batch)?;
            written += (begin.len() + end.len()) as u64;
            self.finished(1);
        }
        Ok(())
    }

    /// Reads keys at random and writes them again.
    fn update(&mut self) -> Result<()> {
        let (flags, plan, db) = (self.shared.flags, self.shared.plan, self.shared.db);
        let mut values = Values::new(flags.compression_ratio, plan.value_size);
        // As db_bench: the larger of both numbers, and --num if there is neither.
        let mut quota = self.quota(flags.or_num(flags.reads.max(flags.writes)), true);
        let (reads, writes, family) =
            (self.read_options(), self.write_options(), db.default_column_family());
        let (mut key, mut batch, mut updated, mut found) =
            (self.key(), WriteBatch::new(), 0u64, 0u64);
        let (start_us, mut written) = (self.now_us(), 0);
        while self.take(&mut quota, 1) {
            self.pace(start_us, written);
            fill_key(self.random_number(), &mut key);
            if let Some(value) = db.get_with(&reads, family, &key)? {
                found += 1;
                self.report.add_bytes((key.len() + value.len()) as u64);
            }
            batch.clear();
            batch.put_cf(family, &key, values.next(plan.value_size))?;
            db.write_ref(&writes, &mut batch)?;
            let bytes = (key.len() + plan.value_size) as u64;
            written += bytes;
            self.report.add_bytes(bytes);
            updated += 1;
            self.finished(1);
        }
        self.report.remark(format!("( updates:{updated} found:{found})"));
        Ok(())
    }

    /// Writes at random, at most `--benchmark_write_rate_limit` bytes a second, until no reader is
    /// left.
    fn write_while_others_read(&mut self) -> Result<()> {
        let (flags, plan, db) = (self.shared.flags, self.shared.plan, self.shared.db);
        let mut values = Values::new(flags.compression_ratio, plan.value_size);
        let options = self.write_options();
        let (mut key, start_us, mut written) = (self.key(), self.now_us(), 0u64);
        let mut batch = WriteBatch::new();
        while self.shared.readers.load(Ordering::Acquire) > 0 {
            fill_key(self.random_number(), &mut key);
            batch.clear();
            batch.put_cf(db.default_column_family(), &key, values.next(plan.value_size))?;
            db.write_ref(&options, &mut batch)?;
            written += (key.len() + plan.value_size) as u64;
            self.pace(start_us, written);
        }
        Ok(())
    }

    /// Sleeps while more is written than `--benchmark_write_rate_limit` allows, of which each
    /// writer has its part. What it slept belongs to no operation's latency.
    pub(super) fn pace(&mut self, start_us: u64, written: u64) {
        let (limit, plan) = (self.shared.flags.benchmark_write_rate_limit, self.shared.plan);
        if limit == 0 {
            return;
        }
        let writers = if plan.work.has_writer_beside() { 1 } else { plan.threads };
        let due_us = start_us + (written as f64 * 1e6 * writers as f64 / limit as f64) as u64;
        let ahead_us = due_us.saturating_sub(self.now_us());
        if ahead_us > 0 {
            self.shared.env.clock.sleep(std::time::Duration::from_micros(ahead_us));
            self.report.resume(self.shared.stopwatch.now_ns());
        }
    }

    fn read_random(&mut self, missing: bool) -> Result<()> {
        let (flags, db) = (self.shared.flags, self.shared.db);
        let mut quota = self.quota(flags.or_num(flags.reads), true);
        let options = self.read_options();
        let family = db.default_column_family();
        let (mut key, mut read, mut found) = (self.key(), 0u64, 0u64);
        if missing {
            // One byte longer than any key that is there.
            key.push(b'.');
        }
        while self.take(&mut quota, 1) {
            let number = self.number_to_read();
            fill_key(number, &mut key[..flags.key_size]);
            if let Some(value) = db.get_with(&options, family, &key)? {
                found += 1;
                self.report.add_bytes((key.len() + value.len()) as u64);
            }
            read += 1;
            self.finished(1);
        }
        self.report.remark(format!("({found} of {read} found)\n"));
        Ok(())
    }

    fn multi_read_random(&mut self) -> Result<()> {
        let (flags, db) = (self.shared.flags, self.shared.db);
        let batch = flags.batch_size;
        let mut quota = self.quota(flags.or_num(flags.reads), true);
        let options = self.read_options();
        let mut keys = vec![self.key(); batch as usize];
        let (mut read, mut found) = (0, 0u64);
        while self.take(&mut quota, batch) {
            match flags.multiread_stride {
                0 => keys.iter_mut().for_each(|key| fill_key(self.number_to_read(), key)),
                stride => {
                    let span = stride.saturating_mul(batch - 1);
                    let first =
                        self.number_to_read().min(flags.num.saturating_sub(span.saturating_add(1)));
                    for (place, key) in (0..).zip(&mut keys) {
                        fill_key(first.saturating_add(stride.saturating_mul(place)), key);
                    }
                }
            }
            for value in db.multi_get_with(&options, db.default_column_family(), &keys) {
                if let Some(value) = value? {
                    found += 1;
                    self.report.add_bytes((flags.key_size + value.len()) as u64);
                }
            }
            read += batch;
            self.finished(batch);
        }
        self.report.remark(format!("({found} of {read} found)"));
        Ok(())
    }

    fn iterate(&mut self, reverse: bool) -> Result<()> {
        let mut iter = self.shared.db.iter(&self.read_options())?;
        if reverse {
            iter.seek_to_last();
        } else {
            iter.seek_to_first();
        }
        let mut left = self.shared.flags.or_num(self.shared.flags.reads);
        while left > 0 && iter.valid() {
            let size = iter.key().len() + iter.value()?.len();
            self.report.add_bytes(size as u64);
            if reverse {
                iter.prev();
            } else {
                iter.next();
            }
            left -= 1;
            self.finished(1);
        }
        iter.status()
    }

    fn seek(&mut self, ordered: bool) -> Result<()> {
        let flags = self.shared.flags;
        let mut quota = self.quota(flags.or_num(flags.reads), true);
        let options = self.read_options();
        let (mut key, mut read, mut found) = (self.key(), 0u64, 0u64);
        while self.take(&mut quota, 1) {
            let number = if ordered { read % flags.num.max(1) } else { self.random_number() };
            fill_key(number, &mut key);
            let mut iter = self.shared.db.iter(&options)?;
            iter.seek(&key);
            found += u64::from(iter.valid() && iter.key() == key);
            for _ in 0..flags.seek_nexts {
                if !iter.valid() {
                    break;
                }
                let size = iter.key().len() + iter.value()?.len();
                self.report.add_bytes(size as u64);
                if flags.reverse_iterator {
                    iter.prev();
                } else {
                    iter.next();
                }
            }
            iter.status()?;
            read += 1;
            self.finished(1);
        }
        self.report.remark(format!("({found} of {read} found)\n"));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
