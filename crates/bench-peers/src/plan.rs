//! Which cells are measured on which engines: the page's content, narrowed by what the command line
//! asks for.

use std::collections::BTreeSet;

use crate::cell::{Cell, Compression, Durability, Effort, EngineName, Memory, Track};
use crate::work;
use crate::workload::{Family, Workload};

/// Values of the small workloads, in bytes.
const SMALL_SIZES: [u32; 2] = [100, 800];
/// Values of YCSB.
const YCSB_SIZE: u32 = 1000;
/// Values of the large workloads.
const LARGE_SIZES: [u32; 6] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

/// What to leave out; an empty list leaves out nothing.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Workloads.
    pub workloads: Vec<Workload>,
    /// Engines.
    pub engines: Vec<EngineName>,
    /// Bytes of values.
    pub sizes: Vec<u32>,
    /// Threads.
    pub threads: Vec<u32>,
    /// Tracks.
    pub tracks: Vec<Track>,
    /// Classes.
    pub durabilities: Vec<Durability>,
    /// Circumstances of memory.
    pub memories: Vec<Memory>,
    /// Compressions; if empty, LZ4 for small values and none for large ones.
    pub compressions: Vec<Compression>,
    /// Whether cells with little memory are measured.
    pub quarter: bool,
}

/// A cell and who is measured in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duel {
    /// The cell.
    pub cell: Cell,
    /// The engines, in the order of the first round.
    pub engines: Vec<EngineName>,
}

/// Everything that is asked for, cells with the same loaded database next to each other.
pub fn plan(selection: &Selection) -> Vec<Duel> {
    let mut cells = BTreeSet::new();
    for track in [Track::Tuned, Track::Defaults] {
        for compression in [Compression::None, Compression::Lz4] {
            small_cells(track, compression, &mut cells);
            large_cells(track, compression, &mut cells);
        }
    }
    let mut cells: Vec<Cell> =
        cells.into_iter().filter(|cell| is_selected(cell, selection)).collect();
    cells.sort_by_key(|cell| (load_key(cell), *cell));
    let duels = cells.into_iter().map(|cell| Duel { cell, engines: engines(&cell, selection) });
    duels.filter(|duel| !duel.engines.is_empty()).collect()
}

/// Cells of equal keys that only read can share a loaded database; others have none to share.
pub fn load_key(cell: &Cell) -> impl Ord + PartialEq + use<> {
    let is_ycsb = cell.workload.family() == Family::Ycsb;
    let is_large = cell.workload.family() == Family::Large;
    (
        cell.track,
        cell.workload.only_reads(),
        is_large,
        is_ycsb,
        cell.value_size,
        loaded_as(cell.memory),
        cell.compression,
    )
}

/// The circumstances in which the database is loaded: how it is read later makes no difference to
/// it.
fn loaded_as(memory: Memory) -> Memory {
    if memory == Memory::Direct { Memory::Cold } else { memory }
}

fn small_cells(track: Track, compression: Compression, cells: &mut BTreeSet<Cell>) {
    use Durability as D;
    use Workload as W;
    for value_size in SMALL_SIZES {
        let mut add = |workload, durability, memory, threads: &[u32]| {
            for threads in threads {
                let threads = *threads;
                cells.insert(Cell {
                    workload,
                    value_size,
                    threads,
                    track,
                    durability,
                    memory,
                    compression,
                });
            }
        };
        add(W::BulkLoad, D::None, Memory::Ample, &[1]);
        // For the engines without a log that survives the process.
        add(W::FillRandom, D::None, Memory::Ample, &[1]);
        add(W::FillRandom, D::Process, Memory::Ample, &[2, 8]);
        for workload in [W::FillSeq, W::FillRandom, W::Overwrite] {
            add(workload, D::Process, Memory::Ample, &[1, 4]);
        }
        add(W::FillBatch, D::Process, Memory::Ample, &[1]);
        add(W::FillSync, D::Synced, Memory::Ample, &[1, 4, 16]);
        for workload in [W::ReadRandom, W::ReadZipf] {
            add(workload, D::Process, Memory::Ample, &[1, 4]);
            add(workload, D::Process, Memory::Quarter, &[1, 4]);
        }
        for memory in [Memory::Cold, Memory::Direct] {
            add(W::ReadRandom, D::Process, memory, &[1, 16]);
            add(W::MultiRead64, D::Process, memory, &[1, 4]);
        }
        for workload in [W::MultiRead10, W::MultiRead64, W::SeekNext, W::SeekPrev, W::ReadSeq] {
            add(workload, D::Process, Memory::Ample, &[1]);
        }
        add(W::ReadWhileWriting, D::Process, Memory::Ample, &[1, 4]);
        add(W::Overload, D::Process, Memory::Ample, &[1]);
    }
    for workload in [W::YcsbA, W::YcsbB, W::YcsbC, W::YcsbD, W::YcsbE, W::YcsbF] {
        cells.insert(Cell {
            workload,
            value_size: YCSB_SIZE,
            threads: 4,
            track,
            durability: D::Process,
            memory: Memory::Ample,
            compression,
        });
    }
}

fn large_cells(track: Track, compression: Compression, cells: &mut BTreeSet<Cell>) {
    use Workload as W;
    let writing = [W::LargeLookupWriting, W::LargeScanWriting];
    for workload in
        [W::LargeLoad, W::LargeOverwrite, writing[0], writing[1], W::LargeLookup, W::LargeScan]
    {
        let durability =
            if writing.contains(&workload) { Durability::Synced } else { Durability::Process };
        for value_size in LARGE_SIZES {
            let memory = Memory::Ample;
            cells.insert(Cell {
                workload,
                value_size,
                threads: 1,
                track,
                durability,
                memory,
                compression,
            });
        }
    }
}

