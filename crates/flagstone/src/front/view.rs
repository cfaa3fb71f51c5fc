//! Reads of one family, as of now or as of a snapshot.

use std::ops::{Bound, RangeBounds};

use crate::base::Result;
use crate::base::Snapshot as Moment;
use crate::db::{self, ColumnFamily, Iter, Value, ValuePart};
use crate::front::range::Range;
use crate::options::ReadOptions;

/// One family of a database, as of one moment or of each moment anew.
#[derive(Clone)]
pub(super) struct View {
    pub(super) db: db::Db,
    pub(super) family: ColumnFamily,
    pub(super) moment: Option<Moment>,
}

impl View {
    /// The options of a read that says nothing itself.
    fn defaults(&self) -> ReadOptions {
        ReadOptions { snapshot: self.moment.clone(), ..ReadOptions::default() }
    }

    /// Reads as `options` say; of this view's moment, if they name none.
    fn settled(&self, options: &ReadOptions) -> ReadOptions {
        let snapshot = options.snapshot.clone().or_else(|| self.moment.clone());
        ReadOptions { snapshot, ..options.clone() }
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.db.get_with(&self.defaults(), &self.family, key)
    }

    pub(super) fn get_with(&self, key: &[u8], options: &ReadOptions) -> Result<Option<Value>> {
        self.db.get_with(&self.settled(options), &self.family, key)
    }

    pub(super) fn get_part(
        &self,
        key: &[u8],
        part: std::ops::Range<u64>,
    ) -> Result<Option<ValuePart>> {
        self.db.get_range(&self.defaults(), &self.family, key, part)
    }

    pub(super) fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let values = self.db.multi_get_with(&self.defaults(), &self.family, keys);
        values.into_iter().collect()
    }

    pub(super) fn get_async(
        &self,
        key: &[u8],
    ) -> impl Future<Output = Result<Option<Value>>> + Send + use<> {
        self.db.get_async(&self.defaults(), &self.family, key)
    }

    pub(super) fn get_many_async(
        &self,
        keys: Vec<Vec<u8>>,
    ) -> impl Future<Output = Result<Vec<Option<Value>>>> + Send + use<> {
        let values = self.db.multi_get_async(&self.defaults(), &self.family, keys);
        async move { values.await.into_iter().collect() }
    }

    pub(super) fn cursor(&self, options: &ReadOptions) -> Result<Iter> {
        self.db.iter_cf(&self.family, &self.settled(options))
    }

    pub(super) fn range<K: AsRef<[u8]>>(&self, bounds: &impl RangeBounds<K>) -> Range {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        Range::new(self.clone(), owned(bounds.start_bound()), owned(bounds.end_bound()))
    }

    pub(super) fn prefix(&self, prefix: &[u8]) -> Range {
        Range::of_prefix(self.clone(), prefix)
    }
}
