//! Reads for tasks that must not wait for a disk, on any executor.
//!
//! 1. At its first poll a read is tried in memory: memtables, and blocks in the cache
//!    (`ReadOptions::cache_only`).
//! 2. If that is `Incomplete`, the whole read is done by a thread of the engine's own (`readers`),
//!    as often as that: the cached part costs little, and several keys are read as of one moment.
//!
//! A future does nothing until it is polled. One that is dropped leaves nothing behind: work that
//! was not begun is left out, what was begun is dropped when it is done. In a world without threads
//! the poll reads.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use crate::base::{Code, Error, Result};
use crate::cache::{Held, MemoryAccount, MemoryKind};
use crate::db::DbInner;
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::db::reading::iterate::{Iter, record_seek};
use crate::db::reading::value::Value;
use crate::db::tree::damage;
use crate::options::ReadOptions;

/// Bytes of keys and values after which a batch of an iterator ends.
const BATCH_BYTES: usize = 1 << 20;

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

impl Db {
    /// [`Db::get_with`] without waiting for a disk: what is in memory is answered at the first
    /// poll, the rest is read by a thread of the engine's own. Sees the database as it is at some
    /// moment between the first poll and the answer, or `options.snapshot`.
    ///
    /// ```
    /// # fn main() -> flagstone::base::Result<()> {
    /// # use std::future::Future;
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let mut options = flagstone::options::Options::default();
    /// # options.create_if_missing = true;
    /// # struct Unpark(std::thread::Thread);
    /// # impl std::task::Wake for Unpark {
    /// #     fn wake(self: std::sync::Arc<Self>) { self.0.unpark() }
    /// # }
    /// # fn block_on<T>(future: impl Future<Output = T>) -> T {
    /// #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    /// #     let mut future = std::pin::pin!(future);
    /// #     let mut context = std::task::Context::from_waker(&waker);
    /// #     loop {
    /// #         match future.as_mut().poll(&mut context) {
    /// #             std::task::Poll::Ready(done) => return done,
    /// #             std::task::Poll::Pending => std::thread::park(),
    /// #         }
    /// #     }
    /// # }
    /// let db = flagstone::db::Db::open(directory.path(), &options)?;
    /// db.put("stone", "flag")?;
    /// let read = flagstone::options::ReadOptions::default();
    /// // `block_on` stands for any executor.
    /// block_on(async {
    ///     let value = db.get_async(&read, db.default_column_family(), b"stone").await?;
    ///     assert_eq!(value.unwrap(), "flag");
    ///
    ///     let mut entries = db.iter_async(db.default_column_family(), &read);
    ///     loop {
    ///         let batch = entries.next_batch(1000).await?;
    ///         if batch.is_empty() {
    ///             break;
    ///         }
    ///         assert_eq!(batch, [(b"stone".to_vec(), b"flag".to_vec())]);
    ///     }
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Db::get_with`]; `IoError` if the system has no thread left, `Aborted` if the read
    /// panicked.
    pub fn get_async(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: &[u8],
    ) -> impl Future<Output = Result<Option<Value>>> + Send + use<> {
        let (inner, options, family) = (self.inner().clone(), options.clone(), family.0.clone());
        let key = key.to_vec();
        async move {
            let in_memory = in_memory(&options);
            match inner.reader.get(&in_memory, &family, &key) {
                Err(error) if error.code() == Code::Incomplete && !options.cache_only => {
                    let read = move |inner: &DbInner| {
                        let found = inner.reader.get_again(&options, &family, &key);
                        found.inspect_err(|error| damage::note_damage(&inner.tree, &family, error))
                    };
                    read_elsewhere(inner, read).await
                }
                answer => {
                    answer.inspect_err(|error| damage::note_damage(&inner.tree, &family, error))
                }
            }
        }
    }

    /// [`Db::multi_get_with`] without waiting for a disk, as [`Db::get_async`]: all as of one
    /// moment, in the order of the keys.
    pub fn multi_get_async(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: Vec<Vec<u8>>,
    ) -> impl Future<Output = Vec<Result<Option<Value>>>> + Send + use<> {
        let (inner, options, family) = (self.inner().clone(), options.clone(), family.0.clone());
        async move {
            let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let values = inner.reader.multi_get(&in_memory(&options), &family, &slices);
            drop(slices);
            let is_incomplete = |value: &Result<_>| {
                value.as_ref().is_err_and(|error| error.code() == Code::Incomplete)
            };
            if options.cache_only || !values.iter().any(is_incomplete) {
                return values;
            }
            let count = values.len();
            let read = move |inner: &DbInner| {
                let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                let found = inner.reader.multi_get_again(&options, &family, &slices);
                let failed = found.iter().filter_map(|value| value.as_ref().err());
                failed.for_each(|error| damage::note_damage(&inner.tree, &family, error));
                Ok(found)
            };
            match read_elsewhere(inner, read).await {
                Ok(values) => values,
                Err(error) => vec![Err(error); count],
            }
        }
    }

    /// A cursor over the keys of a family whose steps do not wait for a disk; as of now, or of
    /// `options.snapshot`. It begins at the first key within the bounds of `options`. Holds a
    /// snapshot until it is dropped.
    #[track_caller]
    pub fn iter_async(&self, family: &ColumnFamily, options: &ReadOptions) -> AsyncIter {
        let snapshot = match &options.snapshot {
            Some(snapshot) => snapshot.clone(),
            None => self.snapshot(),
        };
        AsyncIter {
            source: Arc::new(Source {
                inner: self.inner().clone(),
                family: family.clone(),
                options: ReadOptions { snapshot: Some(snapshot), ..options.clone() },
                made_at: Location::caller(),
            }),
            position: Position::First,
            cached: None,
            reading: None,
        }
    }
}

/// The same read without a disk.
fn in_memory(options: &ReadOptions) -> ReadOptions {
    ReadOptions { cache_only: true, ..options.clone() }
}

/// Has a reader do what may wait for a disk.
async fn read_elsewhere<T: Send + 'static>(
    db: Arc<DbInner>,
    work: impl FnOnce(&DbInner) -> Result<T> + Send + 'static,
) -> Result<T> {
    if !db.tree.has_workers() {
        return work(&db);
    }
    let inner = db.clone();
    let ticket = db.background.readers().run(&*db.context.env.spawner, move || work(&inner));
    // What waits keeps no database open that its owner lets go of meanwhile; the work does,
    // until it is done.
    drop(db);
    ticket?.await
}

/// What an [`AsyncIter`] reads.
struct Source {
    inner: Arc<DbInner>,
    family: ColumnFamily,
    options: ReadOptions,
    made_at: &'static Location<'static>,
}

/// Where the next batch begins.
#[derive(Clone)]
enum Position {
    First,
    /// At this key or the next one.
    At(Vec<u8>),
    /// Behind this key, in a scan that leads through all prefixes or stays in the key's.
    After {
        key: Vec<u8>,
        in_total_order: bool,
    },
    End,
}

impl Position {
    fn seek(&self, iter: &mut Iter) {
        match self {
            Self::First => iter.seek_to_first(),
            Self::At(key) => iter.seek_again(key),
            Self::After { key, .. } => {
                iter.seek_again(key);
                if iter.entries_mut().stands_on(key) {
                    iter.next();
                }
            }
            Self::End => {}
        }
    }
}

/// A cursor for tasks, from [`Db::iter_async`].
///
/// Forward only. A batch that is dropped before it is ready is not lost: the next one begins where
/// it would have.
pub struct AsyncIter {
    source: Arc<Source>,
    position: Position,
    /// Stands at `position`; looks in memory only.
    cached: Option<Iter>,
    /// Stands at `position`; may wait for a disk, and is not in anybody's hands.
    reading: Option<Iter>,
}

impl fmt::Debug for AsyncIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsyncIter({})", self.source.family.name())
    }
}

impl AsyncIter {
    /// The next batch begins at the first key at or after `target`.
    pub fn seek(&mut self, target: &[u8]) {
        // Once, whatever cursors go there.
        let Source { inner, options, family, .. } = &*self.source;
        let operations = inner.context.statistics.operations();
        if operations.is_on() {
            record_seek(operations, options, false, (family.id(), target));
        }
        self.stand_at(Position::At(target.to_vec()));
    }

    /// The next batch begins at the first key.
    pub fn seek_to_first(&mut self) {
        self.stand_at(Position::First);
    }

    fn stand_at(&mut self, position: Position) {
        self.position = position;
        (self.cached, self.reading) = (None, None);
    }

    /// The next keys and values, at most `max_entries` of them and not many more than 1 MiB; none
    /// at the end. What can be had from memory comes at the first poll, also if that is less. After
    /// a batch that had to be read those behind it come from the cursor that has read ahead for
    /// them, until the next seek.
    ///
    /// # Errors
    /// As [`Iter::status`] and [`Iter::value`]; `NotSupported` with `iter_start_ts`; `IoError` if
    /// the system has no thread left, `Aborted` if the read panicked. The next call tries the same
    /// again.
    pub async fn next_batch(&mut self, max_entries: usize) -> Result<Vec<Entry>> {
        if matches!(self.position, Position::End) || max_entries == 0 {
            return Ok(Vec::new());
        }
        if self.reading.is_none()
            && let Some((batch, iter)) = self.batch_in_memory(max_entries)?
        {
            self.cached = Some(iter);
            return Ok(self.advance(batch));
        }
        let (source, position, iter) =
            (self.source.clone(), self.position.clone(), self.reading.take());
        let read = move |inner: &DbInner| {
            let mut iter = match iter {
                Some(iter) => iter,
                None => source.iterate(&source.options, &position)?,
            };
            let mut batch = collect(&mut iter, max_entries, inner.tables.account());
            match batch.failure.take_if(|_| batch.entries.is_empty()) {
                Some(failure) => Err(failure),
                None => Ok((batch, iter)),
            }
        };
        let (batch, iter) = read_elsewhere(self.source.inner.clone(), read).await?;
        let goes_on = !batch.is_last && batch.failure.is_none();
        let entries = self.advance(batch);
        // It has begun to read ahead, and what follows a miss is as a rule not in memory either.
        self.reading = goes_on.then_some(iter);
        Ok(entries)
    }

    /// `None` if the first entry is not in memory.
    fn batch_in_memory(&mut self, max_entries: usize) -> Result<Option<(Batch, Iter)>> {
        let iter = match self.cached.take() {
            Some(iter) => Ok(iter),
            None => self.source.iterate(&in_memory(&self.source.options), &self.position),
        };
        let is_elsewhere =
            |error: &Error| error.code() == Code::Incomplete && !self.source.options.cache_only;
        let mut iter = match iter {
            Err(error) if is_elsewhere(&error) => return Ok(None),
            iter => iter?,
        };
        let batch = collect(&mut iter, max_entries, self.source.inner.tables.account());
        match &batch.failure {
            Some(error) if batch.entries.is_empty() && is_elsewhere(error) => Ok(None),
            Some(error) if batch.entries.is_empty() => Err(error.clone()),
            _ => Ok(Some((batch, iter))),
        }
    }

    /// The position behind a batch, which is handed out.
    fn advance(&mut self, batch: Batch) -> Vec<Entry> {
        if batch.failure.is_some() {
            self.cached = None;
        }
        match (batch.entries.first(), batch.entries.last()) {
            _ if batch.is_last => self.stand_at(Position::End),
            (Some((first, _)), Some((last, _))) => {
                let in_total_order = self.is_in_total_order(first);
                self.position = Position::After { key: last.clone(), in_total_order };
            }
            _ => {}
        }
        batch.entries
    }

    /// Whether the scan stays in no prefix, for it began, with `first` if nothing else says where,
    /// at a key without one. Another cursor that goes on at a key with a prefix would stay in that.
    fn is_in_total_order(&self, first: &[u8]) -> bool {
        let Source { options, family, .. } = &*self.source;
        let start = match &self.position {
            Position::First => options.iterate_lower_bound.as_deref().unwrap_or(first),
            Position::At(target) => target,
            Position::After { in_total_order, .. } => return *in_total_order,
            Position::End => return true,
        };
        let extractor = &family.0.options.load().prefix_extractor;
        extractor.as_ref().is_none_or(|extractor| extractor.prefix(start).is_none())
    }
}

impl Source {
    fn iterate(&self, options: &ReadOptions, position: &Position) -> Result<Iter> {
        if options.iter_start_ts.is_some() {
            return Err(Error::not_supported(
                "iter_async does not go on between the versions of a key; unset iter_start_ts, or scan with an iterator",
            ));
        }
        let mut iter = match position {
            Position::After { in_total_order: true, .. } if options.prefix_same_as_start => {
                let options = ReadOptions { prefix_same_as_start: false, ..options.clone() };
                self.inner.reader.iterate(&options, &self.family.0, self.made_at)?
            }
            _ => self.inner.reader.iterate(options, &self.family.0, self.made_at)?,
        };
        position.seek(&mut iter);
        Ok(iter)
    }
}

/// Some entries, and why there are no more.
struct Batch {
    entries: Vec<Entry>,
    is_last: bool,
    failure: Option<Error>,
    /// Until the task has come to it.
    counted: Option<Held>,
}

fn collect(iter: &mut Iter, max_entries: usize, account: &Arc<MemoryAccount>) -> Batch {
    let mut batch = Batch { entries: Vec::new(), is_last: false, failure: None, counted: None };
    let mut bytes = 0;
    while batch.entries.len() < max_entries && bytes < BATCH_BYTES {
        if !iter.valid() {
            batch.failure = iter.status().err();
            batch.is_last = batch.failure.is_none();
            break;
        }
        match iter.value().map(<[u8]>::to_vec) {
            Ok(value) => {
                let key = iter.key().to_vec();
                bytes += key.len() + value.len();
                batch.entries.push((key, value));
                iter.next();
            }
            Err(error) => {
                batch.failure = Some(error);
                break;
            }
        }
    }
    batch.counted = account.hold_large(MemoryKind::Values, bytes);
    batch
}

#[cfg(test)]
mod tests;
