//! A family with what a batch says of it laid over it.

use std::sync::Arc;

use crate::base::{Error, Result, WideColumns};
use crate::db::{ColumnFamily, Db, Iter, Value, ValueReader};
use crate::memtable::MemTable;
use crate::options::ReadOptions;
use crate::transactions::delta::{Counting, Delta, DeltaCursor};
use crate::transactions::overlaid::OverlaidIter;
use crate::transactions::streamed::StreamedValues;

/// What a batch said of one family at one moment. Cheap to clone; later changes of the batch do not
/// show.
#[derive(Clone, Default)]
pub struct Overlay {
    /// None if it says nothing.
    index: Option<Arc<MemTable>>,
    counting: Counting,
    streamed: StreamedValues,
}

impl Overlay {
    pub(super) fn new(
        index: Option<Arc<MemTable>>,
        counting: Counting,
        streamed: StreamedValues,
    ) -> Self {
        Self { index, counting, streamed }
    }

    pub(super) fn delta(&self, key: &[u8]) -> Delta {
        let of_index = |index: &Arc<MemTable>| Delta::of(index, &self.counting, key);
        self.index.as_ref().map_or_else(Delta::default, of_index)
    }

    /// Whether the batch says something of `key`.
    pub fn names(&self, key: impl AsRef<[u8]>) -> bool {
        !self.delta(key.as_ref()).is_empty()
    }

