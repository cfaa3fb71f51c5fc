//! Reads of tasks that must not wait, compared with the model.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

use flagstone::base::Code;
use flagstone::db::{AsyncIter, ColumnFamily, Db};
use flagstone::options::ReadOptions;

use crate::model::{Entry, Family};

/// A cursor, the family as it was when it was opened, and where the next batch begins.
pub(super) struct Scan {
    entries: AsyncIter,
    family: Family,
    place: Place,
}

enum Place {
    First,
    At(Vec<u8>),
    Behind(Vec<u8>),
    End,
}

/// Looks the keys up, all together and each alone.
pub(super) fn get_by_task(
    db: &Db,
    handle: &ColumnFamily,
    family: &Family,
    options: &ReadOptions,
    keys: &[Vec<u8>],
) {
    let joint = block_on(db.multi_get_async(options, handle, keys.to_vec()));
    for (key, joint) in keys.iter().zip(joint) {
        let single = block_on(db.get_async(options, handle, key));
        for (way, found) in [("get_async", single), ("multi_get_async", joint)] {
            let found = match found {
                Err(error) if options.cache_only && error.code() == Code::Incomplete => {
                    continue;
                }
                found => found.expect("a lookup"),
            };
            assert!(
                family.accepts(key, found.as_deref()),
                "{way}: family {}, key {}: {} bytes are found, and not {:?}",
                handle.name(),
                key.escape_ascii(),
                found.map_or(0, |value| value.len()),
                family.get(key).map(Vec::len)
            );
        }
    }
}

impl Scan {
    /// A cursor over what `family` has.
    pub(super) fn new(entries: AsyncIter, family: Family) -> Self {
        Self { entries, family, place: Place::First }
    }

    /// Reads on, from a key on if one is given. A batch may end before it is full; at the end there
    /// is none.
    pub(super) fn next_batch(&mut self, from: Option<&[u8]>, max_entries: usize) {
        if let Some(target) = from {
            self.entries.seek(target);
            self.place = Place::At(target.to_vec());
        }
        let batch = block_on(self.entries.next_batch(max_entries)).expect("a batch");
        assert!(batch.len() <= max_entries, "{} entries, and not {max_entries}", batch.len());
        let family = &self.family;
        let mut expected: Box<dyn Iterator<Item = Entry<'_>>> = match &self.place {
            Place::First => Box::new(family.iter()),
            Place::At(key) => Box::new(family.from(key)),
            Place::Behind(key) => Box::new(family.from(key).skip(1)),
            Place::End => Box::new(std::iter::empty()),
        };
        for (key, value) in &batch {
            let entry = family.stop(&mut expected, Some(key));
            let is_right = entry.is_some_and(|entry| {
                *family.known_as(key) == **entry.0 && family.may_have(entry, value)
            });
            let next = entry.map(|(key, _)| key.escape_ascii().to_string());
            assert!(is_right, "a batch: found {}, expected {next:?}", key.escape_ascii());
        }
        if batch.is_empty() {
            let missing =
                family.stop(&mut expected, None).map(|(key, _)| key.escape_ascii().to_string());
            assert_eq!(missing, None, "a scan in batches ends");
        }
        drop(expected);
        self.place = match batch.last() {
            Some((key, _)) => Place::Behind(family.known_as(key).into_owned()),
            None => Place::End,
        };
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor: a task that is woken wakes its thread.
pub fn block_on<T>(task: impl Future<Output = T>) -> T {
    let (mut task, waker) = (pin!(task), Arc::new(Unpark(thread::current())).into());
    loop {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
