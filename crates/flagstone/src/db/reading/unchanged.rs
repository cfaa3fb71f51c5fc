//! Whether keys were written behind a snapshot: what a conditional write asks.
//!
//! **Algorithm**
//! 1. Without the commit lock, the tables are asked that may hold newer versions of the keys
//!    ([`Unchanged::ask_tables`]): those whose largest sequence number lies behind the snapshot.
//! 2. With the commit lock, when all writes that have begun are inserted, the memtables are asked
//!    ([`Unchanged::ask_memtables`]). If the family's tables are others by then, a flush may have
//!    moved entries into them: give the lock back, and begin again.
//!
//! **Invariants**
//! 1. The snapshot lives meanwhile. So no compaction gives a version behind it the sequence number
//!    0, and a deletion stays as long as the snapshot sees what it deletes. Versions behind the
//!    snapshot that cancel each other (a put and its deletion) may be gone without a trace: the key
//!    is then as the snapshot sees it, and counts as unchanged.
//! 2. What was pinned is let go of without the commit lock: it may be the last that keeps memory
//!    and files.
//!
//! A table that is dropped as a whole (`delete_files_in_range`, FIFO compaction) and what a
//! compaction filter removes are no writes.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::base::{
    Code, ColumnFamilyId, Error, InternalIterator, KeyBuffer, MAX_SEQUENCE_NUMBER, Mutant, Result,
    SequenceNumber, key_in_words, timestamp,
};
use crate::db::family::{Family, SuperVersion};
use crate::db::reading::Reader;
use crate::db::reading::read::{may_hold, read_settings};
use crate::db::tables::tombstones_of;
use crate::manifest::{TableFile, Version};
use crate::memtable::MemTable;
use crate::options::ReadOptions;
use crate::sst::{IterSettings, LookupKey};

/// Keys that must not have been written behind a sequence number, each behind its own. A snapshot
/// of the smallest of these lives.
#[derive(Default)]
pub(in crate::db) struct Unchanged<'a> {
    keys: Vec<Key<'a>>,
}

struct Key<'a> {
    family: Arc<Family>,
    key: &'a [u8],
    /// The last sequence number that may have written it.
    since: SequenceNumber,
}

/// What was asked, of each family once. To be dropped without the commit lock.
#[derive(Default)]
pub(in crate::db) struct Asked {
    /// Whose tables were asked.
    tables: Vec<(ColumnFamilyId, Arc<SuperVersion>)>,
    /// Whose memtables were.
    memtables: Vec<(ColumnFamilyId, Arc<SuperVersion>)>,
}

impl<'a> Unchanged<'a> {
    /// Adds a key, and the last sequence number that may have written it.
    pub(in crate::db) fn push(
        &mut self,
        family: Arc<Family>,
        key: &'a [u8],
        since: SequenceNumber,
    ) {
        self.keys.push(Key { family, key, since });
    }

    /// Whether the keys were written, for a caller that keeps others from writing them, and for
    /// whose own earlier writes the calls have returned.
    ///
    /// # Errors
    /// `Busy` if a key was written; `Corruption` or `IoError` of a table.
    pub(in crate::db) fn ask(&self, reader: &Reader) -> Result<()> {
        for Key { family, key, since } in &self.keys {
            // Memtables and tables of one super version: no flush is between them.
            let current = family.current.load_full();
            if is_in_memtables(family, &current, key, *since)?
                || is_in_tables(reader, family, &current.version, key, *since)?
            {
                return Err(is_changed(family, key));
            }
        }
        Ok(())
    }

    /// Step 1.
    ///
    /// # Errors
    /// `Busy` if a key was written; `Corruption` or `IoError` of a table.
    pub(in crate::db) fn ask_tables(&self, reader: &Reader) -> Result<Asked> {
        let mut asked = Asked::default();
        for Key { family, key, since } in &self.keys {
            let current = current_of(family, &mut asked.tables);
            if is_in_tables(reader, family, &current.version, key, *since)? {
                return Err(is_changed(family, key));
            }
        }
        Ok(asked)
    }

    /// Step 2. `false` if the tables are others than those that were asked.
    ///
    /// # Errors
    /// `Busy` if a key was written.
    pub(in crate::db) fn ask_memtables(&self, asked: &mut Asked) -> Result<bool> {
        for Key { family, key, since } in &self.keys {
            let current = current_of(family, &mut asked.memtables);
            let seen = asked.tables.iter().find(|(id, _)| *id == family.id);
            if seen.is_none_or(|(_, seen)| !Arc::ptr_eq(&seen.version, &current.version))
                && !Mutant::ForgetNewTables.is_on()
            {
                return Ok(false);
            }
            if is_in_memtables(family, current, key, *since)? {
                return Err(is_changed(family, key));
            }
        }
        Ok(true)
    }
}

/// The family's super version, as it was when it was first asked for.
fn current_of<'a>(
    family: &Family,
    asked: &'a mut Vec<(ColumnFamilyId, Arc<SuperVersion>)>,
) -> &'a SuperVersion {
    let at = asked.iter().position(|(id, _)| *id == family.id).unwrap_or_else(|| {
        asked.push((family.id, family.current.load_full()));
        asked.len() - 1
    });
    &asked[at].1
}

