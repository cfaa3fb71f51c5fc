//! Reading a MANIFEST back.
//!
//! 1. CURRENT names the MANIFEST. Its edits are applied in order; those of an atomic group
//!    together, once all are there.
//! 2. Families come and go with the edits. Each collects its file changes in a version builder; a
//!    family that nobody asked for collects nothing.
//! 3. At the end every family must have been asked for (unless nothing will be written), the
//!    counters must have appeared, and the builders' versions must be consistent.
//! 4. File numbers are handed out above every number seen, also in the directory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::edit::VersionEdit;
use super::identity::{new_uuid, read_identity};
use super::live::ObsoleteFiles;
use super::record::Reader;
use super::version::Version;
use super::version_builder::VersionBuilder;
use super::version_set::{
    Family, FamilySpec, FileNumbers, Identity, ManifestSettings, ManifestState, VersionSet,
};
use crate::base::file_name::FileKind;
use crate::base::{
    ColumnFamilyId, Comparator, DEFAULT_COLUMN_FAMILY_NAME, Error, FileNumber,
    InternalKeyComparator, Remedy, Result, SequenceNumber, file_name,
};
use crate::env::{Env, FileSystem, Names, read_file};

/// How often a MANIFEST may be replaced while it is looked for.
const REPLACED_AT_MOST: usize = 100;

/// How to open a database's files.
#[derive(Debug, Clone)]
pub struct RecoverOptions {
    /// The families to open; `default` must be among them.
    pub families: Vec<FamilySpec>,
    /// Nothing will be written: families that are not asked for may stay closed.
    pub read_only: bool,
    /// Of the MANIFEST writer.
    pub settings: ManifestSettings,
}

/// A column family as the MANIFEST knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyListing {
    /// Its number.
    pub id: ColumnFamilyId,
    /// Its name.
    pub name: String,
    /// The name of its comparator, if stored.
    pub comparator: Option<String>,
}

/// The path of the MANIFEST that CURRENT names.
///
/// # Errors
/// `IoError` (subcode `PathNotFound` if there is no database), `Corruption` if CURRENT is
/// malformed.
pub fn read_current(fs: &dyn FileSystem, directory: &Path) -> Result<PathBuf> {
    Ok(file_name::manifest(directory, current_manifest(fs, directory)?))
}

/// Reads the MANIFEST that CURRENT names. Where a writer has replaced it before it was opened, the
/// next one is read.
///
/// # Errors
/// As [`read_current`], and those of `read`.
pub fn with_current<T>(
    fs: &dyn FileSystem,
    directory: &Path,
    mut read: impl FnMut(&Path) -> Result<T>,
) -> Result<T> {
    let mut path = read_current(fs, directory)?;
    for _ in 0..REPLACED_AT_MOST {
        let outcome = read(&path);
        if !outcome.as_ref().is_err_and(Error::is_not_found) {
            return outcome;
        }
        let now = read_current(fs, directory)?;
        if now == path {
            return outcome;
        }
        path = now;
    }
    read(&path)
}

/// The number of the MANIFEST that CURRENT names.
///
/// # Errors
/// As [`read_current`].
pub(crate) fn current_manifest(fs: &dyn FileSystem, directory: &Path) -> Result<FileNumber> {
    let path = file_name::current(directory);
    let contents = read_file(fs, &path, 4096)?;
    let Some(name) = contents.strip_suffix(b"\n") else {
        return Err(Error::corruption("CURRENT file does not end with newline").at(&path));
    };
    match std::str::from_utf8(name).ok().and_then(FileKind::parse) {
        Some(FileKind::Manifest(number)) => Ok(number),
        _ => Err(Error::corruption("CURRENT does not name a MANIFEST").at(&path)),
    }
}

/// The column families of a database, by id.
///
/// # Errors
/// `IoError`, `Corruption`.
pub fn list_column_families(env: &Env, directory: &Path) -> Result<Vec<FamilyListing>> {
    let fs = &*env.fs;
    let replay = with_current(fs, directory, |path| {
        let mut replay = Replay::new(Arc::new(|_| Ok(None)), Arc::default())?;
        replay.read(fs, path, 0).map(|()| replay)
    });
    let replay = replay.map_err(advised)?;
    let listing = |(id, family): (ColumnFamilyId, ReplayedFamily)| FamilyListing {
        id,
        name: family.name,
        comparator: family.comparator,
    };
    Ok(replay.families.into_iter().map(listing).collect())
}

