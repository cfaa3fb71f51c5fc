//! Reads of families whose keys end in timestamps.
//!
//! A lookup merges the versions of its key from all sources that may have some, as a scan does:
//! the newest that counts is the one with the largest timestamp, in whichever source it lies.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::base::{
    Error, InternalIterator, InternalKey, KeyBuffer, MAX_SEQUENCE_NUMBER, Result, SequenceNumber,
    ValueType, timestamp,
};
use crate::db::family::{Family, SuperVersion};
use crate::db::reading::Reader;
use crate::db::reading::cursor::sources_of_key;
use crate::db::reading::value::Value;
use crate::iter::{
    AsOf, DbIter, DbIterSettings, Lookup, MergingIterator, TombstoneSource, TombstoneView,
    ValueResolver,
};
use crate::options::ReadOptions;

/// The versions of a key as of a timestamp.
pub(in crate::db) struct FoundAsOf {
    /// Those that count.
    pub lookup: Lookup<Value>,
    /// The timestamp of the newest of them.
    pub timestamp: Vec<u8>,
}

/// Which timestamps a read sees; `None` where keys have none.
///
/// # Errors
/// `InvalidArgument`: a timestamp is missing, of another size, or older than the history that is
/// kept; or it is given for a family that has none.
#[inline]
pub(super) fn as_of(
    options: &ReadOptions,
    family: &Family,
    current: &SuperVersion,
) -> Result<Option<AsOf>> {
    let size = family.order.timestamp_size();
    if size == 0 && options.timestamp.is_none() && options.iter_start_ts.is_none() {
        return Ok(None);
    }
    checked(options, family, current)
}

#[cold]
fn checked(options: &ReadOptions, family: &Family, current: &SuperVersion) -> Result<Option<AsOf>> {
    let (size, name) = (family.order.timestamp_size(), &family.name);
    for given in [&options.timestamp, &options.iter_start_ts].into_iter().flatten() {
        timestamp::check_size(name, size, given.len())?;
    }
    let Some(newest) = &options.timestamp else {
        return Err(Error::invalid_argument(format!(
            "column family '{name}' is read as of a timestamp; set ReadOptions::timestamp"
        )));
    };
    let oldest = options.iter_start_ts.as_deref();
    let order = family.comparator();
    let low = current.history_low.as_deref();
    for given in [Some(&newest[..]), oldest].into_iter().flatten() {
        if let Some(low) = low.filter(|low| order.compare_timestamps(given, low).is_lt()) {
            return Err(Error::invalid_argument(format!(
                "timestamp {} is older than full_history_ts_low {} of column family '{name}': its history is not kept any \
                 more; read as of a newer timestamp",
                in_words(given),
                in_words(low)
            )));
        }
    }
    if oldest.is_some() && (options.tailing || options.auto_refresh_iterator_with_snapshot) {
        return Err(Error::not_supported(
            "a scan with iter_start_ts does not refresh itself; unset tailing and auto_refresh_iterator_with_snapshot",
        ));
    }
    Ok(Some(AsOf { newest: newest[..].into(), oldest: oldest.map(Box::from) }))
}

/// A timestamp as a person reads it: a number if it has the size of one.
pub(in crate::db) fn in_words(stamp: &[u8]) -> String {
    timestamp::to_u64(stamp).map_or_else(|| stamp.escape_ascii().to_string(), |it| it.to_string())
}

/// Finds the versions of a key that count as of the options' timestamp.
///
/// # Errors
/// As [`as_of`], and those of a lookup.
#[cold]
pub(in crate::db) fn search_as_of(
    reader: &Reader,
    options: &ReadOptions,
    family: &Arc<Family>,
    current: &SuperVersion,
    snapshot: SequenceNumber,
    key: &[u8],
) -> Result<FoundAsOf> {
    let seen = ReadOptions { iter_start_ts: None, ..options.clone() };
    let Some(as_of) = as_of(&seen, family, current)? else {
        return Err(Error::invalid_argument("the family has no timestamps"));
    };
    versions_as_of(reader, options, family, current, (snapshot, as_of), key)
}

/// Whether a key was written with a newer timestamp than that as of which it is read, or deleted,
/// alone or within a range.
///
/// # Errors
/// As [`as_of`], and those of a lookup.
pub(in crate::db) fn is_newer_than(
    reader: &Reader,
    family: &Arc<Family>,
    key: &[u8],
    read: &[u8],
) -> Result<bool> {
    reader.check_family(family)?;
    let current = family.current.load();
    let options = ReadOptions { timestamp: Some(read.to_vec()), ..ReadOptions::default() };
    as_of(&options, family, &current)?;
    let snapshot = reader.read_sequence(&options)?;
    let (sources, tombstones) =
        sources_of_key(&reader.tables, &options, family, &current, snapshot, key)?;
    let (order, size) = (family.comparator(), family.order.timestamp_size());
    let first = timestamp::before_all(key, size);
    let is_newer = |stamp: &[u8]| order.compare_timestamps(stamp, read).is_gt();
    for (_, source) in &tombstones {
        let TombstoneSource::One(part) = source else { continue };
        let part = part.tombstones();
        let covering = part.get(part.first_ending_after(&first));
        let covering = covering.filter(|one| part.comparator().compare(one.start, &first).is_le());
        if covering.is_some_and(|one| one.timestamps.chunks_exact(size).any(is_newer)) {
            return Ok(true);
        }
    }
    // In the order of the entries the newest timestamp of a key comes first.
    let mut entries = MergingIterator::new(family.order.clone(), sources);
    entries.seek(KeyBuffer::for_seek(&first, MAX_SEQUENCE_NUMBER).as_key());
    while entries.valid() && order.compare_keys(entries.key().user_key(), &first).is_eq() {
        if entries.key().sequence() <= snapshot {
            return Ok(is_newer(timestamp::split(entries.key().user_key(), size).1));
        }
        entries.next();
    }
    entries.status().map(|()| false)
}

/// The same as of a timestamp that is known to be readable.
fn versions_as_of(
    reader: &Reader,
    options: &ReadOptions,
    family: &Arc<Family>,
    current: &SuperVersion,
    (snapshot, as_of): (SequenceNumber, AsOf),
    key: &[u8],
) -> Result<FoundAsOf> {
    let size = as_of.newest.len();
    let order = family.comparator().clone();
    let (sources, tombstones) =
        sources_of_key(&reader.tables, options, family, current, snapshot, key)?;
    let view = TombstoneView::new(order.clone(), snapshot, tombstones);
    let view = view.as_of(as_of.newest.clone());
    let merged = MergingIterator::new(family.order.clone(), sources);
    let settings = DbIterSettings { as_of: Some(as_of), ..DbIterSettings::new(order, snapshot) };
    let resolver = reader.blobs_of(options, family, current);
    let mut found = FoundAsOf { lookup: Lookup::new(), timestamp: Vec::new() };
    let mut entries = DbIter::new(settings, merged, view, &resolver);
    entries.visit_versions(key, |entry: InternalKey<'_>, kind, stored| {
        let value = match kind {
            // By the key that it was stored with, which only the entry has.
            ValueType::BlobIndex => {
                (ValueType::Value, resolver.resolve_blob(entry.user_key(), stored)?.into())
            }
            kind => (kind, Value::from(stored.to_vec())),
        };
        if found.timestamp.is_empty() {
            found.timestamp = timestamp::split(entry.user_key(), size).1.to_vec();
        }
        let (kind, value) = value;
        Ok::<ControlFlow<()>, Error>(found.lookup.add(entry.sequence(), kind, value))
    })?;
    Ok(found)
}
