//! What families ask of writers: each flush and compaction changes what one of them asks, of
//! perhaps ten thousand.
//!
//! 1. What a family asks is worked out from its tree, and remembered until that changes
//!    ([`FamilyState::pressure`]).
//! 2. What all ask together stands in lists by how much each asks ([`Pressures`]): only the first
//!    of a list counts.
//!
//! **Invariant.** What is remembered depends on nothing but the super version, which has a number,
//! the options, with whose change it is forgotten, and whether the family is crippled or held. It
//! is not remembered where a version has blob files: with these counts what memtables will add, and
//! holes in them come and go.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::ColumnFamilyId;
use crate::base::sync::Ordering;
use crate::compaction::pick::{
    BlobMoment, BlobWaste, WriteStall, blob_file_size, memtables_left, write_stall,
};
use crate::db::settings::{blob_waste, stall_input, stall_settings};
use crate::db::tree::family_state::FamilyState;
use crate::manifest::Version;
use crate::options::ColumnFamilyOptions;

/// What a family asks of writers.
#[derive(Clone, Copy)]
pub(in crate::db) struct Pressure {
    pub(in crate::db) stall: WriteStall,
    /// Where writers could fill memtables faster than these are flushed.
    pub(in crate::db) filling: Option<Filling>,
    /// Where the next memtable may take so much space in blob files that writers are delayed.
    pub(in crate::db) space: Option<Space>,
}

/// Space that blob files, or WALs, may take still.
#[derive(Clone, Copy)]
pub(in crate::db) struct Space {
    /// Bytes that may be written until writers are delayed most.
    pub(in crate::db) left: u64,
    /// What is left of them where delays begin.
    pub(in crate::db) brakes_at: u64,
}

impl Space {
    pub(in crate::db) fn closeness(&self) -> u64 {
        (self.brakes_at as f64 / self.left.max(1) as f64).to_bits()
    }
}

/// Memtables that are filled while others wait for a flush.
#[derive(Clone, Copy)]
pub(in crate::db) struct Filling {
    /// Bytes that those have room for, the one being filled among them, that may be full before
    /// writers stop.
    pub(in crate::db) room: u64,
    /// Bytes that wait.
    pub(in crate::db) waiting: u64,
    /// Whether writers stop when the next is full.
    pub(in crate::db) is_last: bool,
}

impl Pressure {
    /// Whether writers have to heed it.
    pub(in crate::db) fn is_felt(&self) -> bool {
        self.stall != WriteStall::Normal || self.filling.is_some() || self.space.is_some()
    }
}

/// What all families ask, each in what place by how much.
#[derive(Default)]
pub(in crate::db) struct Pressures {
    /// Those that ask for something.
    felt: BTreeMap<ColumnFamilyId, RankedPressure>,
    /// That hold writers up, by [`RankedPressure::stalled`].
    stalled: BTreeSet<(u64, ColumnFamilyId)>,
    /// That wait for flushes, by [`RankedPressure::slowness`].
    filling: BTreeSet<(u64, ColumnFamilyId)>,
    /// Whose last memtable is being filled, by [`RankedPressure::left`].
    rooms: BTreeSet<(u64, ColumnFamilyId)>,
    /// Whose blob files are about to take too much, by [`Space::closeness`].
    spaces: BTreeSet<(u64, ColumnFamilyId)>,
    /// The family that listeners were told of last, while it holds writers up.
    pub(in crate::db) told: Option<String>,
}

/// What a family asks, and where that puts it.
struct RankedPressure {
    filling: Option<Filling>,
    space: Option<Space>,
    /// The bits of the severity of a delay, which are in its order; [`STOP`] to stop writers.
    stalled: Option<u64>,
    /// The bits of how much of its room waits for the flush to each byte: the more of it, the
    /// slower writers must be.
    slowness: Option<u64>,
    /// Bytes of room in its last memtable when it was looked at last.
    left: Option<u64>,
}

const STOP: u64 = u64::MAX;

