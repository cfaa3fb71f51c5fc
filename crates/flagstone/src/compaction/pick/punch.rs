//! In which blob files holes are punched where dead values lie, so that they need not be emptied.
//!
//! A block of the file system can be given back when no live record touches it. Where records are
//! large against blocks nearly all garbage can: of a file of which a part `d` is dead, with records
//! of `r` bytes in no particular order and blocks of `b`, `(1 - b / r) d + b / r d^2`. Of records
//! of two blocks that is half of it and more: such files are emptied late, when little lives in
//! them. A hole costs about as much as moving a value of a few blocks. So files with smaller
//! records on average than `HOLE_BLOCKS_MIN` blocks are left to [`super::blob_space`].
//!
//! To find the live records, all tables that refer to a file are read, and each hole that there is
//! already is punched once more. So a file is looked at when an eighth of what it has on the disk
//! can be expected to go (or less, where there is less room than `EAGER_ROOM`; a quarter of that
//! where records are small), and any of them when that is an eighth of the room for garbage (or of
//! `EAGER_ROOM`, as it costs so little) and, unless these are small, eight times the bytes of the
//! tables. As much in tables above the bottom is uncovered for it. Where that is more than the
//! largest step of [`super::blob_space`], such a step is worth it, too: tables would be written for
//! that. Where something is due, whatever is due at a time is.
//!
//! Some file systems are slow with holes (ext4 that tells the device of each at once), and slow
//! again to remove a file that has many. Where they turn out to make room more slowly than moving
//! values would, no file is looked at for a while, and what is due is moved; the holes that were
//! known are punched at rest (`db/tree/promise.rs`).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::blob_space::{BlobSpace, Room, TABLES_MAX, taken};
use super::settings::{LeveledSettings, PickContext};
use crate::base::FileNumber;
use crate::manifest::{BlobFileState, Version};

/// The part that is worth the effort: of a file, and of the room for garbage.
const WORTHWHILE: f64 = 1.0 / 8.0;
/// The room for garbage, as a part of live data, that holes are to suffice for.
const EAGER_ROOM: f64 = 0.4;
/// Blocks of the records, on average, of a file with holes.
pub const HOLE_BLOCKS_MIN: u64 = 2;
/// Blocks of the records, on average, of a file of which nearly all that is dead can be given back
/// at once. Of others more can when neighbours are dead, too: they are looked at more often.
const LARGE_BLOCKS: u64 = 4;
/// How much less of a file with smaller records is worth the effort.
const SMALLER: f64 = 1.0 / 4.0;
/// Bytes of values that a compaction moves in a second, or so: what holes are measured by.
const MOVED_PER_SECOND: f64 = 200e6;
/// How many times the bytes of the tables are to be gained.
const GAIN_OVER_TABLES: f64 = 8.0;

/// Bytes of the blocks of all files that are looked at together: one bit for each block is kept in
/// memory.
pub const BITMAP_BYTES_MAX: u64 = 4 << 20;

/// The files in which to punch holes now; none if that is not worth the effort. Linear in the
/// number of files.
pub fn pick_punch(
    version: &Version,
    settings: &LeveledSettings,
    context: &PickContext<'_>,
) -> BTreeSet<FileNumber> {
    let space = BlobSpace::of(version, settings.holds_young());
    if holes_are_slow(settings.max_space_amplification, context.hole_speed) {
        return BTreeSet::new();
    }
    match Room::of(version, &space, settings.max_space_amplification) {
        Some(room) => files_to_punch(version, &room, settings, context),
        None => BTreeSet::new(),
    }
}

/// [`pick_punch`], with this room for garbage.
fn files_to_punch(
    version: &Version,
    room: &Room,
    settings: &LeveledSettings,
    context: &PickContext<'_>,
) -> BTreeSet<FileNumber> {
    let Some(block_size) = context.hole_size else { return BTreeSet::new() };
    let candidates =
        version.blob_files.values().filter(|blob| may_have_holes(blob, block_size, context));
    let mut files: Vec<(u64, &BlobFileState)> =
        candidates.map(|blob| (gain(blob, block_size), blob)).collect();
    let space = BlobSpace::of(version, settings.holds_young());
    let part = part_worthwhile(&space, room);
    files.retain(|(gain, blob)| is_worthwhile(blob, *gain, block_size, part));
    files.sort_by_key(|(gain, _)| Reverse(*gain));
    let (mut chosen, mut gained, mut bitmap_bytes) = (BTreeSet::new(), 0.0, 0);
    for (gain, blob) in files {
        bitmap_bytes += blob.file.meta.total_bytes / block_size / 8;
        if !chosen.is_empty() && bitmap_bytes > BITMAP_BYTES_MAX {
            break;
        }
        gained += gain as f64;
        chosen.insert(blob.file.number());
    }
    // What is left to holes is not moved, so they may not be waited for: where something is due,
    // nor past the limit.
    let is_due = taken(version, (&space, room), settings, context) > room.due();
    let most = if is_due { room.step } else { room.largest_step() };
    let least = worthwhile(version, &space, room).min(most);
    if gained >= least { chosen } else { BTreeSet::new() }
}

