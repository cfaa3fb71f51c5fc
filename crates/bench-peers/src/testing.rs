//! Made-up results for tests.

use crate::cell::{Cell, Compression, Durability, Effort, EngineName, Look, Memory, Track};
use crate::measure::{Counters, Latency, Part};
use crate::program;
use crate::run::{Assignment, Run};
use crate::workload::Workload;

/// A cell of a workload.
pub fn cell(workload: Workload, value_size: u32) -> Cell {
    Cell {
        workload,
        value_size,
        threads: 1,
        track: Track::Tuned,
        durability: Durability::Process,
        memory: Memory::Ample,
        compression: Compression::Lz4,
    }
}

/// A run of `fillrandom` that did `rate` operations in a second.
pub fn run(engine: EngineName, round: u32, rate: f64) -> Run {
    run_of(cell(Workload::FillRandom, 100), engine, round, rate)
}

/// A run of a cell that did `rate` operations in a second.
pub fn run_of(cell: Cell, engine: EngineName, round: u32, rate: f64) -> Run {
    let effort = Effort { scale: 1.0, seconds: 10.0 };
    let part = Part {
        name: "puts".to_string(),
        operations: rate as u64,
        seconds: 1.0,
        latency_us: Latency { p50: 1.5, p99: 10.0, p999: 100.0, max: 2500.0 },
        slowest_second: Some(rate as u64 / 2),
        per_second: vec![rate as u64, rate as u64 / 2],
    };
    let counters = Counters { cpu_seconds: 2.0, write_bytes: 3_000_000, ..Counters::default() };
    Run {
        assignment: Assignment {
            engine,
            cell,
            effort,
            seed: 1,
            round,
            options: Vec::new(),
            look: Look::Pages,
            database_of: None,
            maker_options: Vec::new(),
            program: program::ALL_ENGINES.to_string(),
        },
        parts: vec![part],
        operations: rate as u64,
        working: counters,
        settled: counters,
        settle_seconds: 0.5,
        peak_memory_bytes: 100 << 20,
        user_write_bytes: 1_000_000,
        live_bytes: 1_000_000,
        disk_bytes: 1_200_000,
        foreign_cpu_seconds: 0.0,
        unix_time: 1_700_000_000,
    }
}