/// The most that any family asks.
#[derive(Default)]
pub(in crate::db) struct Asked {
    pub(in crate::db) is_stopped: bool,
    /// Of the worst delay, where nobody stops writers.
    pub(in crate::db) severity: Option<f64>,
    /// Where writers must be slowest.
    pub(in crate::db) slowest: Option<Filling>,
    /// What is left in the fullest of the last memtables, and what it had room for.
    pub(in crate::db) last_room: Option<(u64, u64)>,
    /// Where blob files are nearest to what they may take.
    pub(in crate::db) space: Option<Space>,
    /// The family that holds writers up most.
    pub(in crate::db) worst: Option<ColumnFamilyId>,
}

impl RankedPressure {
    fn new(pressure: &Pressure, active_bytes: u64) -> Self {
        let filling = pressure.filling;
        let last = filling.filter(|filling| filling.is_last);
        Self {
            filling,
            space: pressure.space,
            stalled: match pressure.stall {
                WriteStall::Normal => None,
                WriteStall::Delay { severity, .. } => Some(severity.max(0.0).to_bits()),
                WriteStall::Stop { .. } => Some(STOP),
            },
            slowness: filling.map(|Filling { room, waiting, .. }| {
                (waiting.max(1) as f64 / room.max(1) as f64).to_bits()
            }),
            left: last.map(|filling| filling.room.saturating_sub(active_bytes)),
        }
    }
}

impl Pressures {
    /// What a family asks now, which has so many bytes in its active memtable.
    pub(in crate::db) fn note(
        &mut self,
        id: ColumnFamilyId,
        pressure: &Pressure,
        active_bytes: u64,
    ) {
        self.remove(id);
        if pressure.is_felt() {
            let felt = RankedPressure::new(pressure, active_bytes);
            felt.stalled.map(|stalled| self.stalled.insert((stalled, id)));
            felt.slowness.map(|slowness| self.filling.insert((slowness, id)));
            felt.left.map(|left| self.rooms.insert((left, id)));
            felt.space.map(|space| self.spaces.insert((space.closeness(), id)));
            self.felt.insert(id, felt);
        }
    }

    pub(in crate::db) fn remove(&mut self, id: ColumnFamilyId) {
        let Some(felt) = self.felt.remove(&id) else { return };
        felt.stalled.map(|stalled| self.stalled.remove(&(stalled, id)));
        felt.slowness.map(|slowness| self.filling.remove(&(slowness, id)));
        felt.left.map(|left| self.rooms.remove(&(left, id)));
        felt.space.map(|space| self.spaces.remove(&(space.closeness(), id)));
    }

    /// The family whose blob files are nearest to what they may take.
    pub(in crate::db) fn shortest_of_space(&self) -> Option<ColumnFamilyId> {
        self.spaces.last().map(|(_, id)| *id)
    }

    /// Whether a family asks for something.
    pub(in crate::db) fn is_felt(&self, id: ColumnFamilyId) -> bool {
        self.felt.contains_key(&id)
    }

    /// The most that is asked for.
    pub(in crate::db) fn asked(&self) -> Asked {
        let worst = self.stalled.last().map(|(stalled, _)| *stalled);
        let filling = |id: &ColumnFamilyId| self.felt.get(id).and_then(|felt| felt.filling);
        Asked {
            is_stopped: worst == Some(STOP),
            severity: worst.filter(|bits| *bits != STOP).map(f64::from_bits),
            slowest: self.filling.last().and_then(|(_, id)| filling(id)),
            last_room: self.rooms.first().and_then(|(left, id)| Some((*left, filling(id)?.room))),
            space: self.spaces.last().and_then(|(_, id)| self.felt.get(id)?.space),
            worst: [&self.stalled, &self.filling, &self.spaces]
                .into_iter()
                .find_map(|list| list.last().map(|(_, id)| *id)),
        }
    }
}

/// What was worked out last.
#[derive(Clone, Copy)]
pub(in crate::db) struct Remembered {
    installed: u64,
    is_left_alone: bool,
    pressure: Pressure,
}

