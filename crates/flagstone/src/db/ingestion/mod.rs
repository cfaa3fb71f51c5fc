//! Ingestion of tables that were written outside of the database.
//!
//! 1. Each file is opened and checked (`candidate`): nothing of the database changes before all of
//!    them are known to be sound and to fit their families.
//! 2. Each file is linked or copied under a number of the database's own, and synced, as is its
//!    directory (`files`).
//! 3. Memtables that overlap a table are flushed: their entries are older, and would be found
//!    first.
//! 4. Writers are held back. What they have written meanwhile into the range of a table is flushed
//!    as well, and the WAL is synced: after a power loss no entry may be missing that is older than
//!    the tables.
//! 5. Between two commits, the tables get the next sequence number (later ones of several that
//!    overlap each other get larger ones), a level, and one atomic change of the MANIFEST for all
//!    families. Then the sequence number is published, and writers go on.
//!
//! A failure before step 5 leaves the database as it was, and removes what was linked or copied.
//! After a crash the opening does that. Once the MANIFEST may hold the change, the files are the
//! tree's.
//!
//! A table says nothing of its sequence number. Readers take it from the MANIFEST, where the table
//! has it as its smallest and its largest (`docs/formats/sst.md`, 9.4).

mod candidate;
mod files;
mod replaced;

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::perf::{self, PerfMetric};
use crate::base::{Error, FileChecksum, Result, SequenceNumber, Sometimes, Temperature, file_name};
use crate::db::DbInner;
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::ingestion::candidate::{Candidate, Origin};
use crate::db::ingestion::files::BroughtIn;
use crate::db::settings::strips_timestamps;
use crate::db::tree::ingestion::{self, Arriving};
use crate::options::{FileInfo, FlushReason, IngestExternalFileOptions, IngestionInfo};

/// Tables for one family, and how they are ingested (RocksDB's `IngestExternalFileArg`).
#[derive(Debug, Clone)]
pub struct ExternalFiles {
    /// The family.
    pub family: ColumnFamily,
    /// The tables. Where two have a key in common, the later one wins.
    pub files: Vec<PathBuf>,
    /// How they are ingested.
    pub options: IngestExternalFileOptions,
    /// The checksum of each file, for
    /// [`verify_file_checksum`](IngestExternalFileOptions::verify_file_checksum); empty for none.
    pub file_checksums: Vec<FileChecksum>,
    /// Temperature of the files where they are. A table that is linked or moved keeps it. One that
    /// is copied gets that of the family's options (`default_write_temperature`; with
    /// `fail_if_not_bottommost_level`, `last_level_temperature`).
    pub file_temperature: Temperature,
    /// The keys from the first to before the second are deleted by the same change. All keys of the
    /// tables must lie in this range.
    pub atomic_replace_range: Option<(Vec<u8>, Vec<u8>)>,
}

impl ExternalFiles {
    /// Tables for a family, ingested with default options.
    pub fn new(
        family: impl Into<ColumnFamily>,
        files: impl IntoIterator<Item = impl Into<PathBuf>>,
    ) -> Self {
        Self {
            family: family.into(),
            files: files.into_iter().map(Into::into).collect(),
            options: IngestExternalFileOptions::default(),
            file_checksums: Vec::new(),
            file_temperature: Temperature::UNKNOWN,
            atomic_replace_range: None,
        }
    }
}

/// [`Db::ingest_together`].
pub(in crate::db) fn ingest(inner: &DbInner, groups: &[ExternalFiles]) -> Result<()> {
    let _time = perf::time(PerfMetric::FileIngestionNanos);
    inner.disk.check_changeable()?;
    check_families(inner, groups)?;
    let ingestion = Ingestion::begin(inner)?;
    let outcome = inner.jobs.guarded("ingestion", || ingestion.run(groups));
    drop(ingestion);
    inner.jobs.end_asked_for(outcome)
}

/// The path of a table that is to be written in a family's directory, and then ingested by moving
/// it. The next opening removes a file that is left there.
///
/// # Errors
/// Those of a family that cannot be written to.
pub(crate) fn begin_temporary_table(db: &Db, family: &ColumnFamily) -> Result<PathBuf> {
    let inner = db.inner();
    inner.disk.check_changeable()?;
    inner.disk.check_owner(&family.0)?;
    family.0.check_alive()?;
    let number = inner.tree.file_numbers.allocate();
    Ok(file_name::temporary(family.0.paths.directory(0), number))
}

