//! The files that readers share, and the counting of what is read of tables, by their temperature.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::base::perf::{self, IoMetric};
use crate::base::{Result, Temperature};
use crate::db::statistics::{Statistics, Ticker};
use crate::env::{Advice, FilePool, IoMode, Metadata, RandomAccessFile};

/// Opens the files that readers share.
pub(in crate::db) struct SharedFiles {
    pool: Arc<FilePool>,
    statistics: Arc<Statistics>,
    /// How files are opened for reading.
    mode: IoMode,
}

impl SharedFiles {
    pub(in crate::db) fn new(
        pool: Arc<FilePool>,
        statistics: Arc<Statistics>,
        mode: IoMode,
    ) -> Self {
        Self { pool, statistics, mode }
    }

    /// How files are opened for reading.
    pub(in crate::db) fn mode(&self) -> IoMode {
        self.mode
    }

    /// How many files may be open, and which are.
    pub(in crate::db) fn pool(&self) -> &FilePool {
        &self.pool
    }

    /// Opens a blob file.
    pub(in crate::db) fn open(
        &self,
        path: &Path,
        mode: IoMode,
    ) -> Result<Arc<dyn RandomAccessFile>> {
        self.pool.open(path, mode, Temperature::UNKNOWN)
    }

    /// Opens a table. Its reads count as those of a file of its temperature, or of `default` if it
    /// has none.
    pub(in crate::db) fn open_table(
        &self,
        path: &Path,
        mode: IoMode,
        (temperature, default): (Temperature, Temperature),
    ) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.pool.open(path, mode, temperature)?;
        let counted_as = if temperature.is_known() { temperature } else { default };
        let counters = COUNTERS.iter().find(|counters| counters.temperature == counted_as);
        Ok(match counters {
            None => file,
            Some(counters) => {
                Arc::new(CountedFile { file, counters, statistics: self.statistics.clone() })
            }
        })
    }
}

/// What reads of files of one temperature are counted by.
struct Counters {
    temperature: Temperature,
    bytes: Ticker,
    reads: Ticker,
    /// Those of the thread; RocksDB has none for ice.
    of_thread: Option<(IoMetric, IoMetric)>,
}

const COUNTERS: &[Counters] = &[
    Counters {
        temperature: Temperature::HOT,
        bytes: Ticker::HotFileReadBytes,
        reads: Ticker::HotFileReads,
        of_thread: Some((IoMetric::HotFileBytesRead, IoMetric::HotFileReadCount)),
    },
    Counters {
        temperature: Temperature::WARM,
        bytes: Ticker::WarmFileReadBytes,
        reads: Ticker::WarmFileReads,
        of_thread: Some((IoMetric::WarmFileBytesRead, IoMetric::WarmFileReadCount)),
    },
    Counters {
        temperature: Temperature::COOL,
        bytes: Ticker::CoolFileReadBytes,
        reads: Ticker::CoolFileReads,
        of_thread: Some((IoMetric::CoolFileBytesRead, IoMetric::CoolFileReadCount)),
    },
    Counters {
        temperature: Temperature::COLD,
        bytes: Ticker::ColdFileReadBytes,
        reads: Ticker::ColdFileReads,
        of_thread: Some((IoMetric::ColdFileBytesRead, IoMetric::ColdFileReadCount)),
    },
    Counters {
        temperature: Temperature::ICE,
        bytes: Ticker::IceFileReadBytes,
        reads: Ticker::IceFileReads,
        of_thread: None,
    },
];

/// A table of a known temperature.
struct CountedFile {
    file: Arc<dyn RandomAccessFile>,
    counters: &'static Counters,
    statistics: Arc<Statistics>,
}

impl CountedFile {
    fn count(&self, bytes: usize) {
        self.statistics.add(self.counters.bytes, bytes as u64);
        self.statistics.add(self.counters.reads, 1);
        if let Some((of_bytes, of_reads)) = self.counters.of_thread {
            perf::count(of_bytes, bytes as u64);
            perf::count(of_reads, 1);
        }
    }
}

impl RandomAccessFile for CountedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let read = self.file.read_at(offset, buffer)?;
        self.count(read);
        Ok(read)
    }

    fn read_onto(&self, offset: u64, length: usize, buffer: &mut Vec<u8>) -> Result<usize> {
        let read = self.file.read_onto(offset, length, buffer)?;
        self.count(read);
        Ok(read)
    }

    fn note_read(&self, place: (u64, usize), since: Instant) {
        self.count(place.1);
        self.file.note_read(place, since);
    }

    fn is_unwritten(&self, offset: u64, bytes: &[u8]) -> Result<bool> {
        self.file.is_unwritten(offset, bytes)
    }

    fn size(&self) -> Result<u64> {
        self.file.size()
    }

    fn metadata(&self) -> Result<Metadata> {
        self.file.metadata()
    }

    fn share(&self) -> Result<bool> {
        self.file.share()
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    #[cfg(target_os = "linux")]
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.file.descriptor()
    }

    fn is_direct(&self) -> bool {
        self.file.is_direct()
    }

    fn read_block(&self) -> usize {
        self.file.read_block()
    }

    fn advise(&self, advice: Advice) {
        self.file.advise(advice);
    }
}
