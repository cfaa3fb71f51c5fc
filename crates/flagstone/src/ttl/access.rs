//! Writing and reading values with stamps.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Rule, TtlDb, TtlIter};
use crate::base::{ColumnFamilyId, Error, Result};
use crate::batch::{Operation, WriteBatch};
use crate::db::{ColumnFamily, PartBeforeTail, Value, ValuePart};
use crate::expiry::{
    STAMP_ETERNAL, STAMP_SIZE, StampUnderWay, no_stamp, split, stamped, unstamped,
};
use crate::options::{ReadOptions, WriteOptions};

/// The stamps of a batch's operands, by family; to be held until it is written.
pub(crate) type OperandStamps = BTreeMap<ColumnFamilyId, StampUnderWay>;

/// What is written to families without a time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    Refused,
    /// It is written as it is.
    Kept,
}

/// Stamps with the time at which the first of them is asked for.
fn of_now() -> impl FnMut(&Rule) -> Result<u32> {
    let mut written = None;
    move |rule| {
        let written = *written.get_or_insert_with(|| rule.lifetime.stamp_of_now());
        Ok(rule.lifetime.stamp_of_value(written))
    }
}

/// A value and its expiry time.
#[derive(Debug, Clone)]
pub struct ExpiringValue {
    /// The value.
    pub value: Value,
    /// Last second, since 1970, in which the value is valid; `None` if it never expires.
    pub expiry: Option<u64>,
}

