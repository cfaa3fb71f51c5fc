//! Keys with timestamps.

use super::{DBCommon, DBInner, ThreadMode};
use crate::column_family::AsColumnFamilyRef;
use crate::error::Error;
use crate::options::WriteOptions;

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

    /// Lets compactions forget versions of a family's keys with timestamps before `ts`: of each key
    /// only the newest of them stays. From then on the family is read as of `ts` or later.
    ///
    /// # Errors
    /// `InvalidArgument` if the low mark is higher already, or the comparator has no timestamps.
    pub fn increase_full_history_ts_low<S: AsRef<[u8]>>(
        &self,
        cf: &impl AsColumnFamilyRef,
        ts: S,
    ) -> Result<(), Error> {
        Ok(self.engine().increase_full_history_ts_low(cf.inner(), ts)?)
    }

    /// The oldest timestamp as of which a family can be read; empty for any.
    ///
    /// # Errors
    /// `InvalidArgument` if the comparator has no timestamps.
    pub fn get_full_history_ts_low(&self, cf: &impl AsColumnFamilyRef) -> Result<Vec<u8>, Error> {
        Ok(self.engine().full_history_ts_low(cf.inner())?.unwrap_or_default())
    }
}
