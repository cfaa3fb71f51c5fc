//! Open file description locks: record locks that belong to an open file and not to the process.
//!
//! - Closing another descriptor of the same file leaves them alone.
//! - They conflict with POSIX record locks on the same file, of this process and of others.
//! - A forked child shares them. Its unlocking would take the lock from the parent; its closing
//!   does not.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use libc::{c_int, c_short};
use rustix::io::Errno;

/// How a lock is held, or what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// By one holder only; the file must be open for writing.
    Exclusive,
    /// By several holders; the file must be open for reading.
    Shared,
}

/// A lock in the way of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder {
    /// How it is held.
    pub(super) share: Share,
    /// The process that holds a POSIX record lock: 0 if it is in another process namespace, -1 for
    /// an open file description lock.
    pub(super) process: i32,
}

/// Takes the lock without waiting for it.
///
/// # Errors
/// `AGAIN` or `ACCESS` if there is one in the way; `INVAL` if the system has no such locks.
pub(super) fn take(file: &File, share: Share) -> Result<(), Errno> {
    control(file, libc::F_OFD_SETLK, &mut asking(kind(share)))
}

/// Releases the lock, also for descriptors that a forked child has inherited.
///
/// # Errors
/// None that is known.
pub(super) fn release(file: &File) -> Result<(), Errno> {
    control(file, libc::F_OFD_SETLK, &mut asking(libc::F_UNLCK))
}

/// The lock in the way of an exclusive one.
///
/// # Errors
/// As [`take`].
pub(super) fn holder(file: &File) -> Result<Option<Holder>, Errno> {
    asked_for(file, libc::F_OFD_GETLK)
}

/// The lock in the way of an exclusive record lock of this process.
///
/// # Errors
/// None that is known.
pub(super) fn holder_against_record(file: &File) -> Result<Option<Holder>, Errno> {
    asked_for(file, libc::F_GETLK)
}

fn asked_for(file: &File, command: c_int) -> Result<Option<Holder>, Errno> {
    let mut found = asking(libc::F_WRLCK);
    control(file, command, &mut found)?;
    let share = match c_int::from(found.l_type) {
        libc::F_UNLCK => return Ok(None),
        libc::F_RDLCK => Share::Shared,
        _ => Share::Exclusive,
    };
    Ok(Some(Holder { share, process: found.l_pid }))
}

fn kind(share: Share) -> c_int {
    match share {
        Share::Exclusive => libc::F_WRLCK,
        Share::Shared => libc::F_RDLCK,
    }
}

/// The whole file. The process must be 0 for these commands.
fn asking(kind: c_int) -> libc::flock {
    libc::flock {
        l_type: kind as c_short,
        l_whence: libc::SEEK_SET as c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn control(file: &File, command: c_int, lock: &mut libc::flock) -> Result<(), Errno> {
    // SAFETY: the descriptor is open as long as `file` is borrowed. All commands used here take a
    // pointer to a `flock`, which they read and write during the call only.
    #[expect(unsafe_code, reason = "rustix has no open file description locks")]
    let outcome = unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) };
    if outcome == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}
