//! Writes.

use super::{DBCommon, DBInner, DBWithThreadMode, ThreadMode};
use crate::column_family::AsColumnFamilyRef;
use crate::error::Error;
use crate::options::WriteOptions;
use crate::write_batch::WriteBatch;

impl<T: ThreadMode, D: DBInner> DBCommon<T, D> {
    pub(crate) fn write_batch(
        &self,
        options: &WriteOptions,
        fill: impl FnOnce(&mut WriteBatch),
    ) -> Result<(), Error> {
        let mut batch = WriteBatch::default();
        fill(&mut batch);
        Ok(self.inner.inner().write(options.engine(), batch.into_engine()?)?)
    }

    /// Sets a key to a value, with options.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_opt<K, V>(&self, key: K, value: V, writeopts: &WriteOptions) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.write_batch(writeopts, |batch| batch.put(key, value))
    }

    /// Sets a key to a value in a family, with options.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_cf_opt<K, V>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        value: V,
        writeopts: &WriteOptions,
    ) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.write_batch(writeopts, |batch| batch.put_cf(cf, key, value))
    }

    /// Merges an operand into a key, with options.
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub fn merge_opt<K, V>(&self, key: K, value: V, writeopts: &WriteOptions) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.write_batch(writeopts, |batch| batch.merge(key, value))
    }

    /// Merges an operand into a key of a family, with options.
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub fn merge_cf_opt<K, V>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        value: V,
        writeopts: &WriteOptions,
    ) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.write_batch(writeopts, |batch| batch.merge_cf(cf, key, value))
    }

    /// Deletes a key, with options.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_opt<K: AsRef<[u8]>>(
        &self,
        key: K,
        writeopts: &WriteOptions,
    ) -> Result<(), Error> {
        self.write_batch(writeopts, |batch| batch.delete(key))
    }

    /// Deletes a key of a family, with options.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        writeopts: &WriteOptions,
    ) -> Result<(), Error> {
        self.write_batch(writeopts, |batch| batch.delete_cf(cf, key))
    }

    /// Sets a key to a value. It survives the death of the process; a power loss only with
    /// [`WriteOptions::set_sync`].
    ///
    /// # Errors
    /// `IOError`; after a failed sync, always. `InvalidArgument` for a key and a value of 4 GiB.
    pub fn put<K, V>(&self, key: K, value: V) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.put_opt(key, value, &WriteOptions::default())
    }

    /// Sets a key to a value in a family.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_cf<K, V>(&self, cf: &impl AsColumnFamilyRef, key: K, value: V) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.put_cf_opt(cf, key, value, &WriteOptions::default())
    }

    /// Merges an operand into a key.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidArgument` if the family has no merge operator.
    pub fn merge<K, V>(&self, key: K, value: V) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.merge_opt(key, value, &WriteOptions::default())
    }

    /// Merges an operand into a key of a family.
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub fn merge_cf<K, V>(&self, cf: &impl AsColumnFamilyRef, key: K, value: V) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.merge_cf_opt(cf, key, value, &WriteOptions::default())
    }

    /// Deletes a key, whether it exists or not.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete<K: AsRef<[u8]>>(&self, key: K) -> Result<(), Error> {
        self.delete_opt(key, &WriteOptions::default())
    }

    /// Deletes a key of a family, whether it exists or not.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_cf<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
    ) -> Result<(), Error> {
        self.delete_cf_opt(cf, key, &WriteOptions::default())
    }
}

impl<T: ThreadMode> DBWithThreadMode<T> {
    /// Deletes the keys of a family from `from` up to but not including `to`, with options.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidArgument` if `from` is after `to`.
    pub fn delete_range_cf_opt<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        from: K,
        to: K,
        writeopts: &WriteOptions,
    ) -> Result<(), Error> {
        self.write_batch(writeopts, |batch| batch.delete_range_cf(cf, from, to))
    }

    /// Deletes the keys of a family from `from` up to but not including `to`.
    ///
    /// # Errors
    /// As [`delete_range_cf_opt`](Self::delete_range_cf_opt).
    pub fn delete_range_cf<K: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        from: K,
        to: K,
    ) -> Result<(), Error> {
        self.delete_range_cf_opt(cf, from, to, &WriteOptions::default())
    }

    /// Writes a batch, with options.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidArgument` if it names a family that does not exist. Nothing
    /// is written then.
    pub fn write_opt(&self, batch: WriteBatch, writeopts: &WriteOptions) -> Result<(), Error> {
        Ok(self.inner.inner().write(writeopts.engine(), batch.into_engine()?)?)
    }

    /// Writes a batch: all of it or nothing.
    ///
    /// # Errors
    /// As [`write_opt`](Self::write_opt).
    pub fn write(&self, batch: WriteBatch) -> Result<(), Error> {
        self.write_opt(batch, &WriteOptions::default())
    }

    /// Writes a batch that is lost if the process dies before the next flush.
    ///
    /// # Errors
    /// As [`write_opt`](Self::write_opt).
    pub fn write_without_wal(&self, batch: WriteBatch) -> Result<(), Error> {
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.write_opt(batch, &options)
    }
}

