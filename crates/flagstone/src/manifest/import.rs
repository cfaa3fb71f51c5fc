//! A family that comes with its files.

use std::path::Path;
use std::sync::Arc;

use super::edit::VersionEdit;
use super::live::ObsoleteFiles;
use super::recover::{Replay, read_current};
use super::version::Version;
use super::version_builder::VersionBuilder;
use super::version_set::{Family, FamilySpec, VersionSet};
use crate::base::{ColumnFamilyId, Error, FileNumber, InternalKeyComparator, Result};
use crate::env::FileSystem;

/// One family of the database in `directory`, as its MANIFEST has it. Whether its files exist is
/// not looked at.
///
/// # Errors
/// `InvalidArgument` for another comparator or too few levels; `NotFound` if there is no such
/// family; `Corruption`, `IoError`.
pub fn read_family(fs: &dyn FileSystem, directory: &Path, spec: FamilySpec) -> Result<Family> {
    let name = spec.name.clone();
    let path = read_current(fs, directory)?;
    let wanted = move |name: &str| Ok((name == spec.name).then(|| spec.clone()));
    let mut replay = Replay::new(Arc::new(wanted), Arc::new(ObsoleteFiles::default()))?;
    replay.read(fs, &path, 0)?;
    let families = replay.into_families().map_err(|error| error.at(&path))?;
    families
        .into_values()
        .next()
        .ok_or_else(|| Error::not_found(format!("there is no column family '{name}'")).at(&path))
}

impl VersionSet {
    /// An id that no other family gets while the database is open.
    ///
    /// # Errors
    /// `NotSupported` if none is left.
    pub fn reserve_column_family(&mut self) -> Result<ColumnFamilyId> {
        let next = self.max_column_family.0.checked_add(1);
        let next = next.ok_or_else(|| Error::not_supported("no column family ids are left"))?;
        self.max_column_family = ColumnFamilyId(next);
        Ok(self.max_column_family)
    }

    /// Adds a family with the files that `files` names, durably: both or nothing. A new MANIFEST is
    /// begun. `log_number` is the WAL being written.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is taken; `Corruption` if the files do not fit together; see
    /// [`VersionSet::log_and_apply`].
    pub fn import_column_family(
        &mut self,
        spec: FamilySpec,
        log_number: FileNumber,
        files: VersionEdit,
    ) -> Result<ColumnFamilyId> {
        let id = files.family;
        self.check_new(std::slice::from_ref(&spec))?;
        let added = VersionEdit {
            comparator: Some(spec.comparator.name().to_string()),
            log_number: Some(log_number),
            family_added: Some(spec.name.clone()),
            ..VersionEdit::new(id)
        };
        let comparator = InternalKeyComparator::new(spec.comparator);
        let empty = Version::empty(comparator, spec.paths, spec.num_levels);
        let mut builder = VersionBuilder::new(&empty, self.obsolete.clone());
        builder.apply(&files)?;
        let version = builder.build()?;
        self.write(&mut [added, files])?;
        self.families.insert(id, Family::new(id, spec.name, version, log_number));
        Ok(id)
    }
}