/// Whether moving values makes room faster than holes, which gave back so many bytes in a second (0
/// if nobody knows). It has to move what lives beside the garbage, of which there is as much as the
/// limit allows.
pub fn holes_are_slow(max_space_amplification: f64, hole_speed: u64) -> bool {
    let gained_by_moving = MOVED_PER_SECOND * (max_space_amplification - 1.0);
    hole_speed > 0 && (hole_speed as f64) < gained_by_moving
}

/// Bytes of a file's garbage that holes will give back, those that are being punched among them:
/// nothing needs to be moved for their sake.
pub(super) fn left_to_holes(
    blob: &BlobFileState,
    settings: &LeveledSettings,
    context: &PickContext<'_>,
) -> u64 {
    let hole_size = context
        .hole_size
        .filter(|_| !holes_are_slow(settings.max_space_amplification, context.hole_speed));
    match hole_size {
        Some(block_size) if may_have_holes(blob, block_size, context) => {
            let being_punched = blob.file.holes.expected().saturating_sub(blob.given_back());
            being_punched.saturating_add(gain(blob, block_size)).min(blob.garbage_on_disk())
        }
        _ => 0,
    }
}

/// Whether a file is to be looked at for so many bytes, if those with large records are for this
/// part of what they have on the disk.
fn is_worthwhile(blob: &BlobFileState, gain: u64, block_size: u64, part: f64) -> bool {
    let part =
        if has_large_records(blob, block_size, LARGE_BLOCKS) { part } else { part * SMALLER };
    gain >= block_size && gain as f64 >= part * blob.bytes_on_disk() as f64
}

/// The part of what a file has on the disk that holes are to give back for it to be looked at.
fn part_worthwhile(space: &BlobSpace, room: &Room) -> f64 {
    WORTHWHILE * eager_room(space, room) / (space.live() as f64 * EAGER_ROOM).max(1.0)
}

fn may_have_holes(blob: &BlobFileState, block_size: u64, context: &PickContext<'_>) -> bool {
    let meta = &blob.file.meta;
    // Whoever recorded a checksum of the whole file may want to compare it.
    meta.checksum_value.is_empty()
        && !blob.file.holes.are_refused()
        && !blob.file.holes.are_left(context.now_unix_seconds)
        && has_large_records(blob, block_size, HOLE_BLOCKS_MIN)
        && blob.garbage_bytes < meta.total_bytes
        && !context.collecting.contains(&meta.number)
}

/// Whether so much in blob files is hidden by tables above the bottom that it should be uncovered
/// for holes.
pub(super) fn uncovers_for_holes(
    version: &Version,
    space: &BlobSpace,
    room: &Room,
    context: &PickContext<'_>,
) -> bool {
    let Some(block_size) = context.hole_size else { return false };
    let mut blobs = version.blob_files.values();
    // Where nothing was ever found dead keys are only added, and what is new hides nothing.
    space.hidden as f64 >= worthwhile(version, space, room)
        && space.hidden > 0
        && blobs.any(|blob| {
            blob.garbage_bytes > 0 && has_large_records(blob, block_size, HOLE_BLOCKS_MIN)
        })
}

/// Whether its records have so many blocks on average.
fn has_large_records(blob: &BlobFileState, block_size: u64, blocks: u64) -> bool {
    let meta = &blob.file.meta;
    meta.total_bytes >= meta.total_count.saturating_mul(blocks.saturating_mul(block_size))
}

/// Bytes that are worth the effort of reading all tables.
fn worthwhile(version: &Version, space: &BlobSpace, room: &Room) -> f64 {
    let tables = Some(version.table_bytes()).filter(|bytes| *bytes > TABLES_MAX).unwrap_or(0);
    (eager_room(space, room) * WORTHWHILE).max(tables as f64 * GAIN_OVER_TABLES)
}

/// The room for garbage that holes are to suffice for, in bytes.
fn eager_room(space: &BlobSpace, room: &Room) -> f64 {
    room.all.min(space.live() as f64 * EAGER_ROOM)
}

/// Bytes that can be expected to go if holes are punched where there is garbage, beyond those that
/// went before.
fn gain(blob: &BlobFileState, block_size: u64) -> u64 {
    let meta = &blob.file.meta;
    let free = |garbage: u64| free_bytes(meta.total_bytes, meta.total_count, garbage, block_size);
    let before = match blob.file.holes.surveyed() {
        // What the disk says is all that is known.
        0 => blob.file.holes.given_back(),
        surveyed => free(surveyed),
    };
    free(blob.garbage_bytes).saturating_sub(before)
}

/// The bytes of blocks that no live record touches, if dead ones lie among them at random.
fn free_bytes(total: u64, count: u64, garbage: u64, block_size: u64) -> u64 {
    let dead = garbage.min(total) as f64 / total.max(1) as f64;
    // The part of the blocks that two records share.
    let shared = (block_size as f64 * count as f64 / total.max(1) as f64).min(1.0);
    let free = (1.0 - shared) * dead + shared * dead * dead;
    (free * total as f64) as u64
}

#[cfg(test)]
mod tests;
