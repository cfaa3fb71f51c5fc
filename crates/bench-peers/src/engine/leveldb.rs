//! LevelDB, the original in C++, through its C interface.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use leveldb_sys::*;

use super::{Direction, Engine, Entry, Result};
use crate::cell::{Compression, Durability};
use crate::measure;
use crate::tuning::{FILTER_BITS, Tuning};

/// Pointers to objects of LevelDB, all made by `open` and freed by `drop`.
struct LevelDb {
    db: *mut leveldb_t,
    options: *mut leveldb_options_t,
    cache: *mut leveldb_cache_t,
    filter: *mut leveldb_filterpolicy_t,
    read: *mut leveldb_readoptions_t,
    buffered: *mut leveldb_writeoptions_t,
    synced: *mut leveldb_writeoptions_t,
}

// SAFETY: LevelDB's database may be used by many threads, and its options are not changed once it
// is open.
unsafe impl Send for LevelDb {}
// SAFETY: as above.
unsafe impl Sync for LevelDb {}

pub fn open(directory: &Path, tuning: &Tuning) -> Result<Box<dyn Engine>> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    // SAFETY: every object is made right here and lives until `drop`, which runs as well if opening
    // fails; `path` outlives the call that reads it.
    let (engine, error) = unsafe {
        let options = leveldb_options_create();
        leveldb_options_set_create_if_missing(options, 1);
        let mut engine = LevelDb {
            db: ptr::null_mut(),
            options,
            cache: ptr::null_mut(),
            filter: ptr::null_mut(),
            read: leveldb_readoptions_create(),
            buffered: leveldb_writeoptions_create(),
            synced: leveldb_writeoptions_create(),
        };
        leveldb_writeoptions_set_sync(engine.synced, 1);
        // RocksDB checks blocks by default, and so does Flagstone.
        leveldb_readoptions_set_verify_checksums(engine.read, 1);
        if let Some(bytes) = tuning.cache_bytes {
            engine.cache = leveldb_cache_create_lru(bytes as usize);
            leveldb_options_set_cache(options, engine.cache);
        }
        if let Some((bytes, _)) = tuning.memtables {
            leveldb_options_set_write_buffer_size(options, bytes as usize);
            engine.filter = leveldb_filterpolicy_create_bloom(FILTER_BITS as i32);
            leveldb_options_set_filter_policy(options, engine.filter);
        }
        if tuning.compression == Some(Compression::None) {
            leveldb_options_set_compression(options, leveldb_sys::Compression::No);
        }
        let mut error = ptr::null_mut();
        engine.db = leveldb_open(options, path.as_ptr(), &mut error);
        (engine, error)
    };
    check(error)?;
    Ok(Box::new(engine))
}

/// The error that a call has set, if it has.
fn check(error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: LevelDB hands out a C string that the caller frees.
    let message = unsafe {
        let message = CStr::from_ptr(error).to_string_lossy().into_owned();
        leveldb_free(error.cast());
        message
    };
    Err(message.into())
}

impl LevelDb {
    fn how(&self, durability: Durability) -> Result<*mut leveldb_writeoptions_t> {
        match durability {
            Durability::None => Err("LevelDB cannot write without its log".into()),
            Durability::Process => Ok(self.buffered),
            Durability::Synced => Ok(self.synced),
        }
    }
}

impl Drop for LevelDb {
    fn drop(&mut self) {
        // SAFETY: these were made by `open`, are not used again, and the database goes before what
        // it uses.
        unsafe {
            if !self.db.is_null() {
                leveldb_close(self.db);
            }
            leveldb_readoptions_destroy(self.read);
            leveldb_writeoptions_destroy(self.buffered);
            leveldb_writeoptions_destroy(self.synced);
            leveldb_options_destroy(self.options);
            if !self.filter.is_null() {
                leveldb_filterpolicy_destroy(self.filter);
            }
            if !self.cache.is_null() {
                leveldb_cache_destroy(self.cache);
            }
        }
    }
}

/// An iterator that is freed when dropped.
struct Cursor(*mut leveldb_iterator_t);

impl Cursor {
    fn is_valid(&self) -> bool {
        // SAFETY: the iterator is alive.
        unsafe { leveldb_iter_valid(self.0) != 0 }
    }

    fn seek(&self, key: &[u8]) {
        // SAFETY: the iterator is alive, and the key is only read during the call.
        unsafe { leveldb_iter_seek(self.0, key.as_ptr().cast(), key.len()) }
    }

