//! What one family asks of writers, remembered until it changes: each flush and compaction asks all families, of which there
//! may be ten thousand.
//!
//! **Invariant.** What is remembered depends on nothing but the super version, which has a number, the options, with whose change
//! it is forgotten, and whether the family is crippled. It is not remembered where a version has blob files: with these counts
//! what memtables will add, and holes in them come and go.

use super::family::FamilyState;
use super::settings::{stall_input, stall_settings};
use crate::base::sync::Ordering;
use crate::compaction::pick::{WriteStall, write_stall};

/// What a family asks of writers.
#[derive(Clone, Copy)]
pub(super) struct Pressure {
    pub(super) stall: WriteStall,
    /// Where writers could fill memtables faster than these are flushed.
    pub(super) filling: Option<Filling>,
}

/// Memtables that are filled while others wait for a flush.
#[derive(Clone, Copy)]
pub(super) struct Filling {
    /// Bytes that one of them has room for.
    pub(super) room: u64,
    /// Bytes that wait.
    pub(super) waiting: u64,
    /// Whether writers stop when the next is full.
    pub(super) is_last: bool,
}

/// What was worked out last.
#[derive(Clone, Copy)]
pub(super) struct Remembered {
    installed: u64,
    is_crippled: bool,
    pressure: Pressure,
}

impl FamilyState {
    /// What it asks of writers now; compactions of a crippled family leave a damaged table alone.
    pub(super) fn pressure(&mut self, is_crippled: bool) -> Pressure {
        let installed = self.installed();
        if let Some(known) = self.remembered_pressure
            && (known.installed, known.is_crippled) == (installed, is_crippled)
        {
            debug_assert!(
                known.pressure.stall == self.work_out_pressure(is_crippled).stall,
                "nothing changed"
            );
            return known.pressure;
        }
        let pressure = self.work_out_pressure(is_crippled);
        let has_blobs = !self.family.current.load().version.blob_files.is_empty();
        self.remembered_pressure = (!has_blobs).then_some(Remembered { installed, is_crippled, pressure });
        pressure
    }

    fn work_out_pressure(&self, is_crippled: bool) -> Pressure {
        let options = self.family.options.load();
        let current = self.family.current.load();
        let waiting = self.immutable.len();
        let unflushed = self.unflushed_blob_bytes();
        let input = stall_input(&options, &current.version, waiting, unflushed, &self.collecting);
        let mut settings = stall_settings(&options);
        settings.disable_auto_compactions |= is_crippled;
        let stall = write_stall(&settings, &input);
        // Faster than flushes, writers only fill memory. Of many memtables half are theirs, for a burst.
        let most = options.max_write_buffer_number.max(0) as usize;
        let is_filling = waiting > 0 && 2 * waiting + 2 >= most;
        let filling = is_filling.then(|| {
            let is_last = waiting + 1 >= most;
            let waiting = self.immutable.iter().map(|waiting| waiting.mem.bytes()).sum();
            // Where values lie in blob files, it is these that will be full.
            let in_blobs = self.immutable.back().is_some_and(|newest| newest.mem.is_mostly_blobs());
            let blob_file_size = self.family.blob_file_size.load(Ordering::Relaxed);
            let room = if in_blobs { blob_file_size } else { options.write_buffer_size };
            Filling { room, waiting, is_last }
        });
        Pressure { stall, filling }
    }
}
