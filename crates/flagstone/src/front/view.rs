//! Reads of one family, as of now or as of a snapshot.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use crate::base::{Comparator, Error, Result, Snapshot as Moment, WideColumns};
use crate::db::{self, ColumnFamily, Value, ValuePart, ValueReader};
use crate::front::cursor::{Cursor, Kind, expiring};
use crate::front::entries::Entries;
use crate::front::expiring::ExpiringValue;
use crate::front::locking::Engine;
use crate::front::ranges::Ranges;
use crate::front::stream::AsyncCursor;
use crate::options::ReadOptions;
use crate::transactions::Overlay;

/// A column family as it is read: as it is now, or as of a [`Snapshot`](crate::Snapshot).
///
/// A [`Family`](crate::Family) dereferences to its view as of now, so these are its methods, too.
/// Cheap to clone, and usable from any thread. It keeps the database open.
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let db = flagstone::Db::open(directory.path())?;
/// fn count_cats(view: &flagstone::View) -> usize {
///     view.prefix("cats/").count()
/// }
/// db.put("cats/tom", "")?;
/// let before = db.snapshot();
/// db.put("cats/kit", "")?;
/// assert_eq!((count_cats(&db), count_cats(&before)), (2, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct View {
    pub(super) engine: Engine,
    pub(super) family: ColumnFamily,
    /// Values of the family carry stamps.
    pub(super) expires: bool,
    pub(super) moment: Option<Moment>,
    /// What a transaction changed. Such a family's values do not expire.
    pub(super) laid_over: Option<Overlay>,
    /// As of which timestamp keys are read, where a read does not say.
    pub(super) timestamp: Option<Vec<u8>>,
}

/// Calls the engine for a family whose values expire, or live for ever.
macro_rules! either {
    ($view:expr, $engine:ident => $do:expr) => {
        if $view.expires {
            let $engine = &$view.engine;
            $do
        } else {
            let $engine = $view.engine.base();
            $do
        }
    };
}

impl View {
    pub(super) fn of(engine: &Engine, family: ColumnFamily, moment: Option<Moment>) -> Self {
        let expires = engine.expires(family.id());
        Self { engine: engine.clone(), family, expires, moment, laid_over: None, timestamp: None }
    }

    /// The same with what a transaction changed, as of its snapshot.
    pub(super) fn over(self, laid_over: Overlay, moment: Option<Moment>) -> Self {
        Self { laid_over: Some(laid_over), moment, ..self }
    }

    pub(super) fn db(&self) -> &db::Db {
        self.engine.base()
    }

    /// The family's name.
    pub fn name(&self) -> &str {
        self.family.name()
    }

