//! Threads with lower priority on Linux, where each thread has its own niceness under its own id.

use parking_lot::Mutex;

use super::Task;

/// Runs a task in a thread that is so much nicer than the calling one, and returns when it has
/// ended.
pub(super) fn run_giving_way(name: &str, niceness: i32, task: Task<'_>) {
    let task = Mutex::new(Some(task));
    let run = || task.lock().take().expect("it is run once")();
    std::thread::scope(|scope| {
        let started =
            std::thread::Builder::new().name(name.to_string()).spawn_scoped(scope, || {
                if let Err(error) = give_way(niceness) {
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
fn give_way(niceness: i32) -> std::io::Result<()> {
    let thread = Some(rustix::thread::gettid());
    let now = rustix::process::getpriority_process(thread)?;
    Ok(rustix::process::setpriority_process(thread, now.saturating_add(niceness))?)
}

#[cfg(test)]
mod tests;