mod blob_keys;
mod tail;

use blob_keys::check_blob_keys;
pub use tail::ManifestTail;

impl VersionSet {
    /// Reads the MANIFEST that CURRENT names. Writes nothing; the first change then begins a new
    /// MANIFEST.
    ///
    /// Whether the listed files exist is for [`check_files`] to say.
    ///
    /// # Errors
    /// - `InvalidArgument`: families in the MANIFEST that `options` does not name (unless
    ///   `read_only`), families named that are not there, another comparator than stored, too few
    ///   levels.
    /// - `Corruption`, `IoError`.
    pub fn recover(env: Env, directory: &Path, options: RecoverOptions) -> Result<Self> {
        if !options.families.iter().any(|spec| spec.name == DEFAULT_COLUMN_FAMILY_NAME) {
            return Err(Error::invalid_argument("the column family 'default' must be opened too"));
        }
        options.families.iter().try_for_each(FamilySpec::check)?;
        Self::recover_checked(env, directory, options).map_err(advised)
    }

    fn recover_checked(env: Env, directory: &Path, options: RecoverOptions) -> Result<Self> {
        let number = current_manifest(&*env.fs, directory)?;
        let path = file_name::manifest(directory, number);
        let obsolete = Arc::new(ObsoleteFiles::default());
        // Of two with the same name the first.
        let specs: HashMap<String, FamilySpec> =
            options.families.iter().rev().map(|spec| (spec.name.clone(), spec.clone())).collect();
        let wanted = move |name: &str| Ok(specs.get(name).cloned());
        let mut replay = Replay::new(Arc::new(wanted), obsolete.clone())?;
        replay.read(&*env.fs, &path, options.settings.readahead_size)?;
        replay.check_families(&options)?;
        let counters = replay.counters().map_err(|error| error.at(&path))?;

        let (identity, identity_missing) = read_identity(&*env.fs, directory)?;
        let db_id = replay.db_id.take().or(identity).unwrap_or_else(|| new_uuid(&*env.random));
        let max_column_family = replay.max_column_family;
        let min_log_number_to_keep = replay.min_log_number_to_keep;
        let families = replay.into_families().map_err(|error| error.at(&path))?;

        let file_numbers =
            FileNumbers::starting_at(FileNumber(counters.next_file_number.0.saturating_add(1)));
        file_numbers.mark_used(number);
        for family in families.values() {
            file_numbers.mark_used(family.log_number);
            family.current.files().for_each(|(_, file)| file_numbers.mark_used(file.number()));
            family.current.blob_files.keys().for_each(|&number| file_numbers.mark_used(number));
        }
        let largest_seqno = families.values().map(|family| family.current.largest_seqno()).max();
        let versions = Self {
            directory: directory.to_path_buf(),
            names: Arc::new(Names::new(env.fs.clone())),
            env,
            settings: options.settings,
            read_only: options.read_only,
            families,
            file_numbers: Arc::new(file_numbers),
            obsolete,
            // A sequence number that a file uses must never be given out again.
            last_sequence: counters.last_sequence.max(largest_seqno.unwrap_or(0)),
            min_log_number_to_keep,
            max_column_family,
            identity: Identity { db_id, is_file_missing: identity_missing },
            manifest: ManifestState::new(number, true),
        };
        versions.mark_listed_numbers()?;
        Ok(versions)
    }

    /// Gives out no number that a file in the directory, or in one of the families', has.
    pub(super) fn mark_listed_numbers(&self) -> Result<()> {
        let mut directories: Vec<&Path> = vec![&self.directory];
        let of_families =
            self.families.values().flat_map(|family| family.current.paths.directories());
        directories.extend(of_families.map(AsRef::as_ref));
        directories.sort_unstable();
        directories.dedup();
        for directory in directories {
            for name in list_if_there(&*self.env.fs, directory)? {
                if let Some(number) = FileKind::parse(&name).and_then(FileKind::number) {
                    self.file_numbers.mark_used(number);
                }
            }
        }
        Ok(())
    }
}

/// How the family of a name is to be opened; `None` if it stays closed.
pub type WantedFamilies = Arc<dyn Fn(&str) -> Result<Option<FamilySpec>> + Send + Sync>;

