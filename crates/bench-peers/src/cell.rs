//! What is measured: one workload on one engine under one set of circumstances.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::workload::Workload;

/// Who is measured. Variants of RocksDB that treat large values differently count as engines of
/// their own.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum EngineName {
    /// This repository's engine.
    Flagstone,
    /// RocksDB; large values are kept in its tables.
    Rocksdb,
    /// RocksDB with blob files, written at flush, and their collection.
    RocksdbBlob,
    /// RocksDB with blob files that are written when a value is put.
    RocksdbDirect,
    /// LevelDB, the original in C++.
    Leveldb,
    /// fjall.
    Fjall,
    /// redb.
    Redb,
    /// LMDB; each call opens a transaction.
    Lmdb,
    /// LMDB; each thread opens one transaction, and reads in it.
    LmdbKept,
    /// No engine: the system calls that each needs for large values and for cold lookups.
    Disk,
}

impl EngineName {
    /// The name for tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Flagstone => "Flagstone",
            Self::Rocksdb => "RocksDB",
            Self::RocksdbBlob => "RocksDB, BlobDB",
            Self::RocksdbDirect => "RocksDB, direct write",
            Self::Leveldb => "LevelDB",
            Self::Fjall => "fjall",
            Self::Redb => "redb",
            Self::Lmdb => "LMDB",
            Self::LmdbKept => "LMDB, transaction kept",
            Self::Disk => "The disk alone",
        }
    }

    /// Whether its acknowledged writes can be of this class. A stronger class is never measured for
    /// a weaker one.
    pub fn offers(self, durability: Durability) -> bool {
        match (self, durability) {
            // Its files are synced when they are full, not before a put is acknowledged.
            (Self::Disk, Durability::Synced) => false,
            (_, Durability::Synced) => true,
            // It cannot write without its log.
            (Self::Leveldb, Durability::None) => false,
            // Its commits are synced, or lost with the process.
            (Self::Redb, Durability::Process) => false,
            _ => true,
        }
    }

    /// Whether this program was built with it.
    pub fn is_built(self) -> bool {
        match self {
            Self::Flagstone | Self::Disk => true,
            Self::Rocksdb | Self::RocksdbBlob | Self::RocksdbDirect => cfg!(feature = "rocksdb"),
            Self::Leveldb => cfg!(feature = "leveldb"),
            Self::Fjall => cfg!(feature = "fjall"),
            Self::Redb => cfg!(feature = "redb"),
            Self::Lmdb | Self::LmdbKept => cfg!(feature = "lmdb"),
        }
    }
}

/// What a write survives when it is acknowledged.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
pub enum Durability {
    /// Nothing: no log.
    #[value(name = "d0")]
    #[serde(rename = "d0")]
    None,
    /// The death of the process, as by SIGKILL.
    #[value(name = "d1")]
    #[serde(rename = "d1")]
    Process,
    /// The loss of power.
    #[value(name = "d2")]
    #[serde(rename = "d2")]
    Synced,
}

/// How the engines are set up.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Track {
    /// As they come.
    Defaults,
    /// With the same filters, compression, cache, memtables and threads, and what else each does
    /// best.
    Tuned,
}

/// How much memory there is for the data.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// As much as it takes.
    Ample,
    /// A quarter of the data, page cache included.
    Quarter,
    /// Next to none: a small block cache, and a page cache that is emptied again and again.
    Cold,
    /// A small block cache, and reads around the page cache.
    Direct,
}

impl Memory {
    /// Whether nearly every lookup has to come from the device.
    pub fn is_cold(self) -> bool {
        matches!(self, Self::Cold | Self::Direct)
    }
}

/// How blocks and blobs are compressed on the tuned track.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Not at all.
    None,
    /// With LZ4.
    Lz4,
}

/// All circumstances but the engine: what two engines are compared in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// What is done.
    pub workload: Workload,
    /// Bytes of a value.
    pub value_size: u32,
    /// Threads of the foreground.
    pub threads: u32,
    /// How the engines are set up.
    pub track: Track,
    /// The class of the measured writes.
    pub durability: Durability,
    /// Memory for the data.
    pub memory: Memory,
    /// Compression.
    pub compression: Compression,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}t/{}/{}/{}/{}",
            value_name(self.workload),
            size_text(self.value_size),
            self.threads,
            value_name(self.track),
            value_name(self.durability),
            value_name(self.memory),
            value_name(self.compression)
        )
    }
}

/// The name of a choice as the command line spells it.
pub fn value_name<T: ValueEnum>(choice: T) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
}

/// `100`, `4K`, `1M`.
pub fn size_text(bytes: u32) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

/// What a reader looks at of what it reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Look {
    /// A byte of every page, as a program that uses all of it would at least.
    #[default]
    Pages,
    /// The first and the last byte: of large values in memory, what the engine takes without what
    /// any reader does.
    Ends,
}

impl Look {
    /// Looks.
    #[inline]
    pub fn at(self, bytes: &[u8]) {
        const PAGE: usize = 4096;
        let step = match self {
            Self::Pages => PAGE,
            Self::Ends => bytes.len().saturating_sub(1).max(1),
        };
        let sum = bytes.iter().step_by(step).fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        std::hint::black_box(sum);
    }
}

/// How much is done, apart from what is done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Factor to all amounts of data.
    pub scale: f64,
    /// Seconds of a phase that is measured by time.
    pub seconds: f64,
}

/// Bytes of data, keys and values, at scale 1.
const DATA_BYTES: f64 = (2u64 << 30) as f64;
/// Keys at scale 1, at most.
const KEYS_MAX: f64 = 10e6;

impl Cell {
    /// Bytes of one entry.
    pub fn entry_bytes(&self) -> u64 {
        u64::from(self.value_size) + self.workload.keys().length() as u64
    }

    /// Keys that the database holds, or will hold.
    pub fn keys(&self, effort: Effort) -> u64 {
        let keys = (DATA_BYTES / self.entry_bytes() as f64).min(KEYS_MAX) * effort.scale;
        (keys as u64).max(100)
    }

    /// Bytes of the data.
    pub fn data_bytes(&self, effort: Effort) -> u64 {
        self.keys(effort) * self.entry_bytes()
    }

    /// Bytes that all memory for data may take, if limited.
    pub fn memory_limit(&self, effort: Effort) -> Option<u64> {
        // What the program itself needs is not for data.
        const PROGRAM: u64 = 96 << 20;
        (self.memory == Memory::Quarter).then(|| self.data_bytes(effort) / 4 + PROGRAM)
    }

    /// How many lookups may follow the emptying of caches, if they are to be cold: few beside the
    /// database's blocks, so that only every tenth or so finds what another one brought, although
    /// two compressed blocks lie on one page.
    pub fn cold_lookups(&self, effort: Effort) -> u64 {
        const BLOCK: u64 = 4096;
        (self.data_bytes(effort) / BLOCK / 20).max(64)
    }
}

#[cfg(test)]
mod tests;