fn is_selected(cell: &Cell, selection: &Selection) -> bool {
    fn admits<T: PartialEq>(list: &[T], item: T) -> bool {
        list.is_empty() || list.contains(&item)
    }
    let usual = match cell.workload.family() {
        Family::Large => Compression::None,
        _ => Compression::Lz4,
    };
    // Nobody's default depends on the flag.
    let compressions =
        if cell.track == Track::Tuned { selection.compressions.as_slice() } else { &[] };
    let compression = if compressions.is_empty() {
        cell.compression == usual
    } else {
        compressions.contains(&cell.compression)
    };
    compression
        && admits(&selection.workloads, cell.workload)
        && admits(&selection.sizes, cell.value_size)
        && admits(&selection.threads, cell.threads)
        && admits(&selection.tracks, cell.track)
        && admits(&selection.durabilities, cell.durability)
        && admits(&selection.memories, cell.memory)
        && match cell.memory {
            Memory::Ample => true,
            Memory::Quarter => selection.quarter && cell.track == Track::Tuned,
            Memory::Cold | Memory::Direct => cell.track == Track::Tuned,
        }
}

fn engines(cell: &Cell, selection: &Selection) -> Vec<EngineName> {
    use EngineName as E;
    let is_large = cell.workload.family() == Family::Large;
    // By default none of these keeps blob files.
    let blobs = is_large && cell.track == Track::Tuned;
    let all = [
        E::Flagstone,
        E::Rocksdb,
        E::RocksdbBlob,
        E::RocksdbDirect,
        E::Leveldb,
        E::Fjall,
        E::Redb,
        E::Lmdb,
        E::LmdbKept,
        E::Disk,
    ];
    let wanted = all.into_iter().filter(|engine| match engine {
        E::RocksdbBlob | E::RocksdbDirect => blobs,
        // The others have no such reads, or a cache of their own that is not set up by the same
        // rule.
        E::Leveldb | E::Fjall | E::Redb | E::Lmdb => !cell.memory.is_cold(),
        // It sees no later write.
        E::LmdbKept => cell.workload.only_reads() && !cell.memory.is_cold(),
        E::Disk => shows_the_disk(cell),
        _ => true,
    });
    let wanted =
        wanted.filter(|engine| engine.offers(cell.durability) || cell.workload.only_reads());
    wanted
        .filter(|engine| engine.is_built())
        .filter(|engine| selection.engines.is_empty() || selection.engines.contains(engine))
        .collect()
}

/// Whether the disk may be what is measured: then it stands beside the engines.
fn shows_the_disk(cell: &Cell) -> bool {
    use Workload as W;
    match cell.workload {
        W::LargeLoad | W::LargeOverwrite => cell.track == Track::Tuned,
        W::ReadRandom => cell.memory.is_cold(),
        _ => false,
    }
}

/// The order of a round: every second one is reversed, so that what drifts falls on all alike
/// (ABBA). LevelDB, fjall, redb and LMDB take part in the first `peer_rounds`. The disk alone takes
/// part in all: what it gives drifts, and the engines' parts of it are taken within a round.
pub fn round_order(engines: &[EngineName], round: u32, peer_rounds: u32) -> Vec<EngineName> {
    let is_main = |engine: &EngineName| {
        use EngineName as E;
        !matches!(engine, E::Leveldb | E::Fjall | E::Redb | E::Lmdb | E::LmdbKept)
    };
    let mut order: Vec<EngineName> =
        engines.iter().copied().filter(|engine| is_main(engine) || round < peer_rounds).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// Roughly how long a run takes, in seconds, for the progress bar.
pub fn expected_seconds(cell: &Cell, effort: Effort, round: u32) -> f64 {
    use Workload as W;
    let (keys, bytes) = (cell.keys(effort) as f64, cell.data_bytes(effort) as f64);
    // What only reads keeps the first round's database.
    let is_loaded = cell.workload.only_reads() && round > 0;
    let load =
        if cell.workload.needs_data() && !is_loaded { keys * 1.5e-6 + bytes / 150e6 } else { 0.0 };
    let phase = match cell.workload {
        W::FillSeq | W::FillRandom | W::FillBatch | W::BulkLoad | W::Overwrite => {
            seconds_of_puts(keys, bytes)
        }
        W::LargeLoad | W::LargeOverwrite => seconds_of_puts(keys, bytes),
        W::Overload => effort.seconds * 5.0,
        _ => effort.seconds * 1.2,
    };
    1.0 + load + warm_up_seconds(cell, effort) + phase
}

fn seconds_of_puts(puts: f64, bytes: f64) -> f64 {
    puts * 2.5e-6 + bytes / 150e6
}

/// How long [`work::warm_up`] takes.
fn warm_up_seconds(cell: &Cell, effort: Effort) -> f64 {
    let (keys, bytes) = (cell.keys(effort) as f64, cell.data_bytes(effort) as f64);
    let (reads, mixes) = (cell.workload.only_reads(), cell.workload.reads_and_writes());
    let written = if mixes { bytes.min(work::WARM_UP_BYTES as f64) } else { 0.0 };
    let reads_all = cell.memory == Memory::Ample && (reads || mixes);
    let read_all = if reads_all { keys * 0.3e-6 + bytes / 1e9 } else { 0.0 };
    let looked_up = match cell.memory {
        Memory::Ample if reads => effort.seconds / 10.0,
        Memory::Quarter if reads => effort.seconds / 2.0,
        _ => 0.0,
    };
    seconds_of_puts(written / cell.entry_bytes() as f64, written) + read_all + looked_up
}

#[cfg(test)]
mod tests;
