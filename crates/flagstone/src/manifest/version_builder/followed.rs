//! Versions of a MANIFEST that another process writes, one after the other out of one builder.

use std::sync::Arc;

use super::{Source, Table, VersionBuilder};
use crate::base::Result;
use crate::manifest::version::Version;

impl VersionBuilder {
    /// The version that the edits so far make. The next one shares its tables and blob files.
    ///
    /// Costs time for each table of the family, in memory.
    ///
    /// # Errors
    /// As [`VersionBuilder::build`].
    pub(in crate::manifest) fn build_so_far(&mut self) -> Result<Version> {
        let version = self.clone().build()?;
        let shared = version.files().map(|(level, file)| {
            (file.number(), Table { level, source: Source::Base(file.clone()) })
        });
        self.tables = shared.collect();
        self.blob_files = version.blob_files.clone();
        self.removed.clear();
        Ok(version)
    }

    /// Takes over tables and blob files that are open already, from a builder of the MANIFEST
    /// before.
    pub(in crate::manifest) fn adopt(&mut self, earlier: &Self) {
        for (number, table) in &mut self.tables {
            let Source::Edit(meta) = &table.source else { continue };
            let Some(Table { source: Source::Base(file), .. }) = earlier.tables.get(number) else {
                continue;
            };
            let shared = if file.meta == **meta {
                file.clone()
            } else {
                Arc::new(file.with_meta((**meta).clone()))
            };
            table.source = Source::Base(shared);
        }
        for (number, state) in &mut self.blob_files {
            let known = earlier.blob_files.get(number).map(|known| &known.file);
            if let Some(known) = known.filter(|known| known.meta == state.file.meta) {
                state.file = known.clone();
            }
        }
    }
}
