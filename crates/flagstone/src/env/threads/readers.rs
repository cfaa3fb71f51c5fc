//! Threads that read data that is not in memory, for callers that must not block.
//!
//! 1. Work is queued. A thread is started for it unless one is idle or the maximum is reached.
//!    Threads stay until the pool is dropped.
//! 2. The result is put into a slot shared with the waiting future, and the future's task is woken,
//!    without holding a lock.
//! 3. A future that is dropped marks its slot. Work not yet begun is then skipped, and data already
//!    read is dropped.
//!
//! **Invariants.** Queued work owns what it reads from, so a pool is dropped only when none is
//! queued. A slot is filled for every queued piece of work, even if that panics. The pool never
//! waits for its threads: one of them may wake the task that drops the pool.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::base::sync::{Condvar, Mutex};
use crate::base::{Code, Error, Result};
use crate::env::Spawn;

/// As many reads keep a device busy.
const THREADS_MAX: usize = 16;

type Work = Box<dyn FnOnce() + Send>;

/// The threads, and what they have to do.
#[derive(Default)]
pub(crate) struct ReaderPool {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    threads: usize,
    idle: usize,
    has_ended: bool,
}

impl ReaderPool {
    /// Has `work` done by one of the threads.
    ///
    /// # Errors
    /// `IoError` if the system has no thread left, and there is none yet.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        spawner: &dyn Spawn,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Ticket<T>> {
        let slot = Arc::new(Slot(Mutex::new(State::Waiting(None))));
        let told = slot.clone();
        self.queue(spawner, Box::new(move || told.fill(work)))?;
        Ok(Ticket(slot))
    }

    fn queue(&self, spawner: &dyn Spawn, work: Work) -> Result<()> {
        let mut queue = self.shared.queue.lock();
        if queue.waiting.len() >= queue.idle && queue.threads < THREADS_MAX {
            let shared = self.shared.clone();
            match spawner.spawn("flagstone-read", Box::new(move || shared.work_until_ended())) {
                // Nobody waits for it; it ends when the pool does.
                Ok(_) => queue.threads += 1,
                Err(error) if queue.threads == 0 => return Err(error),
                // Those that there are will come to it.
                Err(_) => {}
            }
        }
        queue.waiting.push_back(work);
        drop(queue);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl Drop for ReaderPool {
    fn drop(&mut self) {
        self.shared.queue.lock().has_ended = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn work_until_ended(&self) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(work) = queue.waiting.pop_front() {
                drop(queue);
                // What a task does when it is woken may panic; the thread is still needed.
                let _ = catch_unwind(AssertUnwindSafe(work));
                queue = self.queue.lock();
            } else if queue.has_ended {
                return;
            } else {
                queue.idle += 1;
                self.changed.wait(&mut queue);
                queue.idle -= 1;
            }
        }
    }
}

/// Where what was read is handed over.
struct Slot<T>(Mutex<State<T>>);

enum State<T> {
    /// For the task of the last poll.
    Waiting(Option<Waker>),
    Done(Result<T>),
    /// It was taken, or nobody wants it.
    Over,
}

impl<T> Slot<T> {
    fn fill(&self, work: impl FnOnce() -> Result<T>) {
        if matches!(*self.0.lock(), State::Over) {
            return;
        }
        let done = catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err(Error::new(Code::Aborted, "a read panicked")));
        let mut state = self.0.lock();
        let before = match *state {
            State::Waiting(_) => std::mem::replace(&mut *state, State::Done(done)),
            // Dropped without the lock: it may let go of files.
            _ => State::Done(done),
        };
        drop(state);
        if let State::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }
}

/// What work that was queued will come to.
pub(crate) struct Ticket<T>(Arc<Slot<T>>);

impl<T> Future for Ticket<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let mut state = self.0.0.lock();
        match &mut *state {
            State::Waiting(Some(waker)) => waker.clone_from(context.waker()),
            State::Waiting(none) => *none = Some(context.waker().clone()),
            State::Done(_) | State::Over => match std::mem::replace(&mut *state, State::Over) {
                State::Done(done) => return Poll::Ready(done),
                _ => panic!("a future is not polled after it was ready"),
            },
        }
        Poll::Pending
    }
}

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        let unwanted = std::mem::replace(&mut *self.0.0.lock(), State::Over);
        drop(unwanted);
    }
}
