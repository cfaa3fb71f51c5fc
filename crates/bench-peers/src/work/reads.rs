//! Workloads that only read.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::threads::on_threads;
use crate::data::Draw;
use crate::engine::{Direction, Engine, Result};
use crate::measure::{self, Part, Recorder};
use crate::run::{Stage, read_all};

/// Entries of a scan.
pub const SCAN: usize = 10;

/// Phases that have seeds of their own.
const PHASES: u64 = 10;

/// The keys that one thread asks for.
pub fn draw(stage: &Stage, phase: u64, thread: u32) -> Draw {
    Draw::new(stage.cell.workload.skew(), stage.keys(), stage.seed_of(phase, thread))
}

fn missing(count: usize) -> Result<()> {
    if count == 0 {
        Ok(())
    } else {
        Err(format!("{count} keys that were written are missing").into())
    }
}

/// When threads stop: each after some time, or all when so many operations are done, so that none
/// of them works alone in the end.
#[derive(Clone, Copy)]
struct Until<'a> {
    length: Duration,
    left: Option<&'a AtomicI64>,
}

impl Until<'_> {
    /// Whether there is time for so many operations more, and they are still to be done.
    fn goes_on(self, recorder: &Recorder, operations: usize) -> bool {
        let is_left = |left: &AtomicI64| left.fetch_sub(operations as i64, Ordering::Relaxed) > 0;
        recorder.elapsed() < self.length && self.left.is_none_or(is_left)
    }
}

/// Does `piece` for a time. If lookups are to be cold it is done in short pieces, with caches
/// emptied before each; the piece's number is part of its seed.
fn in_pieces(
    stage: &Stage,
    length: Duration,
    piece: impl Fn(u64, Until<'_>) -> Result<Recorder>,
) -> Result<Part> {
    if !stage.cell.memory.is_cold() {
        return Ok(piece(0, Until { length, left: None })?.part("lookups"));
    }
    let mut all: Option<Recorder> = None;
    let mut number = 0;
    loop {
        measure::forget_files(&stage.database)?;
        let left = AtomicI64::new(stage.cell.cold_lookups(stage.effort) as i64);
        let done = piece(number, Until { length, left: Some(&left) })?;
        match &mut all {
            Some(all) => all.append(&done),
            None => all = Some(done),
        }
        number += 1;
        if let Some(all) = all.take_if(|all| all.elapsed() >= length) {
            return Ok(all.part("lookups"));
        }
    }
}

/// Single lookups.
pub fn lookups(engine: &dyn Engine, stage: &Stage, length: Duration, phase: u64) -> Result<Part> {
    let shape = stage.cell.workload.keys();
    in_pieces(stage, length, |piece, until| {
        on_threads(stage.cell.threads, |thread, recorder| {
            let mut draw = draw(stage, 4 + phase + piece * PHASES, thread);
            let mut key = Vec::new();
            while until.goes_on(recorder, 1) {
                shape.write(draw.next(stage.keys()), &mut key);
                missing(usize::from(!engine.get(&key, &mut |bytes| stage.look.at(bytes))?))?;
                recorder.finished(1);
            }
            Ok(())
        })
    })
}

/// Lookups of several keys at once.
pub fn multi_lookups(
    engine: &dyn Engine,
    stage: &Stage,
    length: Duration,
    batch: usize,
) -> Result<Part> {
    let shape = stage.cell.workload.keys();
    in_pieces(stage, length, |piece, until| {
        on_threads(stage.cell.threads, |thread, recorder| {
            let mut draw = draw(stage, 6 + piece * PHASES, thread);
            let mut keys = vec![Vec::new(); batch];
            while until.goes_on(recorder, batch) {
                for key in &mut keys {
                    shape.write(draw.next(stage.keys()), key);
                }
                missing(batch - engine.multi_get(&keys, &mut |bytes| stage.look.at(bytes))?)?;
                recorder.finished(batch as u64);
            }
            Ok(())
        })
    })
}

/// Seeks with a few steps.
pub fn scans(
    engine: &dyn Engine,
    stage: &Stage,
    length: Duration,
    direction: Direction,
) -> Result<Part> {
    let shape = stage.cell.workload.keys();
    let recorder = on_threads(stage.cell.threads, |thread, recorder| {
        let mut draw = draw(stage, 7, thread);
        let mut key = Vec::new();
        while recorder.elapsed() < length {
            shape.write(draw.next(stage.keys()), &mut key);
            missing(usize::from(
                engine.scan(&key, direction, SCAN, &mut |bytes| stage.look.at(bytes))? == 0,
            ))?;
            recorder.finished(1);
        }
        Ok(())
    })?;
    Ok(recorder.part("scans"))
}

/// Reads everything, again and again.
pub fn sweeps(engine: &dyn Engine, stage: &Stage, length: Duration) -> Result<Part> {
    let recorder = on_threads(stage.cell.threads, |_, recorder| {
        while recorder.elapsed() < length {
            recorder.finished(read_all(engine)?);
        }
        Ok(())
    })?;
    Ok(recorder.part("entries"))
}