/// Keys with timestamps.
impl<T: ThreadMode, D: DBInner> DBCommon<T, D> {
    /// Sets a key to a value as of a timestamp. Of one key, a later write must not have an older
    /// one.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidArgument` if the comparator has no timestamps, or some of
    /// another size.
    pub fn put_with_ts<K, V, S>(&self, key: K, ts: S, value: V) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
        S: AsRef<[u8]>,
    {
        self.put_with_ts_opt(key, ts, value, &WriteOptions::default())
    }

    /// As [`put_with_ts`](Self::put_with_ts), with options.
    ///
    /// # Errors
    /// As [`put_with_ts`](Self::put_with_ts).
    pub fn put_with_ts_opt<K, V, S>(
        &self,
        key: K,
        ts: S,
        value: V,
        writeopts: &WriteOptions,
    ) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
        S: AsRef<[u8]>,
    {
        let (key, ts, value) = (key.as_ref(), ts.as_ref(), value.as_ref());
        self.write_batch(writeopts, |batch| batch.put_with_ts(key, ts, value))
    }

    /// Sets a key to a value in a family as of a timestamp.
    ///
    /// # Errors
    /// As [`put_with_ts`](Self::put_with_ts).
    pub fn put_cf_with_ts<K, V, S>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        ts: S,
        value: V,
    ) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
        S: AsRef<[u8]>,
    {
        self.put_cf_with_ts_opt(cf, key, ts, value, &WriteOptions::default())
    }

    /// As [`put_cf_with_ts`](Self::put_cf_with_ts), with options.
    ///
    /// # Errors
    /// As [`put_with_ts`](Self::put_with_ts).
    pub fn put_cf_with_ts_opt<K, V, S>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        ts: S,
        value: V,
        writeopts: &WriteOptions,
    ) -> Result<(), Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
        S: AsRef<[u8]>,
    {
        self.write_batch(writeopts, |batch| batch.put_cf_with_ts(cf, key, ts, value))
    }

    /// Deletes a key as of a timestamp.
    ///
    /// # Errors
    /// As [`put_with_ts`](Self::put_with_ts).
    pub fn delete_with_ts<K: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        key: K,
        ts: S,
    ) -> Result<(), Error> {
        self.delete_with_ts_opt(key, ts, &WriteOptions::default())
    }

    /// As [`delete_with_ts`](Self::delete_with_ts), with options.
    ///
    /// # Errors
    /// As [`put_with_ts`](Self::put_with_ts).
    pub fn delete_with_ts_opt<K: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        key: K,
        ts: S,
        writeopts: &WriteOptions,
    ) -> Result<(), Error> {
        self.write_batch(writeopts, |batch| batch.delete_with_ts(key.as_ref(), ts.as_ref()))
    }

    /// Deletes a key of a family as of a timestamp.
    ///
    /// # Errors
    /// As [`put_with_ts`](Self::put_with_ts).
    pub fn delete_cf_with_ts<K: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        ts: S,
    ) -> Result<(), Error> {
        self.delete_cf_with_ts_opt(cf, key, ts, &WriteOptions::default())
    }

    /// As [`delete_cf_with_ts`](Self::delete_cf_with_ts), with options.
    ///
    /// # Errors
    /// As [`put_with_ts`](Self::put_with_ts).
    pub fn delete_cf_with_ts_opt<K: AsRef<[u8]>, S: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        key: K,
        ts: S,
        writeopts: &WriteOptions,
    ) -> Result<(), Error> {
        self.write_batch(writeopts, |batch| batch.delete_cf_with_ts(cf, key, ts))
    }
}
