//! Compactions of chosen tables.

use std::ffi::{CStr, c_char};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use flagstone::CompactionControl;
use flagstone::base::FileNumber;
use flagstone::options::{CompactFilesOptions, CompressionType};
use flagstone::reports::JobInfo;
use flagstone_rocksdb as rdb;

use crate::abi::{Array, Mut, Out, Result, Text, copied_array, copied_text, free_texts, handles};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::db::{Db, Family};
use crate::job_infos::CompactionInfo;
use crate::options_texts::temperature_of;
use crate::refused::{Refused, refuses};

/// How chosen tables are compacted.
pub struct CompactionOptions {
    compression: Option<CompressionType>,
    output_file_size_limit: u64,
    max_subcompactions: u32,
    allow_trivial_move: bool,
    output_temperature_override: i32,
    canceled: Option<Arc<Cancellation>>,
    refused: Refused,
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self {
            compression: None,
            output_file_size_limit: u64::MAX,
            max_subcompactions: 0,
            allow_trivial_move: false,
            output_temperature_override: 0,
            canceled: None,
            refused: Refused::default(),
        }
    }
}

/// A flag that ends the compactions whose options have it. C sees it as bytes.
#[derive(Default)]
pub struct Canceled(Arc<Cancellation>);

/// A flag, and the compactions that listen to it.
#[derive(Default)]
pub struct Cancellation(Mutex<Cancels>);

#[derive(Default)]
struct Cancels {
    is_set: bool,
    running: Vec<Weak<CompactionControl>>,
}

handles! {
    CompactionOptions = "compaction_options",
    Canceled = "compaction_options_canceled",
}

creates! {
    rocksdb_compaction_options_create: CompactionOptions,
    rocksdb_compaction_options_canceled_create: Canceled,
}

destroys! {
    rocksdb_compaction_options_destroy: CompactionOptions,
    rocksdb_compaction_options_canceled_destroy: Canceled,
}

refuses! { CompactionOptions: refused, }

c_settings! { "rocksdb_compaction_options", CompactionOptions, |o| {
    choice i32, compression: o.compression;
    value u64, output_file_size_limit: o.output_file_size_limit;
    value u32, max_subcompactions: o.max_subcompactions;
    value u8, allow_trivial_move: o.allow_trivial_move;
    value i32, output_temperature_override: o.output_temperature_override;
} }

impl Cancellation {
    /// Cancels those that run and those that begin, or no longer those that begin.
    pub fn set(&self, is_set: bool) {
        let mut cancels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cancels.is_set = is_set;
        if is_set {
            cancels.running.drain(..).filter_map(|control| control.upgrade()).for_each(|control| {
                control.cancel();
            });
        }
    }

    /// What a compaction that begins listens to.
    pub fn control(&self) -> Arc<CompactionControl> {
        let control = CompactionControl::new();
        let mut cancels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cancels.running.retain(|running| running.strong_count() > 0);
        cancels.running.push(Arc::downgrade(&control));
        if cancels.is_set {
            control.cancel();
        }
        control
    }
}

impl CompactionOptions {
    fn engine(&self, output_path_id: i32) -> Result<CompactFilesOptions> {
        if let Some((name, number)) = self.refused.first() {
            return Err(rdb::Error::not_supported(format_args!("{name} {number}")));
        }
        let number = self.output_temperature_override;
        let temperature = temperature_of(number).ok_or_else(|| {
            rdb::Error::not_supported(format_args!("output_temperature_override {number}"))
        })?;
        Ok(CompactFilesOptions {
            compression: self.compression,
            output_file_size_limit: match self.output_file_size_limit {
                u64::MAX => 0,
                limit => limit.max(1),
            },
            output_path_id: u32::try_from(output_path_id).ok(),
            output_temperature_override: temperature,
            max_subcompactions: self.max_subcompactions,
            control: self.canceled.as_deref().map(Cancellation::control),
        })
    }
}

/// The number of a table, by its name or path.
fn table_number(name: &CStr) -> Result<FileNumber> {
    let text = name.to_string_lossy();
    let file = text.rsplit('/').next().unwrap_or_default();
    let number = file.strip_suffix(".sst").and_then(|number| number.parse().ok());
    let wrong = || rdb::Error::invalid_argument(format_args!("'{text}' names no table"));
    number.map(FileNumber).ok_or_else(wrong)
}

/// Where compacted tables come from and go to.
struct Request {
    names: Array<Text>,
    len: usize,
    level: i32,
    path_id: i32,
}

impl Request {
    fn run(
        &self,
        db: &Db,
        family: Option<&Family>,
        options: Option<&CompactionOptions>,
    ) -> Result<JobInfo> {
        let names = self.names.slice(self.len)?.iter();
        let tables: Vec<_> = names.map(|name| table_number(name.get()?)).collect::<Result<_>>()?;
        let options = match options {
            Some(options) => options.engine(self.path_id)?,
            None => CompactionOptions::default().engine(self.path_id)?,
        };
        let level = usize::try_from(self.level).map_err(|_| {
            rdb::Error::invalid_argument(format_args!("output level {}", self.level))
        })?;
        let family = db.family(family);
        Ok(db.engine().compact_files_reported(family, &tables, level, &options)?)
    }
}

/// Tells C what was written, as far as it wants to know.
fn tell(
    job: &JobInfo,
    names: Out<*mut *mut c_char>,
    len: Out<usize>,
    info: Mut<CompactionInfo>,
) -> Result<()> {
    let paths = job.tables.iter().map(|table| table.path.as_os_str().as_encoded_bytes());
    if names.wants() {
        let texts: Vec<_> = paths.map(copied_text).collect();
        names.set(if texts.is_empty() { std::ptr::null_mut() } else { copied_array(&texts) });
    }
    len.set(if names.wants() { job.tables.len() } else { 0 });
    if let Some(info) = info.nullable()? {
        *info = CompactionInfo::of(job);
    }
    Ok(())
}

c_api! {
    fn rocksdb_compaction_options_canceled_set(canceled: ?Canceled, value: flag) {
        if let Some(canceled) = canceled {
            canceled.0.set(value);
        }
    }

    fn rocksdb_compaction_options_set_canceled(o: &mut CompactionOptions, canceled: ?Canceled) {
        o.canceled = canceled.map(|canceled| Arc::clone(&canceled.0));
    }

    fn rocksdb_compact_files(
        db: &Db, options: ?CompactionOptions, names: Array<Text>, len: usize, level: i32,
        path_id: i32, written: Out<*mut *mut c_char>, written_len: Out<usize>,
        info: Mut<CompactionInfo>, error
    ) {
        let job = Request { names, len, level, path_id }.run(db, None, options)?;
        tell(&job, written, written_len, info)?
    }

    fn rocksdb_compact_files_cf(
        db: &Db, family: ?Family, options: ?CompactionOptions, names: Array<Text>, len: usize,
        level: i32, path_id: i32, written: Out<*mut *mut c_char>, written_len: Out<usize>,
        info: Mut<CompactionInfo>, error
    ) {
        let job = Request { names, len, level, path_id }.run(db, family, options)?;
        tell(&job, written, written_len, info)?
    }

    fn rocksdb_compact_files_output_file_names_destroy(list: Array<*mut c_char>, len: usize) {
        free_texts(list, len);
    }
}
