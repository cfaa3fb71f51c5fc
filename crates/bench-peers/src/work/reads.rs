//! Workloads that only read.

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

/// Looks at what was read as a program would: at some bytes of every page.
#[inline]
pub fn touch(bytes: &[u8]) {
    const PAGE: usize = 4096;
    let sum = bytes.iter().step_by(PAGE).fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    std::hint::black_box(sum);
}

/// The keys that one thread asks for.
pub fn draw(stage: &Stage, phase: u64, thread: u32) -> Draw {
    Draw::new(stage.cell.workload.skew(), stage.keys(), stage.seed_of(phase, thread))
}

fn missing(count: usize) -> Result<()> {
    if count == 0 { Ok(()) } else { Err(format!("{count} keys that were written are missing").into()) }
}

/// When threads stop: each after some time, or after so many operations.
#[derive(Clone, Copy)]
struct Until {
    length: Duration,
    operations: u64,
}

impl Until {
    fn goes_on(self, recorder: &Recorder) -> bool {
        recorder.elapsed() < self.length && recorder.operations() < self.operations
    }
}

/// Does `piece` for a time. If lookups are to be cold it is done in short pieces, with caches emptied before each; the
/// piece's number is part of its seed.
fn in_pieces(
    stage: &Stage,
    length: Duration,
    piece: impl Fn(u64, Until) -> Result<Recorder>,
) -> Result<Part> {
    if !stage.cell.memory.is_cold() {
        return Ok(piece(0, Until { length, operations: u64::MAX })?.part("lookups"));
    }
    let operations = stage.cell.cold_lookups(stage.effort).div_ceil(u64::from(stage.cell.threads));
    let mut all: Option<Recorder> = None;
    let mut number = 0;
    loop {
        measure::forget_files(&stage.database)?;
        let done = piece(number, Until { length, operations })?;
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
            while until.goes_on(recorder) {
                shape.write(draw.next(stage.keys()), &mut key);
                missing(usize::from(!engine.get(&key, &mut touch)?))?;
                recorder.finished(1);
            }
            Ok(())
        })
    })
}

/// Lookups of several keys at once.
pub fn multi_lookups(engine: &dyn Engine, stage: &Stage, length: Duration, batch: usize) -> Result<Part> {
    let shape = stage.cell.workload.keys();
    in_pieces(stage, length, |piece, until| {
        on_threads(stage.cell.threads, |thread, recorder| {
            let mut draw = draw(stage, 6 + piece * PHASES, thread);
            let mut keys = vec![Vec::new(); batch];
            while until.goes_on(recorder) {
                for key in &mut keys {
                    shape.write(draw.next(stage.keys()), key);
                }
                missing(batch - engine.multi_get(&keys, &mut touch)?)?;
                recorder.finished(batch as u64);
            }
            Ok(())
        })
    })
}

/// Seeks with a few steps.
pub fn scans(engine: &dyn Engine, stage: &Stage, length: Duration, direction: Direction) -> Result<Part> {
    let shape = stage.cell.workload.keys();
    let recorder = on_threads(stage.cell.threads, |thread, recorder| {
        let mut draw = draw(stage, 7, thread);
        let mut key = Vec::new();
        while recorder.elapsed() < length {
            shape.write(draw.next(stage.keys()), &mut key);
            missing(usize::from(engine.scan(&key, direction, SCAN, &mut touch)? == 0))?;
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
