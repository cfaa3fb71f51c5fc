//! Workloads that only write.

use std::time::{Duration, Instant};

use super::Done;
use super::threads::{on_threads, share};
use crate::cell::Durability;
use crate::data::{Draw, Permutation, Skew, Values};
use crate::engine::{Engine, Entry, Result};
use crate::measure::{Part, Recorder};
use crate::run::Stage;

/// In which order keys are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// 0, 1, 2, ...
    Sequential,
    /// Each once, in random order.
    Shuffled,
    /// Drawn with repetition.
    Random,
}

/// Numbers of the keys that one thread writes.
enum Numbers {
    Sequential,
    Shuffled(Permutation),
    Random(Box<Draw>, u64),
}

impl Numbers {
    fn new(order: Order, stage: &Stage, thread: u32) -> Self {
        match order {
            Order::Sequential => Self::Sequential,
            Order::Shuffled => Self::Shuffled(Permutation::new(stage.keys(), stage.seed)),
            Order::Random => {
                let draw = Draw::new(Skew::Uniform, stage.keys(), stage.seed_of(2, thread));
                Self::Random(Box::new(draw), stage.keys())
            }
        }
    }

    #[inline]
    fn at(&mut self, position: u64) -> u64 {
        match self {
            Self::Sequential => position,
            Self::Shuffled(order) => order.at(position),
            Self::Random(draw, keys) => draw.next(*keys),
        }
    }
}

fn values(stage: &Stage, thread: u32) -> Values {
    Values::new(stage.value_size(), stage.seed_of(3, thread))
}

/// Writes as many entries as the database has keys, `batch` at once.
pub fn fill(engine: &dyn Engine, stage: &Stage, order: Order, batch: u64) -> Result<Done> {
    let recorder = put_all(engine, stage, order, batch, stage.cell.durability)?;
    let keys = stage.keys();
    let is_partial = order == Order::Random && !stage.cell.workload.needs_data();
    let live = if is_partial { distinct(keys, keys) } else { keys };
    Ok(Done::new(vec![recorder.part("puts")], keys, live))
}

/// How many different ones to expect among `drawn` numbers below `keys`.
fn distinct(drawn: u64, keys: u64) -> u64 {
    let keys = keys as f64;
    (keys * (1.0 - (-(drawn as f64) / keys).exp())) as u64
}

fn put_all(
    engine: &dyn Engine,
    stage: &Stage,
    order: Order,
    batch: u64,
    durability: Durability,
) -> Result<Recorder> {
    let shape = stage.cell.workload.keys();
    on_threads(stage.cell.threads, |thread, recorder| {
        let mut numbers = Numbers::new(order, stage, thread);
        let mut values = values(stage, thread);
        let mut keys = vec![Vec::new(); batch as usize];
        let positions = share(stage.keys(), thread, stage.cell.threads);
        for start in positions.clone().step_by(batch as usize) {
            let count = batch.min(positions.end - start);
            for (key, position) in keys.iter_mut().zip(start..start + count) {
                shape.write(numbers.at(position), key);
            }
            if batch == 1 {
                engine.put(&keys[0], values.next(stage.value_size()), durability)?;
            } else {
                let text = values.next(stage.value_size()).to_vec();
                let entries: Vec<Entry<'_>> = keys[..count as usize]
                    .iter()
                    .map(|key| (key.as_slice(), text.as_slice()))
                    .collect();
                engine.write(&entries, durability)?;
            }
            recorder.finished(count);
        }
        Ok(())
    })
}

/// Loads without a log, then compacts. The figure is that of both together.
pub fn bulk_load(engine: &mut dyn Engine, stage: &Stage) -> Result<Done> {
    let keys = stage.keys();
    let load = put_all(engine, stage, Order::Shuffled, 1, stage.cell.durability)?.part("load");
    let started = Instant::now();
    engine.compact()?;
    let seconds = started.elapsed().as_secs_f64();
    let compact =
        Part { name: "compact".to_string(), operations: keys, seconds, ..Part::default() };
    let total = Part { name: "total".to_string(), seconds: load.seconds + seconds, ..load.clone() };
    Ok(Done { parts: vec![total, load, compact], operations: keys, written: keys, live: keys })
}

/// Writes random entries for a time.
pub fn fill_for(engine: &dyn Engine, stage: &Stage, length: Duration) -> Result<Done> {
    let shape = stage.cell.workload.keys();
    let recorder = on_threads(stage.cell.threads, |thread, recorder| {
        let mut numbers = Numbers::new(Order::Random, stage, thread);
        let (mut values, mut key) = (values(stage, thread), Vec::new());
        while recorder.elapsed() < length {
            shape.write(numbers.at(0), &mut key);
            engine.put(&key, values.next(stage.value_size()), stage.cell.durability)?;
            recorder.finished(1);
        }
        Ok(())
    })?;
    let part = recorder.part("puts");
    let written = part.operations;
    Ok(Done::new(vec![part], written, distinct(written, stage.keys())))
}
