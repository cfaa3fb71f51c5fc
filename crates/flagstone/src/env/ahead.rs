//! Reads the next parts of files while earlier parts are being used.
//!
//! [`ReadAhead::ask`] hands a buffer to a thread that fills the buffers of all callers in the order
//! of their requests. [`Coming::wait`] waits for one. A caller that no longer needs the data drops
//! its [`Coming`]; a read not yet begun is then never made.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::direct::AlignedBuffer;
use super::{Join, RandomAccessFile, Spawn};
use crate::base::sync::{Condvar, Mutex};
use crate::base::{Code, Error, Result};

/// A thread that reads for others.
pub struct ReadAhead {
    spawner: Arc<dyn Spawn>,
    shared: Arc<Shared>,
    /// Started for the first read: many a file is smaller than what is read at once.
    thread: Mutex<Option<Box<dyn Join>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    asked: VecDeque<Request>,
    has_ended: bool,
}

struct Request {
    file: Arc<dyn RandomAccessFile>,
    offset: u64,
    buffer: AlignedBuffer,
    filled: Arc<Filled>,
}

/// Where a buffer comes back.
#[derive(Default)]
struct Filled {
    outcome: Mutex<Option<(AlignedBuffer, Result<usize>)>>,
    changed: Condvar,
}

/// A read that is under way.
pub struct Coming {
    filled: Arc<Filled>,
}

impl ReadAhead {
    /// Reads in a thread of this spawner's.
    pub fn new(spawner: Arc<dyn Spawn>) -> Self {
        Self { spawner, shared: Arc::default(), thread: Mutex::default() }
    }

    /// Has `buffer` filled from `offset` of the file on.
    ///
    /// # Errors
    /// `IoError` if there is no thread to be had.
    pub fn ask(
        &self,
        file: Arc<dyn RandomAccessFile>,
        offset: u64,
        buffer: AlignedBuffer,
    ) -> Result<Coming> {
        self.start()?;
        let filled = Arc::<Filled>::default();
        let coming = Coming { filled: filled.clone() };
        self.shared.state.lock().asked.push_back(Request { file, offset, buffer, filled });
        self.shared.changed.notify_one();
        Ok(coming)
    }

    fn start(&self) -> Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            *thread = Some(
                self.spawner
                    .spawn("flagstone-read", Box::new(move || shared.read_until_ended()))?,
            );
        }
        Ok(())
    }
}

impl Shared {
    /// Reads all that was asked for, also what is left when it has ended: somebody may wait for it.
    fn read_until_ended(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(request) = state.asked.pop_front() {
                drop(state);
                request.read();
                state = self.state.lock();
            } else if state.has_ended {
                return;
            } else {
                self.changed.wait(&mut state);
            }
        }
    }
}

impl Request {
    fn read(self) {
        let Self { file, offset, mut buffer, filled } = self;
        if Arc::strong_count(&filled) == 1 {
            return;
        }
        let read = catch_unwind(AssertUnwindSafe(|| file.read_at(offset, buffer.as_mut_slice())));
        let panicked = |_| Err(Error::new(Code::Aborted, "reading panicked").at(file.path()));
        let read = read.unwrap_or_else(panicked);
        buffer.resize(*read.as_ref().unwrap_or(&0));
        *filled.outcome.lock() = Some((buffer, read));
        filled.changed.notify_one();
    }
}

impl Coming {
    /// The buffer, cut to what was read: less than asked for where the file ends, nothing if that
    /// failed.
    pub fn wait(self) -> (AlignedBuffer, Result<usize>) {
        let mut outcome = self.filled.outcome.lock();
        loop {
            if let Some(outcome) = outcome.take() {
                return outcome;
            }
            self.filled.changed.wait(&mut outcome);
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.shared.state.lock().has_ended = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.get_mut().take() {
            thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
