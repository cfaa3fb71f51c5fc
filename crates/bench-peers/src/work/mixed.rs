//! Workloads that read and write at once, and writes without a limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Done;
use super::reads::{SCAN, draw};
use super::threads::{Ending, on_threads};
use crate::cell::Durability;
use crate::data::{Draw, Skew, Values};
use crate::engine::{Direction, Engine, Result};
use crate::measure::{Part, Recorder};
use crate::run::Stage;

/// The part of the lasting rate at which an overloaded engine is measured again.
const PACE: f64 = 0.9;
/// How long a paced writer sleeps when nothing is due.
const TICK: Duration = Duration::from_micros(100);
/// How much longer than others the overload lasts: stalls come late.
const OVERLOAD_LENGTHS: u32 = 4;

/// Draws keys and values, and writes them.
struct Writer<'a> {
    engine: &'a dyn Engine,
    stage: &'a Stage,
    draw: Draw,
    values: Values,
    key: Vec<u8>,
    durability: Durability,
}

impl<'a> Writer<'a> {
    fn new(engine: &'a dyn Engine, stage: &'a Stage, durability: Durability, thread: u32) -> Self {
        let draw = Draw::new(Skew::Uniform, stage.keys(), stage.seed_of(8, thread));
        let values = Values::new(stage.value_size(), stage.seed_of(9, thread));
        Self { engine, stage, draw, values, key: Vec::new(), durability }
    }

    fn write(&mut self) -> Result<()> {
        self.stage.cell.workload.keys().write(self.draw.next(self.stage.keys()), &mut self.key);
        self.engine.put(&self.key, self.values.next(self.stage.value_size()), self.durability)
    }
}

/// Writes so many bytes to keys that are there, with one thread; the writers that are measured have
/// other numbers.
pub fn overwrite(engine: &dyn Engine, stage: &Stage, bytes: u64) -> Result<()> {
    let mut writer = Writer::new(engine, stage, stage.cell.durability, u32::MAX);
    (0..bytes / stage.cell.entry_bytes()).try_for_each(|_| writer.write())
}

/// Runs readers for a time, and one writer for as long as they take.
fn beside_writer(
    engine: &dyn Engine,
    stage: &Stage,
    durability: Durability,
    read: impl Fn(u32, &mut Recorder) -> Result<()> + Sync,
    name: &str,
) -> Result<Done> {
    let is_over = AtomicBool::new(false);
    let (reads, writes) = std::thread::scope(|scope| -> Result<(Recorder, Recorder)> {
        let ending = Ending(&is_over);
        let writer = scope.spawn(|| {
            on_threads(1, |thread, recorder| {
                let mut writer = Writer::new(engine, stage, durability, thread);
                while !is_over.load(Ordering::Relaxed) {
                    writer.write()?;
                    recorder.finished(1);
                }
                Ok(())
            })
        });
        let reads = on_threads(stage.cell.threads, read);
        drop(ending);
        let writes = writer.join().map_err(|_| "the writer panicked")?;
        Ok((reads?, writes?))
    })?;
    let parts = vec![reads.part(name), writes.part("writes")];
    let written = parts[1].operations;
    Ok(Done::new(parts, written, stage.keys()))
}

/// Lookups beside a writer.
pub fn lookups_beside_writer(
    engine: &dyn Engine,
    stage: &Stage,
    length: Duration,
    durability: Durability,
) -> Result<Done> {
    let read = |thread: u32, recorder: &mut Recorder| {
        let mut draw = draw(stage, 10, thread);
        let mut key = Vec::new();
        while recorder.elapsed() < length {
            stage.cell.workload.keys().write(draw.next(stage.keys()), &mut key);
            if !engine.get(&key, &mut |bytes| stage.look.at(bytes))? {
                return Err("a key that was written is missing".into());
            }
            recorder.finished(1);
        }
        Ok(())
    };
    beside_writer(engine, stage, durability, read, "reads")
}

/// Scans beside a writer.
pub fn scans_beside_writer(
    engine: &dyn Engine,
    stage: &Stage,
    length: Duration,
    durability: Durability,
) -> Result<Done> {
    let read = |thread: u32, recorder: &mut Recorder| {
        let mut draw = draw(stage, 11, thread);
        let mut key = Vec::new();
        while recorder.elapsed() < length {
            stage.cell.workload.keys().write(draw.next(stage.keys()), &mut key);
            engine.scan(&key, Direction::Forward, SCAN, &mut |bytes| stage.look.at(bytes))?;
            recorder.finished(1);
        }
        Ok(())
    };
    beside_writer(engine, stage, durability, read, "scans")
}

/// Writes without a limit, then at a part of the rate that lasted, where a write is late from when
/// it was due.
pub fn overload(engine: &dyn Engine, stage: &Stage, length: Duration) -> Result<Done> {
    let length = length * OVERLOAD_LENGTHS;
    let unlimited = on_threads(stage.cell.threads, |thread, recorder| {
        let mut writer = Writer::new(engine, stage, stage.cell.durability, thread);
        while recorder.elapsed() < length {
            writer.write()?;
            recorder.finished(1);
        }
        Ok(())
    })?;
    let sustained = unlimited.part("sustained");
    let rate = lasting_rate(&sustained) * PACE;
    let due = write_at(engine, stage, length, rate, 1, |recorder, due, _| {
        recorder.finished_since(due, 1)
    })?;
    let calls = write_at(engine, stage, length, rate, 2, |recorder, _, begun| {
        recorder.finished_since(begun, 1)
    })?;
    let parts = vec![sustained, due.part("paced"), calls.part("paced calls")];
    let written = parts.iter().map(|part| part.operations).sum();
    Ok(Done::new(parts, written, stage.keys()))
}

/// Writes at a rate, all threads together, with keys of their own for each `draw`. Who is ahead
/// sleeps for a tick: to wait for each write by itself would take a core from those who flush.
/// `count` is told when a write was due, and when it began.
fn write_at(
    engine: &dyn Engine,
    stage: &Stage,
    length: Duration,
    rate: f64,
    draw: u32,
    count: impl Fn(&mut Recorder, Instant, Instant) + Sync,
) -> Result<Recorder> {
    let interval = Duration::from_secs_f64(f64::from(stage.cell.threads) / rate.max(1.0));
    on_threads(stage.cell.threads, |thread, recorder| {
        let mut writer =
            Writer::new(engine, stage, stage.cell.durability, thread + draw * stage.cell.threads);
        let mut due = Instant::now();
        while recorder.elapsed() < length {
            due += interval;
            let mut begun = Instant::now();
            while begun < due {
                std::thread::sleep(TICK);
                begun = Instant::now();
            }
            writer.write()?;
            count(recorder, due, begun);
        }
        Ok(())
    })
}

/// Operations a second in the second half, when what was free at first has been used up.
fn lasting_rate(part: &Part) -> f64 {
    let half = &part.per_second[part.per_second.len() / 2..];
    if half.is_empty() { part.rate() } else { half.iter().sum::<u64>() as f64 / half.len() as f64 }
}

#[cfg(test)]
mod tests;
