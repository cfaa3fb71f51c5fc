//! Threads with lower priority on Linux, where each thread has its own niceness under its own id,
//! and its own class of I/O.

use parking_lot::Mutex;

use super::{LowPriority, Task};

/// Runs a task in a thread that stands back so far behind the calling one, and returns when it has
/// ended.
pub(super) fn run_giving_way(name: &str, priority: LowPriority, task: Task<'_>) {
    let task = Mutex::new(Some(task));
    let run = || task.lock().take().expect("it is run once")();
    std::thread::scope(|scope| {
        let started =
            std::thread::Builder::new().name(name.to_string()).spawn_scoped(scope, || {
                if let Err(error) = give_way(priority) {
                    tracing::warn!(%error, name, "cannot lower the priority of background work");
                }
                run();
            });
        if let Err(error) = started {
            tracing::warn!(%error, name, "cannot create a thread; background work keeps its normal priority");
            run();
        }
    });
}

/// Lowers the priority of the calling thread, for good.
fn give_way(priority: LowPriority) -> std::io::Result<()> {
    if priority.niceness > 0 {
        let thread = Some(rustix::thread::gettid());
        let now = rustix::process::getpriority_process(thread)?;
        rustix::process::setpriority_process(thread, now.saturating_add(priority.niceness))?;
    }
    if priority.idle_io { io_class::set_idle() } else { Ok(()) }
}

/// `ioprio_set(2)` and `ioprio_get(2)`, which have no wrappers in libc.
mod io_class {
    use std::io;

    const WHO_PROCESS: libc::c_int = 1;
    const CLASS_SHIFT: libc::c_int = 13;
    pub(super) const IDLE: libc::c_int = 3;

    /// The calling thread gets the disk only when no other thread wants it.
    pub(super) fn set_idle() -> io::Result<()> {
        // SAFETY: the call takes numbers alone; 0 is the calling thread.
        #[expect(unsafe_code, reason = "rustix does not have the call")]
        let answer =
            unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, IDLE << CLASS_SHIFT) };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The class of the calling thread.
    #[cfg(test)]
    pub(super) fn get() -> io::Result<libc::c_int> {
        // SAFETY: as in `set_idle`.
        #[expect(unsafe_code, reason = "rustix does not have the call")]
        let answer = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
        let answer = libc::c_int::try_from(answer).unwrap_or(-1);
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer >> CLASS_SHIFT) }
    }
}

#[cfg(test)]
mod tests;