impl TtlDb {
    /// Sets `key` to `value`, which lives as long as the family's values do.
    ///
    /// # Errors
    /// As [`Db::put`](crate::db::Db::put).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_cf(self.base.default_column_family(), key, value)
    }

    /// As [`TtlDb::put`], in a family.
    ///
    /// # Errors
    /// As [`Db::put_cf`](crate::db::Db::put_cf).
    pub fn put_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let stamp = self.rule(family.id())?.stamp_of_value();
        self.base.put_cf(family, key, stamped(value.as_ref(), stamp))
    }

    /// Sets `key` to a value that lives for ever, however long other values of the family live.
    ///
    /// # Errors
    /// As [`TtlDb::put_cf`].
    pub fn put_for_ever(
        &self,
        options: &WriteOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.rule(family.id())?;
        let mut batch = WriteBatch::new();
        batch.put_cf(family, key.as_ref(), stamped(value.as_ref(), STAMP_ETERNAL))?;
        self.base.write_with(options, batch)
    }

    /// Sets `key` to a value that lives up to and in the second `expiry` since 1970, however long
    /// other values of the family live. The family must have a time to live: what is stored is the
    /// time at which an ordinary value with the same expiry would have been written.
    ///
    /// # Errors
    /// As [`TtlDb::put_cf`]; `InvalidArgument` if the family's values live for ever, or for an
    /// expiry earlier than 2013 or later than 2038 plus the family's time to live.
    pub fn put_until(
        &self,
        options: &WriteOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expiry: u64,
    ) -> Result<()> {
        let stamp = self.rule(family.id())?.lifetime.stamp_of_expiry(expiry)?;
        let mut batch = WriteBatch::new();
        batch.put_cf(family, key.as_ref(), stamped(value.as_ref(), stamp))?;
        self.base.write_with(options, batch)
    }

    /// Adds a merge operand to `key`.
    ///
    /// # Errors
    /// As [`Db::merge`](crate::db::Db::merge).
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.merge_cf(self.base.default_column_family(), key, operand)
    }

    /// As [`TtlDb::merge`], in a family.
    ///
    /// # Errors
    /// As [`Db::merge_cf`](crate::db::Db::merge_cf).
    pub fn merge_cf(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let under_way = self.rule(family.id())?.lifetime.stamp_of_operand();
        self.base.merge_cf(family, key, stamped(operand.as_ref(), under_way.stamp))
    }

    /// Removes `key`. Ranges of keys are removed by way of [`TtlDb::base`], or in a batch.
    ///
    /// # Errors
    /// As [`Db::delete`](crate::db::Db::delete).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.base.delete(key)
    }

    /// Removes `key` from a family.
    ///
    /// # Errors
    /// As [`Db::delete_cf`](crate::db::Db::delete_cf).
    pub fn delete_cf(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<()> {
        self.base.delete_cf(family, key)
    }

    /// Writes a batch, its values and operands stamped with the present time. The batch itself
    /// stays as it is.
    ///
    /// # Errors
    /// As [`TtlDb::write_with`].
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_with(&WriteOptions::default(), batch)
    }

    /// As [`TtlDb::write`], as `options` say.
    ///
    /// # Errors
    /// As [`Db::write_with`](crate::db::Db::write_with); `NotSupported` for entities and what
    /// belongs to two-phase commit.
    pub fn write_with(&self, options: &WriteOptions, batch: &WriteBatch) -> Result<()> {
        let (stamped, _under_way) = self.stamp_all(batch, of_now(), Others::Refused)?;
        self.base.write_with(options, stamped)
    }

    /// A batch with stamps on what it writes to families with a time to live, and what is to be
    /// held until it is written.
    pub(crate) fn stamp_some(&self, batch: WriteBatch) -> Result<(WriteBatch, OperandStamps)> {
        let rules = self.rules.known.load();
        let mut families = batch.iter().filter_map(|operation| operation.ok()?.family());
        if rules.is_empty() || !families.any(|family| rules.contains_key(&family)) {
            return Ok((batch, OperandStamps::new()));
        }
        drop(rules);
        self.stamp_all(&batch, of_now(), Others::Kept)
    }

    /// The same; the values of the batch, not what is merged, live up to and in the second `expiry`
    /// since 1970.
    ///
    /// # Errors
    /// As [`TtlDb::write_with`] and [`TtlDb::put_until`].
    pub fn write_until(
        &self,
        options: &WriteOptions,
        batch: &WriteBatch,
        expiry: u64,
    ) -> Result<()> {
        let (stamped, _under_way) =
            self.stamp_all(batch, |rule| rule.lifetime.stamp_of_expiry(expiry), Others::Refused)?;
        self.base.write_with(options, stamped)
    }

    fn stamp_all(
        &self,
        batch: &WriteBatch,
        mut stamp_of_value: impl FnMut(&Rule) -> Result<u32>,
        others: Others,
    ) -> Result<(WriteBatch, OperandStamps)> {
        let rule_of = |family| match others {
            Others::Kept if !self.expires(family) => Ok(None),
            _ => self.rule(family).map(Some),
        };
        let mut operands = OperandStamps::new();
        let mut all = WriteBatch::with_capacity(batch.byte_size() + 8 * batch.count() as usize);
        for operation in batch.iter() {
            match operation? {
                Operation::Put { cf, key, value } => match rule_of(cf)? {
                    Some(rule) => all.put_cf(cf, key, stamped(value, stamp_of_value(&rule)?))?,
                    None => all.put_cf(cf, key, value)?,
                },
                Operation::Merge { cf, key, operand } => {
                    let Some(Rule { lifetime, .. }) = rule_of(cf)? else {
                        all.merge_cf(cf, key, operand)?;
                        continue;
                    };
                    let under_way =
                        operands.entry(cf).or_insert_with(|| lifetime.stamp_of_operand());
                    all.merge_cf(cf, key, stamped(operand, under_way.stamp))?
                }
                Operation::Delete { cf, key } => all.delete_cf(cf, key)?,
                Operation::SingleDelete { cf, key } => all.single_delete_cf(cf, key)?,
                Operation::DeleteRange { cf, begin, end } => all.delete_range_cf(cf, begin, end)?,
                Operation::LogData(data) => all.put_log_data(data)?,
                Operation::Noop => {}
                Operation::PutEntity { cf, key, entity }
                    if others == Others::Kept && !self.expires(cf) =>
                {
                    all.put_encoded_entity(cf, key, entity)?
                }
                Operation::BlobIndex { .. }
                | Operation::PutEntity { .. }
                | Operation::TimedPut { .. }
                | Operation::BeginPrepare(_)
                | Operation::EndPrepare { .. }
                | Operation::Commit { .. }
                | Operation::CommitWithTimestamp { .. }
                | Operation::Rollback { .. } => {
                    return Err(Error::not_supported(
                        "a TTL database accepts only values, merge operands and deletions; other entries cannot carry a time",
                    ));
                }
            }
        }
        Ok((all, operands))
    }

    /// The value of `key`; `None` if there is none.
    ///
    /// # Errors
    /// As [`Db::get`](crate::db::Db::get); `Corruption` for a value without a stamp.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_with(&ReadOptions::default(), self.base.default_column_family(), key)
    }

    /// The value of `key` in a family.
    ///
    /// # Errors
    /// As [`TtlDb::get`].
    pub fn get_cf(&self, family: &ColumnFamily, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_with(&ReadOptions::default(), family, key)
    }

    /// The value of `key` in a family, read as `options` say.
    ///
    /// # Errors
    /// As [`TtlDb::get`], and as [`Db::get_with`](crate::db::Db::get_with).
    pub fn get_with(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Value>> {
        Ok(self.get_with_expiry(options, family, key)?.map(|found| found.value))
    }

    /// As [`TtlDb::get_with`], and when the value expires.
    ///
    /// # Errors
    /// As [`TtlDb::get_with`].
    pub fn get_with_expiry(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<ExpiringValue>> {
        let rule = self.rule(family.id())?;
        let now = rule.lifetime.now();
        match self.base.get_with(options, family, key.as_ref())? {
            Some(stored) => rule.judge(key.as_ref(), stored, now),
            None => Ok(None),
        }
    }

    /// Some bytes of the value of `key` in a family, by their positions; `None` if there is no
    /// value. As [`Db::get_range`](crate::db::Db::get_range), without the stamp: a range that
    /// leaves the value is cut off at its end, and the size told is the value's. The stamp is read
    /// with them, at the value's end, so of a large value one piece more.
    ///
    /// # Errors
    /// As [`TtlDb::get_with`].
    pub fn get_range(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        range: Range<u64>,
    ) -> Result<Option<ValuePart>> {
        let (rule, key) = (self.rule(family.id())?, key.as_ref());
        let now = rule.lifetime.now();
        let found = self.base.get_range_before_tail(options, family, key, range, STAMP_SIZE)?;
        let Some(PartBeforeTail { part, tail }) = found else { return Ok(None) };
        let stored_size = part.value_size + tail.len() as u64;
        let (_, stamp) = split(&tail).ok_or_else(|| no_stamp(key, stored_size))?;
        Ok((!rule.hides(stamp, now)).then_some(part))
    }

    /// The values of several keys, all as of one moment; in the order of the keys.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Result<Option<Value>>> {
        self.multi_get_with(&ReadOptions::default(), self.base.default_column_family(), keys)
    }

    /// The values of several keys of a family, all as of one moment; in the order of the keys.
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: &[K],
    ) -> Vec<Result<Option<Value>>> {
        let rule = match self.rule(family.id()) {
            Ok(rule) => rule,
            Err(error) => return keys.iter().map(|_| Err(error.clone())).collect(),
        };
        let now = rule.lifetime.now();
        let all = self.base.multi_get_with(options, family, keys);
        keys.iter()
            .zip(all)
            .map(|(key, stored)| rule.value_of(key.as_ref(), stored?, now))
            .collect()
    }

    /// A cursor over the keys of `default`, as [`TtlDb::iter_cf`].
    ///
    /// # Errors
    /// As [`TtlDb::iter_cf`].
    #[track_caller]
    pub fn iter(&self, options: &ReadOptions) -> Result<TtlIter> {
        self.iter_cf(self.base.default_column_family(), options)
    }

    /// A cursor over the keys of a family; not yet positioned. What expires while it is in use is
    /// still there for it; but with `auto_refresh_iterator_with_snapshot` not what a compaction has
    /// dropped before the cursor comes to it.
    ///
    /// # Errors
    /// As [`Db::iter_cf`](crate::db::Db::iter_cf).
    #[track_caller]
    pub fn iter_cf(&self, family: &ColumnFamily, options: &ReadOptions) -> Result<TtlIter> {
        let rule = self.rule(family.id())?;
        Ok(TtlIter::new(self.base.iter_cf(family, options)?, rule))
    }
}

