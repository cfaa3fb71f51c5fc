//! Who keeps what could be let go of: the oldest snapshots and iterators, where they were made, and
//! what stays for their sake.
//!
//! A snapshot keeps the versions of keys that it sees. An iterator keeps the state of its family
//! that it reads, memtables and files: what a newer state no longer has stays until the last one is
//! dropped that reads an older one.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use crate::base::SequenceNumber;
use crate::base::sync::Ordering;
use crate::db::DbInner;
use crate::db::family::{Family, SuperVersion};
use crate::db::handle::Db;
use crate::db::space::blob_file_bytes;
use crate::db::tables::live_cursors::InUse;

/// Memtables and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// Bytes of memtables.
    pub memtable_bytes: u64,
    /// Tables and blob files.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
}

impl Kept {
    /// Bytes of both.
    pub fn bytes(&self) -> u64 {
        self.memtable_bytes.saturating_add(self.file_bytes)
    }
}

/// A live snapshot, from [`Db::pins`](crate::Db::pins).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PinningSnapshot {
    /// The last sequence number that it sees.
    pub sequence: SequenceNumber,
    /// For how long it has been there.
    pub age_seconds: u64,
    /// How many operations were written since.
    pub writes_since: u64,
    /// Who took it.
    pub taken_at: &'static Location<'static>,
}

/// An iterator that is in use, from [`Db::pins`](crate::Db::pins).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinningIterator {
    /// The family whose keys it shows.
    pub column_family: String,
    /// For how long it has been there; since it was last refreshed, if it was.
    pub age_us: u64,
    /// Who made it, or refreshed it.
    pub made_at: &'static Location<'static>,
    /// Whether there is no newer state of the family than the one that it reads.
    pub is_current: bool,
    /// How many iterators read that state, this one among them.
    pub readers: usize,
    /// What that state has and the newest one has not.
    pub kept: Kept,
    /// Of this, what no other state has that somebody reads: it goes when all
    /// [`PinningIterator::readers`] have.
    pub kept_alone: Kept,
}

/// The snapshots and iterators that keep old data, from [`Db::pins`](crate::Db::pins).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pins {
    /// How many snapshots there are.
    pub num_snapshots: usize,
    /// The oldest of them.
    pub snapshots: Vec<PinningSnapshot>,
    /// How many iterators are in use.
    pub num_iterators: usize,
    /// The oldest of them.
    pub iterators: Vec<PinningIterator>,
}

impl fmt::Display for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "snapshots : {}", self.num_snapshots)?;
        for PinningSnapshot { sequence, age_seconds, writes_since, taken_at } in &self.snapshots {
            writeln!(
                f,
                "  of {sequence}, for {age_seconds} s, {writes_since} writes ago, taken at {taken_at}"
            )?;
        }
        writeln!(f, "iterators : {}", self.num_iterators)?;
        for iterator in &self.iterators {
            let PinningIterator {
                column_family,
                age_us,
                made_at,
                is_current,
                readers,
                kept,
                kept_alone,
            } = iterator;
            write!(
                f,
                "  of family {column_family}, for {} s, made at {made_at}, ",
                age_us / 1_000_000
            )?;
            if *is_current {
                writeln!(f, "reads the newest state")?;
                continue;
            }
            writeln!(
                f,
                "one of {readers} that keep {} files of {} bytes and memtables of {} bytes, which nobody else does of {} \
                 files of {} bytes and memtables of {} bytes",
                kept.files,
                kept.file_bytes,
                kept.memtable_bytes,
                kept_alone.files,
                kept_alone.file_bytes,
                kept_alone.memtable_bytes
            )?;
        }
        Ok(())
    }
}

impl Db {
    /// Who keeps what could be let go of: the `most` oldest snapshots and as many of the oldest
    /// iterators, where they were made (the property `flagstone.pins` shows ten of each). Iterators
    /// that belong to asynchronous reads are those of [`Db::iter_async`]'s caller; snapshots that
    /// iterators hold are among the snapshots.
    ///
    /// Looks at all iterators and takes the engine's locks: for a look now and then.
    pub fn pins(&self, most: usize) -> Pins {
        pins(self.inner(), most)
    }
}

