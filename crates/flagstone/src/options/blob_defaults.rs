//! The settings of blob files that follow from others where they are not set, and how an OPTIONS
//! file keeps that they are not.

use crate::base::compression::CompressionType;

use super::cf_settings::CfSettings;
use super::choices::CompactionStyle;
use super::table::Settings;
use super::value::NOT_SET;

/// The settings that may be left open. The first one decides what the others are by default.
const LEFT_OPEN: [&str; 3] = ["enable_blob_files", "min_blob_size", "blob_compression_type"];

/// The name of the line of an OPTIONS file that says which are. An older version knows no such
/// option, and passes over it.
const NOTE: &str = "left_open";

impl CfSettings {
    /// Whether large values go to blob files.
    pub(crate) fn separates_values(&self) -> bool {
        self.enable_blob_files.unwrap_or(self.compaction_style != CompactionStyle::Fifo)
    }

    /// The smallest value, in bytes, that is large.
    pub(crate) fn smallest_blob(&self) -> u64 {
        self.min_blob_size.unwrap_or(if self.enable_blob_files.is_some() { 0 } else { 4096 })
    }

    /// How values in blob files are compressed.
    pub(crate) fn blob_compression(&self) -> CompressionType {
        let by_default =
            if self.enable_blob_files.is_some() { CompressionType::None } else { self.compression };
        self.blob_compression_type.unwrap_or(by_default)
    }

    /// How many times the bytes of live values blob files may take before writers are delayed; 0
    /// for any. It is `burst_space_amplification`, or `max_space_amplification` where that allows
    /// more, or anything.
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

    /// What an OPTIONS file says of those that are left open, in a line of ours behind what is in
    /// force.
    pub(super) fn noted(&self) -> Option<(&'static str, String)> {
        let names: Vec<_> = self.left_open().collect();
        (!names.is_empty()).then(|| (NOTE, names.join(":")))
    }

    /// Leaves those named open again whose values are what would be in force then: whoever has
    /// changed one since it was written has decided.
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

/// What an OPTIONS file says of a family's blob files beside the values in force, for when all of
/// these are known.
#[derive(Default)]
pub(super) struct BlobNotes {
    left_open: Vec<String>,
    bounds_space: bool,
    bounds_bursts: bool,
}

impl BlobNotes {
    /// Whether a line of ours is no more than such a note.
    pub(super) fn takes(&mut self, name: &str, value: &str) -> bool {
        self.bounds_space |= name == "max_space_amplification";
        self.bounds_bursts |= name == "burst_space_amplification";
        if name == NOTE {
            // Newer versions may leave more open.
            self.left_open = value.split(':').map(str::to_string).collect();
        }
        name == NOTE
    }

    /// What follows for the family.
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