fn check_families(inner: &DbInner, groups: &[ExternalFiles]) -> Result<()> {
    for (index, group) in groups.iter().enumerate() {
        inner.disk.check_owner(&group.family.0)?;
        group.family.0.check_alive()?;
        let name = group.family.name();
        if strips_timestamps(&group.family.options()) {
            let message = format!(
                "column family '{name}' has no timestamps in tables (persist_user_defined_timestamps): it takes none in"
            );
            return Err(Error::not_supported(message));
        }
        if group.atomic_replace_range.is_some() && group.family.0.order.timestamp_size() > 0 {
            let message = format!(
                "a range of column family '{name}' cannot be replaced: its keys have timestamps; delete the range as of one, and \
                 ingest into an empty range"
            );
            return Err(Error::not_supported(message));
        }
        if group.files.is_empty() && group.atomic_replace_range.is_none() {
            let message = format!("no files to ingest into column family '{name}'");
            return Err(Error::invalid_argument(message));
        }
        if groups[..index].iter().any(|earlier| earlier.family.id() == group.family.id()) {
            let message = format!("column family '{name}' is named twice");
            return Err(Error::invalid_argument(message));
        }
        if !group.file_checksums.is_empty() && group.file_checksums.len() != group.files.len() {
            let message = format!(
                "{} checksums for {} files of column family '{name}'",
                group.file_checksums.len(),
                group.files.len()
            );
            return Err(Error::invalid_argument(message));
        }
    }
    Ok(())
}

/// A running ingestion, for whose end a closing database waits.
struct Ingestion<'a>(&'a DbInner);

impl<'a> Ingestion<'a> {
    /// # Errors
    /// `ShutdownInProgress`.
    fn begin(inner: &'a DbInner) -> Result<Self> {
        ingestion::begin(&inner.tree)?;
        Ok(Self(inner))
    }
}

impl Drop for Ingestion<'_> {
    fn drop(&mut self) {
        ingestion::end(&self.0.tree);
    }
}

/// The tables of one family on their way.
struct Batch<'a> {
    group: &'a ExternalFiles,
    tables: Vec<Candidate>,
    brought: BroughtIn<'a>,
}

