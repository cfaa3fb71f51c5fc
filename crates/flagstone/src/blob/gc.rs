//! Which blob files a compaction empties on its way, and when one is forced to start for that alone.
//!
//! RocksDB's rules: the oldest `age_cutoff` of the files are eligible, and a compaction that meets a
//! reference into one of them writes the value anew. If those files together hold at least `force_threshold`
//! garbage, the tables linked to the oldest one are compacted for that reason.

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

/// The first blob file that is too young: values in files **below** it are written anew.
///
/// `files` are those of the compaction's input version, ascending. `FileNumber(0)` when none is eligible, the
/// largest number when all are.
pub fn gc_cutoff(settings: &BlobGcSettings, files: &[FileNumber]) -> FileNumber {
    if !settings.enabled {
        return FileNumber(0);
    }
    match files.get(eligible_count(settings, files.len())) {
        Some(&first_young) => first_young,
        None => FileNumber(u64::MAX),
    }
}

/// The blob file whose linked tables should be compacted to get rid of garbage, if it is worth it.
///
/// `files` ascending.
pub fn forced_gc(settings: &BlobGcSettings, files: &[BlobFileUsage]) -> Option<FileNumber> {
    if !settings.enabled || settings.force_threshold >= 1.0 {
        return None;
    }
    let eligible = &files[..eligible_count(settings, files.len())];
    let oldest = eligible.first()?;
    let total: u64 = eligible.iter().map(|file| file.total_bytes).sum();
    let garbage: u64 = eligible.iter().map(|file| file.garbage_bytes).sum();
    (garbage as f64 >= settings.force_threshold * total as f64).then_some(oldest.number)
}

fn eligible_count(settings: &BlobGcSettings, files: usize) -> usize {
    // A cast saturates: a negative or undefined cutoff means none, one above 1 means all.
    ((settings.age_cutoff * files as f64) as usize).min(files)
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
        let numbers: Vec<_> = usage.iter().map(|file| file.number).collect();
        let cutoff = gc_cutoff(&settings, &numbers);
        let eligible: Vec<_> = numbers.iter().filter(|&&n| n < cutoff).map(|n| n.0.to_string()).collect();
        let forced = forced_gc(&settings, &usage).map_or("none".to_owned(), |n| n.0.to_string());
        format!("eligible [{}] forced {forced}", eligible.join(" "))
    }

    #[test]
    fn the_oldest_quarter_is_eligible() {
        let files = "1:0/100 2:0/100 3:0/100 4:0/100 5:0/100 6:0/100 7:0/100 8:0/100";
        assert_eq!(decide(0.25, 1.0, files), "eligible [1 2] forced none");
        assert_eq!(decide(0.24, 1.0, files), "eligible [1] forced none");
        assert_eq!(decide(0.0, 1.0, files), "eligible [] forced none");
        assert_eq!(decide(1.0, 1.0, files), "eligible [1 2 3 4 5 6 7 8] forced none");
        assert_eq!(decide(0.25, 1.0, "1:0/1 2:0/1 3:0/1"), "eligible [] forced none");
    }

    #[test]
    fn enough_garbage_in_the_eligible_files_forces_the_oldest() {
        assert_eq!(decide(0.5, 0.5, "3:40/100 5:60/100 7:0/1 9:0/1"), "eligible [3 5] forced 3");
        assert_eq!(decide(0.5, 0.5, "3:40/100 5:59/100 7:0/1 9:0/1"), "eligible [3 5] forced none");
        assert_eq!(decide(0.5, 0.5, "3:0/100 5:0/100 7:100/100 9:9/9"), "eligible [3 5] forced none");
        assert_eq!(decide(0.25, 0.1, "3:99/100"), "eligible [] forced none");
    }

    #[test]
    fn nothing_is_eligible_while_it_is_off() {
        let off = BlobGcSettings { age_cutoff: 1.0, force_threshold: 0.0, ..BlobGcSettings::default() };
        assert_eq!(gc_cutoff(&off, &[FileNumber(1)]), FileNumber(0));
        let full = BlobFileUsage { number: FileNumber(1), total_bytes: 1, garbage_bytes: 1 };
        assert_eq!(forced_gc(&off, &[full]), None);
    }
}
