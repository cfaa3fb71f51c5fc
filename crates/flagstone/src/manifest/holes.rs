//! What of a blob file has been given back to the file system, and what is known of the rest.
//!
//! The MANIFEST says nothing of holes: how much of a file is on the disk is what the disk says,
//! when the database is opened and after each punch. On a file system that compresses this is less
//! than what was written, and counts the same.
//!
//! **Thread safety.** One thread at a time changes the holes of a file: it surveys or punches,
//! while others look, with the state lock or without. What they read of two of these numbers may be
//! of two moments.

use crate::base::sync::{AtomicBool, AtomicU64, Ordering};

/// The holes of one blob file, shared by all versions that have it.
#[derive(Debug, Default)]
pub struct Holes {
    /// Bytes that are not on the disk.
    punched: AtomicU64,
    /// Bytes that will go when the last reader does who began before they were garbage, 0 once it
    /// has.
    promised: AtomicU64,
    /// Bytes that will not be on the disk when all holes are punched that are being punched; 0
    /// while none are.
    expected: AtomicU64,
    /// Its bytes of garbage when its live records were looked up last.
    surveyed: AtomicU64,
    /// It is to stay as it is.
    kept_whole: AtomicBool,
    /// It is to stay as it is until this second since 1970.
    left_until: AtomicU64,
}

impl Holes {
    /// Bytes that are not on the disk.
    pub fn punched(&self) -> u64 {
        self.punched.load(Ordering::Relaxed)
    }

    /// Bytes that are not on the disk, or that only readers keep there: nobody could collect them.
    pub fn given_back(&self) -> u64 {
        self.punched().max(self.promised.load(Ordering::Relaxed))
    }

    /// Of so many bytes of garbage, those that only readers keep on the disk.
    pub fn kept_by_readers(&self, garbage_bytes: u64) -> u64 {
        let promised = self.promised.load(Ordering::Relaxed).min(garbage_bytes);
        promised.saturating_sub(self.punched())
    }

    /// Its bytes of garbage when its live records were looked up last; 0 if they never were.
    pub fn surveyed(&self) -> u64 {
        self.surveyed.load(Ordering::Relaxed)
    }

    /// Whether it is to stay as it is.
    pub fn are_refused(&self) -> bool {
        self.kept_whole.load(Ordering::Relaxed)
    }

    /// The disk says that so many bytes of the file's size are not on it.
    pub fn set_punched(&self, bytes: u64) {
        self.punched.store(bytes, Ordering::Relaxed);
    }

    /// In all so many bytes will not be on the disk; 0 when that has come true, or will not.
    pub fn promise(&self, bytes: u64) {
        self.promised.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that will not be on the disk when the holes are punched that are being punched; 0
    /// while none are.
    pub fn expected(&self) -> u64 {
        self.expected.load(Ordering::Relaxed)
    }

    /// Holes of so many bytes in all will be punched; 0 when that is done, or given up.
    pub fn expect(&self, bytes: u64) {
        self.expected.store(bytes, Ordering::Relaxed);
    }

    /// Its live records were looked up when so much of it was garbage.
    pub fn set_surveyed(&self, garbage_bytes: u64) {
        self.surveyed.store(garbage_bytes, Ordering::Relaxed);
    }

    /// It is not looked at before this second since 1970, and then as if it never was.
    pub fn leave_until(&self, unix_seconds: u64) {
        self.surveyed.store(0, Ordering::Relaxed);
        self.left_until.store(unix_seconds, Ordering::Relaxed);
    }

    /// Whether it is to stay as it is now.
    pub fn are_left(&self, unix_seconds: u64) -> bool {
        unix_seconds < self.left_until.load(Ordering::Relaxed)
    }

    /// No holes are punched any more while the database is open.
    pub fn refuse(&self) {
        self.promised.store(0, Ordering::Relaxed);
        self.expected.store(0, Ordering::Relaxed);
        self.kept_whole.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
