//! What a transaction changes.

use std::collections::HashMap;

use crate::base::entity::encode_unsorted;
use crate::base::{Code, ColumnFamilyId, Error, Result, SubCode};
use crate::batch::{Operation, WriteBatch};
use crate::db::ColumnFamily;
use crate::front::family::Family;
use crate::front::transaction::Transaction;
use crate::front::transaction::control::Claim;
use crate::front::transaction::pieces::TransactionValueWriter;
use crate::transactions::WriteBatchWithIndex;

impl Transaction {
    /// Sets `key` to `value`, and claims the key.
    ///
    /// # Errors
    /// - As [`WriteBatch::put`] and [`Transaction::family`].
    /// - `Aborted` with subcode `MemoryLimit` beyond `max_write_batch_size`.
    /// - Where keys are locked, as [`Transaction::get_for_update`].
    pub fn put(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_as(Claim::WRITE, family, key.as_ref(), value.as_ref())
    }

    /// Sets `key` to a value that is written piece by piece and need not fit into memory; claims
    /// the key at once. The value is part of the transaction once
    /// [`TransactionValueWriter::finish`] has returned, and others see it after the commit. One of
    /// more than 1 MiB lies in a blob file of its own meanwhile.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::io::Write;
    /// # let directory = tempfile::tempdir()?;
    /// # let db = flagstone::Db::open(directory.path())?;
    /// let mut transaction = db.begin();
    /// let mut film = transaction.put_in_pieces(&db, "film")?;
    /// (0..3).try_for_each(|_| film.write_all(&[7; 1 << 20]))?;
    /// film.finish()?;
    /// transaction.put(&db, "title", "Seven")?;
    /// assert!(db.get("film")?.is_none());
    /// transaction.commit()?;
    /// assert_eq!(db.get_in_pieces("film")?.expect("it was put").size(), 3 << 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put_in_pieces(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
    ) -> Result<TransactionValueWriter<'_>> {
        TransactionValueWriter::begin(self, family, key.as_ref())
    }

    /// Removes `key`, which need not be there, and claims it.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, family: &Family, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_as(Claim::WRITE, family, key.as_ref())
    }

    /// Removes `key`, which was put at most once since it was last removed, and never merged;
    /// claims it.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn single_delete(&mut self, family: &Family, key: impl AsRef<[u8]>) -> Result<()> {
        self.single_delete_as(Claim::WRITE, family, key.as_ref())
    }

    /// Merges `operand` into the value of `key`, as the family's merge operator does, and claims
    /// the key.
    ///
    /// # Errors
    /// As [`Transaction::put`]; `InvalidArgument` if the family has no merge operator.
    pub fn merge(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_as(Claim::WRITE, family, key.as_ref(), operand.as_ref())
    }

    /// Sets `key` to an entity of these columns, as [`Family::put_entity`] does, and claims it.
    ///
    /// # Errors
    /// As [`Transaction::put`]; `InvalidArgument` if two columns have the same name.
    #[doc(alias = "PutEntity")]
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
        columns: impl IntoIterator<Item = (N, V)>,
    ) -> Result<()> {
        self.put_entity_as(Claim::WRITE, family, key.as_ref(), &encode_unsorted(columns)?)
    }

    /// [`Transaction::put_entity`] in the way of [`Transaction::put_untracked`].
    ///
    /// # Errors
    /// As [`Transaction::put_entity`].
    #[doc(alias = "PutEntityUntracked")]
    pub fn put_entity_untracked<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
        columns: impl IntoIterator<Item = (N, V)>,
    ) -> Result<()> {
        self.put_entity_as(Claim::WRITE_UNTRACKED, family, key.as_ref(), &encode_unsorted(columns)?)
    }

    /// Sets `key` to `value`, whoever else has written it since the snapshot. Where keys are
    /// locked, the key is; otherwise others may write it before the commit.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    #[doc(alias = "PutUntracked")]
    pub fn put_untracked(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_as(Claim::WRITE_UNTRACKED, family, key.as_ref(), value.as_ref())
    }

    /// [`Transaction::delete`] in the way of [`Transaction::put_untracked`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    #[doc(alias = "DeleteUntracked")]
    pub fn delete_untracked(&mut self, family: &Family, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_as(Claim::WRITE_UNTRACKED, family, key.as_ref())
    }

    /// [`Transaction::single_delete`] in the way of [`Transaction::put_untracked`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    #[doc(alias = "SingleDeleteUntracked")]
    pub fn single_delete_untracked(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.single_delete_as(Claim::WRITE_UNTRACKED, family, key.as_ref())
    }

    /// [`Transaction::merge`] in the way of [`Transaction::put_untracked`].
    ///
    /// # Errors
    /// As [`Transaction::merge`].
    #[doc(alias = "MergeUntracked")]
    pub fn merge_untracked(
        &mut self,
        family: &Family,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_as(Claim::WRITE_UNTRACKED, family, key.as_ref(), operand.as_ref())
    }

    /// Makes the changes of a batch, in order, behind those that the transaction has. Bytes for the
    /// log alone are left out, as RocksDB does.
    ///
    /// # Errors
    /// `InvalidArgument` for a family that does not exist; `NotSupported` for a range deletion;
    /// those of [`Transaction::put`]. The changes before the one at fault are made.
    #[doc(alias = "RebuildFromWriteBatch")]
    pub fn rebuild_from(&mut self, batch: &WriteBatch) -> Result<()> {
        let families = self.db.engine().column_families();
        let families = families.iter().map(|family| (family.id(), self.db.family_of(family)));
        let families: HashMap<_, _> = families.collect();
        let family_of = |id: ColumnFamilyId| {
            let missing = || Error::invalid_argument(format!("there is no column family {}", id.0));
            families.get(&id).ok_or_else(missing)
        };
        for operation in batch.iter() {
            match operation? {
                Operation::Put { cf, key, value } => {
                    self.put_as(Claim::WRITE, family_of(cf)?, key, value)?;
                }
                Operation::PutEntity { cf, key, entity } => {
                    self.put_entity_as(Claim::WRITE, family_of(cf)?, key, entity)?;
                }
                Operation::Merge { cf, key, operand } => {
                    self.merge_as(Claim::WRITE, family_of(cf)?, key, operand)?;
                }
                Operation::Delete { cf, key } => {
                    self.delete_as(Claim::WRITE, family_of(cf)?, key)?;
                }
                Operation::SingleDelete { cf, key } => {
                    self.single_delete_as(Claim::WRITE, family_of(cf)?, key)?;
                }
                Operation::LogData(_) | Operation::Noop => {}
                other => {
                    let message = format!("a transaction cannot do {other:?}");
                    return Err(Error::not_supported(message));
                }
            }
        }
        Ok(())
    }

    /// Replaces the value of `key`, and the operands merged into it, by what they come to. Returns
    /// whether the key has a value. Shortens lookups of a key that was merged often, before a
    /// compaction does.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`] and [`Transaction::put`].
    #[doc(alias = "CollapseKey")]
    pub fn collapse_key(&mut self, family: &Family, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        let Some(entity) = self.get_entity_for_update(family, key)? else { return Ok(false) };
        let is_plain = entity.iter().all(|(name, _)| name.is_empty());
        match entity.get(b"").filter(|_| is_plain) {
            Some(value) => self.put(family, key, value)?,
            None => self.put_entity(family, key, entity.iter())?,
        }
        Ok(true)
    }

    /// The changes so far, as the commit will write them.
    #[doc(alias = "GetWriteBatch")]
    pub fn batch(&self) -> &WriteBatch {
        self.batch.batch()
    }

    /// Changes from now on are written at the commit, and the transaction's own reads do not see
    /// them: a change costs no entry of an index. [`Transaction::enable_indexing`] ends that.
    #[doc(alias = "DisableIndexing")]
    pub fn disable_indexing(&mut self) {
        self.batch.set_indexed(false);
    }

    /// The transaction's own reads see what it changes from now on; this is so at its beginning.
    #[doc(alias = "EnableIndexing")]
    pub fn enable_indexing(&mut self) {
        self.batch.set_indexed(true);
    }

    fn put_as(&mut self, claim: Claim, family: &Family, key: &[u8], value: &[u8]) -> Result<()> {
        self.change(claim, family, (key, Some(value)), |batch, family| {
            batch.put(family, key, value)
        })
    }

    fn put_entity_as(
        &mut self,
        claim: Claim,
        family: &Family,
        key: &[u8],
        entity: &[u8],
    ) -> Result<()> {
        self.change(claim, family, (key, Some(entity)), |batch, family| {
            batch.put_encoded_entity(family, key, entity)
        })
    }

    fn delete_as(&mut self, claim: Claim, family: &Family, key: &[u8]) -> Result<()> {
        self.change(claim, family, (key, None), |batch, family| batch.delete(family, key))
    }

    fn single_delete_as(&mut self, claim: Claim, family: &Family, key: &[u8]) -> Result<()> {
        self.change(claim, family, (key, None), |batch, family| batch.single_delete(family, key))
    }

    fn merge_as(
        &mut self,
        claim: Claim,
        family: &Family,
        key: &[u8],
        operand: &[u8],
    ) -> Result<()> {
        self.change(claim, family, (key, Some(operand)), |batch, family| {
            batch.merge(family, key, operand)
        })
    }

    fn change(
        &mut self,
        claim: Claim,
        family: &Family,
        (key, value): (&[u8], Option<&[u8]>),
        change: impl FnOnce(&mut WriteBatchWithIndex, &ColumnFamily) -> Result<()>,
    ) -> Result<()> {
        self.check_room(family.engine_family().id(), key, value)?;
        self.claim(family, key, claim)?;
        change(&mut self.batch, family.engine_family())
    }

    pub(super) fn check_room(
        &self,
        family: ColumnFamilyId,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        let Some(most) = self.bytes_max else { return Ok(()) };
        let of_family = if family == ColumnFamilyId::DEFAULT { 0 } else { varint(family.0.into()) };
        let prefixed = |bytes: &[u8]| varint(bytes.len() as u64) + bytes.len();
        let more = 1 + of_family + prefixed(key) + value.map_or(0, prefixed);
        let bytes = self.batch.batch().byte_size() + more;
        if bytes <= most {
            return Ok(());
        }
        let message = format!(
            "the transaction's batch would have {bytes} bytes, and max_write_batch_size is {most}; \
             commit it first, or raise the limit"
        );
        Err(Error::new(Code::Aborted, message).with_subcode(SubCode::MemoryLimit))
    }
}

/// How many bytes a varint of `value` takes.
fn varint(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}
