//! Records that are not in order: those of WALs, and of tables whose blocks had to be searched for.
//!
//! They are collected in memory, sorted, and written to temporary tables, which are then read like
//! the source's tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::SourceFiles;
use crate::base::{Comparator, InternalKey, InternalKeyBuf, Result, ValueType, file_name};
use crate::env::{FileSystem, IoMode};
use crate::manifest::FileNumbers;
use crate::sst::{SalvageSettings, TableBuilder, TableBuilderSettings, TableRemains};

/// Bytes of records, of all families together, that are gathered before those of one are sorted and
/// written.
pub(super) const RUN_SIZE: usize = 128 << 20;

/// What is gathered for one family.
struct Gathered {
    comparator: Comparator,
    entries: Vec<(InternalKeyBuf, Vec<u8>)>,
    bytes: usize,
}

/// The records of WALs.
pub(super) struct LogRuns<'a> {
    /// Those that no table has.
    pub(super) fresh: Runs<'a>,
    /// Those that tables had, and may have lost.
    pub(super) flushed: Runs<'a>,
}

impl LogRuns<'_> {
    /// Removes the temporary tables.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn remove(self) -> Result<()> {
        self.fresh.remove()?;
        self.flushed.remove()
    }
}

/// Sorted runs of loose records, by family.
pub(super) struct Runs<'a> {
    fs: &'a Arc<dyn FileSystem>,
    directory: &'a Path,
    numbers: &'a FileNumbers,
    gathered: BTreeMap<String, Gathered>,
    /// The bytes of all that is gathered, and how many at most.
    bytes: usize,
    bytes_max: usize,
    /// Temporary tables, of which there may be as many as there are families, and more.
    files: Arc<SourceFiles>,
    written: BTreeMap<String, Vec<Arc<TableRemains>>>,
    temporary: Vec<PathBuf>,
}

impl<'a> Runs<'a> {
    /// Temporary tables go to `directory`; no more than `bytes_max` wait for them in memory, and
    /// one record.
    pub(super) fn new(
        fs: &'a Arc<dyn FileSystem>,
        directory: &'a Path,
        numbers: &'a FileNumbers,
        bytes_max: usize,
    ) -> Self {
        Self {
            fs,
            directory,
            numbers,
            gathered: BTreeMap::new(),
            bytes: 0,
            bytes_max,
            files: SourceFiles::new(fs.clone()),
            written: BTreeMap::new(),
            temporary: Vec::new(),
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn add(
        &mut self,
        family: &str,
        comparator: &Comparator,
        key: InternalKey<'_>,
        value: &[u8],
    ) -> Result<()> {
        if !self.gathered.contains_key(family) {
            let comparator = comparator.clone();
            self.gathered
                .insert(family.to_string(), Gathered { comparator, entries: Vec::new(), bytes: 0 });
        }
        let gathered = self.gathered.get_mut(family).expect("it was put there");
        gathered.entries.push((key.to_buf(), value.to_vec()));
        let bytes = key.as_bytes().len() + value.len() + size_of::<(InternalKeyBuf, Vec<u8>)>();
        gathered.bytes += bytes;
        self.bytes += bytes;
        if self.bytes < self.bytes_max {
            return Ok(());
        }
        let largest = self.gathered.iter().max_by_key(|(_, gathered)| gathered.bytes);
        let largest = largest.map(|(family, _)| family.clone()).expect("one was just put there");
        self.write(&largest)
    }

    /// Sorts and writes what is gathered for a family.
    fn write(&mut self, family: &str) -> Result<()> {
        let Some(mut gathered) = self.gathered.remove(family) else { return Ok(()) };
        self.bytes -= gathered.bytes;
        let comparator = gathered.comparator;
        sort(&mut gathered.entries, &comparator);
        let number = self.numbers.allocate();
        let path = file_name::temporary(self.directory, number);
        let file = self.fs.create_writable(&path, IoMode::Buffered)?;
        self.temporary.push(path.clone());
        let settings = TableBuilderSettings {
            comparator: comparator.clone(),
            ..TableBuilderSettings::default()
        };
        let mut builder = TableBuilder::new(file, settings)?;
        for (key, value) in &gathered.entries {
            builder.add(key.as_key(), value)?;
        }
        let size = builder.finish()?.size;
        let comparator_of = |_: Option<&_>| Ok(comparator.clone());
        let settings = SalvageSettings { comparator: &comparator_of, largest_sequence: None };
        let mut remains = TableRemains::survey(self.files.at(&path), size, &settings)?;
        // Of many families there are many runs, and nobody asks.
        remains.properties = None;
        self.written.entry(family.to_string()).or_default().push(Arc::new(remains));
        Ok(())
    }

    /// The runs of a family, newest first.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn take(&mut self, family: &str) -> Result<Vec<Arc<TableRemains>>> {
        self.write(family)?;
        let mut runs = self.written.remove(family).unwrap_or_default();
        runs.reverse();
        Ok(runs)
    }

    fn remove(self) -> Result<()> {
        self.temporary.iter().try_for_each(|path| self.fs.remove(path))
    }
}

/// Sorts records and leaves one of each. Later ones come from newer files; of merge operands the
/// oldest file's is kept, as none has been merged into it yet.
fn sort(entries: &mut Vec<(InternalKeyBuf, Vec<u8>)>, comparator: &Comparator) {
    entries.reverse();
    entries.sort_by(|(a, _), (b, _)| {
        let (a, b) = (a.as_key(), b.as_key());
        comparator.compare(a.user_key(), b.user_key()).then_with(|| b.packed().cmp(&a.packed()))
    });
    entries.dedup_by(|later, first| {
        let is_same = later.0.as_key() == first.0.as_key();
        if is_same && first.0.as_key().value_type() == Some(ValueType::Merge) {
            std::mem::swap(later, first);
        }
        is_same
    });
}

#[cfg(test)]
mod tests;