/// The state that the edits read so far add up to.
pub(super) struct Replay {
    wanted: WantedFamilies,
    queue: Arc<ObsoleteFiles>,
    families: BTreeMap<ColumnFamilyId, ReplayedFamily>,
    db_id: Option<String>,
    log_number_seen: bool,
    next_file_number: Option<FileNumber>,
    last_sequence: Option<SequenceNumber>,
    min_log_number_to_keep: FileNumber,
    max_column_family: ColumnFamilyId,
    /// The edits of an atomic group that is not complete yet.
    group: Vec<VersionEdit>,
}

struct ReplayedFamily {
    name: String,
    comparator: Option<String>,
    /// Whether its tables have timestamps, if its keys have.
    persists_timestamps: bool,
    /// What the family is opened with, if it is.
    open: Option<OpenFamily>,
}

struct OpenFamily {
    spec: FamilySpec,
    builder: VersionBuilder,
    /// Log number, cursors and the like, around an empty version, or the last one that was built.
    facts: Family,
    /// Whether its files have changed since.
    has_changed: bool,
}

/// What a MANIFEST must have said.
struct Counters {
    next_file_number: FileNumber,
    last_sequence: SequenceNumber,
}

impl Replay {
    pub(super) fn new(wanted: WantedFamilies, queue: Arc<ObsoleteFiles>) -> Result<Self> {
        let mut replay = Self {
            wanted,
            queue,
            families: BTreeMap::new(),
            db_id: None,
            log_number_seen: false,
            next_file_number: None,
            last_sequence: None,
            min_log_number_to_keep: FileNumber(0),
            max_column_family: ColumnFamilyId::DEFAULT,
            group: Vec::new(),
        };
        replay.add_family(ColumnFamilyId::DEFAULT, DEFAULT_COLUMN_FAMILY_NAME.to_string())?;
        Ok(replay)
    }

    /// Reads all edits, so many bytes at a time.
    pub(super) fn read(
        &mut self,
        fs: &dyn FileSystem,
        path: &Path,
        readahead_size: usize,
    ) -> Result<()> {
        let mut reader = Reader::open_reading(fs, path, readahead_size)?;
        while let Some((offset, record)) = reader.next()? {
            VersionEdit::decode(record)
                .and_then(|edit| self.take(edit))
                .map_err(|error| error.at(path).at_offset(offset))?;
        }
        // A group that the end of the file cuts off never happened.
        self.group.clear();
        Ok(())
    }

