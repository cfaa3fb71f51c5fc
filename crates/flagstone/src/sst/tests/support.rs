//! Building tables in memory and reading them back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::coding::put_varint32;
use crate::base::{Comparator, InternalKey, InternalKeyBuf, PACKED_SIZE, Result, ValueType};
use crate::env::{AnyFile, Env, FileAround, IoMode, WritableFile};
use crate::sst::{
    LookupKey, ReadSettings, Table, TableBuilder, TableBuilderSettings, TableReadSettings,
    TableSummary, Visit,
};

/// A table in memory.
pub struct Built {
    pub file: Arc<dyn WritableFile>,
    pub summary: TableSummary,
    pub comparator: Comparator,
}

impl Built {
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.summary.size as usize];
        assert_eq!(self.file.read_at(0, &mut bytes).unwrap(), bytes.len());
        bytes
    }

    pub fn open(&self) -> Arc<Table> {
        self.open_with(TableReadSettings::default())
    }

    pub fn open_with(&self, settings: TableReadSettings) -> Arc<Table> {
        let settings = TableReadSettings { comparator: self.comparator.clone(), ..settings };
        Table::open(self.file.clone(), self.summary.size, settings).unwrap()
    }
}

impl Table {
    /// Looks one key up in this table alone, as a lookup does in each; `false` if the filter rules
    /// it out.
    pub fn get(
        &self,
        target: InternalKey<'_>,
        settings: &ReadSettings,
        visit: impl Visit,
    ) -> Result<bool> {
        let sought = LookupKey::new(target);
        let Some(admitted) = self.admit(&sought, settings, false)? else { return Ok(false) };
        self.get_admitted(admitted, &sought, settings, visit)?;
        Ok(true)
    }
}

/// An empty file in memory.
pub fn file() -> Arc<dyn WritableFile> {
    let env = Env::memory();
    env.fs.create_directory(Path::new("/t")).unwrap();
    env.fs.create_writable(Path::new("/t/000007.sst"), IoMode::Buffered).unwrap()
}

/// A file that counts how often it is read.
pub struct Counted(AnyFile, AtomicUsize);

impl Counted {
    pub fn new(file: Arc<dyn WritableFile>) -> Self {
        Self(file.into(), AtomicUsize::new(0))
    }

    pub fn reads(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

impl FileAround for Counted {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.read_at(offset, buffer)
    }
}

/// Builds a table of the entries and range tombstones (start, end, sequence).
pub fn build(
    settings: TableBuilderSettings,
    entries: &[(InternalKeyBuf, Vec<u8>)],
    tombstones: &[(&str, &str, u64)],
) -> Built {
    let file = file();
    let comparator = settings.comparator.clone();
    let mut builder = TableBuilder::new(file.clone(), settings).unwrap();
    for (key, value) in entries {
        builder.add(key.as_key(), value).unwrap();
    }
    for (start, end, sequence) in tombstones {
        builder.add_range_tombstone(start.as_bytes(), end.as_bytes(), *sequence);
    }
    let summary = builder.finish().unwrap();
    assert_eq!(summary.size, file.size().unwrap());
    Built { file, summary, comparator }
}

pub fn entry(
    key: &str,
    sequence: u64,
    value_type: ValueType,
    value: &str,
) -> (InternalKeyBuf, Vec<u8>) {
    (InternalKeyBuf::new(key.as_bytes(), sequence, value_type), value.as_bytes().to_vec())
}

/// `count` user keys in order, some with several versions, with values that compress a little.
pub fn entries(count: u64) -> Vec<(InternalKeyBuf, Vec<u8>)> {
    let mut random = fastrand::Rng::with_seed(count);
    let mut entries = Vec::new();
    for n in 0..count {
        let key = format!("key{:07}", n * 3);
        let value_type = match n % 9 {
            3 => ValueType::Deletion,
            5 => ValueType::Merge,
            7 => ValueType::SingleDeletion,
            _ => ValueType::Value,
        };
        let deletes = matches!(value_type, ValueType::Deletion | ValueType::SingleDeletion);
        for version in 0..if n % 13 == 0 { 3 } else { 1 } {
            let filler = "abcdefgh".repeat(random.usize(0..8));
            let value = if deletes {
                String::new()
            } else {
                format!("value {n} {filler} {:x}", random.u64(..))
            };
            entries.push(entry(&key, 1_000_000 + n - version, value_type, &value));
        }
    }
    entries
}

/// A block of `count` keys of 500 KiB, each of which stores some ten bytes and shares the others
/// with the one before.
pub fn large_keys_in_few_bytes(count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in 0..count {
        let (shared, suffix) = match n {
            0 => (0, [&vec![b'k'; 500 << 10][..], &[1; PACKED_SIZE]].concat()),
            // In order: a user key that grows, and its packed number.
            _ => ((500 << 10) + n as u32 - 1, [&b"k"[..], &[1; PACKED_SIZE]].concat()),
        };
        for number in [shared, suffix.len() as u32, 0] {
            put_varint32(&mut bytes, number);
        }
        bytes.extend_from_slice(&suffix);
    }
    bytes.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
    bytes
}
