//! Which blob files a compaction empties on its way, and when one is forced to start for that
//! alone.
//!
//! RocksDB's rules: the oldest `age_cutoff` of the files are eligible, and a compaction that meets
//! a reference into one of them writes the value anew. If those files together hold at least
//! `force_threshold` garbage, the tables linked to the oldest one are compacted for that reason:
//! here all that refer to it, which need not be their oldest.

use std::collections::BTreeSet;

use crate::base::FileNumber;

/// When blob files are emptied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlobGcSettings {
    /// Whether compactions rewrite values of old blob files at all.
    pub enabled: bool,
    /// Which part of the files, oldest first, is eligible: 0.0 to 1.0.
    pub age_cutoff: f64,
    /// Which part of the eligible files' bytes must be garbage to force a compaction; 1.0 never
    /// forces one.
    pub force_threshold: f64,
}

impl Default for BlobGcSettings {
    /// RocksDB's: off; a quarter once it is on; never forced.
    fn default() -> Self {
        Self { enabled: false, age_cutoff: 0.25, force_threshold: 1.0 }
    }
}

/// How full of garbage one blob file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobFileUsage {
    /// The file.
    pub number: FileNumber,
    /// Bytes of all its records.
    pub total_bytes: u64,
    /// Bytes of those that nothing refers to.
    pub garbage_bytes: u64,
}

/// A file with less garbage than this part of its bytes is left alone, and does not count for the
/// age cutoff: emptying it would write much to gain little. RocksDB empties old files even if all
/// they hold is live.
pub const WORTHWHILE_GARBAGE: f64 = 0.05;

/// The blob files whose values are written anew by compactions that meet them: the oldest part of
/// those that hold garbage worth the effort.
///
/// `files` are those of the compaction's input version, ascending.
pub fn gc_candidates(settings: &BlobGcSettings, files: &[BlobFileUsage]) -> BTreeSet<FileNumber> {
    candidates(settings, files).into_iter().map(|file| file.number).collect()
}

/// The blob file to which tables refer that should be compacted to get rid of garbage, if it is
/// worth it.
///
/// `files` ascending.
pub fn forced_gc(settings: &BlobGcSettings, files: &[BlobFileUsage]) -> Option<FileNumber> {
    if settings.force_threshold >= 1.0 {
        return None;
    }
    let candidates = candidates(settings, files);
    let oldest = candidates.first()?;
    // A MANIFEST may say anything.
    let total = candidates.iter().map(|file| file.total_bytes).fold(0, u64::saturating_add);
    let garbage = candidates.iter().map(|file| file.garbage_bytes).fold(0, u64::saturating_add);
    (garbage as f64 >= settings.force_threshold * total as f64).then_some(oldest.number)
}

fn candidates<'a>(settings: &BlobGcSettings, files: &'a [BlobFileUsage]) -> Vec<&'a BlobFileUsage> {
    if !settings.enabled {
        return Vec::new();
    }
    let worthwhile = |file: &&BlobFileUsage| {
        file.garbage_bytes > 0
            && file.garbage_bytes as f64 >= WORTHWHILE_GARBAGE * file.total_bytes as f64
    };
    let mut with_garbage: Vec<_> = files.iter().filter(worthwhile).collect();
    // A cast saturates: a negative or undefined cutoff means none, one above 1 means all.
    with_garbage.truncate((settings.age_cutoff * with_garbage.len() as f64) as usize);
    with_garbage
}

#[cfg(test)]
mod tests;
