//! Holes in blob files where dead values lie.
//!
//! 1. Under the state lock: `compaction/pick/punch.rs` says in which files. None of them may be
//!    named by a memtable.
//! 2. Without it: all tables of the current version that refer to these files are read, and the
//!    blocks that no record touches to which they refer are noted. What a version does not refer
//!    to, no later one does: a blob that is dead stays dead.
//! 3. When the last reader is gone who began before that version was current, the blocks are given
//!    back (`promise.rs`).
//!
//! **Invariants**
//! - What was found dead is dead in the MANIFEST, too: a version is current only once its edit is
//!   durable. So a crash at any moment leaves a database that refers to no hole, whatever part of
//!   the holes is on the disk.
//! - WALs that would be replayed name no blob of a file in the MANIFEST, or the memtables that they
//!   were replayed to name the file still.
//! - Tables and MANIFEST must agree to the byte about what is live in a file, or it stays as it is.
//! - A file with a second name (a checkpoint's) stays as it is while it has that. One that gets it
//!   later belongs to somebody who refers to no more of it than the version that was surveyed.
//! - A file that a read-only handle holds stays as it is while it does
//!   ([`share`](crate::env::RandomAccessFile::share)). One that gets such a lock later belongs to a
//!   reader of a MANIFEST that has the edit of the version that was surveyed (`opening/moving.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::{Error, FileNumber, InternalIterator, Result, Sometimes};
use crate::blob::{BlobIndex, BlockMap, visit_references};
use crate::cache::MemoryKind;
use crate::compaction::pick::refers_to;
use crate::db::family::Family;
use crate::db::jobs::Jobs;
use crate::db::tables::level_files::ReadThrough;
use crate::db::tree::damage;
use crate::db::tree::pressure::Survey;
use crate::db::tree::promise::{Promise, Punching, bytes_of};
use crate::env::IoPriority;
use crate::manifest::BlobFileState;
use crate::sst::{IterSettings, ReadSettings};

/// Bytes that the tables are read ahead by.
const READAHEAD: usize = 256 << 10;

/// For so long slow holes are punched at rest.
const TIME_AT_REST_US: u64 = 200_000;

/// So many entries are read between two looks at whether the database is closing.
const ENTRIES_BETWEEN_LOOKS: u64 = 4096;

/// Looks for dead blobs, or punches holes where some were found, for one family; whether there
/// was anything to do.
pub(in crate::db) fn punch_one(jobs: &Jobs) -> Result<bool> {
    if let Some((family, promise)) = jobs.tree.take_promise() {
        return go_on(jobs, &family, promise, |promise| {
            promise.take_up();
            punch_some(jobs, promise);
            if jobs.disk.has_slow_holes(&family) {
                promise.put_off();
                jobs.disk.rest_from_holes(TIME_AT_REST_US);
            }
        });
    }
    let Some(taken) = jobs.tree.take_survey() else { return Ok(false) };
    let outcome = jobs.guarded("survey of blob files", || survey(jobs, &taken));
    let (next, outcome) = match outcome {
        Ok(promise) if promise.is_fulfilled() => (Punching::Idle, Ok(true)),
        Ok(promise) => (Punching::Promised(promise), Ok(true)),
        Err(error) => (Punching::Idle, give_up_survey(jobs, &taken, error)),
    };
    jobs.tree.end_punch(&taken.family, next, false);
    outcome
}

/// Punches some of the holes that were put off, since they are slow, if there is nothing else
/// to do; whether there were any.
pub(in crate::db) fn punch_at_rest(jobs: &Jobs) -> Result<bool> {
    let Some((family, promise, announced)) = jobs.tree.take_promise_at_rest() else {
        return Ok(false);
    };
    go_on(jobs, &family, promise, |promise| {
        let (clock, begun_us) = (&jobs.context.env.clock, jobs.context.env.clock.now_us());
        loop {
            punch_some(jobs, promise);
            let took_us = clock.now_us().saturating_sub(begun_us);
            let is_called =
                jobs.background.announcements() != announced || jobs.context.check_open().is_err();
            if promise.is_fulfilled() || took_us >= TIME_AT_REST_US || is_called {
                jobs.disk.rest_from_holes(took_us);
                return;
            }
        }
    })
}

/// Does some work for a promise that was taken.
pub(in crate::db) fn go_on(
    jobs: &Jobs,
    family: &Family,
    mut promise: Promise,
    work: impl FnOnce(&mut Promise),
) -> Result<bool> {
    let was_put_off = promise.is_put_off();
    let outcome = jobs.guarded("hole punch", || {
        work(&mut promise);
        Ok(true)
    });
    // Who goes on at rest later calls nobody for it.
    let (next, is_at_rest) = if outcome.is_err() || promise.is_fulfilled() {
        (Punching::Idle, false)
    } else {
        let is_at_rest = was_put_off && promise.is_put_off();
        (Punching::Promised(promise), is_at_rest)
    };
    jobs.tree.end_punch(family, next, is_at_rest);
    outcome
}

