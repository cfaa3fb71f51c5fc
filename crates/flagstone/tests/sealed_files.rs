//! Complete tables and blob files are read through nothing but [`RandomAccessFile`]: its three
//! required calls are enough, and of the file system only the verb that opens such a file is asked.
//! So complete files may lie in an object store.
#![allow(clippy::unwrap_used, reason = "a story that fails ends the test")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flagstone::base::compression::CompressionType;
use flagstone::base::{
    ColumnFamilyId, Comparator, Error, FileNumber, InternalIterator, InternalKeyBuf, Result,
    Temperature, ValueType,
};
use flagstone::blob::{
    BlobBuilderSettings, BlobFileBuilder, BlobFileReader, BlobFileScan, BlobIndex, BlobRequest,
    get_together,
};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{
    FileLock, FilePool, FileSystem, IoMode, LogFile, Metadata, RandomAccessFile, ReclaimableFile,
    WritableFile,
};
use flagstone::sst::{
    FilterPolicy, IterSettings, LookupKey, ReadSettings, Table, TableBuilder, TableBuilderSettings,
    TableReadSettings,
};

const FAMILY: ColumnFamilyId = ColumnFamilyId(3);
const KEYS: u32 = 2_000;
const TABLE: &str = "/t/000007.sst";
const BLOBS: &str = "/t/000008.blob";

/// An object: bytes that never change, and how often some were fetched.
struct Object {
    path: PathBuf,
    bytes: Arc<Vec<u8>>,
    fetches: Arc<AtomicUsize>,
}

