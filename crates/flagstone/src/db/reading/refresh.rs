//! Iterators that give up what is out of date.
//!
//! An iterator pins the super version that it was made with: memtables that were flushed and files
//! that were compacted stay for its sake. What a snapshot sees is in every later super version,
//! too, as long as it is held (but for what compaction filters remove, which ask for no snapshot,
//! as in RocksDB). So an iterator with `auto_refresh_iterator_with_snapshot` holds its snapshot,
//! looks now and then whether there is a newer super version, and goes on there at its key.
//!
//! If that fails, it goes on where it is.

use std::panic::Location;

use crate::base::sync::Ordering;
use crate::base::{Result, Snapshot, Sometimes};
use crate::db::reading::iterate::Iter;
use crate::options::ReadOptions;

/// So many steps lie between two looks at the super version.
const STEPS: u32 = 32;

/// What an iterator that refreshes itself remembers.
pub(in crate::db) struct AutoRefresh {
    snapshot: Snapshot,
    steps: u32,
    /// Not while it steps: a seek to its key would set the prefix that it stays in.
    only_at_seeks: bool,
}

impl AutoRefresh {
    pub(in crate::db) fn by(options: &ReadOptions) -> Option<Box<Self>> {
        let snapshot =
            options.snapshot.as_ref().filter(|_| options.auto_refresh_iterator_with_snapshot)?;
        let only_at_seeks = options.prefix_same_as_start;
        Some(Box::new(Self { snapshot: snapshot.clone(), steps: 0, only_at_seeks }))
    }

    /// Counts a step; whether it is time to look.
    fn is_due(&mut self) -> bool {
        self.steps += 1;
        if self.steps < STEPS || self.only_at_seeks {
            return false;
        }
        self.steps = 0;
        true
    }
}

impl Iter {
    /// Moves the iterator to the newest state of the database, and leaves it unpositioned. A
    /// snapshot that it was created with no longer applies.
    ///
    /// # Errors
    /// As [`crate::db::Db::iter`]; the iterator is then unchanged.
    #[track_caller]
    pub fn refresh(&mut self) -> Result<()> {
        let cursor = self.cursor.as_ref().expect("not dropped yet");
        let origin = cursor.origin_now(Location::caller());
        let renewed =
            cursor.renewed(origin, |snapshots| snapshots.published.load(Ordering::Acquire))?;
        self.auto_refresh = None;
        self.park();
        self.cursor = Some(renewed);
        Ok(())
    }

    #[inline]
    pub(in crate::db) fn refresh_before_seek(&mut self) {
        if self.auto_refresh.is_some() {
            self.renew();
        }
    }

    /// Refreshes if it is time to, and takes the step then; whether it did.
    pub(in crate::db) fn refresh_before_next(&mut self) -> bool {
        let Some(key) = self.refresh_at_key() else { return false };
        let entries = self.entries_mut();
        entries.seek(&key);
        if entries.stands_on(&key) {
            entries.next();
        }
        true
    }

    /// The same, back.
    pub(in crate::db) fn refresh_before_prev(&mut self) -> bool {
        let Some(key) = self.refresh_at_key() else { return false };
        let entries = self.entries_mut();
        entries.seek_for_prev(&key);
        if entries.stands_on(&key) {
            entries.prev();
        }
        true
    }

    /// Refreshes if it is time to; the key on which the iterator stood before.
    fn refresh_at_key(&mut self) -> Option<Vec<u8>> {
        if !self.auto_refresh.as_mut().is_some_and(|refresh| refresh.is_due()) || !self.valid() {
            return None;
        }
        let key = self.key().to_vec();
        self.renew().then_some(key)
    }

    /// Lets go of a super version that is out of date; whether there is a new cursor, which stands
    /// nowhere.
    fn renew(&mut self) -> bool {
        let (Some(cursor), Some(refresh)) = (&self.cursor, &self.auto_refresh) else {
            return false;
        };
        if !cursor.is_outdated() {
            return false;
        }
        match cursor.renewed(cursor.origin(), |_| refresh.snapshot.sequence()) {
            Ok(renewed) => {
                Sometimes::IteratorRefreshed.reached();
                self.cursor = Some(renewed);
                true
            }
            Err(_) => false,
        }
    }
}