    /// A reader of the value of `key` over that in the database. A value that was streamed is read
    /// from its file.
    ///
    /// # Errors
    /// As [`Overlay::get`].
    pub fn in_pieces(
        &self,
        db: &Db,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<ValueReader>> {
        if let Some(place) = self.delta(key.as_ref()).streamed()
            && let Some(reader) = self.streamed.at(place)?.in_pieces()?
        {
            return Ok(Some(reader));
        }
        Ok(self.get(db, options, family, key)?.map(ValueReader::from))
    }

    /// The value of `key` over that in the database.
    ///
    /// # Errors
    /// As [`Db::get_with`]; what the family's merge operator makes of the batch's operands.
    pub fn get(
        &self,
        db: &Db,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Value>> {
        let key = key.as_ref();
        let delta = self.delta(key);
        if delta.needs_columns_below(family.options().merge_operator.as_deref()) {
            let below = db.get_entity(options, family, key)?;
            return default_of(self.resolved_columns(delta, family, key, below));
        }
        let below = if delta.needs_below() { db.get_with(options, family, key)? } else { None };
        self.resolved(delta, family, key, below)
    }

    /// The columns of `key` over those in the database.
    ///
    /// # Errors
    /// As [`Overlay::get`].
    pub fn get_entity(
        &self,
        db: &Db,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<WideColumns>> {
        let key = key.as_ref();
        let delta = self.delta(key);
        let below = if delta.needs_below() { db.get_entity(options, family, key)? } else { None };
        self.resolved_columns(delta, family, key, below)
    }

    /// The columns of several keys, all as of one moment, in the order of the keys.
    pub fn multi_get_entity<K: AsRef<[u8]>>(
        &self,
        db: &Db,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: &[K],
    ) -> Vec<Result<Option<WideColumns>>> {
        let (deltas, wanted) = self.deltas(keys);
        let mut below = db.multi_get_entity(options, family, &wanted).into_iter();
        let columns = keys.iter().zip(deltas).map(|(key, delta)| {
            let below =
                if delta.needs_below() { below.next().transpose()?.flatten() } else { None };
            self.resolved_columns(delta, family, key.as_ref(), below)
        });
        columns.collect()
    }

    /// The values of several keys, all as of one moment, in the order of the keys.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        db: &Db,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: &[K],
    ) -> Vec<Result<Option<Value>>> {
        let (deltas, wanted) = self.deltas(keys);
        let operator = family.options().merge_operator.clone();
        if deltas.iter().any(|delta| delta.needs_columns_below(operator.as_deref())) {
            let entities = self.multi_get_entity(db, options, family, keys);
            return entities.into_iter().map(default_of).collect();
        }
        let below = db.multi_get_with(options, family, &wanted);
        self.all_resolved(deltas, family, keys, below)
    }

    /// [`Overlay::get`] for a task.
    ///
    /// # Errors
    /// As [`Overlay::get`] and [`Db::get_async`].
    pub async fn get_async(
        &self,
        db: &Db,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: &[u8],
    ) -> Result<Option<Value>> {
        let delta = self.delta(key);
        check_async(family, std::slice::from_ref(&delta))?;
        let below =
            if delta.needs_below() { db.get_async(options, family, key).await? } else { None };
        self.resolved(delta, family, key, below)
    }

    /// [`Overlay::multi_get`] for a task.
    pub async fn multi_get_async(
        &self,
        db: &Db,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: &[Vec<u8>],
    ) -> Vec<Result<Option<Value>>> {
        let (deltas, wanted) = self.deltas(keys);
        if let Err(error) = check_async(family, &deltas) {
            return keys.iter().map(|_| Err(error.clone())).collect();
        }
        let wanted = wanted.into_iter().map(<[u8]>::to_vec).collect();
        let below = db.multi_get_async(options, family, wanted).await;
        self.all_resolved(deltas, family, keys, below)
    }

    /// A cursor over the family.
    ///
    /// # Errors
    /// As [`Db::iter_cf`].
    #[track_caller]
    pub fn iter(
        &self,
        db: &Db,
        options: &ReadOptions,
        family: &ColumnFamily,
    ) -> Result<OverlaidIter> {
        Ok(self.over(db.iter_cf(family, options)?, options, family))
    }

    /// As [`Overlay::iter`], over a cursor of the family that was made with these options.
    #[doc(hidden)]
    pub fn over(&self, below: Iter, options: &ReadOptions, family: &ColumnFamily) -> OverlaidIter {
        let cursor_over =
            |index: &Arc<MemTable>| DeltaCursor::new(index.clone(), self.counting.clone());
        let cursor = self.index.as_ref().map(cursor_over);
        let (order, settings) = (family.comparator().without_timestamps(), family.options());
        OverlaidIter::new(
            (below, order),
            cursor,
            self.streamed.clone(),
            settings.merge_operator.clone(),
            options,
        )
    }

    /// What the batch says of keys, and those of which the database is to be asked, too.
    fn deltas<'a, K: AsRef<[u8]>>(&self, keys: &'a [K]) -> (Vec<Delta>, Vec<&'a [u8]>) {
        let deltas: Vec<Delta> = keys.iter().map(|key| self.delta(key.as_ref())).collect();
        let pairs = keys.iter().zip(&deltas);
        let wanted = pairs.filter(|(_, delta)| delta.needs_below()).map(|(key, _)| key.as_ref());
        let wanted = wanted.collect();
        (deltas, wanted)
    }

    /// The values of keys, from what lies `below` those that need it.
    fn all_resolved<K: AsRef<[u8]>>(
        &self,
        deltas: Vec<Delta>,
        family: &ColumnFamily,
        keys: &[K],
        below: Vec<Result<Option<Value>>>,
    ) -> Vec<Result<Option<Value>>> {
        let mut below = below.into_iter();
        let values = keys.iter().zip(deltas).map(|(key, delta)| {
            let below =
                if delta.needs_below() { below.next().transpose()?.flatten() } else { None };
            self.resolved(delta, family, key.as_ref(), below)
        });
        values.collect()
    }

    /// What a batch's delta over a value of the database amounts to.
    fn resolved(
        &self,
        delta: Delta,
        family: &ColumnFamily,
        key: &[u8],
        below: Option<Value>,
    ) -> Result<Option<Value>> {
        if delta.is_empty() {
            return Ok(below);
        }
        let settings = family.options();
        let value = delta.loaded(&self.streamed)?.over(
            key,
            below.as_deref(),
            settings.merge_operator.as_deref(),
        )?;
        Ok(value.map(Value::from))
    }

    /// What a batch's delta over columns of the database amounts to.
    fn resolved_columns(
        &self,
        delta: Delta,
        family: &ColumnFamily,
        key: &[u8],
        below: Option<WideColumns>,
    ) -> Result<Option<WideColumns>> {
        let settings = family.options();
        let delta = delta.loaded(&self.streamed)?;
        delta.columns_over(key, below, settings.merge_operator.as_deref())
    }
}

/// Refuses operands that need all columns of an entity: those are not read for tasks.
fn check_async(family: &ColumnFamily, deltas: &[Delta]) -> Result<()> {
    let operator = family.options().merge_operator.clone();
    if deltas.iter().any(|delta| delta.needs_columns_below(operator.as_deref())) {
        let message = "the transaction's operands are merged into all columns of an entity, which \
                       is not done for tasks; read the key without `async`";
        return Err(Error::not_supported(message));
    }
    Ok(())
}

fn default_of(columns: Result<Option<WideColumns>>) -> Result<Option<Value>> {
    let value = |columns: WideColumns| columns.get("").unwrap_or_default().to_vec().into();
    columns.map(|columns| columns.map(value))
}
