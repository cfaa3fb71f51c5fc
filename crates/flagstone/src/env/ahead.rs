//! Reads what comes next of files while what was read before is being used.
//!
//! [`ReadAhead::ask`] hands a buffer to a thread, which fills the buffers of all who ask, in the order in which they did;
//! [`Coming::wait`] is where one is needed. Who gives up waiting drops what is coming: if it was not begun, it is never read.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::direct::AlignedBuffer;
use super::{File, Join, Spawn};
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
    file: Arc<dyn File>,
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
    pub fn ask(&self, file: Arc<dyn File>, offset: u64, buffer: AlignedBuffer) -> Result<Coming> {
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
            *thread =
                Some(self.spawner.spawn("flagstone-read", Box::new(move || shared.read_until_ended()))?);
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
    /// The buffer, cut to what was read: less than asked for where the file ends, nothing if that failed.
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
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::env::{Env, FileAround, OpenMode};

    /// A file whose reads wait until they are let go, are counted, and fail or panic beyond some offsets.
    struct Held {
        inner: Arc<dyn File>,
        held: Mutex<()>,
        reads: AtomicU64,
    }

    const FAILS_FROM: u64 = 1 << 20;
    const PANICS_FROM: u64 = 2 << 20;

    impl FileAround for Held {
        fn inner(&self) -> &dyn File {
            &*self.inner
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
            let _held = self.held.lock();
            self.reads.fetch_add(1, Ordering::Relaxed);
            assert!(offset < PANICS_FROM);
            if offset < FAILS_FROM {
                self.inner.read_at(offset, buffer)
            } else {
                Err(Error::io("read", self.path(), std::io::Error::other("broken")))
            }
        }
    }

    fn held() -> (Arc<Held>, Vec<u8>) {
        let env = Env::memory();
        env.fs.create_directory(Path::new("/d")).unwrap();
        let inner = env.fs.open(Path::new("/d/f"), OpenMode::Create).unwrap();
        let content: Vec<u8> = (0..50_000u32).map(|n| (n % 251) as u8).collect();
        inner.write_at(0, &content).unwrap();
        (Arc::new(Held { inner, held: Mutex::default(), reads: AtomicU64::default() }), content)
    }

    fn room(length: usize) -> AlignedBuffer {
        let mut buffer = AlignedBuffer::with_capacity(length);
        buffer.resize(length);
        buffer
    }

    #[test]
    fn what_was_asked_for_comes_while_others_go_on() {
        let (file, content) = held();
        let ahead = ReadAhead::new(Env::os().spawner);
        let still = file.held.lock();
        let offsets = [0u64, 4096, 49_152, 60_000];
        let coming = offsets.map(|offset| ahead.ask(file.clone(), offset, room(4096)).unwrap());
        drop(still);
        for (offset, coming) in offsets.into_iter().zip(coming) {
            let (buffer, read) = coming.wait();
            let expected = content.get(offset as usize..).unwrap_or_default();
            let expected = &expected[..expected.len().min(4096)];
            assert_eq!((buffer.as_slice(), read.unwrap()), (expected, expected.len()), "{offset}");
        }
    }

    #[test]
    fn who_waits_hears_of_an_error_and_of_a_panic_and_others_go_on() {
        let (file, content) = held();
        let ahead = ReadAhead::new(Env::os().spawner);
        for (offset, words) in [(FAILS_FROM, "broken"), (PANICS_FROM, "reading panicked")] {
            let (buffer, read) = ahead.ask(file.clone(), offset, room(100)).unwrap().wait();
            assert!(buffer.is_empty());
            assert!(read.unwrap_err().to_string().contains(words));
        }
        let (buffer, _) = ahead.ask(file, 7, room(100)).unwrap().wait();
        assert_eq!(buffer.as_slice(), &content[7..107]);
    }

    #[test]
    fn what_nobody_waits_for_is_not_read_and_what_somebody_waits_for_is() {
        let (file, _) = held();
        let ahead = ReadAhead::new(Env::os().spawner);
        let still = file.held.lock();
        let first = ahead.ask(file.clone(), 0, room(100)).unwrap();
        (0..10).for_each(|_| drop(ahead.ask(file.clone(), 100, room(100)).unwrap()));
        let last = ahead.ask(file.clone(), 200, room(100)).unwrap();
        drop(still);
        drop(ahead);
        assert_eq!((first.wait().1.unwrap(), last.wait().1.unwrap()), (100, 100));
        assert_eq!(file.reads.load(Ordering::Relaxed), 2);
    }
}
