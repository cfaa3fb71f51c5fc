//! Entities: keys with several named columns in place of one value.

use crate::base::{Result, WideColumns};
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::options::ReadOptions;

impl Db {
    /// Sets `key` to an entity of these columns in a family. They may come in any order.
    ///
    /// # Errors
    /// As [`Db::put_cf`]; `InvalidArgument` if two columns have the same name.
    #[doc(alias = "PutEntity")]
    pub fn put_entity<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
        columns: impl IntoIterator<Item = (N, V)>,
    ) -> Result<()> {
        let key = key.as_ref();
        self.write_one(family, key.len(), |batch| batch.put_entity_cf(family, key, columns))
    }

    /// All columns of `key` in a family, read as `options` say. A plain value is one column, the
    /// default one.
    ///
    /// # Errors
    /// As [`Db::get_with`].
    #[doc(alias = "GetEntity")]
    pub fn get_entity(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<WideColumns>> {
        self.inner()
            .reader
            .get_entity(options, &family.0, key.as_ref())
            .inspect_err(|error| self.note_damage(family, error))
    }

    /// The columns of several keys of a family, all as of one moment; in the order of the keys,
    /// each with an error of its own.
    #[doc(alias = "MultiGetEntity")]
    pub fn multi_get_entity<K: AsRef<[u8]>>(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: &[K],
    ) -> Vec<Result<Option<WideColumns>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let found = self.inner().reader.multi_get_entity(options, &family.0, &keys);
        found
            .iter()
            .filter_map(|columns| columns.as_ref().err())
            .for_each(|error| self.note_damage(family, error));
        found
    }
}
