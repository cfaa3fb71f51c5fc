//! Space that is kept for what makes space (`reserved_disk_space`).
//!
//! 1. The file `RESERVE` holds so many bytes of the disk while all is well.
//! 2. Where a write, a flush or a compaction finds the disk full, the file gives them up, recycled
//!    WALs go, and writes are suspended: what has become free is for flushes, compactions, and a
//!    few deletions.
//! 3. After each flush, and twice a second, the flush worker looks whether there is space for the
//!    reserve and some more. Then the file takes its bytes again, and writes go on.
//!
//! A file, and not a look at the free space now and then: what other programs write does not ask.
//!
//! **Thread safety.** The lock of the file is the last to be taken. Suspending and resuming happen
//! under it, so that writes never go on while the reserve is given up.

use std::sync::Arc;

use crate::base::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use crate::base::{Error, Result, Sometimes, SubCode, file_name};
use crate::batch::{Operation, WriteBatch};
use crate::db::disk::Disk;
use crate::env::{IoMode, WritableFile};
use crate::options::BackgroundErrorReason;

/// The part of the reserve that deletions may take.
const DELETIONS_PART: u64 = 8;

/// The state of the reserve; without one, nothing is ever given up.
#[derive(Default)]
pub(in crate::db) struct Reserve {
    size: u64,
    is_released: AtomicBool,
    /// Bytes of deletions that may still be written while it is given up.
    deletions: AtomicU64,
    file: Mutex<Option<Arc<dyn WritableFile>>>,
    /// Why the last flush failed, if it found no room in what was given up either.
    exhausted: Mutex<Option<Error>>,
}

impl Reserve {
    pub(super) fn new(size: u64) -> Self {
        Self { size, ..Self::default() }
    }

    /// Whether its space is in use.
    fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Acquire)
    }
}

impl Disk {
    /// Whether the reserve was given up for flushes and compactions.
    pub(in crate::db) fn is_reserve_released(&self) -> bool {
        self.reserve.is_released()
    }

    /// At the beginning of opening: lets recovery have the space. An open without a reserve removes
    /// an earlier one's file.
    pub(in crate::db) fn open_reserve(&self) -> Result<()> {
        let path = file_name::reserve(&self.context.path);
        let is_there = match self.context.env.fs.metadata(&path) {
            Err(error) if !error.is_not_found() => return Err(error),
            found => found.is_ok(),
        };
        if self.reserve.size == 0 {
            return if is_there { self.context.env.fs.remove(&path) } else { Ok(()) };
        }
        let fs = &self.context.env.fs;
        let file = if is_there {
            fs.reopen_writable(&path)?
        } else {
            fs.create_writable(&path, IoMode::Buffered)?
        };
        file.truncate(0)?;
        self.reserve.is_released.store(true, Ordering::Release);
        *self.reserve.file.lock() = Some(file);
        Ok(())
    }

    /// At the end of opening. If there is no space for it, the database is open, and writes are
    /// suspended.
    pub(in crate::db) fn fill_reserve(&self) -> Result<()> {
        let file = self.reserve.file.lock();
        let Some(opened) = &*file else { return Ok(()) };
        match opened.allocate(self.reserve.size, false) {
            Err(error) if error.subcode() == SubCode::NoSpace => {
                opened.truncate(0)?;
                self.reserve.deletions.store(self.reserve.size / DELETIONS_PART, Ordering::Release);
                self.context.poison.record(BackgroundErrorReason::Reserve, &self.refusal(&error));
                Ok(())
            }
            outcome => {
                outcome?;
                if opened.size()? < self.reserve.size {
                    return Err(Error::not_supported(
                        "reserved_disk_space: this file system cannot reserve space; set the option to 0",
                    )
                    .at(&self.context.path));
                }
                self.reserve.is_released.store(false, Ordering::Release);
                Ok(())
            }
        }
    }

    /// At close: the space stays reserved, for the recovery of the next open.
    pub(in crate::db) fn close_reserve(&self) {
        *self.reserve.file.lock() = None;
    }

    /// Gives the reserve up for the sake of flushes and compactions, after this error of a full
    /// disk; unless that was done.
    pub(in crate::db) fn give_up_reserve(&self, error: &Error) {
        let file = self.reserve.file.lock();
        let Some(file) = &*file else { return };
        if self.reserve.is_released() {
            return;
        }
        if let Err(error) = file.truncate(0) {
            tracing::warn!(%error, "cannot release the reserve");
            return;
        }
        Sometimes::ReserveReleased.reached();
        self.reserve.deletions.store(self.reserve.size / DELETIONS_PART, Ordering::Release);
        self.reserve.is_released.store(true, Ordering::Release);
        self.context.poison.record(BackgroundErrorReason::Reserve, &self.refusal(error));
    }

