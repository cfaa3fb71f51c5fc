//! Entities in a batch with an index.

use crate::base::entity::encode_unsorted;
use crate::base::{Result, ValueType, WideColumns};
use crate::db::{ColumnFamily, Db};
use crate::options::ReadOptions;
use crate::transactions::indexed_batch::{InBatch, WriteBatchWithIndex};

impl WriteBatchWithIndex {
    /// Sets `key` to an entity of these columns, which may come in any order.
    ///
    /// # Errors
    /// As [`WriteBatch::put_entity`](crate::WriteBatch::put_entity).
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        columns: impl IntoIterator<Item = (N, V)>,
    ) -> Result<()> {
        self.put_encoded_entity(family, key.as_ref(), &encode_unsorted(columns)?)
    }

    /// Sets `key` to an entity in its encoded form, which must be sound.
    pub(crate) fn put_encoded_entity(
        &mut self,
        family: &ColumnFamily,
        key: &[u8],
        entity: &[u8],
    ) -> Result<()> {
        self.batch_mut().put_encoded_entity(family, key, entity)?;
        self.index(family, ValueType::WideColumnEntity, key, entity);
        Ok(())
    }

    /// The columns that the batch alone gives `key`; a plain value is one.
    ///
    /// # Errors
    /// As [`WriteBatchWithIndex::get`].
    #[doc(alias = "GetEntityFromBatch")]
    pub fn get_entity(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<InBatch<WideColumns>> {
        let key = key.as_ref();
        let delta = self.overlay(family)?.delta(key).loaded(self.streamed())?;
        if delta.is_empty() {
            return Ok(InBatch::Absent);
        }
        if delta.needs_below() {
            return Ok(InBatch::MergeInProgress);
        }
        let columns = delta.columns_over(key, None, family.options().merge_operator.as_deref())?;
        Ok(columns.map_or(InBatch::Deleted, InBatch::Value))
    }

    /// The columns that `key` would have if the batch were written, as
    /// [`WriteBatchWithIndex::get_from_batch_and_db`] returns a value.
    ///
    /// # Errors
    /// As [`Db::get_entity`] and [`WriteBatchWithIndex::get`].
    #[doc(alias = "GetEntityFromBatchAndDB")]
    pub fn get_entity_from_batch_and_db(
        &self,
        db: &Db,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<WideColumns>> {
        self.overlay(family)?.get_entity(db, options, family, key)
    }

    /// The columns that several keys would have, all as of one moment; in the order of the keys.
    ///
    /// # Errors
    /// `InvalidArgument` as [`WriteBatchWithIndex::get`]; each key has an error of its own, too.
    #[doc(alias = "MultiGetEntityFromBatchAndDB")]
    pub fn multi_get_entity_from_batch_and_db<K: AsRef<[u8]>>(
        &self,
        db: &Db,
        family: &ColumnFamily,
        keys: &[K],
        options: &ReadOptions,
    ) -> Result<Vec<Result<Option<WideColumns>>>> {
        Ok(self.overlay(family)?.multi_get_entity(db, options, family, keys))
    }
}
