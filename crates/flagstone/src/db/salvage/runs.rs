//! Records that are not in order: those of WALs, and of tables whose blocks had to be searched for.
//!
//! They are gathered in memory, sorted, and written to temporary tables, which then are read like the source's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::{Comparator, InternalKey, InternalKeyBuf, Result, ValueType, file_name};
use crate::env::{FileSystem, OpenMode};
use crate::manifest::FileNumbers;
use crate::sst::{SalvageSettings, TableBuilder, TableBuilderSettings, TableRemains};

/// Bytes of records that are gathered before they are sorted and written.
const RUN_SIZE: usize = 64 << 20;

/// What is gathered for one family.
#[derive(Default)]
struct Gathered {
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
    fs: &'a dyn FileSystem,
    directory: &'a Path,
    numbers: &'a FileNumbers,
    gathered: BTreeMap<String, Gathered>,
    written: BTreeMap<String, Vec<Arc<TableRemains>>>,
    temporary: Vec<PathBuf>,
}

impl<'a> Runs<'a> {
    /// Temporary tables go to `directory`.
    pub(super) fn new(fs: &'a dyn FileSystem, directory: &'a Path, numbers: &'a FileNumbers) -> Self {
        Self {
            fs,
            directory,
            numbers,
            gathered: BTreeMap::new(),
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
            self.gathered.insert(family.to_string(), Gathered::default());
        }
        let gathered = self.gathered.get_mut(family).expect("it was put there");
        gathered.entries.push((key.to_buf(), value.to_vec()));
        gathered.bytes += key.as_bytes().len() + value.len() + size_of::<(InternalKeyBuf, Vec<u8>)>();
        if gathered.bytes >= RUN_SIZE { self.write(family, comparator) } else { Ok(()) }
    }

    /// Sorts and writes what is gathered for a family.
    fn write(&mut self, family: &str, comparator: &Comparator) -> Result<()> {
        let Some(mut gathered) = self.gathered.remove(family) else { return Ok(()) };
        sort(&mut gathered.entries, comparator);
        let number = self.numbers.allocate();
        let path = file_name::temporary(self.directory, number);
        let file = self.fs.open(&path, OpenMode::Create)?;
        self.temporary.push(path);
        let settings =
            TableBuilderSettings { comparator: comparator.clone(), ..TableBuilderSettings::default() };
        let mut builder = TableBuilder::new(file.clone(), settings)?;
        for (key, value) in &gathered.entries {
            builder.add(key.as_key(), value)?;
        }
        let size = builder.finish()?.size;
        let comparator_of = |_: Option<&_>| Ok(comparator.clone());
        let settings = SalvageSettings { comparator: &comparator_of, largest_sequence: None };
        let remains = TableRemains::survey(file, size, &settings)?;
        self.written.entry(family.to_string()).or_default().push(Arc::new(remains));
        Ok(())
    }

    /// The runs of a family, newest first.
    ///
    /// # Errors
    /// `IoError`.
    pub(super) fn take(&mut self, family: &str, comparator: &Comparator) -> Result<Vec<Arc<TableRemains>>> {
        self.write(family, comparator)?;
        let mut runs = self.written.remove(family).unwrap_or_default();
        runs.reverse();
        Ok(runs)
    }

    fn remove(self) -> Result<()> {
        self.temporary.iter().try_for_each(|path| self.fs.remove(path))
    }
}

/// Sorts records and leaves one of each. Later ones come from newer files; of merge operands the oldest file's is kept, as
/// none has been merged into it yet.
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
