//! Changing one key to what follows from its value.

use crate::base::{Code, Error, Result, Snapshot as Moment, key_in_words};
use crate::batch::WriteBatch;
use crate::db::Value;
use crate::front::family::Family;
use crate::front::pauses::Pauses;
use crate::front::view::View;
use crate::options::WriteOptions;

impl Family {
    /// Changes `key` to what `change` makes of its value, and returns that. `change` is given the
    /// value, or `None` if there is none; if it returns `None`, the key is deleted.
    ///
    /// No other write of the key takes place between the read and this write. If another writer is
    /// faster, `change` is called again with the new value, after a pause that grows and without a
    /// limit, so it should change nothing else. In a [`TransactionDb`](crate::TransactionDb) the
    /// key is locked meanwhile; a write of it by `change` itself would wait for
    /// `default_lock_timeout` and fail. [`Db::transact`](crate::Db::transact) changes several keys,
    /// and gives up after 100 retries.
    ///
    /// Nothing is written where there is no value and `change` returns `None`.
    ///
    /// Where values expire, the new one lives as long as any other of the family. A
    /// [merge](Family::merge) of the key costs less, because it reads nothing.
    ///
    /// ```
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = flagstone::Db::open(directory.path())?;
    /// let count = |before: Option<&[u8]>| {
    ///     let before = before.map_or(0, |bytes| bytes[0]);
    ///     Some(vec![before + 1])
    /// };
    /// assert_eq!(db.update("visits", count)?, Some(vec![1]));
    /// assert_eq!(db.update("visits", count)?, Some(vec![2]));
    /// assert_eq!(db.update("visits", |_| None)?, None);
    /// assert!(db.get("visits")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Family::put`] and [`View::get`]; `NotSupported` if the key is an entity of several
    /// columns, which a value would replace.
    #[doc(alias = "compare_and_swap")]
    #[doc(alias = "fetch_and_update")]
    #[doc(alias = "fetch_update")]
    #[doc(alias = "read_modify_write")]
    #[doc(alias = "update_and_fetch")]
    #[doc(alias = "update_fetch")]
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        self.update_with(key, &WriteOptions::new(), change)
    }

    /// As [`Family::update`], with `options`.
    ///
    /// # Errors
    /// As [`Family::update`].
    pub fn update_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &WriteOptions,
        mut change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        let _held = self.lock(key)?;
        let View { engine, family, .. } = self.view();
        let mut pauses = Pauses::new();
        loop {
            let before = engine.base().snapshot();
            let found = self.plain_value(key, &before)?;
            let changed = change(found.as_deref());
            let mut batch = WriteBatch::new();
            match &changed {
                Some(value) => batch.put_cf(self, key, value)?,
                None if found.is_some() => batch.delete_cf(self, key)?,
                None => return Ok(None),
            }
            let (stamped, _under_way) = engine.stamp_some(batch)?;
            match engine.base().write_if_unchanged(options, stamped, &before, &[(family, key)]) {
                Err(error) if error.code() == Code::Busy => pauses.sleep(engine.base().env()),
                outcome => return outcome.map(|()| changed),
            }
        }
    }

    /// The value of `key` as of a moment.
    fn plain_value(&self, key: &[u8], moment: &Moment) -> Result<Option<Vec<u8>>> {
        let view = View { moment: Some(moment.clone()), ..View::clone(self) };
        if view.expires {
            return Ok(view.get(key)?.map(Value::into_vec));
        }
        let Some(columns) = view.get_entity(key)? else { return Ok(None) };
        match columns.only_default() {
            Some(value) => Ok(Some(value.to_vec())),
            None => Err(Error::not_supported(format!(
                "key '{}' of column family '{}' is an entity, of which a value would replace all columns; change it in a \
                 transaction",
                key_in_words(key),
                self.name()
            ))),
        }
    }
}
