//! What somebody who reads along was given, and what the database must say to it after a crash.
//!
//! - Whoever holds what a power loss has taken is refused, also when as much was written since.
//! - Whoever holds what is there goes on behind it, whole batch by whole batch; or is told that the
//!   WALs no longer tell.

use flagstone::base::{Code, Error, Result, SequenceNumber};
use flagstone::batch::{Operation, WriteBatch};
use flagstone::db::{Db, UpdatePosition};

use super::promises::{Found, LOGGED, Moment, Promises};

/// A batch that was handed out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Followed {
    pub number: u64,
    pub position: UpdatePosition,
    pub at: Moment,
}

/// The number of a batch.
pub(super) fn number_of(batch: &WriteBatch) -> u64 {
    let number = |operation| match operation {
        Operation::Put { key: LOGGED, value, .. } => std::str::from_utf8(value).ok()?.parse().ok(),
        _ => None,
    };
    let mut operations = batch.iter().map(|operation| operation.expect("an operation"));
    operations.find_map(number).unwrap_or_else(|| panic!("nobody wrote {batch:?}"))
}

/// What the WALs tell after a power loss, if they do: what was flushed need not be in WALs that
/// nobody had synced.
///
/// # Panics
/// With any other error.
pub(super) fn told<T>(outcome: Result<T>) -> Option<T> {
    match outcome {
        Ok(told) => Some(told),
        Err(error) if matches!(error.code(), Code::NotFound | Code::Corruption) => None,
        Err(error) => panic!("reading along: {error}"),
    }
}

/// Whether a large value is gone that was overwritten, as others have its space now.
pub(super) fn is_given_back(error: &Error) -> bool {
    let in_blob_file =
        error.path().is_some_and(|path| path.extension().is_some_and(|end| end == "blob"));
    error.is_not_found() && in_blob_file
}

/// The oldest write that the WALs have; `None` where nobody can rely on it.
fn oldest(db: &Db, is_whole: bool) -> Option<SequenceNumber> {
    db.oldest_update().expect("a look at the WALs").filter(|_| is_whole)
}

/// Whether the WALs have the last write of this batch, and so all that tells of what is behind it.
fn has(oldest: Option<SequenceNumber>, followed: &Followed) -> bool {
    oldest.is_some_and(|oldest| oldest < followed.position.next_sequence)
}

impl Promises {
    /// How many batches had been handed out at this moment.
    pub(super) fn followed_at(&self, at: Moment) -> usize {
        self.followed.iter().filter(|followed| followed.at <= at).count()
    }

    fn is_there(&self, number: u64, found: &Found) -> bool {
        number <= found.logged && self.batches.iter().any(|batch| batch.number == number)
    }

    /// Asks a database that holds `found` for what follows each of them. If it `is_whole`, no power
    /// loss has taken anything of its WALs: they tell of all that is behind the oldest write that
    /// they have.
    ///
    /// # Panics
    /// If it says what is not so.
    pub(super) fn check_followed(&self, db: &Db, found: &Found, at: Moment, is_whole: bool) {
        let oldest = oldest(db, is_whole);
        for followed in self.followed.iter().filter(|followed| followed.at <= at) {
            let number = followed.number;
            let is_there = self.is_there(number, found);
            match db.get_updates_after(followed.position) {
                Ok(_) if !is_there => {
                    panic!("who was given batch {number}, which is lost, is not told so")
                }
                Ok(mut updates) => {
                    let mut last = number;
                    let mut is_cut = false;
                    loop {
                        let update = updates.next_update();
                        is_cut |= update.as_ref().is_err_and(is_given_back);
                        assert!(
                            is_cut || !is_whole || update.is_ok(),
                            "behind batch {last}: {:?}",
                            update.err()
                        );
                        let Some(update) = told(update).flatten() else { break };
                        let next = number_of(&update.batch);
                        let mut between = self.batches.iter().filter(|batch| batch.is_logged);
                        let is_missed =
                            between.any(|batch| last < batch.number && batch.number < next);
                        assert!(
                            last < next && !is_missed,
                            "behind batch {last} batch {next} is handed out"
                        );
                        last = next;
                    }
                    let (is_all, end) = (is_cut || last >= found.logged, found.logged);
                    assert!(
                        is_all || !is_whole,
                        "batch {last} is the last of {end} behind batch {number}"
                    );
                }
                Err(error) if error.code() == Code::NotFound && !has(oldest, followed) => {}
                Err(error) if error.code() == Code::InvalidArgument && !is_there => {}
                Err(error) => panic!("behind batch {number}, which is there ({is_there}): {error}"),
            }
        }
    }

    /// Asks it again when it has been written to: what is lost is, whatever has its sequence
    /// numbers now.
    ///
    /// # Panics
    /// If it is taken for what is there.
    pub(super) fn check_lost(&self, db: &Db, found: &Found, at: Moment, is_whole: bool) {
        let oldest = oldest(db, is_whole);
        for followed in self.followed.iter().filter(|followed| followed.at <= at) {
            let number = followed.number;
            let is_there = self.is_there(number, found);
            match db.get_updates_after(followed.position) {
                Ok(_) => {
                    assert!(
                        is_there,
                        "who was given batch {number}, which is lost, is not told so later"
                    )
                }
                Err(error) if error.code() == Code::NotFound && !has(oldest, followed) => {}
                Err(error) if error.code() == Code::InvalidArgument && !is_there => {}
                Err(error) => {
                    panic!("behind batch {number}, later, which is there ({is_there}): {error}")
                }
            }
        }
    }
}