impl RandomAccessFile for Object {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn size(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// A file system that opens objects for reading, and refuses everything else.
struct ObjectStore {
    objects: BTreeMap<PathBuf, Arc<Vec<u8>>>,
    fetches: Arc<AtomicUsize>,
    refusals: AtomicUsize,
}

impl ObjectStore {
    fn refuse<T>(&self, path: &Path) -> Result<T> {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        Err(Error::not_supported("an object is only read").at(path))
    }
}

impl FileSystem for ObjectStore {
    fn open_random_access(&self, path: &Path, _io: IoMode) -> Result<Arc<dyn RandomAccessFile>> {
        match self.objects.get(path) {
            Some(bytes) => Ok(Arc::new(Object {
                path: path.to_path_buf(),
                bytes: bytes.clone(),
                fetches: self.fetches.clone(),
            })),
            None => self.refuse(path),
        }
    }

    fn create_writable(&self, path: &Path, _io: IoMode) -> Result<Arc<dyn WritableFile>> {
        self.refuse(path)
    }

    fn reopen_writable(&self, path: &Path) -> Result<Arc<dyn WritableFile>> {
        self.refuse(path)
    }

    fn create_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        self.refuse(path)
    }

    fn reopen_log(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        self.refuse(path)
    }

    fn open_reclaimable(&self, path: &Path) -> Result<Arc<dyn ReclaimableFile>> {
        self.refuse(path)
    }

    fn rename(&self, source: &Path, _target: &Path) -> Result<()> {
        self.refuse(source)
    }

    fn link(&self, source: &Path, _target: &Path) -> Result<()> {
        self.refuse(source)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.refuse(path)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.refuse(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.refuse(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.refuse(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        self.refuse(directory)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.refuse(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.refuse(path)
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

fn value(number: u32) -> Vec<u8> {
    format!("value {number} ").repeat(20).into_bytes()
}

/// A table of blob references, and the blob file that they lead to, in a store.
fn store() -> Arc<ObjectStore> {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/t")).unwrap();
    let create = |path| fs.create_writable(Path::new(path), IoMode::Buffered).unwrap();
    let settings = BlobBuilderSettings {
        column_family: FAMILY,
        compression: CompressionType::Lz4,
        ..BlobBuilderSettings::default()
    };
    let mut blobs = BlobFileBuilder::new(create(BLOBS), FileNumber(8), &settings).unwrap();
    let settings = TableBuilderSettings {
        filter_policy: Some(FilterPolicy::Bloom { bits_per_key: 10.0 }),
        ..TableBuilderSettings::default()
    };
    let mut table = TableBuilder::new(create(TABLE), settings).unwrap();
    for number in 0..KEYS {
        let index = blobs.add(&key(number), &value(number)).unwrap();
        let key = InternalKeyBuf::new(&key(number), 9, ValueType::BlobIndex);
        let mut reference = Vec::new();
        index.encode(&mut reference);
        table.add(key.as_key(), &reference).unwrap();
    }
    blobs.finish().unwrap();
    table.finish().unwrap();
    let (fetches, refusals) = Default::default();
    Arc::new(ObjectStore { objects: fs.files().into_iter().collect(), fetches, refusals })
}

/// The reference that a lookup of a key finds.
fn get(table: &Table, key: &[u8]) -> Option<BlobIndex> {
    let target = InternalKeyBuf::new(key, 10, ValueType::Value);
    let sought = LookupKey::new(target.as_key());
    let settings = ReadSettings::default();
    let admitted = table.admit(&sought, &settings, false).unwrap()?;
    let mut found = None;
    let take = |_, value_type, value: flagstone::sst::ValueRef<'_>| {
        assert_eq!(value_type, ValueType::BlobIndex);
        found = Some(BlobIndex::decode(value.bytes())?);
        Ok(ControlFlow::Break(()))
    };
    table.get_admitted(admitted, &sought, &settings, take).unwrap();
    found
}

/// Reads everything through these two files: by lookups, by cursors, in batches, front to back.
fn read_all(table: Arc<dyn RandomAccessFile>, blobs: Arc<dyn RandomAccessFile>) {
    let size = table.size().unwrap();
    let settings =
        TableReadSettings { comparator: Comparator::Bytewise, ..TableReadSettings::default() };
    let table = Table::open(table, size, settings).unwrap();
    let reader = BlobFileReader::open(blobs.clone(), FAMILY).unwrap();
    for number in (0..KEYS).step_by(97) {
        let index = get(&table, &key(number)).expect("it is there");
        assert_eq!(*reader.get(&key(number), &index, true).unwrap(), *value(number));
    }
    assert!(get(&table, b"key").is_none());
    let mut entries = table.iter(IterSettings { readahead_size: 64 << 10, ..Default::default() });
    entries.seek_to_first();
    let mut found = Vec::new();
    while entries.valid() {
        let index = BlobIndex::decode(entries.value()).unwrap();
        found.push((entries.key().user_key().to_vec(), index));
        entries.next();
    }
    entries.status().unwrap();
    assert_eq!(found.len(), KEYS as usize);
    let requests: Vec<_> = found
        .iter()
        .map(|(user_key, index)| BlobRequest { reader: &reader, user_key, index: *index })
        .collect();
    let (values, in_kernel) = get_together(&requests, true);
    assert_eq!(in_kernel, 0, "an object has no descriptor");
    assert!((0..KEYS).zip(values).all(|(number, read)| *read.unwrap() == *value(number)));
    let scan = BlobFileScan::new(blobs).unwrap();
    let records = scan.map(|record| record.unwrap().key);
    assert!(records.eq((0..KEYS).map(key)));
}

#[test]
fn complete_files_are_read_from_a_store_that_refuses_everything_else() {
    let store = store();
    let open = |path| store.open_random_access(Path::new(path), IoMode::Buffered).unwrap();
    read_all(open(TABLE), open(BLOBS));
    assert!(store.fetches.load(Ordering::Relaxed) > KEYS as usize / 10);
    assert_eq!(store.refusals.load(Ordering::Relaxed), 0);
}

#[test]
fn complete_files_are_closed_and_opened_again_in_such_a_store() {
    let store = store();
    let pool = FilePool::new(store.clone());
    pool.set_capacity(Some(1));
    let open = |path| pool.open(Path::new(path), IoMode::Buffered, Temperature::UNKNOWN).unwrap();
    read_all(open(TABLE), open(BLOBS));
    assert!(pool.reopens() > 0);
    assert_eq!(store.refusals.load(Ordering::Relaxed), 0);
}
