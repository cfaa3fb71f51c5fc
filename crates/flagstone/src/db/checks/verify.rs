//! Checking a database: every byte against its checksum, and the MANIFEST against the directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::base::file_name::FileKind;
use crate::base::{
    Code, Error, FileChecksum, FileNumber, InternalIterator, InternalKey, Result, counted, form,
};
use crate::blob::{BlobFileScan, FOOTER_SIZE, HEADER_SIZE, references, visit_references};
use crate::compaction::pick::refers_to;
use crate::db::DbInner;
use crate::db::checks::file_checksums::verify_file_checksums;
use crate::db::checks::verify_logs::{self, LogReport};
use crate::db::checks::verify_manifest;
use crate::db::family::{ColumnFamily, Family};
use crate::db::handle::Db;
use crate::db::tables::of_named_file;
use crate::db::tree::directories;
use crate::env::IoMode;
use crate::iter::lookup::locate_value;
use crate::manifest::{BlobFileState, BlobReferences, TableFile, Version};
use crate::sst::{BlockFault, IterSettings};

/// The first and the last of user keys.
type KeyRange = (Vec<u8>, Vec<u8>);

/// One thing wrong with one file.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What and where; names the file and, where it is known, the offset.
    pub error: Error,
    /// The user keys that may be affected, if that is known.
    pub key_range: Option<KeyRange>,
}

/// What [`Db::verify`](crate::Db::verify) found.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// Tables read.
    pub tables: u64,
    /// Blob files read.
    pub blob_files: u64,
    /// WALs read: those that an opening would replay. None where the database is open for writing,
    /// which has replayed them.
    pub wals: u64,
    /// Bytes of those files and the MANIFEST.
    pub bytes: u64,
    /// What is wrong; empty for a sound database.
    pub faults: Vec<Fault>,
    /// What may be as it should: the last record of a WAL or the MANIFEST is not whole, which is
    /// how they end after a crash, or without their last bytes, which nothing tells apart; or the
    /// last WAL is missing, which RocksDB's checkpoints lack where it was empty; or a file has a
    /// checksum of a function that is not known.
    pub notes: Vec<Error>,
}

impl VerifyReport {
    /// Adds what log files came to; how many there were.
    fn add(&mut self, found: Result<LogReport>) -> u64 {
        let found =
            found.unwrap_or_else(|error| LogReport { faults: vec![error], ..LogReport::default() });
        self.bytes = self.bytes.saturating_add(found.bytes);
        self.notes.extend(found.notes);
        self.faults.extend(found.faults.into_iter().map(|error| Fault { error, key_range: None }));
        found.files
    }
}

/// What [`Db::check`](crate::Db::check) found.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// Files that the MANIFEST or a WAL names.
    pub live_files: u64,
    /// What is missing or has another size than recorded.
    pub faults: Vec<Fault>,
    /// Table, blob and temporary files in the directory that nothing names; the next opening
    /// removes them.
    pub strays: Vec<PathBuf>,
}

impl Db {
    /// Reads every block of every live table and every record of every live blob file, and checks
    /// checksums and order, and that tables refer to no blob files but these; in one with holes,
    /// every record that they refer to. Of a database that was opened for reading, also every
    /// record of the MANIFEST, and, whatever `wal_recovery_mode` says, of the WALs that an opening
    /// for writing would replay, with the blobs that they name. Costs one reading of each file, two
    /// of those that have a checksum in the MANIFEST; of WALs and MANIFEST two where something is
    /// wrong with them. `progress` hears of each file that
    /// is done and the bytes read so far.
    ///
    /// What is looked for are the files that the database had when it was opened for reading: those
    /// that another process, which writes to it, has removed since are told as missing. Who watches
    /// such a database opens it anew for each look.
    pub fn verify(&self, mut progress: impl FnMut(&VerifyReport)) -> VerifyReport {
        let mut report = VerifyReport::default();
        for family in self.column_families() {
            // Holes wait for those who hold a super version, not for those who hold its version.
            let current = family.0.current.load_full();
            let version = &current.version;
            for (_, file) in version.files() {
                verify_table(self.inner(), &family.0, version, file, &mut report);
                progress(&report);
            }
            let mut with_holes = BTreeSet::new();
            for blob in version.blob_files.values() {
                if verify_blob_file(self.inner(), &family.0, blob, &mut report) {
                    with_holes.insert(blob.file.number());
                }
                progress(&report);
            }
            verify_references(self.inner(), &family.0, version, &with_holes, &mut report);
        }
        // Who writes has them in memory, and changes them.
        if self.inner().context.read_only {
            report.add(verify_manifest::verify_manifest(self.inner()));
            report.wals = report.add(verify_logs::verify_logs(self.inner()));
            progress(&report);
        }
        report
    }

