//! The workloads at work.

mod mixed;
mod reads;
mod threads;
mod writes;
mod ycsb;

use std::time::Duration;

pub use reads::SCAN;
pub use threads::Ending;

use crate::cell::{Durability, Memory};
use crate::engine::{Direction, Engine, Result};
use crate::measure::Part;
use crate::run::{Stage, read_all};
use crate::workload::Workload as W;

/// What was done.
pub struct Done {
    /// The figures.
    pub parts: Vec<Part>,
    /// Operations of all parts, none counted twice.
    pub operations: u64,
    /// Entries that were written.
    pub written: u64,
    /// Entries that the database holds, as far as that is known: of random writes to an empty one
    /// it is estimated.
    pub live: u64,
}

impl Done {
    /// Of parts that are different operations.
    fn new(parts: Vec<Part>, written: u64, live: u64) -> Self {
        let operations = parts.iter().map(|part| part.operations).sum();
        Self { parts, operations, written, live }
    }
}

/// Bytes that are written before a workload that reads and writes, or as many as there are if these
/// are fewer: two memtables of RocksDB's default size, as many as it uses.
pub const WARM_UP_BYTES: u64 = 128 << 20;

/// Brings caches and memtables into the state that a long run would have: who is faster fills them
/// sooner, and a short phase would compare full ones with such as are not.
pub fn warm_up(engine: &dyn Engine, stage: &Stage) -> Result<()> {
    let whole = Duration::from_secs_f64(stage.effort.seconds);
    let mixes = stage.cell.workload.reads_and_writes();
    if mixes {
        mixed::overwrite(engine, stage, WARM_UP_BYTES.min(stage.cell.data_bytes(stage.effort)))?;
        // What is still to be flushed and compacted is not the phase's.
        engine.settle()?;
    }
    if stage.cell.memory == Memory::Ample && (stage.cell.workload.only_reads() || mixes) {
        let entries = read_all(engine)?;
        if entries != stage.keys() {
            return Err(
                format!("{entries} entries are there, {} were written", stage.keys()).into()
            );
        }
    }
    let length = if stage.cell.memory == Memory::Quarter { whole / 2 } else { whole / 10 };
    if stage.cell.workload.only_reads() && !stage.cell.memory.is_cold() {
        reads::lookups(engine, stage, length, 0)?;
    }
    Ok(())
}

/// Does the workload.
pub fn work(engine: &mut dyn Engine, stage: &Stage) -> Result<Done> {
    let length = Duration::from_secs_f64(stage.effort.seconds);
    let shared = &*engine;
    let read = |part: Result<Part>| Ok(Done::new(vec![part?], 0, stage.keys()));
    match stage.cell.workload {
        W::BulkLoad => writes::bulk_load(engine, stage),
        W::FillSeq => writes::fill(shared, stage, writes::Order::Sequential, 1),
        W::FillRandom | W::Overwrite | W::LargeOverwrite => {
            writes::fill(shared, stage, writes::Order::Random, 1)
        }
        W::FillBatch => writes::fill(shared, stage, writes::Order::Random, 100),
        W::LargeLoad => writes::fill(shared, stage, writes::Order::Shuffled, 1),
        W::FillSync => writes::fill_for(shared, stage, length),
        W::ReadRandom | W::ReadZipf | W::LargeLookup => {
            read(reads::lookups(shared, stage, length, 1))
        }
        W::MultiRead10 => read(reads::multi_lookups(shared, stage, length, 10)),
        W::MultiRead64 => read(reads::multi_lookups(shared, stage, length, 64)),
        W::SeekNext | W::LargeScan => read(reads::scans(shared, stage, length, Direction::Forward)),
        W::SeekPrev => read(reads::scans(shared, stage, length, Direction::Backward)),
        W::ReadSeq => read(reads::sweeps(shared, stage, length)),
        W::ReadWhileWriting => {
            mixed::lookups_beside_writer(shared, stage, length, stage.cell.durability)
        }
        W::LargeLookupWriting => {
            mixed::lookups_beside_writer(shared, stage, length, Durability::Synced)
        }
        W::LargeScanWriting => {
            mixed::scans_beside_writer(shared, stage, length, Durability::Synced)
        }
        W::Overload => mixed::overload(shared, stage, length),
        W::YcsbA | W::YcsbB | W::YcsbC | W::YcsbD | W::YcsbE | W::YcsbF => {
            ycsb::run(shared, stage, length)
        }
    }
}

#[cfg(test)]
mod tests;
