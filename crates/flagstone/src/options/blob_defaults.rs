//! Blob settings whose defaults follow from other settings, and how an OPTIONS file records that
//! they were not set.

use crate::base::compression::CompressionType;

use super::cf_settings::CfSettings;
use super::choices::CompactionStyle;
use super::table::Settings;
use super::value::NOT_SET;

/// The settings that may be left open. The first one decides the defaults of the others.
const LEFT_OPEN: [&str; 3] = ["enable_blob_files", "min_blob_size", "blob_compression_type"];

/// Name of the line in an OPTIONS file that lists the settings left open. An older version does not
/// know this option and ignores it.
const NOTE: &str = "left_open";

impl CfSettings {
    /// Whether large values go to blob files.
    pub(crate) fn separates_values(&self) -> bool {
        self.enable_blob_files.unwrap_or(self.compaction_style != CompactionStyle::Fifo)
    }

    /// Smallest value, in bytes, that goes to a blob file.
    pub(crate) fn smallest_blob(&self) -> u64 {
        self.min_blob_size.unwrap_or(if self.enable_blob_files.is_some() { 0 } else { 4096 })
    }

    /// Compression of values in blob files.
    pub(crate) fn blob_compression(&self) -> CompressionType {
        let by_default =
            if self.enable_blob_files.is_some() { CompressionType::None } else { self.compression };
        self.blob_compression_type.unwrap_or(by_default)
    }

    /// Bytes that blob files may take before writers are delayed, as a multiple of the bytes of
    /// live values; 0 for no limit. It is the larger of `burst_space_amplification` and
    /// `max_space_amplification`, or 0 if the latter sets no limit.
    pub fn space_in_bursts(&self) -> f64 {
        match self.max_space_amplification {
            most if most > 0.0 => most.max(self.burst_space_amplification),
            _ => 0.0,
        }
    }

    /// The same with what is in force in the place of what is left open, as RocksDB can read it.
    pub(super) fn settled(&self) -> Self {
        Self {
            enable_blob_files: Some(self.separates_values()),
            min_blob_size: Some(self.smallest_blob()),
            blob_compression_type: Some(self.blob_compression()),
            ..self.clone()
        }
    }

    /// Which of [`LEFT_OPEN`] are.
    fn left_open(&self) -> impl Iterator<Item = &'static str> {
        let is_open = [
            self.enable_blob_files.is_none(),
            self.min_blob_size.is_none(),
            self.blob_compression_type.is_none(),
        ];
        LEFT_OPEN.into_iter().zip(is_open).filter_map(|(name, is_open)| is_open.then_some(name))
    }

    /// The line of ours, after the values in force, that lists the settings left open.
    pub(super) fn noted(&self) -> Option<(&'static str, String)> {
        let names: Vec<_> = self.left_open().collect();
        (!names.is_empty()).then(|| (NOTE, names.join(":")))
    }

    /// Opens those named again whose values equal the values that would then be in force. A value
    /// changed since the file was written stays set.
    fn open_again(&mut self, names: &[String]) {
        for name in LEFT_OPEN.into_iter().filter(|name| names.iter().any(|noted| noted == name)) {
            let mut open = self.clone();
            let taken = open.assign(name, NOT_SET);
            debug_assert!(matches!(taken, Some(Ok(()))), "{name} may be left open");
            let is_same = open.settled().text(name) == self.settled().text(name);
            if is_same {
                *self = open;
            }
        }
    }
}

/// What an OPTIONS file says about a family's blob files besides values, kept until all values are
/// known.
#[derive(Default)]
pub(super) struct BlobNotes {
    left_open: Vec<String>,
    bounds_space: bool,
    bounds_bursts: bool,
}

impl BlobNotes {
    /// Whether a line of ours is only such a note.
    pub(super) fn takes(&mut self, name: &str, value: &str) -> bool {
        self.bounds_space |= name == "max_space_amplification";
        self.bounds_bursts |= name == "burst_space_amplification";
        if name == NOTE {
            // Newer versions may leave more open.
            self.left_open = value.split(':').map(str::to_string).collect();
        }
        name == NOTE
    }

    /// Applies the notes to the family.
    pub(super) fn act_on(&self, settings: &mut CfSettings) {
        settings.open_again(&self.left_open);
        // Whoever wrote the one and not the other kept to it at every moment.
        if self.bounds_space && !self.bounds_bursts {
            settings.burst_space_amplification = 0.0;
        }
    }
}

#[cfg(test)]
mod tests;
