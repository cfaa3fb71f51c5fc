//! Blob files against live data: what a family may take to keep within `max_space_amplification`.
//!
//! 1. **Measure.** What the blob files hold is live, known garbage, or hidden: a table above the
//!    bottom may overwrite or delete what those below it refer to, and nobody knows before they are
//!    merged. What it refers to counts as hidden, and for each of its other entries what an entry
//!    refers to on average. So live data is hardly taken for more than it is.
//! 2. **Step.** Whatever is done rewrites tables, which is cheap where values are large and tables
//!    small. So it is done in steps of four times the bytes of all tables, at least a fiftieth and
//!    at most a quarter of the room that the limit leaves to garbage. A larger one writes tables
//!    less often, but what is moved exists twice: there is less room for garbage, files are emptied
//!    while more of them lives (see `cleaning`), and about as much is written in all.
//! 3. **Due** is something when files and memtables take nine tenths of the room, less a step: that
//!    step is for the values that are moved, which exist twice until their old files go. A memtable
//!    counts as full, as what it overwrites can be collected only when it is: were it filled up
//!    from what is due to the limit, each would be to the end, where writers are slowest. In the
//!    last tenth of the room that `burst_space_amplification` leaves writers are delayed
//!    ([`BlobWaste`]), by all that may be garbage already: what is hidden, and what memtables hold,
//!    as far as keys have lately been overwritten ([`Overwriting`]).
//!
//! What is done then, `blob_work` says.
//!
//! Where the tables are larger than what the blob files hold (and not small), garbage has as much
//! more room as they are larger. They are written for each step: if that were a part of few values,
//! much would be written for next to nothing. So no more of tables is written for a byte that is
//! gained than where they are as large as values.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::settings::{LeveledSettings, PickContext};
use crate::base::FileNumber;
use crate::manifest::{BlobFileState, TableFile, Version};

/// The smallest and the largest step, as parts of the room for garbage.
const STEPS: (f64, f64) = (0.02, 0.25);
/// How many times the bytes of all tables a step is in between.
const STEP_OVER_TABLES: f64 = 4.0;
/// What is kept free beyond a step, as part of the room: for what writers do until they feel a
/// delay.
const RESERVE: f64 = 0.1;

/// Up to so many bytes of tables are read and written again, however little is gained.
pub(super) const TABLES_MAX: u64 = 4 << 20;

/// What the blob files of a version have on the disk, in bytes of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlobSpace {
    /// All of it.
    pub total: u64,
    /// What no table refers to, but for holes.
    pub garbage: u64,
    /// What may turn out to be garbage when tables are merged.
    pub hidden: u64,
    /// What is in none of these: it lies on the disk until the last reader goes who may need it.
    pub promised: u64,
}

impl BlobSpace {
    /// Measures a version. Linear in the number of its tables and blob files. If young entries stay
    /// above the last level, they hide nothing there that a compaction would uncover.
    pub fn of(version: &Version, holds_young: bool) -> Self {
        let mut space = Self::default();
        let (mut count, mut garbage_count) = (0u64, 0u64);
        for blob in version.blob_files.values() {
            space.total = space.total.saturating_add(blob.bytes_on_disk());
            space.garbage = space.garbage.saturating_add(blob.garbage_on_disk());
            let promised = blob.file.holes.kept_by_readers(blob.garbage_bytes);
            space.promised = space.promised.saturating_add(promised);
            count = count.saturating_add(blob.file.meta.total_count);
            garbage_count = garbage_count.saturating_add(blob.garbage_count);
        }
        let referenced = space.referenced();
        let others =
            |file: &TableFile| file.meta.blob_references.as_ref().map_or(0, |known| known.others);
        let entries = version.files().map(|(_, file)| others(file)).fold(0, u64::saturating_add);
        let entries = entries.saturating_add(count.saturating_sub(garbage_count)).max(1);
        let unknown = Unknown::of(version, referenced);
        let hides = |file: &Arc<TableFile>| {
            let by_others = u128::from(others(file)) * u128::from(referenced) / u128::from(entries);
            unknown.bytes(file).saturating_add(u64::try_from(by_others).unwrap_or(u64::MAX))
        };
        let above = above_bottom(version, holds_young);
        space.hidden = above.map(|(_, _, file)| hides(file)).fold(0, u64::saturating_add);
        space
    }

    /// What tables refer to.
    pub fn referenced(&self) -> u64 {
        self.total.saturating_sub(self.garbage)
    }

    /// What is left if nobody asks for the garbage of these files.
    pub(super) fn without_garbage_of(
        self,
        version: &Version,
        files: &BTreeSet<FileNumber>,
    ) -> Self {
        let garbage = |file| version.blob_files.get(file).map_or(0, BlobFileState::garbage_on_disk);
        let bytes = files.iter().map(garbage).fold(0, u64::saturating_add);
        Self {
            total: self.total.saturating_sub(bytes),
            garbage: self.garbage.saturating_sub(bytes),
            ..self
        }
    }

