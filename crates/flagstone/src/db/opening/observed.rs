//! Opening with files around those of the environment: for listeners that are told of single reads
//! and writes, for writes that are handed over with checksums, for temperatures, and for
//! traces of I/O.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::env::{
    AdvisedFiles, ChecksumHandoff, FileObserver, FileOperation, FileOperationInfo, FileSystem,
    HandedFiles, ObservedFiles, TracedFiles,
};
use crate::options::{EventListener, Listeners, Options};
use crate::trace::IoTrace;

/// The options with whatever files they ask for around those of the environment, and where these
/// record their calls.
pub(in crate::db) fn with_files_around(options: &Options) -> (Options, Arc<IoTrace>) {
    // Closest to the environment, which is to have the checksums, and whose calls are traced.
    let trace = Arc::<IoTrace>::default();
    let mut traced = options.clone();
    let (fs, clock) = (options.env.fs.clone(), options.env.clock.clone());
    let fs = with_advised_files(fs, options);
    traced.env = traced.env.with_fs(Arc::new(TracedFiles::new(fs, clock, trace.clone())));
    (with_observed_files(&with_handed_files(&traced)).into_owned(), trace)
}

/// The files, told of temperatures, if the options give them any.
fn with_advised_files(fs: Arc<dyn FileSystem>, options: &Options) -> Arc<dyn FileSystem> {
    let (wals, metadata) = (options.wal_write_temperature, options.metadata_write_temperature);
    if wals.is_known() || metadata.is_known() {
        Arc::new(AdvisedFiles::new(fs, wals, metadata))
    } else {
        fs
    }
}

/// The options with files that hand checksums over, if any do.
fn with_handed_files(options: &Options) -> Cow<'_, Options> {
    if options.checksum_handoff == ChecksumHandoff::NONE {
        return Cow::Borrowed(options);
    }
    let mut options = options.clone();
    let handed = HandedFiles::new(options.env.fs.clone(), options.checksum_handoff);
    options.env = options.env.with_fs(Arc::new(handed));
    Cow::Owned(options)
}

/// The options with files that report to those listeners that want to be told, if any do.
fn with_observed_files(options: &Options) -> Cow<'_, Options> {
    let wants = |listener: &&Arc<dyn EventListener>| {
        catch_unwind(AssertUnwindSafe(|| listener.should_be_notified_on_file_io())).unwrap_or(false)
    };
    let listeners: Listeners = options.listeners.iter().filter(wants).cloned().collect();
    if listeners.is_empty() {
        return Cow::Borrowed(options);
    }
    let mut options = options.clone();
    let (fs, clock) = (options.env.fs.clone(), options.env.clock.clone());
    let observed = ObservedFiles::new(fs, clock, Arc::new(Told(listeners)));
    options.env = options.env.with_fs(Arc::new(observed));
    Cow::Owned(options)
}

struct Told(Listeners);

impl FileObserver for Told {
    fn observe(&self, info: &FileOperationInfo) {
        for listener in &self.0 {
            if catch_unwind(AssertUnwindSafe(|| tell(&**listener, info))).is_err() {
                tracing::error!("a listener panicked");
            }
        }
    }
}

fn tell(listener: &dyn EventListener, info: &FileOperationInfo) {
    match info.operation {
        FileOperation::Read => listener.on_file_read_finish(info),
        FileOperation::Write => listener.on_file_write_finish(info),
        FileOperation::Sync => listener.on_file_sync_finish(info),
        FileOperation::RangeSync => listener.on_file_range_sync_finish(info),
        FileOperation::Truncate => listener.on_file_truncate_finish(info),
        FileOperation::Close => listener.on_file_close_finish(info),
        FileOperation::Open => {}
    }
    if info.error.is_some() {
        listener.on_io_error(info);
    }
}