impl FamilyState {
    /// What it asks of writers now; compactions of a crippled family leave a damaged table alone.
    pub(in crate::db) fn pressure(&mut self, is_crippled: bool) -> Pressure {
        let installed = self.installed();
        // Nobody waits for compactions that do not come.
        let is_left_alone = is_crippled || self.family.is_held();
        if let Some(known) = self.remembered_pressure
            && (known.installed, known.is_left_alone) == (installed, is_left_alone)
        {
            debug_assert!(
                known.pressure.stall == self.work_out_pressure(is_left_alone).stall,
                "nothing changed"
            );
            return known.pressure;
        }
        let pressure = self.work_out_pressure(is_left_alone);
        self.bound_memtable(&pressure);
        let has_blobs = !self.family.current.load().version.blob_files.is_empty();
        self.remembered_pressure =
            (!has_blobs).then_some(Remembered { installed, is_left_alone, pressure });
        pressure
    }

    /// Where writers are slowed down for the space of blob files, a memtable is flushed as soon as
    /// it takes as much as one of values in a blob file may: what it overwrites cannot be collected
    /// before, and writers would wait for themselves.
    fn bound_memtable(&self, pressure: &Pressure) {
        let options = self.family.options.load();
        let is_short = pressure.space.is_some_and(|space| space.left < space.brakes_at);
        let most = if is_short {
            let version = &self.family.current.load().version;
            blob_file_size(version, options.max_space_amplification, options.write_buffer_size)
        } else {
            options.write_buffer_size
        };
        self.family.limits.write_buffer_size.store(most as usize, Ordering::Relaxed);
    }

    fn work_out_pressure(&self, is_left_alone: bool) -> Pressure {
        let options = self.family.options.load();
        let current = self.family.current.load();
        let waiting = self.immutable.len();
        let blob_waste = self.blob_waste(&options, &current.version);
        let input = stall_input(&options, &current.version, waiting, blob_waste);
        let mut settings = stall_settings(&options);
        settings.disable_auto_compactions |= is_left_alone;
        let stall = write_stall(&settings, &input);
        let most = options.max_write_buffer_number.max(0) as usize;
        let filling = memtables_left(waiting, most).map(|left| {
            let is_last = waiting + 1 >= most;
            let waiting = self.immutable.iter().map(|waiting| waiting.mem.bytes()).sum();
            // Where values lie in blob files, it is these that will be full.
            let in_blobs = self.immutable.back().is_some_and(|newest| newest.mem.is_mostly_blobs());
            let blob_file_size = self.family.limits.blob_file_size.load(Ordering::Relaxed);
            let write_buffer_size =
                self.family.limits.write_buffer_size.load(Ordering::Relaxed) as u64;
            let memtable = if in_blobs { blob_file_size } else { write_buffer_size };
            Filling { room: memtable.saturating_mul(left), waiting, is_last }
        });
        let (left, brakes_at) = blob_waste.left();
        // Nobody looks again before the active memtable is full.
        let full = self
            .family
            .limits
            .blob_file_size
            .load(Ordering::Relaxed)
            .saturating_add(options.write_buffer_size);
        let has_garbage = current.version.blob_files.values().any(|blob| blob.garbage_bytes > 0);
        // Where nothing is overwritten, what is written makes no garbage.
        let is_near = brakes_at > 0
            && self.overwriting.is_expected(has_garbage)
            && !settings.disable_auto_compactions
            && left < brakes_at.saturating_add(full);
        Pressure { stall, filling, space: is_near.then_some(Space { left, brakes_at }) }
    }

    /// What its blob files waste.
    pub(in crate::db) fn blob_waste(
        &self,
        options: &ColumnFamilyOptions,
        version: &Version,
    ) -> BlobWaste {
        let moment = BlobMoment {
            unflushed_bytes: self.generations().map(|memtable| memtable.bytes()).sum(),
            overwriting: self.overwriting,
            collecting: &self.compacting.collecting,
            is_kept_by_readers: self.punching.is_kept_by_readers(),
            holds_young: options.preclude_last_level_data_seconds > 0,
        };
        blob_waste(options, version, &moment)
    }
}

#[cfg(test)]
mod tests;
