//! The Yahoo cloud serving benchmark's six core workloads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Done;
use super::reads::draw;
use super::threads::on_threads;
use crate::data::Values;
use crate::engine::{Direction, Engine, Result};
use crate::run::Stage;
use crate::workload::Workload as W;

/// Entries of the longest scan.
const SCAN_MAX: u64 = 100;

/// What is done, in percent; the rest is lookups.
struct Mix {
    updates: u64,
    insertions: u64,
    scans: u64,
    changes: u64,
}

fn mix(workload: W) -> Mix {
    let none = Mix { updates: 0, insertions: 0, scans: 0, changes: 0 };
    match workload {
        W::YcsbA => Mix { updates: 50, ..none },
        W::YcsbB => Mix { updates: 5, ..none },
        W::YcsbD => Mix { insertions: 5, ..none },
        W::YcsbE => Mix { insertions: 5, scans: 95, ..none },
        W::YcsbF => Mix { changes: 50, ..none },
        _ => none,
    }
}

/// Runs the mix for a time.
pub fn run(engine: &dyn Engine, stage: &Stage, length: Duration) -> Result<Done> {
    let mix = mix(stage.cell.workload);
    let shape = stage.cell.workload.keys();
    let (next, present) = (AtomicU64::new(stage.keys()), AtomicU64::new(stage.keys()));
    let written = AtomicU64::new(0);
    let recorder = on_threads(stage.cell.threads, |thread, recorder| {
        let mut draw = draw(stage, 12, thread);
        let mut values = Values::new(stage.value_size(), stage.seed_of(13, thread));
        let (mut key, mut writes) = (Vec::new(), 0);
        while recorder.elapsed() < length {
            let mut choice = draw.below(100);
            // Whether the choice falls into the next so many percent.
            let mut falls = |percent: u64| {
                let hit = choice < percent;
                choice = choice.wrapping_sub(percent);
                hit
            };
            if falls(mix.insertions) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                shape.write(number, &mut key);
                engine.put(&key, values.next(stage.value_size()), stage.cell.durability)?;
                present.fetch_max(number + 1, Ordering::Relaxed);
                writes += 1;
                recorder.finished(1);
                continue;
            }
            shape.write(draw.next(present.load(Ordering::Relaxed)), &mut key);
            if falls(mix.scans) {
                let count = 1 + draw.below(SCAN_MAX);
                engine.scan(&key, Direction::Forward, count as usize, &mut |bytes| {
                    stage.look.at(bytes)
                })?;
            } else {
                let is_update = falls(mix.updates);
                if !is_update {
                    engine.get(&key, &mut |bytes| stage.look.at(bytes))?;
                }
                if is_update || falls(mix.changes) {
                    engine.put(&key, values.next(stage.value_size()), stage.cell.durability)?;
                    writes += 1;
                }
            }
            recorder.finished(1);
        }
        written.fetch_add(writes, Ordering::Relaxed);
        Ok(())
    })?;
    let parts = vec![recorder.part("operations")];
    Ok(Done::new(parts, written.load(Ordering::Relaxed), present.load(Ordering::Relaxed)))
}
