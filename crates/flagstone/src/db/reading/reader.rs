//! The reader: what lookups and cursors need of a database, and nothing else.
//!
//! It answers for one moment: the super version of a family, which the caller's [`Family`] has, and
//! a sequence number. It takes no lock of the engine, and writes nothing but statistics and caches.

use std::sync::Arc;

use crate::base::sync::Ordering;
use crate::base::{
    Code, Error, Result, SequenceNumber, SnapshotList, SubCode, ValueType, WideColumns,
    key_in_words,
};
use crate::db::family::{Family, SuperVersion};
use crate::db::reading::value::Value;
use crate::db::reading::value_reader::ValueReader;
use crate::db::statistics::{Statistics, Ticker};
use crate::db::tables::Tables;
use crate::env::ReadLimits;
use crate::iter::Outcome;
use crate::manifest::ObsoleteFiles;
use crate::options::ReadOptions;

/// Reads the families of one database.
pub(in crate::db) struct Reader {
    pub(super) tables: Arc<Tables>,
    pub(super) snapshots: Arc<SnapshotList>,
    pub(super) statistics: Arc<Statistics>,
    /// What only the families of this database share with it.
    owner: Arc<ObsoleteFiles>,
}

impl Reader {
    /// A reader of the families that share `owner`.
    pub(in crate::db) fn new(
        tables: Arc<Tables>,
        snapshots: Arc<SnapshotList>,
        statistics: Arc<Statistics>,
        owner: Arc<ObsoleteFiles>,
    ) -> Self {
        Self { tables, snapshots, statistics, owner }
    }

    /// Refuses a family of another database.
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub(super) fn check_family(&self, family: &Family) -> Result<()> {
        family.check_owner(&self.owner)
    }

    /// The newest sequence number that the read sees. The caller has pinned the super version
    /// already.
    ///
    /// # Errors
    /// `InvalidArgument` for a snapshot of another database.
    pub(super) fn read_sequence(&self, options: &ReadOptions) -> Result<SequenceNumber> {
        match &options.snapshot {
            None => Ok(self.snapshots.published.load(Ordering::Acquire)),
            Some(snapshot) if snapshot.belongs_to(&self.snapshots) => Ok(snapshot.sequence()),
            Some(_) => Err(Error::invalid_argument("the snapshot belongs to another database")),
        }
    }

    /// Counts a lookup of a key, and records it if operations are traced.
    #[inline]
    pub(super) fn note_get(&self, family: &Family, key: &[u8]) {
        self.statistics.add(Ticker::KeysRead, 1);
        if self.statistics.operations().is_on() {
            self.statistics.operations().get(family.id, key);
        }
    }

    /// [`Self::note_get`] of several keys together.
    pub(super) fn note_multi_get(&self, family: &Family, keys: &[&[u8]]) {
        self.statistics.add(Ticker::KeysRead, keys.len() as u64);
        if self.statistics.operations().is_on() {
            self.statistics.operations().multi_get(family.id, keys);
        }
    }

    /// Runs a read within the limits of its options.
    #[inline]
    pub(super) fn within<T>(
        &self,
        options: &ReadOptions,
        read: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        ReadLimits::within(self.tables.read_limits(options).as_ref(), read)
    }

    /// All columns of a key; a plain value is one.
    pub(in crate::db) fn get_entity(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
    ) -> Result<Option<WideColumns>> {
        self.note_get(family, key);
        self.check_family(family)?;
        let current = family.current.load();
        let snapshot = self.read_sequence(options)?;
        self.within(options, || {
            let outcome = self.search(options, family, &current, snapshot, key)?.finish();
            self.finish_columns(options, family, &current, key, outcome)
        })
    }