    fn step(&self, direction: Direction) {
        assert!(self.is_valid());
        // SAFETY: the iterator is alive and stands on an entry.
        unsafe {
            match direction {
                Direction::Forward => leveldb_iter_next(self.0),
                Direction::Backward => leveldb_iter_prev(self.0),
            }
        }
    }

    fn last(&self) {
        // SAFETY: the iterator is alive.
        unsafe { leveldb_iter_seek_to_last(self.0) }
    }

    fn key(&self) -> &[u8] {
        assert!(self.is_valid());
        // SAFETY: the iterator stands on an entry; the key stays where it is until the iterator
        // moves, which nobody does before the slice is used up. The call writes `length`, although
        // the binding declares it constant.
        unsafe {
            let mut length = 0usize;
            let start = leveldb_iter_key(self.0, &raw mut length);
            std::slice::from_raw_parts(start.cast(), length)
        }
    }

    fn value(&self) -> &[u8] {
        assert!(self.is_valid());
        // SAFETY: as for `key`.
        unsafe {
            let mut length = 0usize;
            let start = leveldb_iter_value(self.0, &raw mut length);
            std::slice::from_raw_parts(start.cast(), length)
        }
    }

    fn status(&self) -> Result<()> {
        let mut error: *mut c_char = ptr::null_mut();
        // SAFETY: the iterator is alive; the call only writes `error`.
        unsafe { leveldb_iter_get_error(self.0, (&raw mut error).cast()) };
        check(error)
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: made by `scan`, and not used again.
        unsafe { leveldb_iter_destroy(self.0) }
    }
}

impl Engine for LevelDb {
    fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: all pointers are alive, and key and value are only read during the call.
        unsafe {
            leveldb_put(
                self.db,
                self.how(durability)?,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &mut error,
            );
        }
        check(error)
    }

    fn write(&self, entries: &[Entry<'_>], durability: Durability) -> Result<()> {
        let how = self.how(durability)?;
        let mut error = ptr::null_mut();
        // SAFETY: the batch is made and destroyed here, copies what is put into it, and all other
        // pointers are alive.
        unsafe {
            let batch = leveldb_writebatch_create();
            for (key, value) in entries {
                let (key_start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
                leveldb_writebatch_put(batch, key_start, key.len(), value_start, value.len());
            }
            leveldb_write(self.db, how, batch, &mut error);
            leveldb_writebatch_destroy(batch);
        }
        check(error)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let (mut length, mut error) = (0usize, ptr::null_mut());
        // SAFETY: all pointers are alive, and the key is only read during the call.
        let value = unsafe {
            leveldb_get(self.db, self.read, key.as_ptr().cast(), key.len(), &mut length, &mut error)
        };
        check(error)?;
        if value.is_null() {
            return Ok(false);
        }
        // SAFETY: LevelDB hands out a copy of so many bytes that the caller frees; `visit` cannot
        // keep it.
        unsafe {
            visit(std::slice::from_raw_parts(value.cast(), length));
            leveldb_free(value.cast());
        }
        Ok(true)
    }

    fn scan(
        &self,
        from: &[u8],
        direction: Direction,
        count: usize,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<usize> {
        // SAFETY: database and options are alive, and outlive the cursor.
        let cursor = Cursor(unsafe { leveldb_create_iterator(self.db, self.read) });
        cursor.seek(from);
        if direction == Direction::Backward {
            // It only knows the first key at or after the one sought.
            if !cursor.is_valid() {
                cursor.last()
            } else if cursor.key() != from {
                cursor.step(direction)
            }
        }
        let mut seen = 0;
        while seen < count && cursor.is_valid() {
            visit(cursor.key());
            visit(cursor.value());
            seen += 1;
            cursor.step(direction);
        }
        cursor.status()?;
        Ok(seen)
    }

    fn flush(&self) -> Result<()> {
        // It flushes only when a memtable is full, or before a compaction of everything.
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        // SAFETY: the database is alive; no bounds mean everything.
        unsafe { leveldb_compact_range(self.db, ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        // It does not tell whether its background thread works.
        measure::wait_until_idle();
        Ok(())
    }

    fn statistics(&self) -> String {
        let Ok(name) = CString::new("leveldb.stats") else { return String::new() };
        // SAFETY: the database is alive; the text handed out is freed by the caller.
        unsafe {
            let text = leveldb_property_value(self.db, name.as_ptr());
            if text.is_null() {
                return String::new();
            }
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            leveldb_free(text.cast());
            copy
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
