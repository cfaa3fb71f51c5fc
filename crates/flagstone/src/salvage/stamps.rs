//! Families whose keys end in timestamps.
//!
//! - Where tables have the timestamps, each timestamp of a key is a key of its own. Deletions are
//!   kept, because reads as of older timestamps do not see them. A range deletion becomes deletions
//!   of the keys that are left below it.
//! - Where tables have none, and only WALs do, those of WALs are removed: the newest write to a key
//!   counts. The family can be read from the newest timestamp found on, as after a flush.

use std::collections::BTreeMap;

use super::choose::Version;
use super::families::Families;
use super::tombstones::{Cover, Tombstones};
use crate::base::{
    ColumnFamilyId, Comparator, Error, InternalKeyBuf, Result, SequenceNumber, ValueType, timestamp,
};
use crate::batch::{BatchView, Operation, StampChange, change_stamps};
use crate::db::strips_timestamps;
use crate::options::ColumnFamilyOptions;

/// Where the timestamps of a family are, and their size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamps {
    /// It has none.
    None,
    /// In tables and WALs.
    Kept(usize),
    /// In WALs only.
    Stripped(usize),
}

impl Stamps {
    pub(super) fn of(options: &ColumnFamilyOptions) -> Self {
        match options.comparator.timestamp_size() {
            0 => Self::None,
            size if strips_timestamps(options) => Self::Stripped(size),
            size => Self::Kept(size),
        }
    }

    /// The order of the keys as they are compared here.
    pub(super) fn order(self, comparator: Comparator) -> Comparator {
        match self {
            Self::Stripped(_) => comparator.without_timestamps(),
            _ => comparator,
        }
    }

    /// The bytes of the timestamps that keys end in here.
    pub(super) fn kept_size(self) -> usize {
        if let Self::Kept(size) = self { size } else { 0 }
    }

    /// The bytes of the timestamps that only the keys in blob files end in.
    pub(super) fn stripped_size(self) -> usize {
        if let Self::Stripped(size) = self { size } else { 0 }
    }
}

/// What is known of a family's timestamps.
#[derive(Debug, Clone)]
pub(super) struct FamilyStamps {
    pub(super) kind: Stamps,
    /// `full_history_ts_low`, as the MANIFEST says.
    pub(super) low: Option<Vec<u8>>,
    /// The newest one that was removed from a key.
    newest_removed: Option<u64>,
}

impl FamilyStamps {
    pub(super) fn new(kind: Stamps, low: Option<Vec<u8>>) -> Self {
        Self { kind, low, newest_removed: None }
    }

    /// Takes note of a timestamp that keys lose.
    fn note_removed(&mut self, newest: Option<u64>) {
        if matches!(self.kind, Stamps::Stripped(_)) {
            self.newest_removed = self.newest_removed.max(newest);
        }
    }

    /// The timestamp from which on the family can be read.
    pub(super) fn history_low(&self) -> Option<Vec<u8>> {
        let size = match self.kind {
            Stamps::None => return None,
            Stamps::Kept(size) | Stamps::Stripped(size) => size,
        };
        // Another comparator may have written it.
        let low = self.low.as_ref().filter(|low| low.len() == size);
        let Some(newest) = self.newest_removed else { return low.cloned() };
        let known = low.map(Vec::as_slice).and_then(timestamp::to_u64).unwrap_or(0);
        Some(timestamp::from_u64(newest.saturating_add(1).max(known)).to_vec())
    }
}

/// A deletion in the place of a range deletion that lies over a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StampedDeletion {
    pub(super) timestamp: Vec<u8>,
    pub(super) sequence: SequenceNumber,
}

impl Tombstones {
    /// What range deletions of the version's own timestamp do to it: reads as of an older one do
    /// not see it. Those of newer timestamps say from which on it is deleted.
    pub(super) fn cover_stamped(
        &self,
        order: &Comparator,
        key: &[u8],
        version: &Version,
        may_have_cost: impl Fn() -> bool,
    ) -> (Cover, Option<StampedDeletion>) {
        let size = order.timestamp_size();
        let (_, own) = timestamp::split(key, size);
        let place = InternalKeyBuf::new(key, version.sequence, version.kind);
        let (mut cover, mut first) = (Cover::None, None::<StampedDeletion>);
        self.over(place.as_key(), |sequences, timestamps, is_believed, only_for_lost| {
            let pairs = sequences.iter().zip(timestamps.chunks_exact(size));
            let newer = pairs.filter(|(sequence, stamp)| {
                **sequence > version.sequence && order.compare_timestamps(stamp, own).is_ge()
            });
            for (&sequence, stamp) in newer {
                if only_for_lost && !may_have_cost() {
                    break;
                }
                if !is_believed(version) {
                    cover = cover.max(Cover::Unsure);
                } else if order.compare_timestamps(stamp, own).is_eq() {
                    cover = Cover::Deleted;
                } else if first.as_ref().is_none_or(|first| {
                    let known = order.compare_timestamps(stamp, &first.timestamp);
                    known.then(sequence.cmp(&first.sequence)).is_lt()
                }) {
                    first = Some(StampedDeletion { timestamp: stamp.to_vec(), sequence });
                }
            }
        });
        (cover, first)
    }
}