    /// A flush failed, perhaps although the reserve was given up for it.
    pub(in crate::db) fn note_exhausted(&self, error: &Error) {
        if error.subcode() == SubCode::NoSpace && self.reserve.is_released() {
            *self.reserve.exhausted.lock() = Some(error.clone());
        }
    }

    /// A flush succeeded, or there was nothing to flush: resumes writes, if the reserve is there or
    /// can be had again.
    pub(in crate::db) fn resume_writes(&self) {
        *self.reserve.exhausted.lock() = None;
        let file = self.reserve.file.lock();
        if let Some(file) = &*file
            && self.reserve.is_released()
        {
            let known = self.context.env.fs.free_space(&self.context.path);
            if known.is_ok_and(|free| free.is_some_and(|free| free < self.wanted_space())) {
                return;
            }
            if file.allocate(self.reserve.size, false).is_err() {
                // Some file systems keep what they could give.
                let _ = file.truncate(0);
                return;
            }
            Sometimes::ReserveRegained.reached();
            self.reserve.is_released.store(false, Ordering::Release);
        }
        if self.check_allowed_space().is_ok() {
            self.context.poison.resume();
        }
    }

    /// After what may have made space.
    pub(in crate::db) fn regain_reserve(&self) {
        let is_limited = || match self.context.poison.check() {
            Err(error) => error.subcode() == SubCode::SpaceLimit,
            Ok(()) => false,
        };
        if self.reserve.is_released() || is_limited() {
            self.resume_writes();
        }
    }

    /// What must be free for writes to go on: the reserve, and enough that they do not stop at
    /// once.
    pub(in crate::db) fn wanted_space(&self) -> u64 {
        let more = self.limits.largest_write_buffer();
        self.reserve.size.saturating_add(self.reserve.size / 4).saturating_add(more)
    }

    pub(in crate::db) fn refusal(&self, error: &Error) -> Error {
        error.clone().context(format!(
            "{} bytes must be free in {}, of which {} are for flushes and compactions (reserved_disk_space)",
            self.wanted_space(),
            self.context.path.display(),
            self.reserve.size
        ))
    }

    /// [`crate::db::poison::Poison::check`], for a batch: one of deletions goes on while the
    /// reserve lasts.
    pub(in crate::db) fn check_healthy_for(&self, batch: &WriteBatch) -> Result<()> {
        self.context
            .poison
            .check()
            .or_else(|error| if self.may_make_space(batch, &error) { Ok(()) } else { Err(error) })
    }

    /// Whether a batch that was refused may be written all the same, since it makes space; takes
    /// its bytes from what deletions may have.
    pub(in crate::db) fn admit_deletions(&self, batch: &WriteBatch, error: &Error) -> bool {
        let bytes = batch.byte_size() as u64;
        let left = &self.reserve.deletions;
        self.may_make_space(batch, error)
            && left
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(bytes))
                .is_ok()
    }

    fn may_make_space(&self, batch: &WriteBatch, error: &Error) -> bool {
        let deletes = |operation: Result<Operation<'_>>| {
            matches!(
                operation,
                Ok(Operation::Delete { .. }
                    | Operation::SingleDelete { .. }
                    | Operation::DeleteRange { .. }
                    | Operation::LogData(_))
            )
        };
        error.subcode() == SubCode::NoSpace
            && self.reserve.is_released()
            && batch.iter().all(deletes)
    }

    /// [`DbInner::check_writable`], for a flush or compaction that somebody asks for: they go on
    /// while the reserve lasts.
    pub(in crate::db) fn check_changeable(&self) -> Result<()> {
        match self.context.check_writable() {
            Err(error) if error.subcode() == SubCode::SpaceLimit => Ok(()),
            Err(error) if error.subcode() == SubCode::NoSpace && self.reserve.is_released() => {
                self.reserve.exhausted.lock().clone().map_or(Ok(()), Err)
            }
            outcome => outcome,
        }
    }

    /// The same for what needs next to no space, and gives back much at once: also where flushes
    /// found no room in the reserve.
    pub(in crate::db) fn check_may_free(&self) -> Result<()> {
        match self.context.check_writable() {
            Err(error) if error.subcode() == SubCode::SpaceLimit => Ok(()),
            Err(error) if error.subcode() == SubCode::NoSpace && self.reserve.is_released() => {
                Ok(())
            }
            outcome => outcome,
        }
    }
}