fn is_in_memtables(
    family: &Family,
    current: &SuperVersion,
    key: &[u8],
    since: SequenceNumber,
) -> Result<bool> {
    for mem in current.generations() {
        if is_in_memtable(family, mem, key, since)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_in_memtable(
    family: &Family,
    mem: &MemTable,
    key: &[u8],
    since: SequenceNumber,
) -> Result<bool> {
    if family.order.timestamp_size() > 0 {
        let first = timestamp::before_all(key, family.order.timestamp_size());
        let covering = mem.covering_sequence(&first, MAX_SEQUENCE_NUMBER);
        return Ok(covering > since || newest_version(family, &mut mem.iter(), &first)? > since);
    }
    let mut newest = mem.covering_sequence(key, MAX_SEQUENCE_NUMBER);
    mem.get(key, MAX_SEQUENCE_NUMBER, |sequence, _, _| {
        newest = newest.max(sequence);
        ControlFlow::Break(())
    })?;
    Ok(newest > since)
}

fn is_in_tables(
    reader: &Reader,
    family: &Family,
    version: &Version,
    key: &[u8],
    since: SequenceNumber,
) -> Result<bool> {
    if family.order.timestamp_size() > 0 {
        for (_, file) in version.files() {
            if are_versions_in_table(reader, family, file, key, since)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    let target = KeyBuffer::for_seek(key, MAX_SEQUENCE_NUMBER);
    let sought = LookupKey::new(target.as_key());
    for file in version.levels[0].iter().filter(|file| may_hold(family, file, key)) {
        if is_in_table(reader, family, file, &sought, since)? {
            return Ok(true);
        }
    }
    for level in 1..version.levels.len() {
        let first = version.file_index_for_key(level, target.as_key());
        // A key's versions may straddle tables.
        let files = version.levels[level][first..].iter().take_while(|file| {
            family.comparator().compare(file.meta.smallest.user_key(), key).is_le()
        });
        for file in files {
            if is_in_table(reader, family, file, &sought, since)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The largest sequence number of a key's versions, whatever their timestamps; `first` is the place
/// before all of them.
fn newest_version(
    family: &Family,
    entries: &mut impl InternalIterator,
    first: &[u8],
) -> Result<SequenceNumber> {
    let mut newest = 0;
    entries.seek(KeyBuffer::for_seek(first, MAX_SEQUENCE_NUMBER).as_key());
    while entries.valid() && family.order.keys().compare(entries.key().user_key(), first).is_eq() {
        newest = newest.max(entries.key().sequence());
        entries.next();
    }
    entries.status().map(|()| newest)
}

/// Whether a table has a version of the key with a larger sequence number.
fn are_versions_in_table(
    reader: &Reader,
    family: &Family,
    file: &TableFile,
    key: &[u8],
    since: SequenceNumber,
) -> Result<bool> {
    let first = timestamp::before_all(key, family.order.timestamp_size());
    let keys = family.order.keys();
    let is_outside = keys.compare(file.meta.smallest.user_key(), &first).is_gt()
        || keys.compare(&first, file.meta.largest.user_key()).is_gt();
    if is_outside || file.meta.largest_seqno <= since {
        return Ok(false);
    }
    let table = reader.tables.open_for(family, file, false)?;
    let covering = tombstones_of(table)
        .map_or(0, |tombstones| tombstones.covering_sequence(&first, MAX_SEQUENCE_NUMBER));
    let settings = IterSettings::default();
    let has_some = covering <= since
        && table.has_points()
        && table.may_have_versions(&first, key, &settings.read)?;
    let mut newest = covering;
    if has_some {
        newest = newest.max(newest_version(family, &mut table.iter(settings), &first)?);
    }
    Ok(newest > since)
}

fn is_in_table(
    reader: &Reader,
    family: &Family,
    file: &TableFile,
    sought: &LookupKey<'_>,
    since: SequenceNumber,
) -> Result<bool> {
    if file.meta.largest_seqno <= since {
        return Ok(false);
    }
    let table = reader.tables.open_for(family, file, false)?;
    let mut newest = tombstones_of(table).map_or(0, |tombstones| {
        tombstones.covering_sequence(sought.target().user_key(), MAX_SEQUENCE_NUMBER)
    });
    let settings = read_settings(&ReadOptions::default());
    if table.has_points()
        && let Some(admitted) = table.admit(sought, &settings, false)?
    {
        table.get_admitted(admitted, sought, &settings, |sequence, _, _| {
            newest = newest.max(sequence);
            Ok(ControlFlow::Break(()))
        })?;
    }
    Ok(newest > since)
}

fn is_changed(family: &Family, key: &[u8]) -> Error {
    let message = format!(
        "key {} of column family '{}' was written after the snapshot, or after the transaction \
         first used it; roll back, and begin again",
        key_in_words(key),
        family.name
    );
    Error::new(Code::Busy, message)
}
