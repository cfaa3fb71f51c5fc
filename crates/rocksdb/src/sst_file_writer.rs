//! Tables that are written outside of a database.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flagstone::{SstFileWriter as EngineWriter, SstFileWriterOptions};

use crate::error::Error;
use crate::options::Options;

/// Writes tables from keys in order, for
/// [`ingest_external_file`](crate::DBCommon::ingest_external_file).
///
/// ```
/// use flagstone_rocksdb::{DB, Options, SstFileWriter};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let (table, path) = (directory.path().join("table"), directory.path().join("db"));
/// let options = Options::default();
/// let mut writer = SstFileWriter::create(&options);
/// writer.open(&table).unwrap();
/// writer.put("stone", "flag").unwrap();
/// writer.finish().unwrap();
/// let db = DB::open_default(path).unwrap();
/// db.ingest_external_file(vec![table]).unwrap();
/// assert!(db.get("stone").unwrap().is_some());
/// ```
pub struct SstFileWriter<'a> {
    options: &'a Options,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The table, between `open` and `finish`.
    open: Option<EngineWriter>,
    /// Bytes of the table that was finished last.
    finished_size: u64,
}

impl<'a> SstFileWriter<'a> {
    /// Prepares tables as the options say.
    pub fn create(opts: &'a Options) -> Self {
        Self { options: opts, state: Mutex::default() }
    }

    /// Begins a table at `path`. One that was begun and not finished is given up.
    ///
    /// # Errors
    /// `InvalidArgument` if options contradict each other; `IOError`.
    pub fn open<P: AsRef<Path>>(&'a self, path: P) -> Result<(), Error> {
        let engine = self.options.engine()?;
        let options = SstFileWriterOptions {
            env: engine.env.clone(),
            ..SstFileWriterOptions::new(&engine.cf)
        };
        // The one before is removed first: it may have the same name.
        drop(self.lock().open.take());
        let writer = EngineWriter::create(path, &options)?;
        *self.lock() = State { open: Some(writer), finished_size: 0 };
        Ok(())
    }

    /// Ends the table and makes it durable.
    ///
    /// # Errors
    /// `InvalidArgument` for a table without entries, if none was begun, or after a call that
    /// failed; `IOError`. The file is then removed.
    pub fn finish(&mut self) -> Result<(), Error> {
        let writer = self.lock().open.take().ok_or_else(not_open)?;
        self.lock().finished_size = writer.finish()?.file_size;
        Ok(())
    }

    /// Bytes of the file so far, about; once it is finished, exactly.
    pub fn file_size(&self) -> u64 {
        let state = self.lock();
        state.open.as_ref().map_or(state.finished_size, EngineWriter::file_size)
    }

    /// Adds a key with its value. It must be larger than all keys before it.
    ///
    /// # Errors
    /// `InvalidArgument` if the key is not, or if no table was begun; `IOError`.
    pub fn put<K: AsRef<[u8]>, V: AsRef<[u8]>>(&mut self, key: K, value: V) -> Result<(), Error> {
        self.with_open(|writer| writer.put(key, value))
    }

    /// Adds a key with its value as of a timestamp. Versions of a key come newest first.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidArgument` for a timestamp of another size than the
    /// comparator's.
    pub fn put_with_ts<K: AsRef<[u8]>, V: AsRef<[u8]>, S: AsRef<[u8]>>(
        &mut self,
        key: K,
        ts: S,
        value: V,
    ) -> Result<(), Error> {
        self.with_open(|writer| writer.put_with_timestamp(key, ts, value))
    }

    /// Adds the deletion of a key as of a timestamp.
    ///
    /// # Errors
    /// As [`put_with_ts`](Self::put_with_ts).
    pub fn delete_with_ts<K: AsRef<[u8]>, S: AsRef<[u8]>>(
        &mut self,
        key: K,
        ts: S,
    ) -> Result<(), Error> {
        self.with_open(|writer| writer.delete_with_timestamp(key, ts))
    }

    /// Adds an operand for the merge operator.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn merge<K: AsRef<[u8]>, V: AsRef<[u8]>>(&mut self, key: K, value: V) -> Result<(), Error> {
        self.with_open(|writer| writer.merge(key, value))
    }

    /// Adds the deletion of a key.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete<K: AsRef<[u8]>>(&mut self, key: K) -> Result<(), Error> {
        self.with_open(|writer| writer.delete(key))
    }

    /// Adds the deletion of the keys from `begin_key` to before `end_key`, in any order.
    ///
    /// # Errors
    /// `InvalidArgument` if the range ends before it begins, or if no table was begun.
    pub fn delete_range<K: AsRef<[u8]>>(&mut self, begin_key: K, end_key: K) -> Result<(), Error> {
        self.with_open(|writer| writer.delete_range(begin_key, end_key))
    }

    fn with_open(
        &self,
        add: impl FnOnce(&mut EngineWriter) -> flagstone::Result<()>,
    ) -> Result<(), Error> {
        Ok(add(self.lock().open.as_mut().ok_or_else(not_open)?)?)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_open() -> Error {
    flagstone::Error::invalid_argument("no table is open: call open first").into()
}
