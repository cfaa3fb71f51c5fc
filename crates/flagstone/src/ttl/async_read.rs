//! Asynchronous reads that remove stamps.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::task::Poll;

use super::{Rule, TtlDb};
use crate::base::Result;
use crate::db::{AsyncIter, ColumnFamily, Value};
use crate::expiry::{STAMP_SIZE, unstamped};
use crate::options::ReadOptions;

impl TtlDb {
    /// [`TtlDb::get_with`] without waiting for a disk, as
    /// [`Db::get_async`](crate::db::Db::get_async).
    ///
    /// # Errors
    /// As [`TtlDb::get_with`] and [`Db::get_async`](crate::db::Db::get_async).
    pub fn get_async(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: &[u8],
    ) -> impl Future<Output = Result<Option<Value>>> + Send + use<> {
        let (rule, reading) = (self.rule(family.id()), self.base.get_async(options, family, key));
        let key = key.to_vec();
        async move {
            let rule = rule?;
            let now = rule.lifetime.now();
            rule.value_of(&key, reading.await?, now)
        }
    }

    /// [`TtlDb::multi_get_with`] without waiting for a disk, as
    /// [`Db::multi_get_async`](crate::db::Db::multi_get_async).
    pub fn multi_get_async(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        keys: Vec<Vec<u8>>,
    ) -> impl Future<Output = Vec<Result<Option<Value>>>> + Send + use<> {
        let rule = self.rule(family.id());
        let reading = self.base.multi_get_async(options, family, keys.clone());
        async move {
            match rule {
                Ok(rule) => {
                    let now = rule.lifetime.now();
                    let all = keys.iter().zip(reading.await);
                    all.map(|(key, stored)| rule.value_of(key, stored?, now)).collect()
                }
                Err(error) => vec![Err(error); keys.len()],
            }
        }
    }

    /// A cursor over the keys of a family whose steps do not wait for a disk, as
    /// [`Db::iter_async`](crate::db::Db::iter_async). What expires while it is in use is still
    /// there for it.
    ///
    /// # Errors
    /// `InvalidArgument` for a family that was made without a time to live.
    #[track_caller]
    pub fn iter_async(&self, family: &ColumnFamily, options: &ReadOptions) -> Result<TtlAsyncIter> {
        let rule = self.rule(family.id())?;
        let now = rule.lifetime.now();
        Ok(TtlAsyncIter {
            inner: self.base.iter_async(family, options),
            rule,
            now,
            read: VecDeque::new(),
        })
    }
}

/// A cursor for tasks over a family of a TTL database, from [`TtlDb::iter_async`]; as
/// [`AsyncIter`], with values without their stamps. Where the family reads strictly, it passes over
/// what had expired when it was made.
#[derive(Debug)]
pub struct TtlAsyncIter {
    inner: AsyncIter,
    rule: Rule,
    /// When it was made.
    now: u64,
    /// Behind what was handed out, with stamps.
    read: VecDeque<(Vec<u8>, Vec<u8>)>,
}

impl TtlAsyncIter {
    /// The next batch begins at the first key at or after `target`.
    pub fn seek(&mut self, target: &[u8]) {
        self.read.clear();
        self.inner.seek(target);
    }

    /// The next batch begins at the first key.
    pub fn seek_to_first(&mut self) {
        self.read.clear();
        self.inner.seek_to_first();
    }

    /// The next keys and values, at most `max_entries` of them, as [`AsyncIter::next_batch`]; none
    /// at the end. Between much that has expired it lets other tasks have their turn.
    ///
    /// # Errors
    /// As [`AsyncIter::next_batch`]; `Corruption` for a value without a stamp, also of the next
    /// call, until a seek.
    pub async fn next_batch(&mut self, max_entries: usize) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        if max_entries == 0 {
            return Ok(Vec::new());
        }
        loop {
            if self.read.is_empty() {
                self.read = self.inner.next_batch(max_entries).await?.into();
            }
            let is_end = self.read.is_empty();
            let batch = self.take(max_entries)?;
            if is_end || !batch.is_empty() {
                return Ok(batch);
            }
            let_others_go().await;
        }
    }

    /// What lives among what was read, up to a value without a stamp.
    fn take(&mut self, max_entries: usize) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut batch = Vec::new();
        while batch.len() < max_entries
            && let Some((key, stored)) = self.read.front()
        {
            let stamp = match unstamped(key, stored) {
                Err(error) if batch.is_empty() => return Err(error),
                Err(_) => break,
                Ok((_, stamp)) => stamp,
            };
            let (key, mut value) = self.read.pop_front().expect("it was looked at");
            if !self.rule.hides(stamp, self.now) {
                value.truncate(value.len() - STAMP_SIZE);
                batch.push((key, value));
            }
        }
        Ok(batch)
    }
}

/// Ready when it is polled for the second time, which it asks for at the first.
fn let_others_go() -> impl Future<Output = ()> {
    let mut was_polled = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut was_polled, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}
