//! An OPTIONS file that could not be written, as on a full disk, and when it is tried again.

/// The first pause between two attempts, in microseconds.
const PAUSE_MIN_US: u64 = 1_000_000;
/// The longest one.
const PAUSE_MAX_US: u64 = 30_000_000;

/// Whether a file is due. Each attempt takes a number and makes a file: pauses between them double.
#[derive(Debug, Default)]
pub(in crate::db) struct DueOptions {
    is_due: bool,
    pause_us: u64,
    next_us: u64,
}

impl DueOptions {
    /// Whether one is due.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether one is due, and may be tried at this time of the clock.
    pub(super) fn may_be_tried(&self, now_us: u64) -> bool {
        self.is_due && now_us >= self.next_us
    }

    /// It could not be written at this time.
    pub(super) fn put_off(&mut self, now_us: u64) {
        self.is_due = true;
        self.pause_us = (2 * self.pause_us).clamp(PAUSE_MIN_US, PAUSE_MAX_US);
        self.next_us = now_us + self.pause_us;
    }

    /// A file was written, which says all.
    pub(super) fn settle(&mut self) {
        *self = Self::default();
    }
}
