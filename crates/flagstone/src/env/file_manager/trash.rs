//! Files that wait to be removed, and the pace at which they are.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::SstFileManagerOptions;
use super::space::Space;
use crate::base::sync::{Condvar, Mutex};
use crate::base::{Result, Sometimes};
use crate::env::threads::Next;
use crate::env::{Clock, Env, FileSystem};

/// After how long the thread looks again where there is no trash.
pub(super) const IDLE: Duration = Duration::from_secs(3600);

/// A file that waits.
pub(super) struct TrashFile {
    pub(super) database: u64,
    pub(super) path: PathBuf,
    /// Bytes that are left of it.
    pub(super) size: u64,
    pub(super) fs: Arc<dyn FileSystem>,
}

/// The files that wait.
pub(super) struct Trash {
    clock: Arc<dyn Clock>,
    /// The manager's sums, and not the manager: its thread would wait for itself if it had the last
    /// hold of that.
    space: Arc<Mutex<Space>>,
    /// Whether the world has threads; otherwise each deletion does a step.
    has_thread: bool,
    chunk: u64,
    state: Mutex<State>,
    emptied: Condvar,
}

struct State {
    rate: u64,
    max_ratio: f64,
    waiting: VecDeque<TrashFile>,
    /// Of those that wait and those in work.
    bytes: u64,
    in_work: usize,
    /// Until then what was removed uses the rate up.
    due_us: u64,
}

/// What became of a file.
enum Removed {
    Whole,
    Bytes(u64),
}

impl Trash {
    pub(super) fn new(options: SstFileManagerOptions, env: &Env, space: Arc<Mutex<Space>>) -> Self {
        Self {
            clock: env.clock.clone(),
            space,
            has_thread: env.spawner.choose_step(1).is_none(),
            chunk: options.bytes_max_delete_chunk,
            state: Mutex::new(State {
                rate: options.delete_rate_bytes_per_second,
                max_ratio: options.max_trash_db_ratio,
                waiting: VecDeque::new(),
                bytes: 0,
                in_work: 0,
                due_us: 0,
            }),
            emptied: Condvar::new(),
        }
    }

    pub(super) fn has_thread(&self) -> bool {
        self.has_thread
    }

    pub(super) fn rate(&self) -> u64 {
        self.state.lock().rate
    }

    pub(super) fn set_rate(&self, rate: u64) {
        let mut state = self.state.lock();
        (state.rate, state.due_us) = (rate, 0);
    }

    pub(super) fn max_ratio(&self) -> f64 {
        self.state.lock().max_ratio
    }

    pub(super) fn set_max_ratio(&self, ratio: f64) {
        self.state.lock().max_ratio = ratio;
    }

    pub(super) fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        let state = self.state.lock();
        state.waiting.is_empty() && state.in_work == 0
    }

    /// Whether an obsolete file becomes trash, where all files have `total` bytes.
    pub(super) fn is_wanted(&self, total: u64) -> bool {
        let state = self.state.lock();
        state.rate > 0 && state.bytes as f64 <= total as f64 * state.max_ratio
    }

    pub(super) fn push(&self, file: TrashFile) {
        let mut state = self.state.lock();
        state.bytes = state.bytes.saturating_add(file.size);
        state.waiting.push_back(file);
    }

    /// Removes a file, or a part of it, if the rate permits.
    pub(super) fn step(&self) -> Next {
        let mut state = self.state.lock();
        let now = self.clock.now_us();
        if state.rate > 0 && now < state.due_us {
            return Next::After(Duration::from_micros(state.due_us - now));
        }
        let Some(mut file) = state.waiting.pop_front() else { return Next::After(IDLE) };
        state.in_work += 1;
        let chunk = if state.rate > 0 { self.chunk } else { 0 };
        drop(state);
        let removed = remove(&file, chunk);
        let is_gone = !matches!(removed, Ok(Removed::Bytes(_)));
        if is_gone {
            self.note_gone(&file, removed.is_ok());
        }
        let bytes = match removed {
            Ok(Removed::Bytes(bytes)) => bytes,
            Ok(Removed::Whole) => file.size,
            Err(error) => {
                tracing::warn!(%error, "cannot remove trash; the next opening tries again");
                file.size
            }
        };
        let mut state = self.state.lock();
        state.in_work -= 1;
        state.bytes = state.bytes.saturating_sub(bytes);
        if state.rate > 0 {
            let pause = u128::from(bytes) * 1_000_000 / u128::from(state.rate);
            let pause = u64::try_from(pause).unwrap_or(u64::MAX);
            state.due_us = now.max(state.due_us).saturating_add(pause);
        }
        if !is_gone {
            file.size -= bytes;
            state.waiting.push_front(file);
        } else if state.waiting.is_empty() && state.in_work == 0 {
            self.emptied.notify_all();
        }
        Next::Again
    }

    /// What could not be removed takes its space on.
    fn note_gone(&self, file: &TrashFile, is_removed: bool) {
        if is_removed {
            self.space.lock().remove(file.database, &file.path);
        }
    }

    /// Waits for the thread, or does its work if there is none.
    pub(super) fn wait_until_empty(&self, has_thread: bool) {
        if has_thread {
            let mut state = self.state.lock();
            while !state.waiting.is_empty() || state.in_work > 0 {
                self.emptied.wait(&mut state);
            }
            return;
        }
        while !self.is_empty() {
            if let Next::After(pause) = self.step() {
                self.clock.sleep(pause);
            }
        }
    }
}

/// Removes the file, or gives back the last `chunk` bytes of one that has more, where nothing else
/// has the file: a checkpoint by a link, or another process that reads it.
fn remove(file: &TrashFile, chunk: u64) -> Result<Removed> {
    if chunk > 0 && file.size > chunk && punch_end(file, chunk).unwrap_or(false) {
        Sometimes::TrashPunched.reached();
        return Ok(Removed::Bytes(chunk));
    }
    match file.fs.remove(&file.path) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Removed::Whole),
    }
}

fn punch_end(file: &TrashFile, chunk: u64) -> Result<bool> {
    // No link is made of trash: nothing lists it.
    if file.fs.metadata(&file.path)?.links > 1 {
        return Ok(false);
    }
    let open = file.fs.open_reclaimable(&file.path)?;
    if !open.claim()? {
        return Ok(false);
    }
    open.punch_hole(file.size - chunk..file.size)
}