/// Punches some of the holes, now that nobody reads what was there: compactions that wait for
/// the thread come in between.
fn punch_some(jobs: &Jobs, promise: &mut Promise) {
    let offset = promise.offset;
    let Some((file, map)) = promise.at_hand() else { return };
    let path = file.path();
    match jobs.disk.punch(&path, &file, map, offset) {
        Ok(Some(next)) => {
            promise.offset = next;
            return;
        }
        Ok(None) => {}
        // It has left the tree meanwhile, and the disk.
        Err(error) if error.is_not_found() => {}
        Err(error) => {
            // What holes cannot be punched in is emptied.
            Sometimes::HoleNotPunched.reached();
            tracing::warn!(%error, "cannot punch holes in a blob file");
            file.holes.refuse();
        }
    }
    file.holes.expect(0);
    promise.next_file();
}

/// Reads the tables, and notes which blocks of the files are in use.
pub(in crate::db) fn survey(jobs: &Jobs, survey: &Survey) -> Result<Promise> {
    let version = &survey.current.version;
    let mut maps: BTreeMap<FileNumber, BlockMap> = BTreeMap::new();
    for number in &survey.files {
        let blob = &version.blob_files[number].file;
        // A map of what the MANIFEST says of a file that is not there might not fit into any
        // memory.
        if jobs.disk.is_linked(blob) || jobs.disk.is_read_elsewhere(blob) {
            jobs.disk.leave(blob);
        } else if jobs.disk.has_its_size(blob) {
            let (total_bytes, total_count) = (blob.meta.total_bytes, blob.meta.total_count);
            maps.insert(*number, BlockMap::new(total_bytes, total_count, survey.block_size));
        } else {
            blob.holes.refuse();
        }
    }
    let held: usize = maps.values().map(BlockMap::memory_usage).sum();
    let memory = jobs.tables.account().hold(MemoryKind::Jobs, held);
    mark_live(jobs, survey, &mut maps)?;
    let mut files = Vec::new();
    for (number, map) in maps {
        let blob = &version.blob_files[&number];
        if is_sound(blob, &map) {
            blob.file.holes.set_surveyed(blob.garbage_bytes);
            let bytes = bytes_of(&map);
            blob.file.holes.promise(bytes);
            blob.file.holes.expect(bytes);
            files.push((Arc::downgrade(&blob.file), map));
        }
    }
    Ok(Promise::new(files, survey.installed, jobs.context.env.clock.now_us(), memory))
}

/// Marks in the maps what tables refer to. Those that refer to other files alone are not read.
fn mark_live(
    jobs: &Jobs,
    survey: &Survey,
    maps: &mut BTreeMap<FileNumber, BlockMap>,
) -> Result<()> {
    let files: BTreeSet<FileNumber> = maps.keys().copied().collect();
    let _ahead = jobs.tables.account().hold(MemoryKind::Jobs, READAHEAD);
    let version = &survey.current.version;
    for (_, table) in version.files().filter(|(_, table)| refers_to(table, &files)) {
        let read = ReadSettings { verify_checksums: true, fill_cache: false, cache_only: false };
        let settings = IterSettings {
            read,
            readahead_size: READAHEAD,
            maps_readahead: true,
            ..IterSettings::default()
        };
        let directly = jobs.context.settings.load().use_direct_io_for_flush_and_compaction;
        let through = ReadThrough {
            directly,
            limit: jobs.background.read_limit(IoPriority::Low),
            ahead: None,
        };
        let mut entries = jobs.tables.iterate(&survey.family, table, &settings, Some(&through))?;
        entries.seek_to_first();
        let mut count = 0u64;
        while entries.valid() {
            let key = entries.key();
            let mark = |index: BlobIndex| {
                if let Some(map) = maps.get_mut(&index.file) {
                    map.mark(key.user_key().len(), &index);
                }
                Ok(())
            };
            visit_references(key.value_type(), entries.value(), mark)
                .map_err(|error| entries.locate(error))?;
            entries.next();
            count += 1;
            if count.is_multiple_of(ENTRIES_BETWEEN_LOOKS) {
                jobs.context.check_open()?;
            }
        }
        entries.status()?;
    }
    Ok(())
}

/// A damaged table is noted as when a compaction meets it; what it refers to is not known, so
/// the files stay whole.
fn give_up_survey(jobs: &Jobs, survey: &Survey, error: Error) -> Result<bool> {
    damage::note_damage(&jobs.tree, &survey.family, &error);
    if !damage::is_set_aside(&jobs.tree, &error) {
        return Err(error);
    }
    let blobs = &survey.current.version.blob_files;
    survey.files.iter().for_each(|number| blobs[number].file.holes.refuse());
    Ok(true)
}

/// Whether what the tables refer to is what the MANIFEST counts as live.
fn is_sound(blob: &BlobFileState, map: &BlockMap) -> bool {
    let meta = &blob.file.meta;
    let live_count = meta.total_count.saturating_sub(blob.garbage_count);
    let live_bytes = meta.total_bytes.saturating_sub(blob.garbage_bytes);
    let agrees = map.holds(live_count, live_bytes);
    if !agrees {
        let path = blob.file.path();
        tracing::warn!(
            ?path,
            live_count,
            live_bytes,
            "tables refer to other blobs; no holes are punched in the file"
        );
        blob.file.holes.refuse();
    }
    agrees
}

#[cfg(test)]
mod tests;
