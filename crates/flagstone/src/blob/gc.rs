//! Which blob files a compaction empties on its way, and when one is forced to start for that alone.
//!
//! RocksDB's rules: the oldest `age_cutoff` of the files are eligible, and a compaction that meets a
//! reference into one of them writes the value anew. If those files together hold at least `force_threshold`
//! garbage, the tables linked to the oldest one are compacted for that reason: here all that refer to it, which need
//! not be their oldest.

use std::collections::BTreeSet;

use crate::base::FileNumber;

/// When blob files are emptied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlobGcSettings {
    /// Whether compactions rewrite values of old blob files at all.
    pub enabled: bool,
    /// Which part of the files, oldest first, is eligible: 0.0 to 1.0.
    pub age_cutoff: f64,
    /// Which part of the eligible files' bytes must be garbage to force a compaction; 1.0 never forces one.
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

/// A file with less garbage than this part of its bytes is left alone, and does not count for the age cutoff: emptying
/// it would write much to gain little. RocksDB empties old files even if all they hold is live.
pub const WORTHWHILE_GARBAGE: f64 = 0.05;

/// The blob files whose values are written anew by compactions that meet them: the oldest part of those that hold
/// garbage worth the effort.
///
/// `files` are those of the compaction's input version, ascending.
pub fn gc_candidates(settings: &BlobGcSettings, files: &[BlobFileUsage]) -> BTreeSet<FileNumber> {
    candidates(settings, files).into_iter().map(|file| file.number).collect()
}

/// The blob file to which tables refer that should be compacted to get rid of garbage, if it is worth it.
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
        file.garbage_bytes > 0 && file.garbage_bytes as f64 >= WORTHWHILE_GARBAGE * file.total_bytes as f64
    };
    let mut with_garbage: Vec<_> = files.iter().filter(worthwhile).collect();
    // A cast saturates: a negative or undefined cutoff means none, one above 1 means all.
    with_garbage.truncate((settings.age_cutoff * with_garbage.len() as f64) as usize);
    with_garbage
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files as `number:garbage/total`, settings as numbers; what is eligible and what is forced, as text.
    fn decide(age_cutoff: f64, force_threshold: f64, files: &str) -> String {
        let settings = BlobGcSettings { enabled: true, age_cutoff, force_threshold };
        let usage: Vec<_> = files
            .split_whitespace()
            .map(|file| {
                let (number, rest) = file.split_once(':').unwrap();
                let (garbage, total) = rest.split_once('/').unwrap();
                let number = FileNumber(number.parse().unwrap());
                let (garbage_bytes, total_bytes) = (garbage.parse().unwrap(), total.parse().unwrap());
                BlobFileUsage { number, total_bytes, garbage_bytes }
            })
            .collect();
        let eligible: Vec<_> = gc_candidates(&settings, &usage).iter().map(|n| n.0.to_string()).collect();
        let forced = forced_gc(&settings, &usage).map_or("none".to_owned(), |n| n.0.to_string());
        format!("eligible [{}] forced {forced}", eligible.join(" "))
    }

    #[test]
    fn the_oldest_quarter_is_eligible() {
        let files = "1:9/100 2:9/100 3:9/100 4:9/100 5:9/100 6:9/100 7:9/100 8:9/100";
        assert_eq!(decide(0.25, 1.0, files), "eligible [1 2] forced none");
        assert_eq!(decide(0.24, 1.0, files), "eligible [1] forced none");
        assert_eq!(decide(0.0, 1.0, files), "eligible [] forced none");
        assert_eq!(decide(1.0, 1.0, files), "eligible [1 2 3 4 5 6 7 8] forced none");
        assert_eq!(decide(0.25, 1.0, "1:1/1 2:1/1 3:1/1"), "eligible [] forced none");
    }

    #[test]
    fn files_without_garbage_are_left_alone_however_old() {
        assert_eq!(decide(1.0, 1.0, "1:0/100 2:4/100 3:5/100"), "eligible [3] forced none");
        assert_eq!(decide(0.5, 0.5, "1:0/100 2:0/100 3:80/100 4:90/100"), "eligible [3] forced 3");
    }

    #[test]
    fn enough_garbage_in_the_eligible_files_forces_the_oldest() {
        assert_eq!(decide(0.5, 0.5, "3:40/100 5:60/100 7:9/99 9:9/99"), "eligible [3 5] forced 3");
        assert_eq!(decide(0.5, 0.5, "3:40/100 5:59/100 7:9/99 9:9/99"), "eligible [3 5] forced none");
        assert_eq!(decide(0.5, 0.5, "3:6/100 5:6/100 7:100/100 9:9/9"), "eligible [3 5] forced none");
        assert_eq!(decide(0.25, 0.1, "3:99/100"), "eligible [] forced none");
    }

    #[test]
    fn nothing_is_eligible_while_it_is_off() {
        let off = BlobGcSettings { age_cutoff: 1.0, force_threshold: 0.0, ..BlobGcSettings::default() };
        let full = BlobFileUsage { number: FileNumber(1), total_bytes: 1, garbage_bytes: 1 };
        assert!(gc_candidates(&off, &[full]).is_empty());
        assert_eq!(forced_gc(&off, &[full]), None);
    }
}