impl Ingestion<'_> {
    fn run(&self, groups: &[ExternalFiles]) -> Result<()> {
        let inner = self.0;
        let examined = groups.iter().map(|group| candidate::examine(inner, group));
        let examined = examined.collect::<Result<Vec<_>>>()?;
        let mut batches = Vec::new();
        for (group, mut tables) in groups.iter().zip(examined) {
            let mut brought = BroughtIn::new(inner, &group.family.0);
            let replaced = match &group.atomic_replace_range {
                Some(range) => Some(replaced::write(inner, group, range, &mut brought)?),
                None => None,
            };
            for table in &tables {
                brought.bring(table, group).map_err(|error| error.at(&table.path))?;
            }
            brought.sync()?;
            tables.splice(0..0, replaced);
            candidate::set_steps(group, &mut tables)?;
            batches.push(Batch { group, tables, brought });
        }
        self.flush_overlapping(&batches)?;
        self.install(batches)
    }

    /// Flushes the memtables that have a key in the range of a table.
    fn flush_overlapping(&self, batches: &[Batch<'_>]) -> Result<()> {
        let mut families: Vec<Arc<Family>> = Vec::new();
        for Batch { group, tables, .. } in batches {
            let family = &group.family.0;
            let overlaps = |table: &Candidate| candidate::overlaps_memory(family, table);
            if group.options.ingest_behind || !tables.iter().any(overlaps) {
                continue;
            }
            if !group.options.allow_blocking_flush {
                return Err(Error::invalid_argument(format!(
                    "column family '{}' has keys in memory in the range of a table, and allow_blocking_flush is off",
                    family.name
                )));
            }
            families.push(family.clone());
        }
        if families.is_empty() {
            return Ok(());
        }
        Sometimes::FlushedForIngestion.reached();
        self.0.jobs.flush_families(&families, true, FlushReason::Ingestion)
    }

    fn install(&self, batches: Vec<Batch<'_>>) -> Result<()> {
        let inner = self.0;
        let held_back = inner.pipeline.hold_back_writes()?;
        let _time = perf::time(PerfMetric::FileIngestionBlockingLiveWritesNanos);
        self.flush_overlapping(&batches)?;
        inner.pipeline.sync_wal()?;
        let steps = batches.iter().flat_map(|batch| &batch.tables).map(|table| table.step + 1);
        let (at_most, mut is_settled) = (steps.max().unwrap_or(1), false);
        let outcome = held_back.take_numbers(at_most, |first| {
            let arriving = batches.iter().map(|batch| batch.arriving(inner, first));
            let arriving: Vec<Arriving> = match arriving.collect::<Result<_>>() {
                Ok(arriving) => arriving,
                Err(error) => return (None, Err(error)),
            };
            let is_seen = |batch: &Batch<'_>| {
                batch.must_not_overlap() && batch.group.options.snapshot_consistency
            };
            let kept_out = batches.iter().any(is_seen).then(|| inner.snapshots.keep_out());
            if let Some(None) = kept_out {
                return (None, Err(seen_by_snapshots()));
            }
            let tables = arriving.iter().flat_map(|one| &one.tables);
            let largest = tables.map(|table| table.largest_seqno).max();
            let (is_in_manifest, outcome) = ingestion::install(&inner.tree, &arriving);
            is_settled = is_in_manifest;
            (largest.filter(|_| is_in_manifest), outcome)
        });
        drop(held_back);
        for Batch { group, brought, .. } in batches.into_iter().filter(|_| is_settled) {
            brought.keep(outcome.is_ok() && group.options.move_files);
        }
        outcome
    }
}

impl Batch<'_> {
    /// Whether entries keep the sequence numbers that they have, so that they must have no key in
    /// common with the family.
    fn must_not_overlap(&self) -> bool {
        let options = &self.group.options;
        let has_own = self.tables.iter().any(|table| table.origin != Origin::External);
        !options.ingest_behind && (has_own || !options.allow_global_seqno)
    }

    /// The tables with their sequence numbers, of which `first` is the first.
    ///
    /// # Errors
    /// `IoError`.
    fn arriving(&self, inner: &DbInner, first: SequenceNumber) -> Result<Arriving> {
        let Self { group, tables, brought } = self;
        let (options, family) = (&group.options, &group.family.0);
        let is_stamped = family.order.timestamp_size() > 0;
        let now = inner.context.env.clock.unix_seconds();
        let (mut metadata, mut told, mut deletions) = (Vec::new(), Vec::new(), Vec::new());
        for (table, (number, path, temperature)) in tables.iter().zip(brought.files()) {
            let is_numbered = table.origin == Origin::External
                && options.allow_global_seqno
                && !options.ingest_behind;
            let sequence = if is_numbered { first + table.step } else { 0 };
            let mut meta = table.metadata((number, temperature), sequence, now);
            if options.write_global_seqno && is_numbered {
                brought.write_sequence(path, sequence)?;
                meta.set_checksum(inner.context.checksum_of_new_file(path, meta.size)?);
            }
            told.extend(inner.context.events.has_listeners().then(|| IngestionInfo {
                family: family.id,
                family_name: family.name.clone(),
                external_path: table.path.clone(),
                file: FileInfo { number, path: path.to_path_buf(), size: meta.size },
                global_seqno: sequence,
                properties: table.properties.clone(),
            }));
            metadata.push(meta);
            // With timestamps they spare newer versions.
            let deletes = is_numbered && !is_stamped;
            deletions.push(if deletes { table.deletions(sequence) } else { Vec::new() });
        }
        Ok(Arriving {
            family: family.clone(),
            tables: metadata,
            deletions,
            is_behind: options.ingest_behind,
            only_last_level: options.fail_if_not_bottommost_level,
            must_not_overlap: self.must_not_overlap() || is_stamped,
            told,
        })
    }
}

fn seen_by_snapshots() -> Error {
    Error::invalid_argument(
        "there are snapshots, which would see the tables, as these get no new sequence number",
    )
}
