//! Checkpoints, and tables that are written outside of a database.

use flagstone::CheckpointOptions;
use flagstone::{SstFileWriter as EngineWriter, SstFileWriterOptions};
use flagstone_rocksdb as rdb;

use crate::abi::{Array, Out, Result, Tagged, Text, handles, make};
use crate::api::{c_api, destroys};
use crate::calls::IngestOptions;
use crate::components::Comparator;
use crate::db::{Db, Family};
use crate::env::EnvOptions;
use crate::options::Options;

/// Makes checkpoints of a database.
pub struct Checkpoint(pub Db);

/// Writes tables.
pub struct Writer {
    options: Options,
    /// The table, between `open` and `finish`.
    open: Option<EngineWriter>,
    finished_size: u64,
}

handles! { Checkpoint = "checkpoint", Writer = "sstfilewriter", }

destroys! {
    rocksdb_checkpoint_object_destroy: Checkpoint,
    rocksdb_sstfilewriter_destroy: Writer,
}

impl Writer {
    fn of(options: &Options) -> *mut Tagged<Self> {
        make(Self { options: options.clone(), open: None, finished_size: 0 })
    }

    fn begin(&mut self, path: &std::path::Path) -> Result<()> {
        let engine = self.options.rdb.engine()?;
        let family = SstFileWriterOptions::new(&engine.cf);
        let options = SstFileWriterOptions { env: engine.env.clone(), ..family };
        // The one before is removed first: it may have the same name.
        self.open = None;
        self.open = Some(EngineWriter::create(path, &options)?);
        self.finished_size = 0;
        Ok(())
    }

    pub(crate) fn opened(&mut self) -> Result<&mut EngineWriter> {
        let not_open = || rdb::Error::invalid_argument("File is not opened");
        self.open.as_mut().ok_or_else(not_open)
    }

    fn finish(&mut self) -> Result<()> {
        self.opened()?;
        if let Some(writer) = self.open.take() {
            self.finished_size = writer.finish()?.file_size;
        }
        Ok(())
    }
}

fn ingest(
    db: &Db,
    family: Option<&Family>,
    list: Array<Text>,
    len: usize,
    options: &IngestOptions,
) -> Result<()> {
    let paths: Vec<_> = list.slice(len)?.iter().map(|path| path.path()).collect::<Result<_>>()?;
    Ok(db.engine().ingest_external_files(db.family(family), &paths, &options.engine)?)
}

c_api! {
    fn rocksdb_checkpoint_object_create(db: &Db, error) -> *mut Tagged<Checkpoint> {
        make(Checkpoint(db.clone()))
    }

    fn rocksdb_checkpoint_create(
        checkpoint: &Checkpoint, path: path, log_size_for_flush: u64, error
    ) {
        let mut options = CheckpointOptions::default();
        options.log_size_for_flush = log_size_for_flush;
        checkpoint.0.engine().checkpoint_with(path, &options)?
    }

    fn rocksdb_ingest_external_file(
        db: &Db, list: Array<Text>, len: usize, options: &IngestOptions, error
    ) {
        ingest(db, None, list, len, options)?
    }

    fn rocksdb_ingest_external_file_cf(
        db: &Db, family: &Family, list: Array<Text>, len: usize, options: &IngestOptions, error
    ) {
        ingest(db, Some(family), list, len, options)?
    }

    fn rocksdb_sstfilewriter_create(_env: ?EnvOptions, options: &Options) -> *mut Tagged<Writer> {
        Writer::of(options)
    }

    fn rocksdb_sstfilewriter_create_with_comparator(
        _env: ?EnvOptions, options: &Options, comparator: &Comparator
    ) -> *mut Tagged<Writer> {
        let mut options = options.clone();
        options.rdb.db.cf.comparator = comparator.engine();
        Writer::of(&options)
    }

    fn rocksdb_sstfilewriter_open(writer: &mut Writer, path: path, error) {
        writer.begin(path)?
    }

    fn rocksdb_sstfilewriter_add(writer: &mut Writer, key: [u8], value: [u8], error) {
        writer.opened()?.put(key, value)?
    }

    fn rocksdb_sstfilewriter_put(writer: &mut Writer, key: [u8], value: [u8], error) {
        writer.opened()?.put(key, value)?
    }

    fn rocksdb_sstfilewriter_merge(writer: &mut Writer, key: [u8], operand: [u8], error) {
        writer.opened()?.merge(key, operand)?
    }

    fn rocksdb_sstfilewriter_delete(writer: &mut Writer, key: [u8], error) {
        writer.opened()?.delete(key)?
    }

    fn rocksdb_sstfilewriter_delete_range(writer: &mut Writer, from: [u8], to: [u8], error) {
        writer.opened()?.delete_range(from, to)?
    }

    fn rocksdb_sstfilewriter_finish(writer: &mut Writer, error) {
        writer.finish()?
    }

    fn rocksdb_sstfilewriter_file_size(writer: &Writer, size: Out<u64>) {
        size.set(writer.open.as_ref().map_or(writer.finished_size, EngineWriter::file_size));
    }
}
