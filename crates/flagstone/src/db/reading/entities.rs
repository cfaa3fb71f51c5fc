//! Lookups of entities: of all columns that a key has.

use std::sync::Arc;

use crate::base::{Result, SequenceNumber, ValueType, WideColumns};
use crate::db::family::{Family, SuperVersion};
use crate::db::reading::Reader;
use crate::db::reading::iterate::Iter;
use crate::db::reading::value::Value;
use crate::db::statistics::Ticker;
use crate::iter::Outcome;
use crate::options::ReadOptions;

impl Reader {
    /// All columns of a key; a plain value is one.
    pub(in crate::db) fn get_entity(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        key: &[u8],
    ) -> Result<Option<WideColumns>> {
        self.statistics.add(Ticker::KeysRead, 1);
        self.check_family(family)?;
        let current = family.current.load();
        let snapshot = self.read_sequence(options)?;
        let outcome = self.search(options, family, &current, snapshot, key)?.finish();
        self.finish_columns(options, family, &current, key, outcome)
    }

    /// The columns of several keys, all as of one moment; in the order of the keys.
    pub(in crate::db) fn multi_get_entity(
        &self,
        options: &ReadOptions,
        family: &Arc<Family>,
        keys: &[&[u8]],
    ) -> Vec<Result<Option<WideColumns>>> {
        self.statistics.add(Ticker::KeysRead, keys.len() as u64);
        let mut entities = Vec::with_capacity(keys.len());
        let found = self.multi_search(options, family, keys, |current, keys, found| {
            let found = keys
                .iter()
                .zip(found)
                .map(|(key, outcome)| self.finish_columns(options, family, current, key, outcome?));
            entities.extend(found);
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
}

impl Iter {
    /// The columns of the current key, in the order of their names; a plain value is one column,
    /// the default one. The cursor stays valid after an error.
    ///
    /// # Errors
    /// As [`Iter::value`].
    ///
    /// # Panics
    /// If the cursor is not valid.
    pub fn columns(&mut self) -> Result<WideColumns> {
        self.entries_mut().columns()
    }
}