impl Rule {
    /// The stamp of a value that is written now, and has no expiry of its own.
    pub(super) fn stamp_of_value(&self) -> u32 {
        self.lifetime.stamp_of_value(self.lifetime.stamp_of_now())
    }

    /// Whether a reader who began at `now` does not find what has this stamp.
    pub(super) fn hides(&self, stamp: u32, now: u64) -> bool {
        self.is_strict && self.lifetime.is_stale(stamp, now)
    }

    /// What a reader who began at `now` finds of what is stored, if anything is.
    pub(super) fn value_of(
        &self,
        key: &[u8],
        stored: Option<Value>,
        now: u64,
    ) -> Result<Option<Value>> {
        match stored {
            Some(stored) => Ok(self.judge(key, stored, now)?.map(|found| found.value)),
            None => Ok(None),
        }
    }

    fn judge(&self, key: &[u8], stored: Value, now: u64) -> Result<Option<ExpiringValue>> {
        let (value, stamp) = unstamped(key, &stored)?;
        if self.hides(stamp, now) {
            return Ok(None);
        }
        let size = value.len();
        Ok(Some(ExpiringValue {
            value: stored.part(0..size),
            expiry: self.lifetime.expiry_of(stamp),
        }))
    }
}

#[cfg(test)]
mod tests;
