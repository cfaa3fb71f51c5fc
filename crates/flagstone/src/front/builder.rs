//! How a database is opened.

use std::path::{Path, PathBuf};

use crate::base::{Error, Result};
use crate::db;
use crate::front::database::Db;
use crate::front::reports::SalvageReport;
use crate::options::{ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY_NAME, Options};
use crate::salvage::salvage;

/// How a database is opened: made by [`Db::builder`].
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path();
/// let db = flagstone::Db::builder(path)
///     .options(|options| options.max_background_jobs = 4)
///     .column_family("photos", |family| family.enable_blob_files = Some(true))
///     .open()?;
/// db.column_family("photos")?.put("cat.jpg", vec![7; 100_000])?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is opened before `open` is called"]
#[derive(Debug, Clone)]
pub struct Builder {
    path: PathBuf,
    options: Options,
    families: Vec<(String, ColumnFamilyOptions)>,
}

impl Builder {
    pub(super) fn new(path: &Path) -> Self {
        let mut options = Options::default();
        options.create_if_missing = true;
        Self { path: path.to_path_buf(), options, families: Vec::new() }
    }

    /// Changes the options of the database, and in `cf` those of each family that no
    /// [`Builder::column_family`] names. By default the database is made if there is none
    /// (`create_if_missing`).
    pub fn options(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Opens the column family of that name with default options as changed by `with`, and makes it
    /// if there is none. Without `create_if_missing` none is made.
    pub fn column_family(
        mut self,
        name: impl Into<String>,
        with: impl FnOnce(&mut ColumnFamilyOptions),
    ) -> Self {
        let mut options = ColumnFamilyOptions::default();
        with(&mut options);
        self.families.push((name.into(), options));
        self
    }

    /// Opens the database, with all families that it has.
    ///
    /// # Errors
    /// As [`Db::open`]; also `InvalidArgument` if a family is named twice, an option is out of
    /// range, there is no database and `create_if_missing` is off, or there is one and
    /// `error_if_exists` is on.
    pub fn open(mut self) -> Result<Db> {
        self.options.create_missing_column_families |= self.options.create_if_missing;
        let families = self.all_families()?;
        db::Db::open_with_families(&self.path, &self.options, &named(&families)).map(Db::of)
    }

    /// Opens the database for reading, without changing anything in its directory. What a writer
    /// changes meanwhile is not seen.
    ///
    /// # Errors
    /// As [`Db::open`]; `InvalidArgument` if there is no database or a family is not there.
    pub fn open_read_only(self) -> Result<Db> {
        let families = self.all_families()?;
        db::Db::open_read_only_with_families(&self.path, &self.options, &named(&families))
            .map(Db::of)
    }

    /// Rebuilds a damaged database, whatever is left of it, in the new directory `target`: every
    /// record whose bytes are intact. The damaged one stays as it is. The report says what was
    /// lost. Families that are not named get the options that [`Builder::options`] gives in `cf`.
    ///
    /// # Errors
    /// `InvalidArgument` if `target` has files, or there is nothing of a database; `Busy` if it is
    /// open; `IoError`.
    #[doc(alias = "RepairDB")]
    pub fn salvage_to(self, target: impl AsRef<Path>) -> Result<SalvageReport> {
        let Self { path, options, families } = &self;
        salvage(path, target.as_ref(), options, &named(families), &mut |_| ())
    }

    /// The families that are named, and those that exist beside them.
    fn all_families(&self) -> Result<Vec<(String, ColumnFamilyOptions)>> {
        let mut all = self.families.clone();
        for (at, (name, _)) in self.families.iter().enumerate() {
            if self.families[..at].iter().any(|(earlier, _)| earlier == name) {
                let message = format!("the column family '{name}' is named twice");
                return Err(Error::invalid_argument(message).at(&self.path));
            }
        }
        let existing = db::existing_families(&self.options.env, &self.path)?;
        let default = DEFAULT_COLUMN_FAMILY_NAME.to_string();
        for name in std::iter::once(default).chain(existing) {
            if !all.iter().any(|(named, _)| *named == name) {
                all.push((name, self.options.cf.clone()));
            }
        }
        Ok(all)
    }
}

fn named(families: &[(String, ColumnFamilyOptions)]) -> Vec<(&str, ColumnFamilyOptions)> {
    families.iter().map(|(name, options)| (name.as_str(), options.clone())).collect()
}