    fn take(&mut self, edit: VersionEdit) -> Result<()> {
        let expected = match self.group.last().map(|last| last.atomic_group_remaining) {
            Some(Some(remaining)) => Some(remaining.wrapping_sub(1)),
            _ => edit.atomic_group_remaining,
        };
        if edit.atomic_group_remaining != expected {
            return Err(Error::corruption("corrupted atomic group"));
        }
        match expected {
            None => self.apply(&edit),
            Some(remaining) => {
                self.group.push(edit);
                match remaining {
                    0 => {
                        std::mem::take(&mut self.group).iter().try_for_each(|edit| self.apply(edit))
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        if let Some(id) = &edit.db_id {
            self.db_id = Some(id.clone());
        }
        if let Some(id) = edit.max_column_family {
            self.max_column_family = self.max_column_family.max(id);
        }
        if let Some(name) = &edit.family_added {
            if self.families.contains_key(&edit.family) {
                return Err(Error::corruption(format!(
                    "column family {} is added twice",
                    edit.family
                )));
            }
            self.add_family(edit.family, name.clone())?;
        } else if edit.family_dropped {
            return match self.families.remove(&edit.family) {
                Some(_) if edit.family != ColumnFamilyId::DEFAULT => Ok(()),
                _ => Err(Error::corruption(format!(
                    "column family {} is dropped but unknown",
                    edit.family
                ))),
            };
        }
        self.apply_numbers(edit);
        let family = self.families.get_mut(&edit.family).ok_or_else(|| {
            Error::corruption(format!("an edit of the unknown column family {}", edit.family))
        })?;
        family.apply(edit)
    }

    fn add_family(&mut self, id: ColumnFamilyId, name: String) -> Result<()> {
        self.max_column_family = self.max_column_family.max(id);
        let open = (self.wanted)(&name)?.map(|spec| {
            let comparator = InternalKeyComparator::new(spec.comparator.clone());
            let empty = Version::empty(comparator, spec.paths.clone(), spec.num_levels);
            OpenFamily {
                spec,
                builder: VersionBuilder::for_recovery(&empty, self.queue.clone()),
                facts: Family::new(id, name.clone(), empty, FileNumber(0)),
                has_changed: true,
            }
        });
        self.families
            .insert(id, ReplayedFamily { name, comparator: None, persists_timestamps: true, open });
        Ok(())
    }

    fn apply_numbers(&mut self, edit: &VersionEdit) {
        self.log_number_seen |= edit.log_number.is_some();
        self.next_file_number = self.next_file_number.max(edit.next_file_number);
        self.last_sequence = self.last_sequence.max(edit.last_sequence);
        if let Some(number) = edit.min_log_number_to_keep {
            self.min_log_number_to_keep = self.min_log_number_to_keep.max(number);
        }
    }

    fn check_families(&self, options: &RecoverOptions) -> Result<()> {
        let closed: Vec<_> =
            self.families.values().filter(|f| f.open.is_none()).map(|f| f.name.as_str()).collect();
        if !closed.is_empty() && !options.read_only {
            let unnamed = format!("Column families not opened: {}", closed.join(", "));
            return Err(Error::invalid_argument(unnamed).advise(Remedy::NameAllFamilies));
        }
        let known: HashSet<&str> =
            self.families.values().map(|family| family.name.as_str()).collect();
        match options.families.iter().find(|spec| !known.contains(spec.name.as_str())) {
            Some(missing) => {
                Err(Error::invalid_argument(format!("Column family not found: {}", missing.name))
                    .advise(Remedy::CreateMissingFamilies))
            }
            None => Ok(()),
        }
    }

    fn counters(&self) -> Result<Counters> {
        let missing = |what: &str| Error::corruption(format!("no {what} entry in MANIFEST"));
        if !self.log_number_seen {
            return Err(missing("log_file_number"));
        }
        Ok(Counters {
            next_file_number: self.next_file_number.ok_or_else(|| missing("next_file_number"))?,
            last_sequence: self.last_sequence.ok_or_else(|| missing("last_sequence"))?,
        })
    }

    pub(super) fn into_families(self) -> Result<BTreeMap<ColumnFamilyId, Family>> {
        let mut families = BTreeMap::new();
        for (id, family) in self.families {
            let Some(OpenFamily { builder, facts, spec, .. }) = family.open else { continue };
            let family_persists = spec.persists_timestamps;
            let version = builder
                .build()
                .map_err(|error| error.context(format!("column family '{}'", facts.name)))?;
            check_blob_keys(&facts.name, family.comparator.as_deref(), &spec.comparator, &version)?;
            let Family {
                name, log_number, known_wal, compact_cursors, full_history_ts_low, ..
            } = facts;
            let mut opened = Family::new(id, name, version, log_number);
            opened.persists_timestamps = family_persists;
            families
                .insert(id, Family { known_wal, compact_cursors, full_history_ts_low, ..opened });
        }
        Ok(families)
    }
}

impl OpenFamily {
    /// Whether a family whose comparator is stored under this name can be opened: it has the same
    /// comparator, or one that differs in timestamps alone, which are in none of its tables.
    fn takes_over(&mut self, stored: &str, stored_persists: bool) -> bool {
        let given = &self.spec.comparator;
        if stored == given.name() {
            return true;
        }
        let Ok(stored) = Comparator::from_name(stored) else { return false };
        let is_same_without = stored.without_timestamps() == given.without_timestamps();
        if !(given.is_built_in() && is_same_without) {
            return false;
        }
        if stored.timestamp_size() > 0 {
            return !stored_persists;
        }
        if !self.spec.persists_timestamps {
            self.builder.note_unstamped();
        }
        !self.spec.persists_timestamps
    }
}

impl ReplayedFamily {
    fn apply(&mut self, edit: &VersionEdit) -> Result<()> {
        if let Some(comparator) = &edit.comparator {
            self.comparator = Some(comparator.clone());
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        if edit.comparator.is_some() {
            // Whoever does not say has them in tables.
            self.persists_timestamps = edit.persist_user_timestamps.unwrap_or(true);
        }
        if let Some(stored) = &edit.comparator
            && !open.takes_over(stored, self.persists_timestamps)
        {
            let given = open.spec.comparator.name();
            return Err(Error::invalid_argument(format!(
                "{given}: does not match existing comparator {stored} of column family '{}'",
                self.name
            ))
            .advise(Remedy::OpenWithOwnOptions));
        }
        if let Some(stored) = &edit.comparator
            && stored == open.spec.comparator.name()
            && open.spec.comparator.timestamp_size() > 0
            && self.persists_timestamps != open.spec.persists_timestamps
        {
            let (stored, given) = (self.persists_timestamps, open.spec.persists_timestamps);
            return Err(Error::invalid_argument(format!(
                "column family '{}' was written with persist_user_defined_timestamps={stored}, and cannot be opened with {given}",
                self.name
            ))
            .advise(Remedy::OpenWithOwnOptions));
        }
        let size = open.spec.comparator.timestamp_size();
        let low = edit.full_history_ts_low.as_ref().map_or(size, Vec::len);
        // A family that had timestamps once still has its low mark.
        if size > 0 && low != size {
            let wrong = format!("full_history_ts_low has {low} bytes, timestamps have {size}");
            return Err(Error::corruption(format!("column family '{}': {wrong}", self.name)));
        }
        open.facts.apply_facts(edit);
        open.has_changed |= edit.changes_files();
        open.builder.apply(edit)
    }
}

/// The files in a directory; none if it is missing: what should be there is missed by its name.
fn list_if_there(fs: &dyn FileSystem, directory: &Path) -> Result<Vec<String>> {
    match fs.list(directory) {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        listed => listed,
    }
}

/// Tells whom a damaged MANIFEST or CURRENT keeps from a database, or a MANIFEST that is missing,
/// how to go on.
pub(crate) fn advised(error: Error) -> Error {
    let is_manifest = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        matches!(name.and_then(FileKind::parse), Some(FileKind::Manifest(_)))
    };
    // Without a CURRENT there may be no database at all.
    let is_missing = error.is_not_found() && error.path().is_some_and(is_manifest);
    if error.is_corruption() || is_missing { error.advise(Remedy::RestoreManifest) } else { error }
}

/// Checks that every table and blob file of the open families exists, tables with exactly the
/// recorded size; tells of each.
///
/// # Errors
/// `Corruption` naming the first file that is missing or has another size; `IoError`.
pub fn check_files(versions: &VersionSet, checked: &mut dyn FnMut()) -> Result<()> {
    let fs = &*versions.env().fs;
    for version in versions.families().map(|family| &family.current) {
        for (_, file) in version.files() {
            let (meta, path) = (&file.meta, file.path());
            let size = match fs.metadata(&path) {
                // Databases from before tables were called sst.
                Err(error) if error.is_not_found() => {
                    check_path_ids(version, fs, &path)?;
                    let size = present_size(fs, &path, &path.with_extension("ldb"))?;
                    file.note_leveldb_name();
                    size
                }
                other => other?.size,
            };
            if size != meta.size {
                return Err(Error::corruption(format!(
                    "Sst file size mismatch: the MANIFEST records {} bytes, the file has {size}",
                    meta.size
                ))
                .advise(Remedy::RestoreOrGoWithout)
                .at(&path));
            }
            checked();
        }
        for blob in version.blob_files.values() {
            let path = blob.file.path();
            present_size(fs, &path, &path)?;
            checked();
        }
    }
    Ok(())
}

/// Asks the disk how much of the blob files with garbage is on it.
///
/// # Errors
/// `IoError`; but whether a file is there, others say.
pub fn find_holes(versions: &VersionSet) -> Result<()> {
    let fs = &*versions.env().fs;
    let blobs = versions.families().flat_map(|family| family.current.blob_files.values());
    for blob in blobs.filter(|blob| blob.garbage_bytes > 0) {
        match fs.metadata(&blob.file.path()) {
            Ok(found) => blob.file.holes.set_punched(found.size.saturating_sub(found.allocated)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A table that is missing may lie in a directory that was not named: where others do by their path
/// ids, it is that.
fn check_path_ids(version: &Version, fs: &dyn FileSystem, path: &Path) -> Result<()> {
    let named = version.paths.directories().len();
    let path_id = version.files().map(|(_, file)| file.meta.path_id).max().unwrap_or(0);
    if (path_id as usize) < named || fs.metadata(&path.with_extension("ldb")).is_ok() {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "the table is not here: the MANIFEST names directories up to path id {path_id}, but only {named} \
         {} given; name all of them in db_paths (or cf_paths), in their order",
        if named == 1 { "is" } else { "are" }
    ))
    .at(path))
}

fn present_size(fs: &dyn FileSystem, named: &Path, path: &Path) -> Result<u64> {
    match fs.metadata(path) {
        Ok(metadata) => Ok(metadata.size),
        Err(error) if error.is_not_found() => {
            let error = Error::corruption("the MANIFEST lists this file, but it is missing");
            Err(error.advise(Remedy::RestoreOrGoWithout).at(named))
        }
        Err(error) => Err(error),
    }
}
