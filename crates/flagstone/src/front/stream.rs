//! Keys in order for tasks, as a stream.
//!
//! Batches are read by the engine's cursor for tasks: what is in memory at once, the rest by a
//! thread of the engine. A batch has no more than [`BATCH`] entries, and not many more bytes than
//! 1 MiB, so a poll does little.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::ops::Bound;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_core::stream::FusedStream;

use crate::base::{Comparator, Error, Result};
use crate::db::AsyncIter;
use crate::front::entries::Entry;
use crate::ttl::TtlAsyncIter;

/// Entries that are read at a time.
const BATCH: usize = 256;

/// The entries of a range, for a task that must not wait for a disk: made by
/// [`Entries::stream`](crate::Entries::stream).
///
/// A [`Stream`](futures_core::Stream), in the order of the keys. An error is returned once, and
/// ends it.
#[must_use = "a stream reads nothing until it is polled"]
pub struct RangeStream {
    state: State,
    read: VecDeque<Entry>,
    order: Comparator,
    /// The start, if it does not belong to the range.
    behind: Option<Vec<u8>>,
    /// The end, if it belongs to the range.
    up_to: Option<Vec<u8>>,
}

pub(super) enum AsyncCursor {
    Plain(AsyncIter),
    Expiring(TtlAsyncIter),
}

type Reading = Pin<Box<dyn Future<Output = (AsyncCursor, Result<Vec<Entry>>)> + Send>>;

enum State {
    Idle(AsyncCursor),
    Reading(Reading),
    Failed(Error),
    Ended,
}

impl AsyncCursor {
    async fn next_batch(mut self) -> (Self, Result<Vec<Entry>>) {
        let batch = match &mut self {
            Self::Plain(cursor) => cursor.next_batch(BATCH).await,
            Self::Expiring(cursor) => cursor.next_batch(BATCH).await,
        };
        (self, batch)
    }
}

impl RangeStream {
    /// What `cursor` shows, which keeps within the bounds but for an excluded start and an included
    /// end.
    pub(super) fn new(
        cursor: Result<AsyncCursor>,
        order: Comparator,
        start: Bound<Vec<u8>>,
        end: Bound<Vec<u8>>,
    ) -> Self {
        let behind = if let Bound::Excluded(start) = start { Some(start) } else { None };
        let up_to = if let Bound::Included(end) = end { Some(end) } else { None };
        let state = cursor.map_or_else(State::Failed, State::Idle);
        Self { state, read: VecDeque::new(), order, behind, up_to }
    }

    /// Nothing.
    pub(super) fn ended(order: Comparator) -> Self {
        Self { state: State::Ended, read: VecDeque::new(), order, behind: None, up_to: None }
    }

    /// The next entry; `None` at the end. The same as `StreamExt::next`.
    ///
    /// # Errors
    /// `Corruption`, `IoError`, also if the system has no thread left; then the stream has ended.
    pub async fn next(&mut self) -> Option<Result<Entry>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// The next entry that was read already, and lies in the range.
    fn take(&mut self) -> Option<Entry> {
        let (key, value) = self.read.pop_front()?;
        if self.behind.take().is_some_and(|start| self.order.compare(&key, &start).is_le()) {
            return self.take();
        }
        if self.up_to.as_ref().is_some_and(|end| self.order.compare(&key, end).is_gt()) {
            self.end();
            return None;
        }
        Some((key, value))
    }

    fn end(&mut self) {
        self.state = State::Ended;
        self.read.clear();
    }
}

impl Stream for RangeStream {
    type Item = Result<Entry>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(entry) = self.take() {
                return Poll::Ready(Some(Ok(entry)));
            }
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return Poll::Ready(None),
                State::Failed(error) => return Poll::Ready(Some(Err(error))),
                State::Idle(cursor) => self.state = State::Reading(Box::pin(cursor.next_batch())),
                State::Reading(mut reading) => {
                    let Poll::Ready((cursor, batch)) = reading.as_mut().poll(context) else {
                        self.state = State::Reading(reading);
                        return Poll::Pending;
                    };
                    match batch {
                        Ok(batch) if batch.is_empty() => {}
                        Ok(batch) => {
                            self.read = batch.into();
                            self.state = State::Idle(cursor);
                        }
                        Err(error) => self.state = State::Failed(error),
                    }
                }
            }
        }
    }
}

impl FusedStream for RangeStream {
    fn is_terminated(&self) -> bool {
        matches!(self.state, State::Ended) && self.read.is_empty()
    }
}

impl fmt::Debug for RangeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RangeStream").field("read", &self.read.len()).finish_non_exhaustive()
    }
}
