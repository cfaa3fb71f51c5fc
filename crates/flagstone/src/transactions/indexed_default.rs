//! A batch with an index that is filled and read without a database at hand.
//!
//! Only the default family can be meant then. Its keys have the order that the caller names, which
//! must be the family's when the batch is read together with a database.

use crate::base::{ColumnFamilyId, Comparator, MergeOperator, Result, ValueType};
use crate::transactions::indexed_batch::{InBatch, WriteBatchWithIndex, in_batch};

const DEFAULT: ColumnFamilyId = ColumnFamilyId::DEFAULT;

#[doc(hidden)]
impl WriteBatchWithIndex {
    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`](crate::WriteBatch::put).
    pub fn put_default(&mut self, order: &Comparator, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(key, value)?;
        self.index_at((DEFAULT, order), ValueType::Value, key, value);
        Ok(())
    }

    /// Deletes `key`.
    ///
    /// # Errors
    /// As [`WriteBatch::put`](crate::WriteBatch::put).
    pub fn delete_default(&mut self, order: &Comparator, key: &[u8]) -> Result<()> {
        self.batch.delete(key)?;
        self.index_at((DEFAULT, order), ValueType::Deletion, key, &[]);
        Ok(())
    }

    /// Deletes `key`, which was put at most once since it was last deleted.
    ///
    /// # Errors
    /// As [`WriteBatch::put`](crate::WriteBatch::put).
    pub fn single_delete_default(&mut self, order: &Comparator, key: &[u8]) -> Result<()> {
        self.batch.single_delete(key)?;
        self.index_at((DEFAULT, order), ValueType::SingleDeletion, key, &[]);
        Ok(())
    }

    /// Merges `operand` into `key`. Whether there is a merge operator is known when the batch is
    /// read or written.
    ///
    /// # Errors
    /// As [`WriteBatch::put`](crate::WriteBatch::put).
    pub fn merge_default(&mut self, order: &Comparator, key: &[u8], operand: &[u8]) -> Result<()> {
        self.batch.merge(key, operand)?;
        self.index_at((DEFAULT, order), ValueType::Merge, key, operand);
        Ok(())
    }

    /// What the batch alone says of `key`.
    ///
    /// # Errors
    /// The refusal of the merge operator, or that there is none.
    pub fn get_default(&self, key: &[u8], operator: Option<&dyn MergeOperator>) -> Result<InBatch> {
        in_batch(self.default_delta(key)?, key, operator)
    }
}