    /// What is live for sure.
    pub fn live(&self) -> u64 {
        self.referenced().saturating_sub(self.hidden)
    }
}

/// Garbage up to this many bytes delays nobody, and values of memtables in blob files may take as
/// much: in a small database one file is more than the room.
const SMALL: u64 = 16 << 20;

/// How much of what was written lately took the place of something older: as much of what tables
/// hide, and memtables will hide, is garbage. Flushes look up a few keys, and merges into the
/// bottom tell for all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Overwriting {
    /// A part of bytes; `None` until it was seen once.
    share: Option<f64>,
}

impl Overwriting {
    /// Notes a share that was seen. Believes at once that there is more garbage, and by halves that
    /// there is less.
    pub fn note_share(&mut self, seen: f64) {
        let followed = self.share.map_or(seen, |share| (share + seen) / 2.0);
        self.share = Some(seen.max(followed));
    }

    /// Notes what a merge into the bottom made of a version: what was hidden and is no longer
    /// turned out to be dead or live.
    pub fn note_merge(&mut self, before: &BlobSpace, after: &BlobSpace) {
        let uncovered = before.hidden.saturating_sub(after.hidden);
        if uncovered > 0 {
            let dead = before.referenced().saturating_sub(after.referenced());
            self.note_share((dead as f64 / uncovered as f64).min(1.0));
        }
    }

    /// Whether something was overwritten lately.
    pub fn is_seen(&self) -> bool {
        self.share.is_some_and(|share| share > 0.0)
    }

    /// Whether what is written makes garbage.
    pub fn is_expected(&self, has_garbage: bool) -> bool {
        self.share(has_garbage) > 0.0
    }

    /// The part of what hides that is garbage. Where nobody has seen any, what there is already
    /// tells whether there is more.
    fn share(&self, has_garbage: bool) -> f64 {
        self.share.unwrap_or(if has_garbage { 1.0 } else { 0.0 })
    }
}

/// What blob files take beyond live data, in bytes, as far as it can be collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlobWaste {
    /// That much.
    pub bytes: u64,
    /// From here on it delays writers; 0 for never.
    pub delays_at: u64,
    /// Here it delays them most.
    pub worst_at: u64,
}

/// What the files do not say of the space that blob files take.
#[derive(Debug, Clone, Copy)]
pub struct BlobMoment<'a> {
    /// Bytes of memtables, and of their values in blob files.
    pub unflushed_bytes: u64,
    /// How much of what is hidden or not flushed makes garbage.
    pub overwriting: Overwriting,
    /// The blob files that are being emptied.
    pub collecting: &'a BTreeSet<FileNumber>,
    /// Readers have kept garbage on the disk for so long that it is theirs, and nobody waits for
    /// it.
    pub is_kept_by_readers: bool,
    /// Young entries stay above the last level.
    pub holds_young: bool,
}

impl BlobWaste {
    /// That of a version: as much as it will be once those files are empty, but for what is written
    /// meanwhile. Files may take `most` times the live data; 0 for any.
    pub fn of(version: &Version, most: f64, moment: &BlobMoment<'_>) -> Self {
        let BlobMoment { unflushed_bytes, overwriting, collecting, .. } = *moment;
        if version.blob_files.is_empty() {
            return Self::default();
        }
        let share =
            overwriting.share(version.blob_files.values().any(|blob| blob.garbage_bytes > 0));
        let dead = |bytes: u64| (bytes as f64 * share) as u64;
        let known = BlobSpace::of(version, moment.holds_young);
        let space = BlobSpace { hidden: dead(known.hidden), ..known };
        let Some(room) = Room::of(version, &space, most) else { return Self::default() };
        let promised = if moment.is_kept_by_readers { 0 } else { space.promised };
        let more = [space.hidden, dead(unflushed_bytes), promised];
        let taken = more.into_iter().fold(space.garbage, u64::saturating_add);
        let emptied = collecting.iter().filter_map(|number| version.blob_files.get(number));
        let live =
            emptied.map(|blob| blob.file.meta.total_bytes.saturating_sub(blob.garbage_bytes));
        let moving = live.fold(0, u64::saturating_add);
        let moving = if moving == 0 { room.step as u64 } else { moving };
        Self {
            bytes: taken.saturating_add(moving),
            delays_at: ((room.all * (1.0 - RESERVE)) as u64).max(2 * SMALL),
            worst_at: (room.all as u64).max(3 * SMALL),
        }
    }

    /// What may be written until writers are delayed most, and what is left of that where delays
    /// begin.
    pub fn left(&self) -> (u64, u64) {
        (self.worst_at.saturating_sub(self.bytes), self.worst_at.saturating_sub(self.delays_at))
    }
}

