//! Iterators that give up what is out of date.
//!
//! An iterator pins the super version that it was made with: memtables that were flushed and files
//! that were compacted stay for its sake. What a snapshot sees is in every later super version,
//! too, as long as it is held (but for what compaction filters remove, which ask for no snapshot,
//! as in RocksDB). So an iterator with `auto_refresh_iterator_with_snapshot` holds its snapshot,
//! looks now and then whether there is a newer super version, and goes on there at its key.
//!
//! If that fails, it goes on where it is.
//!
//! A tailing iterator holds no snapshot: it goes on to what was written meanwhile, and looks at
//! each step whether anything was. If it cannot have that, it fails.

use std::cell::Cell;
use std::panic::Location;

use crate::base::sync::Ordering;
use crate::base::{Error, Result, SequenceNumber, Snapshot, Sometimes};
use crate::db::reading::cursor::Cursor;
use crate::db::reading::cursor_blobs::CursorBlobs;
use crate::db::reading::iterate::Iter;
use crate::db::reading::source::Source;
use crate::iter::DbIter;
use crate::options::ReadOptions;

/// So many steps lie between two looks at the super version.
const STEPS: u32 = 32;

/// What an iterator that refreshes itself remembers.
pub(in crate::db) struct AutoRefresh {
    target: Target,
    steps: u32,
    /// Not while it steps: a seek to its key would set the prefix that it stays in.
    only_at_seeks: bool,
}

/// What an iterator shows after it was refreshed.
enum Target {
    /// The same as before.
    Held(Snapshot),
    /// What was written since, too: this is what it has seen.
    Newest(SequenceNumber),
}

impl AutoRefresh {
    /// For an iterator that begins with what `sequence` sees.
    pub(in crate::db) fn by(options: &ReadOptions, sequence: SequenceNumber) -> Option<Box<Self>> {
        let target = if options.tailing {
            Target::Newest(sequence)
        } else {
            let snapshot = options.snapshot.as_ref();
            let held = snapshot.filter(|_| options.auto_refresh_iterator_with_snapshot)?;
            Target::Held(held.clone())
        };
        let only_at_seeks = options.prefix_same_as_start;
        Some(Box::new(Self { target, steps: 0, only_at_seeks }))
    }

    fn is_tailing(&self) -> bool {
        matches!(self.target, Target::Newest(_))
    }

    /// Counts a step; whether it is time to look.
    fn is_due(&mut self) -> bool {
        self.steps += 1;
        let is_time = self.steps >= STEPS || self.is_tailing();
        if !is_time || self.only_at_seeks {
            return false;
        }
        self.steps = 0;
        true
    }

    /// Whether there is something newer for a cursor.
    fn is_behind(&self, cursor: &Cursor) -> bool {
        let is_unseen = match &self.target {
            Target::Held(_) => false,
            Target::Newest(seen) => cursor.published() != *seen,
        };
        is_unseen || cursor.is_outdated()
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
        // A tailing one goes on to be one.
        self.auto_refresh.take_if(|refresh| !refresh.is_tailing());
        self.park();
        self.cursor = Some(renewed);
        Ok(())
    }

    /// Whether the seek can go on.
    #[inline]
    pub(in crate::db) fn refresh_before_seek(&mut self) -> bool {
        self.auto_refresh.is_none() || self.renew() != Renewal::Failed
    }

    /// Refreshes if it is time to, and takes the step then; whether it did, or failed.
    pub(in crate::db) fn refresh_before_next(&mut self) -> bool {
        self.refresh_at_key(|entries, key| {
            entries.seek(key);
            if entries.stands_on(key) {
                entries.next();
            }
        })
    }

    /// The same, back.
    pub(in crate::db) fn refresh_before_prev(&mut self) -> bool {
        self.refresh_at_key(|entries, key| {
            entries.seek_for_prev(key);
            if entries.stands_on(key) {
                entries.prev();
            }
        })
    }

    /// A tailing iterator only goes forward, as in RocksDB.
    pub(in crate::db) fn refuses_to_go_back(&mut self) -> bool {
        let refuses = self.auto_refresh.as_ref().is_some_and(|refresh| refresh.is_tailing());
        if refuses {
            let error = Error::not_supported("a tailing iterator does not go back");
            self.entries_mut().fail(error);
        }
        refuses
    }

    /// Refreshes if it is time to, and has `go_on` begin at the key on which the iterator stood.
    fn refresh_at_key(
        &mut self,
        go_on: impl FnOnce(&mut DbIter<Source, CursorBlobs>, &[u8]),
    ) -> bool {
        let (Some(cursor), Some(refresh)) = (&self.cursor, &mut self.auto_refresh) else {
            return false;
        };
        if !refresh.is_due() || !cursor.entries.valid() || !refresh.is_behind(cursor) {
            return false;
        }
        let key = cursor.entries.key().to_vec();
        let renewal = self.renew();
        if renewal == Renewal::Done {
            go_on(self.entries_mut(), &key);
        }
        renewal != Renewal::None
    }

    /// Lets go of what is out of date.
    fn renew(&mut self) -> Renewal {
        let (Some(cursor), Some(refresh)) = (&self.cursor, &mut self.auto_refresh) else {
            return Renewal::None;
        };
        if !refresh.is_behind(cursor) {
            return Renewal::None;
        }
        let now = Cell::new(0);
        let renewed = match &refresh.target {
            Target::Held(snapshot) => cursor.renewed(cursor.origin(), |_| snapshot.sequence()),
            Target::Newest(_) => cursor.renewed(cursor.origin(), |snapshots| {
                now.set(snapshots.published.load(Ordering::Acquire));
                now.get()
            }),
        };
        match (renewed, &mut refresh.target) {
            (Ok(renewed), target) => {
                match target {
                    Target::Held(_) => Sometimes::IteratorRefreshed.reached(),
                    Target::Newest(seen) => *seen = now.get(),
                }
                self.cursor = Some(renewed);
                Renewal::Done
            }
            (Err(_), Target::Held(_)) => Renewal::None,
            (Err(error), Target::Newest(_)) => {
                self.entries_mut().fail(error);
                Renewal::Failed
            }
        }
    }
}

/// What became of a refresh.
#[derive(PartialEq, Eq)]
enum Renewal {
    /// There is nothing newer, or it cannot be had, and the old will do.
    None,
    /// There is a new cursor, which stands nowhere.
    Done,
    /// What is newer cannot be had; the iterator has the error.
    Failed,
}
