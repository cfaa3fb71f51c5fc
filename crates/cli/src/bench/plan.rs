//! Which benchmarks there are, and what each means.

use super::data::KeyOrder;
use super::flags::Flags;

/// What the threads of a benchmark do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Write keys.
    Write(KeyOrder),
    /// Delete keys, in order or at random.
    Delete {
        /// 0, 1, 2, ...
        sequential: bool,
    },
    /// Delete ranges of keys.
    DeleteRange,
    /// Look up keys that are there.
    ReadRandom,
    /// Look up keys that are not.
    ReadMissing,
    /// Look up several keys at once.
    MultiReadRandom,
    /// Iterate from one end.
    Iterate {
        /// From the last key.
        reverse: bool,
    },
    /// Seek to keys.
    Seek {
        /// 0, 1, 2, ... instead of random keys.
        ordered: bool,
    },
    /// Append to a queue, seek its head, take it.
    Queue,
    /// Look up keys while one more thread writes.
    ReadWhileWriting,
    /// Seek to keys while one more thread writes.
    SeekWhileWriting,
    /// Look up a key, and write it again.
    Update,
    /// Compact everything.
    Compact,
    /// Flush memtables.
    Flush,
    /// Wait until nothing needs compaction.
    WaitForCompaction,
    /// Print properties; of several each with its name.
    Properties(&'static [&'static str]),
}

impl Work {
    /// Whether its first thread writes while the others do what is measured.
    pub fn has_writer_beside(self) -> bool {
        matches!(self, Self::ReadWhileWriting | Self::SeekWhileWriting)
    }
}

/// What `memstats` prints.
const MEMORY: &[&str] = &[
    "rocksdb.num-immutable-mem-table",
    "rocksdb.cur-size-active-mem-table",
    "rocksdb.cur-size-all-mem-tables",
    "rocksdb.size-all-mem-tables",
    "rocksdb.num-entries-active-mem-table",
    "rocksdb.num-entries-imm-mem-tables",
];

/// One benchmark.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What its threads do.
    pub work: Work,
    /// Whether it starts from an empty database.
    pub fresh: bool,
    /// Keys are drawn from so many.
    pub num: u64,
    /// Operations of each writing thread.
    pub writes: u64,
    /// Bytes of a value.
    pub value_size: usize,
    /// Whether writes are synced.
    pub sync: bool,
    /// Threads.
    pub threads: usize,
}

/// The names of all benchmarks.
pub const NAMES: [&str; 28] = [
    "fillseq",
    "fillrandom",
    "fillsync",
    "fill100K",
    "filluniquerandom",
    "overwrite",
    "deleteseq",
    "deleterandom",
    "deleterange",
    "readrandom",
    "readmissing",
    "multireadrandom",
    "readseq",
    "readreverse",
    "seekrandom",
    "seekordered",
    "queue",
    "readwhilewriting",
    "seekrandomwhilewriting",
    "updaterandom",
    "compact",
    "compactall",
    "flush",
    "waitforcompaction",
    "stats",
    "levelstats",
    "memstats",
    "sstables",
];

impl Plan {
    /// The benchmark called `name`; `None` if there is none.
    pub fn new(name: &str, flags: &Flags) -> Option<Self> {
        let (work, fresh) = match name {
            "fillseq" => (Work::Write(KeyOrder::Sequential), true),
            "fillrandom" | "fillsync" | "fill100K" => (Work::Write(KeyOrder::Random), true),
            "filluniquerandom" => (Work::Write(KeyOrder::UniqueRandom), true),
            "overwrite" => (Work::Write(KeyOrder::Random), false),
            "deleteseq" => (Work::Delete { sequential: true }, false),
            "deleterandom" => (Work::Delete { sequential: false }, false),
            "deleterange" => (Work::DeleteRange, false),
            "readrandom" => (Work::ReadRandom, false),
            "readmissing" => (Work::ReadMissing, false),
            "multireadrandom" => (Work::MultiReadRandom, false),
            "readseq" => (Work::Iterate { reverse: false }, false),
            "readreverse" => (Work::Iterate { reverse: true }, false),
            "seekrandom" => (Work::Seek { ordered: false }, false),
            "seekordered" => (Work::Seek { ordered: true }, false),
            "queue" => (Work::Queue, true),
            "readwhilewriting" => (Work::ReadWhileWriting, false),
            "seekrandomwhilewriting" => (Work::SeekWhileWriting, false),
            "updaterandom" => (Work::Update, false),
            "compact" | "compactall" => (Work::Compact, false),
            "flush" => (Work::Flush, false),
            "waitforcompaction" => (Work::WaitForCompaction, false),
            "stats" => (Work::Properties(&["rocksdb.stats"]), false),
            "levelstats" => (Work::Properties(&["rocksdb.levelstats"]), false),
            "memstats" => (Work::Properties(MEMORY), false),
            "sstables" => (Work::Properties(&["rocksdb.sstables"]), false),
            _ => return None,
        };
        let mut plan = Self {
            name: name.to_string(),
            work,
            fresh,
            num: flags.num,
            writes: flags.or_num(flags.writes),
            value_size: flags.value_size,
            sync: flags.sync,
            threads: flags.threads.max(1),
        };
        match (name, work) {
            ("fillsync", _) => (plan.sync, plan.num) = (true, (flags.num / 1000).max(1)),
            ("fill100K", _) => (plan.value_size, plan.num) = (100_000, (flags.num / 1000).max(1)),
            // Each key once makes no sense from several threads.
            ("filluniquerandom", _)
            | (_, Work::Compact | Work::Flush | Work::Queue | Work::DeleteRange) => {
                plan.threads = 1
            }
            (_, work) if work.has_writer_beside() => plan.threads += 1,
            _ => {}
        }
        Some(plan)
    }

    /// The noun of the histogram's title.
    pub fn operation(&self) -> &'static str {
        match self.work {
            Work::Write(_) => "write",
            Work::Delete { .. } | Work::DeleteRange => "delete",
            Work::Seek { .. } | Work::SeekWhileWriting => "seek",
            _ => "read",
        }
    }
}

#[cfg(test)]
mod tests;