/// Bytes at which a blob file is closed: fewer than `configured` where that would be much of the
/// room for garbage, since it is taken by the files of memtables, and a file that is emptied exists
/// twice.
pub fn blob_file_size(version: &Version, max_space_amplification: f64, configured: u64) -> u64 {
    if max_space_amplification <= 0.0 {
        return configured;
    }
    let room = room_by_values(BlobSpace::of(version, false).referenced(), max_space_amplification);
    configured.min(((room / 16.0) as u64).max(SMALL))
}

/// The room for garbage that so many bytes of live values make.
fn room_by_values(live: u64, max_space_amplification: f64) -> f64 {
    (max_space_amplification - 1.0).max(0.0) * live as f64
}

/// The room for garbage that tables make which are larger than the values in blob files, in bytes.
fn room_by_tables(table_bytes: u64, referenced: u64) -> u64 {
    table_bytes.saturating_sub(referenced.max(TABLES_MAX))
}

/// Bytes that blob files may take, of which nothing is known but how much of them is garbage.
pub fn blob_bytes_allowed(table_bytes: u64, live: u64, max_space_amplification: f64) -> u64 {
    let room =
        room_by_values(live, max_space_amplification) + room_by_tables(table_bytes, live) as f64;
    live.saturating_add(room as u64)
}

/// The room for garbage, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) all: f64,
    /// See the head of the file.
    pub(super) step: f64,
}

impl Room {
    /// `None` if there is no limit.
    pub(super) fn of(
        version: &Version,
        space: &BlobSpace,
        max_space_amplification: f64,
    ) -> Option<Self> {
        if max_space_amplification <= 0.0 {
            return None;
        }
        let tables = version.table_bytes();
        let by_tables = room_by_tables(tables, space.referenced());
        let all = room_by_values(space.live(), max_space_amplification) + by_tables as f64;
        let step = tables as f64 * STEP_OVER_TABLES;
        Some(Self { all, step: step.clamp(all * STEPS.0, all * STEPS.1) })
    }

    /// Bytes of the largest step.
    pub(super) fn largest_step(&self) -> f64 {
        self.all * STEPS.1
    }

    /// When something is due.
    pub(super) fn due(&self) -> f64 {
        self.all * (1.0 - RESERVE) - self.step
    }
}

/// Stands in for what is not known of some tables: the bytes that no other refers to, by the size
/// of the tables.
struct Unknown {
    bytes: u64,
    table_bytes: u64,
}

impl Unknown {
    fn of(version: &Version, referenced: u64) -> Self {
        let mut unknown = Self { bytes: referenced, table_bytes: 0 };
        for (_, file) in version.files() {
            match &file.meta.blob_references {
                Some(references) => {
                    unknown.bytes = unknown.bytes.saturating_sub(references.bytes())
                }
                None if file.meta.oldest_blob_file.is_some() => {
                    unknown.table_bytes = unknown.table_bytes.saturating_add(file.meta.size);
                }
                None => {}
            }
        }
        unknown
    }

    /// The bytes that a table refers to.
    fn bytes(&self, file: &TableFile) -> u64 {
        match &file.meta.blob_references {
            Some(references) => references.bytes(),
            None if file.meta.oldest_blob_file.is_some() => {
                let share = u128::from(self.bytes) * u128::from(file.meta.size);
                u64::try_from(share / u128::from(self.table_bytes.max(1))).unwrap_or(u64::MAX)
            }
            None => 0,
        }
    }
}

/// The tables above the deepest level with any, with level and position; in level 0 alone, all but
/// the oldest. What was set aside stays there. The last level and the one above count as one if
/// young entries stay above it.
pub(super) fn above_bottom(
    version: &Version,
    holds_young: bool,
) -> impl Iterator<Item = (usize, usize, &Arc<TableFile>)> {
    let last = version.levels.len() - 1;
    let bottom = match version.last_level_with_files().unwrap_or(0) {
        bottom if holds_young && bottom == last && last > 1 => last - 1,
        bottom => bottom,
    };
    let tables = version.levels.iter().enumerate().flat_map(|(level, files)| {
        files.iter().enumerate().map(move |(position, file)| (level, position, file))
    });
    let last_of_level0 = version.levels[0].len().saturating_sub(1);
    let is_above = move |level: usize, position: usize| {
        level < bottom || bottom == 0 && position < last_of_level0
    };
    tables
        .filter(move |(level, position, file)| is_above(*level, *position) && !file.is_set_aside())
}

/// What files and memtables take beyond live data, in bytes; a memtable that is full at least, as
/// far as there is room for one.
pub(super) fn taken(
    version: &Version,
    (space, room): (&BlobSpace, &Room),
    settings: &LeveledSettings,
    context: &PickContext<'_>,
) -> f64 {
    let memtable =
        blob_file_size(version, settings.max_space_amplification, settings.write_buffer_size);
    let unflushed =
        (context.unflushed_blob_bytes as f64).max((memtable as f64).min(room.largest_step()));
    space.total as f64 + unflushed - space.live() as f64
}