    /// Reads all tables and blob files that have a checksum in the MANIFEST, and compares it. Files
    /// without one are not read. [`Db::verify`](crate::Db::verify) does this, too, and finds where
    /// the damage is.
    ///
    /// # Errors
    /// `Corruption` naming the first file that has another checksum; `InvalidArgument` if the
    /// function of one is not known; `IoError`.
    pub fn verify_file_checksums(&self) -> Result<()> {
        verify_file_checksums(self)
    }

    /// Compares what the MANIFEST names with what the directory holds; reads no contents.
    ///
    /// # Errors
    /// `IoError` if the directory cannot be listed.
    pub fn check(&self) -> Result<CheckReport> {
        check(self.inner(), &self.column_families())
    }
}

fn verify_table(
    db: &DbInner,
    family: &Family,
    version: &Version,
    file: &TableFile,
    report: &mut VerifyReport,
) {
    let range = key_range(file);
    let known = report.faults.len();
    let opened = db.tables.open(family, file);
    if !opened.as_ref().is_err_and(is_unread) {
        report.tables += 1;
        report.bytes = report.bytes.saturating_add(file.meta.size);
    }
    match opened {
        Ok(table) => {
            let mut astray = Astray::default();
            let note = &mut |fault: BlockFault| {
                let (mut from, to) = fault.key_range.unwrap_or_else(|| range.clone());
                // No index entry precedes the first block.
                if from.is_empty() {
                    from.clone_from(&range.0);
                }
                let key_range = Some((from, to));
                report.faults.push(Fault { error: fault.error, key_range });
            };
            table.verify_showing(note, &mut |key, value| astray.note(version, key, value));
            report.faults.extend(astray.into_faults(&table_path(db, file)));
        }
        Err(error) => report.faults.push(Fault { error, key_range: Some(range.clone()) }),
    }
    // What was put behind a table that is whole keeps the database from being opened all the
    // same.
    if report.faults.len() == known {
        check_size(
            db,
            &mut report.faults,
            table_path(db, file),
            file.meta.size,
            Some(range.clone()),
        );
    }
    if report.faults.len() == known {
        check_checksum(db, &table_path(db, file), file.meta.checksum(), Some(range), report);
    }
}

/// Whether the file has holes: what lay there, those must have who refer to the file.
fn verify_blob_file(
    db: &DbInner,
    family: &Family,
    blob: &BlobFileState,
    report: &mut VerifyReport,
) -> bool {
    let known = report.faults.len();
    let path = blob.file.path();
    let file = match db.context.env.fs.open_random_access(&path, IoMode::Buffered) {
        Err(error) if is_unread(&error) => {
            report.faults.push(Fault { error: of_named_file(error), key_range: None });
            return false;
        }
        opened => opened,
    };
    report.blob_files += 1;
    report.bytes = report.bytes.saturating_add(blob.file.meta.total_bytes);
    let scan = file.and_then(BlobFileScan::new);
    let (mut count, mut has_holes) = (0, false);
    match scan {
        Ok(mut records) => {
            while let Some(record) = records.next() {
                count += 1;
                // One without a key may fill a hole or a block: its checksum must do.
                let checked = record.and_then(|record| {
                    if record.key.is_empty() { Ok(()) } else { records.check_value(&record) }
                });
                if let Err(error) = checked {
                    report.faults.push(Fault { error: error.at(&path), key_range: None });
                }
            }
            has_holes = records.has_holes();
        }
        Err(error) => report.faults.push(Fault { error, key_range: None }),
    }
    let expected = blob.file.meta.total_count;
    if count != expected && !has_holes {
        let message =
            format!("blob file holds {}, the MANIFEST says {expected}", counted(count, "blob"));
        report.faults.push(Fault { error: Error::corruption(message).at(&path), key_range: None });
    }
    if let Err(error) = db.tables.blob_file(family, blob.file.number()) {
        report.faults.push(Fault { error, key_range: None });
    }
    // Another database's file of that name is as sound.
    if report.faults.len() == known {
        check_size(db, &mut report.faults, path.clone(), blob_file_size(blob), None);
    }
    if report.faults.len() == known {
        check_checksum(db, &path, blob.file.meta.checksum(), None, report);
    }
    has_holes
}