    /// The value of `key`; `None` if there is none.
    ///
    /// What comes from a cached block is not copied: the [`Value`] keeps that block in memory, so
    /// copy what is to be kept for long.
    ///
    /// # Errors
    /// `Corruption`, also where a merge operator refuses its operands; `IoError`.
    #[doc(alias = "get_pinned")]
    #[doc(alias = "get_cf")]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.get_settled(key, &self.defaults())
    }

    /// The same, read as `options` say.
    ///
    /// # Errors
    /// As [`View::get`]; `Incomplete` with `options.cache_only`; `InvalidArgument` for a snapshot
    /// of another database, or one beside that of the view.
    #[doc(alias = "get_opt")]
    pub fn get_with(&self, key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Option<Value>> {
        self.get_settled(key, &self.settled(options)?)
    }

    /// The value of `key`, and when it expires: see
    /// [`Builder::expiring_family`](crate::Builder::expiring_family). In other families no value
    /// does.
    ///
    /// # Errors
    /// As [`View::get`].
    pub fn get_with_expiry(&self, key: impl AsRef<[u8]>) -> Result<Option<ExpiringValue>> {
        if self.expires {
            let found = self.engine.get_with_expiry(&self.defaults(), &self.family, key)?;
            return Ok(found.map(ExpiringValue::from));
        }
        Ok(self.get(key)?.map(|value| ExpiringValue { value, expiry: None }))
    }

    /// A part of the value of `key`, by the positions of its bytes, cut off where the value ends;
    /// `None` if there is no value. Of a large value that is not compressed little more is read
    /// than that part.
    ///
    /// # Errors
    /// As [`View::get`].
    pub fn get_part(
        &self,
        key: impl AsRef<[u8]>,
        part: std::ops::Range<u64>,
    ) -> Result<Option<ValuePart>> {
        if let Some(over) = self.laid_over.as_ref().filter(|over| over.names(&key)) {
            let value = over.get(self.db(), &self.defaults(), &self.family, key)?;
            return Ok(value.map(|value| ValuePart::of(value, part)));
        }
        either!(self, db => db.get_range(&self.defaults(), &self.family, key, part))
    }

    /// A reader of the value of `key`; `None` if there is none. The value need not fit into memory
    /// if it has more than 1 MiB and lies uncompressed in a blob file, as one does that was written
    /// by [`Family::put_in_pieces`](crate::Family::put_in_pieces). Any other value is read here as
    /// a whole.
    ///
    /// # Errors
    /// As [`View::get`].
    #[doc(alias = "value_reader")]
    pub fn get_in_pieces(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>> {
        if let Some(over) = self.laid_over.as_ref().filter(|over| over.names(&key)) {
            return over.in_pieces(self.db(), &self.defaults(), &self.family, key);
        }
        either!(self, db => db.get_in_pieces(&self.defaults(), &self.family, key))
    }

    /// The values of several keys, in the order of the keys, all as of one moment. Faster than one
    /// [`View::get`] after the other.
    ///
    /// # Errors
    /// The first of any key: as [`View::get`].
    #[doc(alias = "multi_get")]
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let options = self.defaults();
        let values = match &self.laid_over {
            Some(over) => over.multi_get(self.db(), &options, &self.family, keys),
            None => either!(self, db => db.multi_get_with(&options, &self.family, keys)),
        };
        values.into_iter().collect()
    }

    /// All columns of `key`, which [`Family::put_entity`](crate::Family::put_entity) has set;
    /// `None` if the key does not exist. A plain value is one column, the default one.
    ///
    /// # Errors
    /// As [`View::get`]; `NotSupported` in a family whose values expire, which has no entities.
    pub fn get_entity(&self, key: impl AsRef<[u8]>) -> Result<Option<WideColumns>> {
        self.entity_settled(key, &self.defaults())
    }

    /// The same, read as `options` say.
    ///
    /// # Errors
    /// As [`View::get_entity`] and [`View::get_with`].
    pub fn get_entity_with(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<WideColumns>> {
        self.entity_settled(key, &self.settled(options)?)
    }

    /// The merge operands of `key`, oldest first, behind the value that they would be merged onto,
    /// for a program that merges itself. Compactions may have merged some. Of wide columns the
    /// default one counts. Empty if the key does not exist.
    ///
    /// # Errors
    /// `Incomplete` if there are more than `at_most`; `NotSupported` in a family whose values
    /// expire, and in a transaction; as [`View::get`].
    #[doc(alias = "GetMergeOperands")]
    pub fn get_merge_operands(&self, key: impl AsRef<[u8]>, at_most: usize) -> Result<Vec<Value>> {
        self.check_no_expiry()?;
        if self.laid_over.is_some() {
            let message = "a transaction does not tell its merge operands apart";
            return Err(Error::not_supported(message));
        }
        self.db().get_merge_operands(&self.defaults(), &self.family, key, at_most)
    }

    /// The columns of several keys, in the order of the keys, all as of one moment.
    ///
    /// # Errors
    /// The first of any key: as [`View::get_entity`].
    #[doc(alias = "MultiGetEntity")]
    pub fn get_many_entities<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
    ) -> Result<Vec<Option<WideColumns>>> {
        self.check_no_expiry()?;
        let options = self.defaults();
        let found = match &self.laid_over {
            Some(over) => over.multi_get_entity(self.db(), &options, &self.family, keys),
            None => self.db().multi_get_entity(&options, &self.family, keys),
        };
        found.into_iter().collect()
    }

    /// Whether there is a value of `key`.
    ///
    /// # Errors
    /// As [`View::get`].
    #[doc(alias = "key_may_exist")]
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// [`View::get`] for a task that must not wait for a disk. What is in memory is answered at
    /// the first poll; a thread of the engine reads the rest. The future borrows nothing, so it may
    /// be spawned.
    ///
    /// No asynchronous write exists: a put copies into the log, and may wait while writes are
    /// delayed. [`WriteOptions::no_slowdown`](crate::WriteOptions::no_slowdown) refuses such a
    /// wait.
    ///
    /// # Errors
    /// As [`View::get`]; `IoError` if the system has no thread left.
    pub fn get_async<K: AsRef<[u8]>>(
        &self,
        key: K,
    ) -> impl Future<Output = Result<Option<Value>>> + Send + 'static + use<K> {
        let (view, key) = (self.clone(), key.as_ref().to_vec());
        async move {
            let options = view.defaults();
            match &view.laid_over {
                Some(over) => over.get_async(view.db(), &options, &view.family, &key).await,
                None => either!(view, db => db.get_async(&options, &view.family, &key).await),
            }
        }
    }

    /// [`View::get_many`] for a task that must not wait for a disk.
    ///
    /// # Errors
    /// As [`View::get_async`].
    pub fn get_many_async<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
    ) -> impl Future<Output = Result<Vec<Option<Value>>>> + Send + 'static + use<K> {
        let view = self.clone();
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| key.as_ref().to_vec()).collect();
        async move {
            let options = view.defaults();
            let values = match &view.laid_over {
                Some(over) => over.multi_get_async(view.db(), &options, &view.family, &keys).await,
                None => {
                    either!(view, db => db.multi_get_async(&options, &view.family, keys).await)
                }
            };
            values.into_iter().collect()
        }
    }

    /// The entries of a range of keys, in order, from either end, as of now or of the snapshot.
    ///
    /// `"a".."m"`, `"a"..="m"` and `"a"..` are ranges; `family.range::<&[u8]>(..)` is all of them,
    /// as is [`View::iter`]. A range whose start is after its end gives one item, an error
    /// (`InvalidArgument`).
    pub fn range<K: AsRef<[u8]>>(&self, bounds: impl RangeBounds<K>) -> Entries {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        Entries::new(self.clone(), owned(bounds.start_bound()), owned(bounds.end_bound()))
    }

    /// Several ranges, in order and disjoint, all as of one moment: an iterator of ranges, each an
    /// iterator of entries. Faster than one [`View::range`] after the other where blocks are not in
    /// the cache, because those of the next ranges are read together.
    ///
    /// # Errors
    /// `InvalidArgument` if a range ends before it starts, overlaps with the one before, or lies
    /// before it.
    #[doc(alias = "NewMultiScan")]
    #[doc(alias = "MultiScanArgs")]
    pub fn ranges<K: AsRef<[u8]>, R: RangeBounds<K>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Result<Ranges> {
        Ranges::new(self.clone(), ranges)
    }

    /// The entries whose keys begin with `prefix`, in order, from either end. For families in the
    /// order of bytes; in others the range's first item is an error (`NotSupported`).
    #[doc(alias = "prefix_iterator")]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Entries {
        Entries::of_prefix(self.clone(), prefix.as_ref())
    }

    /// All entries, in order, from either end.
    #[doc(alias = "iterator")]
    #[doc(alias = "full_iterator")]
    pub fn iter(&self) -> Entries {
        self.range::<&[u8]>(..)
    }

    /// A cursor, which moves to any key and lends out what it stands on. Not positioned yet.
    ///
    /// # Errors
    /// `InvalidArgument` for a snapshot of another database, or one beside that of the view;
    /// `Corruption`, `IoError`.
    #[doc(alias = "raw_iterator")]
    #[doc(alias = "NewIterator")]
    #[track_caller]
    pub fn cursor(&self, options: &ReadOptions) -> Result<Cursor> {
        let options = self.settled(options)?;
        let kind = if let Some(over) = &self.laid_over {
            Kind::LaidOver(Box::new(over.iter(self.db(), &options, &self.family)?))
        } else if self.expires {
            Kind::Expiring(self.engine.iter_cf(&self.family, &options)?)
        } else {
            Kind::Plain(self.db().iter_cf(&self.family, &options)?)
        };
        Ok(Cursor(kind))
    }

    /// A cursor for tasks within these options.
    pub(super) fn cursor_async(&self, options: &ReadOptions) -> Result<AsyncCursor> {
        if self.laid_over.is_some() {
            let message = "a range of a transaction is no stream yet; iterate over it";
            return Err(Error::not_supported(message));
        }
        Ok(if self.expires {
            AsyncCursor::Expiring(self.engine.iter_async(&self.family, options)?)
        } else {
            self.db().check_family(&self.family)?;
            AsyncCursor::Plain(self.db().iter_async(&self.family, options))
        })
    }

    fn entity_settled(
        &self,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<WideColumns>> {
        self.check_no_expiry()?;
        match &self.laid_over {
            Some(over) => over.get_entity(self.db(), options, &self.family, key),
            None => self.db().get_entity(options, &self.family, key),
        }
    }

    /// Refuses entities where values expire.
    pub(super) fn check_no_expiry(&self) -> Result<()> {
        if self.expires { Err(expiring()) } else { Ok(()) }
    }

    fn get_settled(&self, key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Option<Value>> {
        match &self.laid_over {
            Some(over) => over.get(self.db(), options, &self.family, key),
            None => either!(self, db => db.get_with(options, &self.family, key)),
        }
    }

    /// Refuses a range whose start is after its end.
    pub(super) fn check_order<K: AsRef<[u8]>>(&self, bounds: &impl RangeBounds<K>) -> Result<()> {
        match (bounds.start_bound(), bounds.end_bound()) {
            (
                Bound::Included(first) | Bound::Excluded(first),
                Bound::Included(last) | Bound::Excluded(last),
            ) if self.order().compare(first.as_ref(), last.as_ref()).is_gt() => {
                Err(Error::invalid_argument("the start of the range is after its end"))
            }
            _ => Ok(()),
        }
    }

    /// The order of the keys that are shown.
    pub(super) fn order(&self) -> Comparator {
        self.family.comparator().without_timestamps()
    }

    /// The options of a read that says nothing itself.
    fn defaults(&self) -> ReadOptions {
        ReadOptions {
            snapshot: self.moment.clone(),
            timestamp: self.timestamp.clone(),
            ..ReadOptions::default()
        }
    }

    /// Reads as `options` say, as of this view's moment.
    pub(super) fn settled(&self, options: &ReadOptions) -> Result<ReadOptions> {
        let snapshot = match (&options.snapshot, &self.moment) {
            (Some(_), Some(_)) => {
                let message = "a snapshot is read as of another snapshot";
                return Err(Error::invalid_argument(message));
            }
            (named, moment) => named.as_ref().or(moment.as_ref()).cloned(),
        };
        let timestamp = options.timestamp.as_ref().or(self.timestamp.as_ref()).cloned();
        Ok(ReadOptions { snapshot, timestamp, ..options.clone() })
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("family", &self.name())
            .field("moment", &self.moment)
            .finish_non_exhaustive()
    }
}
