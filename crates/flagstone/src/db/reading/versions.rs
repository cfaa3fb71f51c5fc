//! All versions of the keys of a range, as they are stored.

use std::ops::Bound;
use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{
    Error, InternalIterator, KeyBuffer, MAX_SEQUENCE_NUMBER, Result, SequenceNumber, ValueType,
    timestamp,
};
use crate::db::family::Family;
use crate::db::reading::Reader;
use crate::db::reading::ahead::{UserRange, first_stored};
use crate::db::reading::cursor::sources;
use crate::iter::{KeyBounds, MergingIterator};
use crate::options::ReadOptions;

/// A version of a key, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyVersion {
    /// The key; with its timestamp, if the family has some.
    pub key: Vec<u8>,
    /// The number of the write.
    pub sequence: SequenceNumber,
    /// What the write did to the key.
    pub kind: ValueType,
    /// What is stored with it: the value, the operand, the encoded columns, the address of a value
    /// in a blob file; empty for a deletion.
    pub value: Vec<u8>,
}

/// Up to `at_most` versions of the keys in a range, in the order of the keys, of each the newest
/// first. Range deletions are none, and do not hide what lies below them.
pub(in crate::db) fn key_versions(
    reader: &Reader,
    family: &Arc<Family>,
    (start, end): UserRange<'_>,
    at_most: usize,
) -> Result<Vec<KeyVersion>> {
    reader.check_family(family)?;
    let size = family.order.timestamp_size();
    let order = family.comparator().without_timestamps();
    let (current, published) = family.pinned(|| reader.snapshots.published.load(Ordering::Acquire));
    let options = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    let lower = first_stored(&start, size);
    let bounds = KeyBounds { lower: lower.as_deref().map(Arc::from), upper: None };
    let (sources, _) = sources(&reader.tables, &options, family, &current, published, &bounds)?;
    let mut merged = MergingIterator::new(family.order.clone(), sources);
    match &lower {
        Some(key) => merged.seek(KeyBuffer::for_seek(key, MAX_SEQUENCE_NUMBER).as_key()),
        None => merged.seek_to_first(),
    }
    let mut versions = Vec::new();
    while merged.valid() && versions.len() < at_most {
        let stored = merged.key();
        let key = timestamp::strip(stored.user_key(), size);
        let is_behind = match end {
            Bound::Included(end) => order.compare(key, end).is_gt(),
            Bound::Excluded(end) => order.compare(key, end).is_ge(),
            Bound::Unbounded => false,
        };
        if is_behind {
            break;
        }
        let is_before =
            matches!(start, Bound::Excluded(start) if order.compare(key, start).is_eq());
        if !is_before && stored.sequence() <= published {
            let kind = stored.value_type().ok_or_else(|| {
                Error::corruption(format!("entry {stored:?} has an unknown type"))
            })?;
            let (key, sequence) = (stored.user_key().to_vec(), stored.sequence());
            versions.push(KeyVersion { key, sequence, kind, value: merged.value().to_vec() });
        }
        merged.next();
    }
    merged.status()?;
    Ok(versions)
}
