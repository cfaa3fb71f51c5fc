//! No engine: the calls that large values and cold lookups need at least, and nothing found by key.
//! It is one way of many, and no bound: an engine that writes or reads otherwise may be faster.
//!
//! - A put is one `write` at the end of a file. A file that is full is synced by a thread, in turn;
//!   writers wait where more is not synced than the others' memtables hold ([`UNSYNCED_MAX`]).
//! - A lookup is one read of as much as a compressed block takes, at a place that the key's hash
//!   says.

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::{Direction, Engine, Entry, Result};
use crate::cell::Durability;
use crate::tuning::Tuning;

/// Bytes of a file.
const FILE_BYTES: u64 = 16 << 20;
/// Bytes that may be unsynced: four memtables of the tuned track.
const UNSYNCED_MAX: u64 = 256 << 20;
/// Bytes of a read: a block of 4 KiB that LZ4 has made shorter. A multiple of the unit of reads
/// around the page cache.
const BLOCK: usize = 2560;
/// Reads around the page cache go to memory that begins so.
const ALIGNMENT: usize = 512;

struct Disk {
    directory: PathBuf,
    reads_directly: bool,
    writer: Mutex<Writer>,
    unsynced: Arc<Unsynced>,
    readers: Mutex<Option<Readers>>,
    thread: Option<JoinHandle<Result<()>>>,
}

/// Files, each with how many blocks come before its end.
type Readers = Arc<Vec<(File, u64)>>;

struct Writer {
    file: Option<(File, u64)>,
    made: u64,
    full: Option<Sender<(File, u64)>>,
}

/// What the thread has not synced yet.
#[derive(Default)]
struct Unsynced {
    bytes: Mutex<u64>,
    fewer: Condvar,
}

impl Unsynced {
    fn change(&self, change: impl FnOnce(&mut u64)) {
        change(&mut self.bytes.lock().unwrap_or_else(PoisonError::into_inner));
        self.fewer.notify_all();
    }

    fn wait_until_at_most(&self, most: u64) {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.fewer.wait_while(bytes, |bytes| *bytes > most));
    }
}

pub fn open(directory: &Path, tuning: &Tuning) -> Result<Box<dyn Engine>> {
    let (full, files) = channel();
    let unsynced = Arc::new(Unsynced::default());
    let thread = {
        let unsynced = unsynced.clone();
        std::thread::Builder::new().spawn(move || sync_all(&files, &unsynced))?
    };
    let made = fs::read_dir(directory)?.count() as u64;
    Ok(Box::new(Disk {
        directory: directory.to_path_buf(),
        reads_directly: tuning
            .options
            .iter()
            .any(|(name, value)| name == "use_direct_reads" && value == "true"),
        writer: Mutex::new(Writer { file: None, made, full: Some(full) }),
        unsynced,
        readers: Mutex::default(),
        thread: Some(thread),
    }))
}

/// Syncs files as they come, and says so even where one cannot be synced: nobody is to wait for it.
fn sync_all(files: &Receiver<(File, u64)>, unsynced: &Unsynced) -> Result<()> {
    let mut outcome = Ok(());
    for (file, length) in files {
        let synced = file.sync_data();
        unsynced.change(|bytes| *bytes -= length);
        outcome = outcome.and(synced);
    }
    Ok(outcome?)
}

/// Memory that reads around the page cache may go to.
#[repr(align(512))]
struct Block([u8; BLOCK]);

const _: () = assert!(BLOCK.is_multiple_of(ALIGNMENT) && align_of::<Block>() == ALIGNMENT);

impl Disk {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = &mut *writer;
        let (file, length) = match &mut writer.file {
            Some(open) => open,
            none => {
                let path = self.directory.join(format!("{:06}", writer.made));
                writer.made += 1;
                none.insert((File::create_new(path)?, 0))
            }
        };
        file.write_all(bytes)?;
        *length += bytes.len() as u64;
        if *length >= FILE_BYTES {
            self.end_file(writer)?;
            self.unsynced.wait_until_at_most(UNSYNCED_MAX - FILE_BYTES);
        }
        Ok(())
    }

    fn end_file(&self, writer: &mut Writer) -> Result<()> {
        if let (Some((file, length)), Some(full)) = (writer.file.take(), &writer.full) {
            self.unsynced.change(|bytes| *bytes += length);
            full.send((file, length)).map_err(|_| "the thread that syncs is gone")?;
        }
        Ok(())
    }

    /// The files to read.
    fn readers(&self) -> Result<Readers> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &*readers {
            return Ok(open.clone());
        }
        let direct = if self.reads_directly { rustix::fs::OFlags::DIRECT.bits() } else { 0 };
        let (mut open, mut blocks) = (Vec::new(), 0);
        for entry in fs::read_dir(&self.directory)? {
            let file =
                OpenOptions::new().read(true).custom_flags(direct as i32).open(entry?.path())?;
            // A block is found where it lies, no readahead helps.
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
            blocks += file.metadata()?.len() / BLOCK as u64;
            open.push((file, blocks));
        }
        if blocks == 0 {
            return Err("nothing was written that could be read".into());
        }
        Ok(readers.insert(Arc::new(open)).clone())
    }
}

thread_local! {
    /// A thread asks for the files once, so that no lock is between it and its reads.
    static FILES: std::cell::OnceCell<Readers> = const { std::cell::OnceCell::new() };
}

impl Engine for Disk {
    fn put(&self, _: &[u8], value: &[u8], _: Durability) -> Result<()> {
        self.append(value)
    }

    fn write(&self, entries: &[Entry<'_>], _: Durability) -> Result<()> {
        entries.iter().try_for_each(|(_, value)| self.append(value))
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        FILES.with(|files| {
            let files = match files.get() {
                Some(files) => files,
                None => {
                    let found = self.readers()?;
                    files.get_or_init(|| found)
                }
            };
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            let block = hasher.finish() % files.last().map_or(1, |(_, blocks)| *blocks);
            let index = files.partition_point(|(_, end)| *end <= block);
            let before = index.checked_sub(1).map_or(0, |before| files[before].1);
            let mut bytes = Block([0; BLOCK]);
            files[index].0.read_exact_at(&mut bytes.0, (block - before) * BLOCK as u64)?;
            visit(&bytes.0);
            Ok(true)
        })
    }

    fn scan(&self, _: &[u8], _: Direction, _: usize, _: &mut dyn FnMut(&[u8])) -> Result<usize> {
        Err("the disk alone has no order of keys".into())
    }

    fn flush(&self) -> Result<()> {
        self.end_file(&mut self.writer.lock().unwrap_or_else(PoisonError::into_inner))?;
        self.settle()
    }

    fn compact(&mut self) -> Result<()> {
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        self.unsynced.wait_until_at_most(0);
        Ok(())
    }

    fn statistics(&self) -> String {
        String::new()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.flush()?;
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).full = None;
        match self.thread.take() {
            Some(thread) => thread.join().map_err(|_| "the thread that syncs panicked")?,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