    /// The columns of several keys, all as of one moment; in the order of the keys.
    pub(in crate::db) fn multi_get_entity(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<WideColumns>>> {
        self.note_multi_get(family, keys);
        let mut entities = Vec::with_capacity(keys.len());
        let found = self.within(options, || {
            self.multi_search(options, family, keys, |current, keys, found| {
                let found = keys.iter().zip(found).map(|(key, outcome)| {
                    self.finish_columns(options, family, current, key, outcome?)
                });
                entities.extend(found);
            })
        });
        match found {
            Ok(()) => entities,
            Err(error) => keys.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    fn finish_columns(
        &self,
        options: &ReadOptions,
        family: &Family,
        current: &SuperVersion,
        key: &[u8],
        outcome: Outcome<Value>,
    ) -> Result<Option<WideColumns>> {
        let resolver = self.blobs_of(options, family, current);
        let operator = &family.options.load().merge_operator;
        let columns = outcome.resolve_columns(key, operator.as_deref(), &resolver)?;
        if let Some(columns) = &columns {
            self.statistics.add(Ticker::BytesRead, columns.byte_size() as u64);
        }
        Ok(columns)
    }

    /// The operands of a key, oldest first, behind the value that they would be merged onto.
    pub(in crate::db) fn get_merge_operands(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
        at_most: usize,
    ) -> Result<Vec<Value>> {
        self.statistics.add(Ticker::KeysRead, 1);
        self.check_family(family)?;
        self.within(options, || self.operands_of(options, family, key, at_most))
    }

    fn operands_of(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
        at_most: usize,
    ) -> Result<Vec<Value>> {
        let current = family.current.load();
        let snapshot = self.read_sequence(options)?;
        let outcome = self.search(options, family, &current, snapshot, key)?.finish();
        let (base, operands) = match outcome {
            Outcome::NotFound => return Ok(Vec::new()),
            Outcome::Found(kind, value) => (Some((kind, value)), Vec::new()),
            Outcome::Merge { base, operands } => (base, operands),
        };
        let count = operands.len() + usize::from(base.is_some());
        if count > at_most {
            return Err(too_many(key, count, at_most));
        }
        let mut found = Vec::with_capacity(count);
        if let Some((kind, value)) = base {
            let base = Outcome::Found(kind, value);
            found.extend(self.finish_outcome(options, family, &current, key, base)?);
        }
        let bytes: usize = operands.iter().map(|operand| operand.len()).sum();
        self.statistics.add(Ticker::BytesRead, bytes as u64);
        found.extend(operands.into_iter().rev());
        Ok(found)
    }

    /// What a key had when that number was the last, one that nothing has forgotten: a value, or an
    /// encoded entity that has all its columns inside.
    pub(in crate::db) fn get_at(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        sequence: SequenceNumber,
        key: &[u8],
    ) -> Result<Option<(ValueType, Vec<u8>)>> {
        let current = family.current.load();
        let outcome = self.search(options, family, &current, sequence, key)?.finish();
        let is_entity = match &outcome {
            Outcome::Found(base, _) | Outcome::Merge { base: Some((base, _)), .. } => {
                *base == ValueType::WideColumnEntity
            }
            _ => false,
        };
        let columns = self.finish_columns(options, family, &current, key, outcome)?;
        Ok(columns.map(|columns| match columns.only_default() {
            Some(value) if !is_entity => (ValueType::Value, value.to_vec()),
            _ => (ValueType::WideColumnEntity, columns.encode()),
        }))
    }

    /// A reader of a value: from its blob file if it is large and lies there as it is, otherwise
    /// from memory.
    ///
    /// # Errors
    /// As a lookup.
    pub(in crate::db) fn get_in_pieces(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
    ) -> Result<Option<ValueReader>> {
        self.note_get(family, key);
        self.check_family(family)?;
        self.within(options, || self.open_pieces(options, family, key))
    }

    fn open_pieces(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
    ) -> Result<Option<ValueReader>> {
        let current = family.current.load_full();
        let snapshot = self.read_sequence(options)?;
        let outcome = self.search(options, family, &current, snapshot, key)?.finish();
        if let Outcome::Found(ValueType::BlobIndex, stored) = &outcome
            && let Some(reader) =
                ValueReader::open(&self.tables, family, &current, key, stored, options)?
        {
            self.statistics.add(Ticker::BytesRead, reader.size());
            return Ok(Some(reader));
        }
        let value = self.finish_outcome(options, family, &current, key, outcome)?;
        Ok(value.map(ValueReader::from))
    }
}

#[cold]
fn too_many(key: &[u8], count: usize, at_most: usize) -> Error {
    let key = key_in_words(key);
    let message = format!("key '{key}' has {count} merge operands, more than {at_most}");
    Error::new(Code::Incomplete, message).with_subcode(SubCode::MergeOperandsInsufficientCapacity)
}

#[cfg(test)]
mod tests;