/// Checks the records of these blob files that tables refer to. What is wrong with the tables
/// was reported already.
fn verify_references(
    db: &DbInner,
    family: &Family,
    version: &Version,
    files: &BTreeSet<FileNumber>,
    report: &mut VerifyReport,
) {
    for (_, table) in version.files().filter(|(_, table)| refers_to(table, files)) {
        let Ok(mut entries) = db.tables.iterate(family, table, &IterSettings::default(), None)
        else {
            continue;
        };
        entries.seek_to_first();
        while entries.valid() {
            let found = references(entries.key().value_type(), entries.value());
            for index in found.iter().filter(|index| files.contains(&index.file)) {
                let key = entries.key().user_key();
                let reader = db.tables.blob_file(family, index.file);
                if let Err(error) = reader.and_then(|reader| reader.check(key, index)) {
                    let key_range = Some((key.to_vec(), key.to_vec()));
                    report.faults.push(Fault { error, key_range });
                }
            }
            entries.next();
        }
    }
}

fn check(db: &DbInner, families: &[ColumnFamily]) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let mut live: BTreeSet<FileNumber> = BTreeSet::new();
    for family in families {
        let current = family.0.current.load_full();
        let version = &current.version;
        live.extend(current.generations().flat_map(|memtable| memtable.blobs.numbers()));
        for (_, file) in version.files() {
            live.insert(file.number());
            let (path, range) = (table_path(db, file), key_range(file));
            for blob_file in
                blob_files_of(file).filter(|number| !version.blob_files.contains_key(number))
            {
                let error =
                    Error::corruption(format!("large values are in {}", unnamed(blob_file)));
                report
                    .faults
                    .push(Fault { error: error.at(&path), key_range: Some(range.clone()) });
            }
            check_size(db, &mut report.faults, path, file.meta.size, Some(range));
        }
        for blob in version.blob_files.values() {
            live.insert(blob.file.number());
            check_size(db, &mut report.faults, blob.file.path(), blob_file_size(blob), None);
        }
    }
    report.live_files = live.len() as u64;
    for (path, kind) in directories::data_files(&db.tree)? {
        let stray = match kind {
            FileKind::Table(number) | FileKind::Blob(number) => !live.contains(&number),
            FileKind::Temporary(_) => true,
            _ => false,
        };
        if stray {
            report.strays.push(path);
        }
    }
    report.strays.sort();
    Ok(report)
}

/// With `ldb` for tables that LevelDB named.
pub(super) fn table_path(db: &DbInner, file: &TableFile) -> PathBuf {
    let path = file.path();
    let old = path.with_extension("ldb");
    let is_old =
        db.context.env.fs.metadata(&path).is_err() && db.context.env.fs.metadata(&old).is_ok();
    if is_old { old } else { path }
}

/// Compares a file with its checksum as a whole, which finds what blocks and records do not cover.
fn check_checksum(
    db: &DbInner,
    path: &Path,
    expected: Option<FileChecksum>,
    key_range: Option<KeyRange>,
    report: &mut VerifyReport,
) {
    let Some(expected) = expected else { return };
    match db.context.check_checksum(path, &expected) {
        Err(error) if error.code() == Code::InvalidArgument => report.notes.push(error.at(path)),
        Err(error) => report.faults.push(Fault { error, key_range }),
        Ok(()) => {}
    }
}