/// What becomes of a WAL's batch.
#[derive(Debug, Default)]
pub(super) struct Adapted {
    /// Its bytes, if they are others.
    pub(super) batch: Option<Vec<u8>>,
    /// The newest timestamp that the keys of a family lose, if they are not only prepared.
    pub(super) removed: BTreeMap<ColumnFamilyId, Option<u64>>,
    /// The families whose keys cannot be understood, and why.
    pub(super) refused: BTreeMap<ColumnFamilyId, Error>,
}

impl Families {
    /// Where the timestamps are of a family that a WAL names, and that may not be known yet.
    fn stamps_of(&self, id: ColumnFamilyId) -> Stamps {
        if self.names.contains_key(&id) || self.history().is_dropped(id) {
            return self.known_stamps(id);
        }
        Stamps::of(self.options_by_order(id))
    }

    /// Where those are of a family that is known.
    pub(super) fn known_stamps(&self, id: ColumnFamilyId) -> Stamps {
        let family = self.names.get(&id).and_then(|name| self.by_name.get(name));
        family.map_or(Stamps::None, |family| family.stamps.kind)
    }

    /// The sizes of timestamps that keys end in here, by family.
    pub(super) fn kept_stamps(&self) -> BTreeMap<ColumnFamilyId, usize> {
        let sizes = self.names.keys().map(|&id| (id, self.known_stamps(id).kept_size()));
        sizes.filter(|(_, size)| *size > 0).collect()
    }

    /// Takes note of a timestamp that keys of a family lose.
    pub(super) fn note_removed(&mut self, id: ColumnFamilyId, newest: Option<u64>) {
        let name = self.names.get(&id);
        if let Some(family) = name.and_then(|name| self.by_name.get_mut(name)) {
            family.stamps.note_removed(newest);
        }
    }

    /// Makes the keys of a WAL's batch those that are compared here. `told` says the size of the
    /// timestamps that the WAL has for a family. The keys are not a family's yet: it may come to be
    /// known only as they are taken. Of a log that `is_damaged` what it has told may be lost.
    ///
    /// # Errors
    /// `Corruption` for a key that is too short, or a batch that is malformed.
    pub(super) fn adapt_batch(
        &self,
        batch: BatchView<'_>,
        told: impl Fn(ColumnFamilyId) -> usize,
        is_damaged: bool,
    ) -> Result<Adapted> {
        let mut sizes = BTreeMap::new();
        let mut adapted = Adapted::default();
        let mut is_prepared = false;
        for operation in batch.iter() {
            let operation = operation?;
            match operation {
                Operation::BeginPrepare(_) => is_prepared = true,
                Operation::EndPrepare { .. } => is_prepared = false,
                _ => {}
            }
            let Some((id, (kind, key, value))) = operation.family().zip(operation.entry()) else {
                continue;
            };
            if self.history().is_dropped(id) && !self.names.contains_key(&id) {
                continue;
            }
            let (stamps, told) = (self.stamps_of(id), told(id));
            let size = match stamps {
                Stamps::Kept(size) if told == 0 || told == size => size,
                Stamps::Stripped(size) if told == size => size,
                Stamps::Stripped(_) if told == 0 && is_damaged => {
                    adapted.refused.entry(id).or_insert_with(|| {
                        Error::corruption(format!(
                            "whether the keys of column family {id} end in user timestamps was in a part of the log that is \
                             lost"
                        ))
                    });
                    continue;
                }
                Stamps::None | Stamps::Stripped(_) if told == 0 => 0,
                // As at an opening, it has none any more.
                Stamps::None if self.history().has_comparator(id) => told,
                _ => {
                    adapted.refused.entry(id).or_insert_with(|| {
                        Error::not_supported(format!(
                            "the keys of column family {id} end in user timestamps of {told} bytes in the log, and not by its \
                             comparator"
                        ))
                    });
                    continue;
                }
            };
            let end = (kind == ValueType::RangeDeletion).then_some(value);
            for key in [Some(key), end].into_iter().flatten() {
                if key.len() < size {
                    return Err(timestamp::is_too_short(key, size));
                }
            }
            if size == 0 || matches!(stamps, Stamps::Kept(_)) {
                continue;
            }
            sizes.insert(id, size);
            if !is_prepared {
                let newest = adapted.removed.entry(id).or_default();
                *newest = timestamp::to_u64(timestamp::split(key, size).1).max(*newest);
            }
        }
        if !sizes.is_empty() {
            adapted.batch =
                change_stamps(batch, |id| sizes.get(&id).copied().map(StampChange::StripAll))?;
        }
        Ok(adapted)
    }
}
