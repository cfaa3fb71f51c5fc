//! Batches as tables that are written outside of a database, and ingested.

use std::path::{Path, PathBuf};

use flagstone::base::Result;
use flagstone::db::{ColumnFamily, Db, ExternalFiles};
use flagstone::env::Env;
use flagstone::ingest::{SstFileWriter, SstFileWriterEmbeddedBlobOptions, SstFileWriterOptions};

use crate::model::{Edit, entity_columns};

/// Writes edits as tables in `directory`, so that [`Db::ingest_together`] does what a batch of them
/// would. Families that do not exist, and edits that change nothing, are left out.
///
/// # Errors
/// `IoError`.
pub fn tables(
    db: &Db,
    env: &Env,
    directory: &Path,
    edits: &[(String, Edit)],
) -> Result<Vec<ExternalFiles>> {
    env.fs.create_directory(directory)?;
    let mut names: Vec<&str> = edits.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut groups = Vec::new();
    for family in names.into_iter().filter_map(|name| db.column_family(name)) {
        let own = edits.iter().filter(|(name, _)| name == family.name()).map(|(_, edit)| edit);
        let mut tables = Tables::new(&family, env, directory);
        own.into_iter().try_for_each(|edit| tables.add(edit))?;
        let files = tables.finish()?;
        if !files.is_empty() {
            groups.push(ExternalFiles::new(&family, files));
        }
    }
    Ok(groups)
}

/// Removes the tables, as far as they are there still.
pub fn remove(env: &Env, groups: &[ExternalFiles]) {
    for file in groups.iter().flat_map(|group| &group.files) {
        let _ = env.fs.remove(file);
    }
}

/// The tables of one family. Within a table keys ascend, and no range deletion follows a key: it
/// would not cover it.
struct Tables<'a> {
    family: &'a ColumnFamily,
    options: SstFileWriterOptions,
    directory: &'a Path,
    open: Option<SstFileWriter>,
    last: Option<Vec<u8>>,
    files: Vec<PathBuf>,
}

impl<'a> Tables<'a> {
    fn new(family: &'a ColumnFamily, env: &Env, directory: &'a Path) -> Self {
        let options = SstFileWriterOptions {
            env: env.clone(),
            ..SstFileWriterOptions::new(&family.options())
        };
        Self { family, options, directory, open: None, last: None, files: Vec::new() }
    }

    fn add(&mut self, edit: &Edit) -> Result<()> {
        let order = self.family.comparator().clone();
        let key = match edit {
            Edit::DeleteRange { begin, end } if order.compare(begin, end).is_ge() => return Ok(()),
            Edit::DeleteRange { .. } => None,
            Edit::Put { key, .. }
            | Edit::PutEntity { key, .. }
            | Edit::Delete { key }
            | Edit::SingleDelete { key }
            | Edit::Merge { key, .. } => Some(key),
        };
        let is_behind = match (&self.last, key) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(last), Some(key)) => order.compare(last, key).is_lt(),
        };
        if !is_behind {
            self.end()?;
        }
        if self.open.is_none() {
            let number = 1000 * self.family.id().0 as usize + self.files.len();
            let name = format!("{number:06}.sst");
            self.options.embedded_blobs = self.embedded_blobs();
            self.open = Some(SstFileWriter::create(self.directory.join(name), &self.options)?);
        }
        let writer = self.open.as_mut().expect("it was begun");
        match edit {
            Edit::Put { key, value } => writer.put(key, value)?,
            Edit::PutEntity { key, value } => writer.put_entity(key, entity_columns(value))?,
            Edit::Delete { key } => writer.delete(key)?,
            Edit::SingleDelete { key } => writer.single_delete(key)?,
            Edit::Merge { key, operand } => writer.merge(key, operand)?,
            Edit::DeleteRange { begin, end } => writer.delete_range(begin, end)?,
        }
        self.last = key.cloned();
        Ok(())
    }

    /// Each second table has large values beside its blocks, where the family's options allow it.
    fn embedded_blobs(&self) -> Option<SstFileWriterEmbeddedBlobOptions> {
        let table = &self.options.family.table;
        let may_have = table.format_version >= 7
            && !table.block_align
            && table.super_block_alignment_size == 0;
        (may_have && self.files.len() % 2 == 1)
            .then_some(SstFileWriterEmbeddedBlobOptions { min_blob_size: 20 })
    }

    fn end(&mut self) -> Result<()> {
        self.last = None;
        if let Some(writer) = self.open.take() {
            self.files.push(writer.finish()?.path);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<PathBuf>> {
        self.end()?;
        Ok(self.files)
    }
}
