//! A column family in a directory of its own, and back into a database.
//!
//! An export is a database with that family and an empty `default`: tables and blob files are links
//! or copies, the MANIFEST has levels and sequence numbers, OPTIONS the family's options. Any tool
//! reads it, and CURRENT, which comes last, says that it is whole. An import is:
//!
//! 1. Each source is read and checked (`source`): nothing changes before all are known to fit.
//! 2. Its files come into the family's first directory under numbers of the database's own, and are
//!    synced (`brought`). Tables and their metadata stay as they are, apart from numbers and ranks.
//!    A blob file names its family and a table the numbers of blob files: these are copied with
//!    another header, and those written anew (`rewrite`).
//! 3. Writers are held back, the WAL is synced, and one change of the MANIFEST adds the family with
//!    all of its files. Later writes get larger sequence numbers than those of the family.
//! 4. With `move_files` the sources are removed, CURRENT first.
//!
//! A failure before step 3 leaves nothing but an id that no family gets; after a crash, the opening
//! removes the files.

mod brought;
mod rewrite;
mod source;

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::{Error, MAX_SEQUENCE_NUMBER, Result};
use crate::db::DbInner;
use crate::db::checkpoint::make_copy;
use crate::db::copied_files::CopyOptions;
use crate::db::exports::brought::Brought;
use crate::db::exports::source::Source;
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::tree::history::raise_history_low;
use crate::db::tree::ingestion;
use crate::manifest::VersionEdit;
use crate::options::{ColumnFamilyOptions, ImportColumnFamilyOptions};

/// An import may use up no more of the sequence numbers than this.
const SEQUENCE_MAX: u64 = MAX_SEQUENCE_NUMBER / 2;

/// What an import takes: a column family in a directory (RocksDB's `ExportImportFilesMetaData`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFamily {
    /// The directory: an export, a checkpoint, or a closed database of either engine without
    /// entries of the family in its WALs.
    pub directory: PathBuf,
    /// The family's name there; `None` for the only one beside `default`, or `default`.
    pub column_family: Option<String>,
}

impl ExportedFamily {
    /// The family that was exported to `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), column_family: None }
    }
}

/// [`Db::export_column_family`].
pub(in crate::db) fn export(
    db: &Db,
    family: &ColumnFamily,
    target: PathBuf,
) -> Result<ExportedFamily> {
    let inner = db.inner();
    inner.disk.check_owner(&family.0)?;
    family.0.check_alive()?;
    let is_unwritten = || family.0.current.load().generations().any(|mem| !mem.is_empty());
    if inner.context.read_only && is_unwritten() {
        let message = format!(
            "column family '{}' has entries in WALs, and a database that is open for reading cannot flush; open it for writing",
            family.name()
        );
        return Err(Error::not_supported(message).at(&inner.context.path));
    }
    make_copy(db, &target, CopyOptions::family(family.id()), true)?;
    Ok(ExportedFamily { directory: target, column_family: Some(family.name().to_string()) })
}

/// [`Db::create_column_family_with_import`], but for the OPTIONS file.
pub(in crate::db) fn import(
    inner: &DbInner,
    wanted: (&str, &ColumnFamilyOptions),
    sources: &[ExportedFamily],
    how: &ImportColumnFamilyOptions,
) -> Result<Arc<Family>> {
    inner.context.check_writable()?;
    inner.disk.check_changeable()?;
    wanted.1.validate_for_writing()?;
    let is_taken = inner.tree.families.read().values().any(|family| family.name == wanted.0);
    if wanted.0.is_empty() || is_taken || sources.is_empty() {
        let message = match (sources.is_empty(), is_taken) {
            (true, _) => "there is nothing to import".to_string(),
            (_, true) => format!("column family '{}' already exists", wanted.0),
            _ => "a column family's name must not be empty".to_string(),
        };
        return Err(Error::invalid_argument(message));
    }
    let running = Import::begin(inner)?;
    let outcome = inner.jobs.guarded("import", || running.run(wanted, sources, how));
    drop(running);
    inner.jobs.end_asked_for(outcome)
}

/// A running import, for whose end a closing database waits.
struct Import<'a>(&'a DbInner);

impl<'a> Import<'a> {
    /// # Errors
    /// `ShutdownInProgress`.
    fn begin(inner: &'a DbInner) -> Result<Self> {
        ingestion::begin(&inner.tree)?;
        Ok(Self(inner))
    }
}

impl Drop for Import<'_> {
    fn drop(&mut self) {
        ingestion::end(&self.0.tree);
    }
}

impl Import<'_> {
    fn run(
        &self,
        (name, options): (&str, &ColumnFamilyOptions),
        sources: &[ExportedFamily],
        how: &ImportColumnFamilyOptions,
    ) -> Result<Arc<Family>> {
        let inner = self.0;
        let opened = sources.iter().map(|from| Source::open(inner, from, options, how));
        let sources = opened.collect::<Result<Vec<_>>>()?;
        check_disjoint(&sources, options)?;
        let spec = inner.spec_of(name, options)?;
        inner.check_directories(std::slice::from_ref(&spec))?;
        let directory = spec.paths.directory(0).clone();
        let mut brought = Brought::new(inner, directory, (name, options));
        let mut files = VersionEdit::new(inner.tree.reserve_family()?);
        for source in &sources {
            brought.bring(source, &mut files, how.move_files)?;
        }
        let low = history_low_of(&sources, options);
        files.full_history_ts_low.clone_from(&low);
        brought.sync()?;
        let held_back = inner.pipeline.hold_back_writes()?;
        inner.pipeline.sync_wal()?;
        let (may_be_named, outcome) =
            inner.create_family_with_files(&held_back, spec, options, files);
        drop(held_back);
        if may_be_named {
            brought.keep();
        }
        let family = outcome?;
        if let Some(low) = low {
            raise_history_low(&inner.tree, &family, &low)?;
        }
        if how.move_files {
            sources.iter().for_each(Source::remove);
        }
        Ok(family)
    }
}

/// As of which timestamp all sources can be read.
fn history_low_of(sources: &[Source], options: &ColumnFamilyOptions) -> Option<Vec<u8>> {
    let lows = sources.iter().filter_map(|source| source.family().full_history_ts_low.as_ref());
    lows.max_by(|a, b| options.comparator.compare_timestamps(a, b)).cloned()
}

/// # Errors
/// `InvalidArgument` if two sources have keys in one range, or too large sequence numbers.
fn check_disjoint(sources: &[Source], options: &ColumnFamilyOptions) -> Result<()> {
    let user = &options.comparator;
    for (at, source) in sources.iter().enumerate() {
        if source.newest() > SEQUENCE_MAX {
            let message = format!("sequence number {} leaves too few for later", source.newest());
            return Err(Error::invalid_argument(message).at(source.directory()));
        }
        let Some((smallest, largest)) = source.bounds() else { continue };
        let overlaps = |other: &&Source| {
            other.bounds().is_some_and(|(first, last)| {
                user.compare_keys(first, largest).is_le()
                    && user.compare_keys(smallest, last).is_le()
            })
        };
        if let Some(other) = sources[..at].iter().find(overlaps) {
            let message = format!(
                "keys from '{}' to '{}' lie in the range of those in {}",
                smallest.escape_ascii(),
                largest.escape_ascii(),
                other.directory().display()
            );
            return Err(Error::invalid_argument(message).at(source.directory()));
        }
    }
    Ok(())
}
