//! The workloads: what each does, and what it must reach.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, EngineName, Track};
use crate::data::{KeyShape, Skew};

/// What is done to the database.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Workload {
    /// Every key once, in random order, without a log; then a full compaction.
    BulkLoad,
    /// Every key once, in order.
    FillSeq,
    /// As many writes as keys, drawn at random.
    FillRandom,
    /// The same in batches of 100.
    FillBatch,
    /// As many writes as keys, drawn at random, to a database that holds all.
    Overwrite,
    /// Random writes, each synced, for a time.
    FillSync,
    /// Lookups, all keys alike.
    ReadRandom,
    /// Lookups, a few keys mostly.
    ReadZipf,
    /// Lookups of 10 keys at once.
    MultiRead10,
    /// Lookups of 64 keys at once.
    MultiRead64,
    /// Seeks, each followed by 10 steps forward.
    SeekNext,
    /// Seeks, each followed by 10 steps back.
    SeekPrev,
    /// All entries in order.
    ReadSeq,
    /// Lookups beside one writer without a limit.
    ReadWhileWriting,
    /// Random writes without a limit, then at 90% of the rate that lasted.
    Overload,
    /// YCSB A: half lookups, half updates, Zipfian.
    YcsbA,
    /// YCSB B: 95% lookups, 5% updates, Zipfian.
    YcsbB,
    /// YCSB C: lookups, Zipfian.
    YcsbC,
    /// YCSB D: 95% lookups of the latest, 5% insertions.
    YcsbD,
    /// YCSB E: 95% scans of up to 100 entries, 5% insertions.
    YcsbE,
    /// YCSB F: half lookups, half lookups followed by an update, Zipfian.
    YcsbF,
    /// Large values: every key once, in random order.
    LargeLoad,
    /// Large values: as many writes as keys, drawn at random, to a database that holds all.
    LargeOverwrite,
    /// Large values: lookups beside one synced writer.
    LargeLookupWriting,
    /// Large values: scans of 10 entries beside one synced writer.
    LargeScanWriting,
    /// Large values: lookups.
    LargeLookup,
    /// Large values: scans of 10 entries.
    LargeScan,
}

/// What a workload belongs to, in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Writes of small values.
    Writes,
    /// Reads of small values.
    Reads,
    /// Both at once.
    Mixed,
    /// YCSB.
    Ycsb,
    /// Large values.
    Large,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Writes, Self::Reads, Self::Mixed, Self::Ycsb, Self::Large];

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Writes => "Writes",
            Self::Reads => "Reads",
            Self::Mixed => "Reads beside writes, and overload",
            Self::Ycsb => "YCSB",
            Self::Large => "Large values",
        }
    }
}

impl Workload {
    /// What it belongs to.
    pub fn family(self) -> Family {
        use Workload as W;
        match self {
            W::BulkLoad
            | W::FillSeq
            | W::FillRandom
            | W::FillBatch
            | W::Overwrite
            | W::FillSync => Family::Writes,
            W::ReadRandom | W::ReadZipf | W::MultiRead10 | W::MultiRead64 => Family::Reads,
            W::SeekNext | W::SeekPrev | W::ReadSeq => Family::Reads,
            W::ReadWhileWriting | W::Overload => Family::Mixed,
            W::YcsbA | W::YcsbB | W::YcsbC | W::YcsbD | W::YcsbE | W::YcsbF => Family::Ycsb,
            W::LargeLoad | W::LargeOverwrite | W::LargeLookup | W::LargeScan => Family::Large,
            W::LargeLookupWriting | W::LargeScanWriting => Family::Large,
        }
    }

    /// What its keys look like.
    pub fn keys(self) -> KeyShape {
        if self.family() == Family::Ycsb { KeyShape::Users } else { KeyShape::Numbers }
    }

    /// Whether the database must hold all keys before it begins.
    pub fn needs_data(self) -> bool {
        use Workload as W;
        let fills =
            [W::BulkLoad, W::FillSeq, W::FillRandom, W::FillBatch, W::FillSync, W::LargeLoad];
        !fills.contains(&self)
    }

    /// Whether it leaves the database as it was, so that one loaded database serves many runs.
    pub fn only_reads(self) -> bool {
        use Workload as W;
        matches!(self, W::ReadSeq | W::YcsbC | W::LargeLookup | W::LargeScan)
            || self.family() == Family::Reads
    }

    /// Whether it reads and writes what fits into memory: how full that is decides how fast it
    /// goes, and what it takes.
    pub fn reads_and_writes(self) -> bool {
        use Workload as W;
        matches!(self, W::ReadWhileWriting | W::YcsbA | W::YcsbB | W::YcsbD | W::YcsbE | W::YcsbF)
    }

    /// How its keys are drawn.
    pub fn skew(self) -> Skew {
        use Workload as W;
        match self {
            W::ReadZipf | W::YcsbA | W::YcsbB | W::YcsbC | W::YcsbE | W::YcsbF => Skew::Zipfian,
            W::YcsbD => Skew::Latest,
            _ => Skew::Uniform,
        }
    }
}

impl Cell {
    /// The ratio to RocksDB that the part called `part` must reach. None is set for what other work
    /// is about.
    pub fn target(&self, part: &str) -> Option<f64> {
        use Workload as W;
        if self.track == Track::Defaults {
            // Of what it is about, not of its pieces.
            return (!["load", "compact", "paced", "paced calls", "writes"].contains(&part))
                .then_some(1.3);
        }
        if self.memory.is_cold() {
            return match (self.workload, self.threads) {
                (W::MultiRead64, 1) => Some(1.4),
                (W::ReadRandom, 1) => Some(1.0),
                (W::ReadRandom, _) => Some(1.2),
                _ => None,
            };
        }
        let small = if self.value_size <= 100 { 2.0 } else { 1.7 };
        match (self.workload, self.value_size) {
            (W::BulkLoad, _) => (part == "total").then_some(small),
            (W::FillSeq | W::FillRandom | W::Overwrite, _) => Some(small),
            (W::FillSync, _) if self.threads >= 16 => Some(2.5),
            (W::FillSync, _) if self.threads == 1 => Some(1.2),
            (W::LargeLoad | W::LargeOverwrite, size) if size >= 256 << 10 => Some(1.5),
            (W::LargeLoad | W::LargeOverwrite, size) if size >= 4 << 10 => Some(2.0),
            (W::ReadWhileWriting, _) => Some(if part == "writes" { 1.0 } else { 2.0 }),
            (W::ReadRandom | W::ReadZipf | W::SeekNext | W::SeekPrev, _) => Some(2.0),
            (W::MultiRead10 | W::MultiRead64, _) => Some(3.0),
            (W::ReadSeq, _) => Some(1.3),
            (W::LargeLookup, _) => Some(1.5),
            (W::LargeScan, _) => Some(2.0),
            _ => None,
        }
    }

    /// The modes of RocksDB of which the fastest is compared with: in reads of large values, the
    /// one that keeps them apart. Out of the box there is one.
    pub fn rivals(&self) -> &'static [EngineName] {
        match self.workload {
            _ if self.track == Track::Defaults => &[EngineName::Rocksdb],
            Workload::LargeLookup | Workload::LargeScan => &[EngineName::RocksdbBlob],
            _ => &[EngineName::Rocksdb, EngineName::RocksdbBlob, EngineName::RocksdbDirect],
        }
    }
}

#[cfg(test)]
mod tests;