pub(super) fn pins(db: &DbInner, most: usize) -> Pins {
    let (now_us, unix_seconds) =
        (db.context.env.clock.now_us(), db.context.env.clock.unix_seconds());
    let published = db.snapshots.published.load(Ordering::Acquire);
    let mut pins = Pins { num_snapshots: db.snapshots.count(), ..Pins::default() };
    pins.snapshots = db
        .snapshots
        .oldest_ones(most)
        .into_iter()
        .map(|snapshot| PinningSnapshot {
            sequence: snapshot.sequence,
            age_seconds: unix_seconds.saturating_sub(snapshot.since_unix_seconds),
            writes_since: published.saturating_sub(snapshot.sequence),
            taken_at: snapshot.taken_at,
        })
        .collect();
    let mut cursors = db.tables.live_cursors().in_use();
    pins.num_iterators = cursors.len();
    let mut readers: BTreeMap<*const SuperVersion, usize> = BTreeMap::new();
    for cursor in &cursors {
        *readers.entry(Arc::as_ptr(&cursor.reads)).or_default() += 1;
    }
    cursors.sort_by_key(|cursor| cursor.since_us);
    cursors.truncate(most);
    let mut known = BTreeMap::new();
    for InUse { since_us, made_at, family, reads } in &cursors {
        let kept = known.entry(Arc::as_ptr(reads)).or_insert_with(|| kept_by(db, family, reads));
        let is_current = kept.is_none();
        let (kept, kept_alone) = kept.unwrap_or_default();
        pins.iterators.push(PinningIterator {
            column_family: family.name.clone(),
            age_us: now_us.saturating_sub(*since_us),
            made_at,
            is_current,
            readers: readers[&Arc::as_ptr(reads)],
            kept,
            kept_alone,
        });
    }
    pins
}

/// What a state has and the newest one has not, and what of it no other has; `None` if it is
/// the newest.
fn kept_by(db: &DbInner, family: &Family, reads: &Arc<SuperVersion>) -> Option<(Kept, Kept)> {
    let current = family.current.load_full();
    if Arc::ptr_eq(&current, reads) {
        return None;
    }
    let mut others = db.tree.replaced(family);
    others.retain(|other| !Arc::ptr_eq(other, reads));
    let mut parts = parts_of(reads);
    let of_current = parts_of(&current);
    parts.retain(|part, _| !of_current.contains_key(part));
    let kept = sum(&parts);
    for of_other in others.iter().map(|other| parts_of(other)) {
        parts.retain(|part, _| !of_other.contains_key(part));
    }
    Some((kept, sum(&parts)))
}

/// A memtable, by where it lies, or a file, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PartOf {
    Memtable(usize),
    File(u64),
}

/// What a state consists of, and the bytes of each part.
fn parts_of(state: &SuperVersion) -> BTreeMap<PartOf, u64> {
    let memtables = state
        .generations()
        .map(|mem| (PartOf::Memtable(Arc::as_ptr(mem) as usize), mem.memory_reserved() as u64));
    let tables =
        state.version.files().map(|(_, file)| (PartOf::File(file.number().0), file.meta.size));
    let blobs = state.version.blob_files.values();
    let blobs =
        blobs.map(|blob| (PartOf::File(blob.file.number().0), blob_file_bytes([blob].into_iter())));
    memtables.chain(tables).chain(blobs).collect()
}

fn sum(parts: &BTreeMap<PartOf, u64>) -> Kept {
    let mut kept = Kept::default();
    for (part, bytes) in parts {
        match part {
            PartOf::Memtable(_) => kept.memtable_bytes += bytes,
            PartOf::File(_) => {
                kept.files += 1;
                kept.file_bytes = kept.file_bytes.saturating_add(*bytes);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests;
