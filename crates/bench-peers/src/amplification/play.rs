//! One task: a fresh database, and the activities of its exercise one after the other.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::meter::Meter;
use super::task::{Activity, Outcome, Task};
use crate::cell::{Durability, Look};
use crate::data::{Draw, Permutation, Skew, Values};
use crate::engine::{self, Direction, Engine, Result};
use crate::work::{Ending, SCAN};

/// How long is read where nothing is written.
const READING: Duration = Duration::from_secs(1);

/// Does a task in an empty directory.
pub fn play(task: &Task, directory: &Path) -> Result<Outcome> {
    let cores = std::thread::available_parallelism()?.get() as u64;
    let tuning = task.contender.tuning(task, cores);
    let engine = engine::open(task.contender.engine(), directory, &tuning, Durability::Process)?;
    let meter = Meter { engine: engine.as_ref(), directory, live_bytes: AtomicU64::new(0) };
    let mut phases = Vec::new();
    for activity in task.exercise.activities() {
        let player =
            Player { engine: engine.as_ref(), task, activity: *activity, live: &meter.live_bytes };
        phases.push(meter.measure(*activity, task.puts(*activity), || player.play())?);
    }
    engine.close()?;
    Ok(Outcome { task: task.clone(), phases })
}

struct Player<'a> {
    engine: &'a dyn Engine,
    task: &'a Task,
    activity: Activity,
    live: &'a AtomicU64,
}

impl Player<'_> {
    fn play(&self) -> Result<()> {
        let is_over = AtomicBool::new(false);
        let end = Instant::now() + READING;
        match self.activity {
            Activity::Load => self.load(),
            Activity::WarmUp | Activity::Overwrite => self.overwrite(Durability::Process),
            Activity::Lookup | Activity::Scan => self.read(&|| Instant::now() < end),
            Activity::LookupWriting | Activity::ScanWriting => std::thread::scope(|scope| {
                let ending = Ending(&is_over);
                let reader = scope.spawn(|| self.read(&|| !is_over.load(Ordering::Relaxed)));
                let done = self.overwrite(Durability::Synced);
                drop(ending);
                reader.join().map_err(|_| "the reader panicked")??;
                done
            }),
        }
    }

    fn seed(&self) -> u64 {
        u64::from(self.task.round) * 1000 + self.activity as u64
    }

    fn load(&self) -> Result<()> {
        let order = Permutation::new(self.task.keys(), self.seed());
        self.put_all(Durability::Process, |position| order.at(position), self.task.entry_bytes())
    }

    fn overwrite(&self, durability: Durability) -> Result<()> {
        let keys = self.task.keys();
        let mut draw = Draw::new(Skew::Uniform, keys, self.seed());
        self.put_all(durability, |_| draw.next(keys), 0)
    }

    /// Puts all of the activity's entries, each of which adds so much to what lives.
    fn put_all(
        &self,
        durability: Durability,
        mut number: impl FnMut(u64) -> u64,
        added: u64,
    ) -> Result<()> {
        let size = self.task.value_size as usize;
        let (mut values, mut key) = (Values::new(size, self.seed()), Vec::new());
        for position in 0..self.task.puts(self.activity) {
            Task::KEYS.write(number(position), &mut key);
            self.engine.put(&key, values.next(size), durability)?;
            self.live.fetch_add(added, Ordering::Relaxed);
        }
        Ok(())
    }

    fn read(&self, goes_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let keys = self.task.keys();
        let mut draw = Draw::new(Skew::Uniform, keys, self.seed() + 500);
        let mut key = Vec::new();
        let scans = matches!(self.activity, Activity::Scan | Activity::ScanWriting);
        while goes_on() {
            Task::KEYS.write(draw.next(keys), &mut key);
            let found = if scans {
                self.engine
                    .scan(&key, Direction::Forward, SCAN, &mut |bytes| Look::Pages.at(bytes))?
                    > 0
            } else {
                self.engine.get(&key, &mut |bytes| Look::Pages.at(bytes))?
            };
            if !found {
                return Err("a key that was written is missing".into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