fn check_size(
    db: &DbInner,
    faults: &mut Vec<Fault>,
    path: PathBuf,
    expected: u64,
    key_range: Option<KeyRange>,
) {
    let error = match db.context.env.fs.metadata(&path) {
        Ok(found) if found.size == expected => return,
        Ok(found) => {
            let message = format!("file has {} bytes, the MANIFEST says {expected}", found.size);
            Error::corruption(message).at(path)
        }
        Err(error) => of_named_file(error),
    };
    faults.push(Fault { error, key_range });
}

/// Whether a file is not there, or this user may not read it: no byte of it was checked.
fn is_unread(error: &Error) -> bool {
    error.is_not_found() || error.is_refused()
}

/// Values of a table that lie nowhere.
#[derive(Default)]
struct Astray {
    /// How many lie in blob files that the version does not have, by file, and the first and the
    /// last of their keys.
    unnamed: BTreeMap<FileNumber, (u64, KeyRange)>,
    /// How many cannot be read, the first and the last of their keys, and what is wrong with the
    /// first.
    unread: Option<(u64, KeyRange, Error)>,
}

impl Astray {
    fn note(&mut self, version: &Version, key: InternalKey<'_>, value: &[u8]) {
        let (Some(kind), key) = (key.value_type(), key.user_key()) else { return };
        let checked = locate_value(key, kind, value).and_then(|_| {
            visit_references(Some(kind), value, |index| {
                if !version.blob_files.contains_key(&index.file) {
                    let known = self.unnamed.entry(index.file);
                    let (count, range) = known.or_insert_with(|| (0, (key.to_vec(), Vec::new())));
                    *count += 1;
                    range.1 = key.to_vec();
                }
                Ok(())
            })
        });
        if let Err(error) = checked {
            let new = || (0, (key.to_vec(), Vec::new()), error);
            let (count, range, _) = self.unread.get_or_insert_with(new);
            *count += 1;
            range.1 = key.to_vec();
        }
    }

    fn into_faults(self, table: &Path) -> impl Iterator<Item = Fault> {
        let unnamed = self.unnamed.into_iter().map(|(file, (count, range))| {
            let message = format!(
                "{} {} in {}",
                counted(count, "large value"),
                form(count, "lies", "lie"),
                unnamed(file)
            );
            Fault { error: Error::corruption(message), key_range: Some(range) }
        });
        let unread = self.unread.map(|(count, range, first)| {
            let doing = format!(
                "{} to large values or entities cannot be read; the first",
                counted(count, "reference")
            );
            Fault { error: first.context(doing), key_range: Some(range) }
        });
        let all = unnamed.chain(unread);
        all.map(move |fault| Fault { error: fault.error.at(table), ..fault })
    }
}

fn unnamed(blob_file: FileNumber) -> String {
    format!("{blob_file}.blob, which the MANIFEST does not name: they cannot be read")
}

/// Blob files that the MANIFEST says a table refers to, as far as it does.
fn blob_files_of(table: &TableFile) -> impl Iterator<Item = FileNumber> {
    let known = table.meta.blob_references.as_ref();
    let oldest = table.meta.oldest_blob_file.filter(|_| known.is_none());
    known.map(BlobReferences::files).unwrap_or_default().iter().map(|(file, _)| *file).chain(oldest)
}

fn key_range(table: &TableFile) -> KeyRange {
    (table.meta.smallest.user_key().to_vec(), table.meta.largest.user_key().to_vec())
}

/// Header and footer around the records; see blob/format.rs.
fn blob_file_size(blob: &BlobFileState) -> u64 {
    blob.file.meta.total_bytes.saturating_add((HEADER_SIZE + FOOTER_SIZE) as u64)
}

#[cfg(test)]
mod tests;
