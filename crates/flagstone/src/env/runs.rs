//! Zeros written ahead of appended data, so that the system's page cache holds the file in a few
//! large pages.
//!
//! A page cache uses pages as large as the write, or smaller if the write begins in the middle of a
//! page, and setting up a page costs more than filling it. Values of 4 KiB appended one by one
//! spend half of their time on that. If a run of [`PAGE_RUN`] bytes of zeros was written before,
//! the pages exist already. Values of 16 KiB to 128 KiB make pages of some size themselves, but in
//! longer runs they are read 20% faster and written no slower. Still longer runs make holes slow,
//! because a hole splits a page: values of 256 KiB in runs of 512 KiB were overwritten half as
//! fast.
//!
//! A sync also writes the zeros, and would write the pages again with their contents. So a file
//! that is synced more than once a run gets no zeros.

use std::ops::Range;

use super::WritableFile;
use crate::base::Result;

/// Bytes that are made one page, where the system can: Linux has pages of up to so many at hand for
/// each processor. Larger ones are split off blocks that nobody has used for long, and ext4 takes
/// longer for each write into one.
pub const PAGE_RUN: u64 = 32 << 10;

/// The longest run, in bytes.
const PAGE_RUN_MAX: u64 = 128 << 10;

/// How many times as much a file has before a longer run goes ahead in it.
const FILE_OVER_RUN: u64 = 4;

static ZEROS: [u8; PAGE_RUN_MAX as usize] = [0; PAGE_RUN_MAX as usize];

/// How long runs are to be, in bytes, for what is appended; `None` where it makes pages as large by
/// itself.
#[inline]
pub fn page_run(appended: &Range<u64>) -> Option<u64> {
    let bytes = appended.end - appended.start;
    let allowed = (appended.start / FILE_OVER_RUN).clamp(PAGE_RUN, PAGE_RUN_MAX);
    let run =
        (2 * bytes.min(PAGE_RUN_MAX)).next_power_of_two().clamp(PAGE_RUN, 1 << allowed.ilog2());
    (bytes < run).then_some(run)
}

/// Where a file's zeros end, and where its syncs lie.
#[derive(Debug, Default)]
pub struct PageRuns {
    /// What the file held when it was last synced.
    synced: Option<u64>,
    zeroed: u64,
}

impl PageRuns {
    /// Nothing is zeroed before `zeroed`.
    pub fn starting_at(zeroed: u64) -> Self {
        Self { synced: None, zeroed }
    }

    /// Notes that the file is synced when it holds `end` bytes.
    pub fn note_sync(&mut self, end: u64) {
        self.synced = Some(end);
    }

    /// Whether there was a sync less than a `run` before `offset`.
    #[inline]
    pub fn is_synced_before(&self, offset: u64, run: u64) -> bool {
        self.synced.is_some_and(|synced| offset < synced + run)
    }

    /// What of the file is to be zeros before the bytes `appended`, behind which there are none
    /// yet, are written. For what is shorter than a `run`, or comes in pieces that are: longer
    /// writes make large pages by themselves.
    #[inline]
    pub fn wanted(&self, appended: &Range<u64>, run: u64) -> Option<Range<u64>> {
        if self.is_synced_before(appended.start, run) {
            return None;
        }
        let missing = self.missing(appended)?;
        Some(missing.start..missing.end.next_multiple_of(run))
    }

    /// What of `appended`, behind which there are no zeros yet, has none itself.
    #[inline]
    pub fn missing(&self, appended: &Range<u64>) -> Option<Range<u64>> {
        (appended.end > self.zeroed).then(|| self.zeroed.max(appended.start)..appended.end)
    }

    /// Writes zeros to `range`, which begins as [`PageRuns::wanted`] or [`PageRuns::missing`] has
    /// said, in runs of at most 128 KiB. Nobody may write behind its start meanwhile.
    ///
    /// # Errors
    /// As [`WritableFile::write_at`]; any part of the zeros may be written.
    pub fn write(&mut self, file: &dyn WritableFile, range: Range<u64>, run: u64) -> Result<()> {
        Self::write_zeros(file, range.clone(), run)?;
        self.note_zeros(range.end);
        Ok(())
    }

    /// The zeros of [`PageRuns::write`], for [`PageRuns::note_zeros`].
    ///
    /// # Errors
    /// As [`PageRuns::write`].
    pub fn write_zeros(file: &dyn WritableFile, range: Range<u64>, run: u64) -> Result<()> {
        let mut start = range.start;
        while start < range.end {
            let end = (start + 1).next_multiple_of(run).min(range.end);
            file.write_at(start, &ZEROS[..(end - start) as usize])?;
            start = end;
        }
        Ok(())
    }

    /// Notes that there are zeros up to `end`, or will be. Where there are none after all, what is
    /// written there lies in smaller pages.
    pub fn note_zeros(&mut self, end: u64) {
        self.zeroed = end;
    }
}

#[cfg(test)]
mod tests;
