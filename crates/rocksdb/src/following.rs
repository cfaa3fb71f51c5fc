//! A database that another process writes to.

use std::path::Path;

use flagstone::db::{ColumnFamily, Db, Secondary};
use flagstone::{Code, ColumnFamilyOptions, Error, Options, Result};

pub(crate) struct Following {
    secondary: Secondary,
    /// As it was at the opening. The handles of families that callers have are of this one.
    first: Db,
}

impl Following {
    /// # Errors
    /// What the opening says.
    pub(crate) fn new(
        path: &Path,
        directory: &Path,
        options: &Options,
        families: &[(&str, ColumnFamilyOptions)],
    ) -> Result<Self> {
        let secondary = Secondary::open_with_families(path, directory, options, families)?;
        let first = secondary.now();
        Ok(Self { secondary, first })
    }

    pub(crate) fn first(&self) -> &Db {
        &self.first
    }

    /// The database as it was when it last caught up, and its handle of a family.
    ///
    /// # Errors
    /// `ColumnFamilyDropped`.
    pub(crate) fn current(&self, family: &ColumnFamily) -> Result<(Db, ColumnFamily)> {
        let current = self.secondary.now();
        match current.column_family(family.name()).filter(|found| found.id() == family.id()) {
            Some(family) => Ok((current, family)),
            None => Err(Error::new(Code::ColumnFamilyDropped, family.name())),
        }
    }

    pub(crate) fn latest_sequence_number(&self) -> u64 {
        self.secondary.now().latest_sequence_number()
    }

    /// Goes on with what has been written since.
    ///
    /// # Errors
    /// Those of [`Secondary::catch_up`]; the database is then as it was.
    pub(crate) fn catch_up(&self) -> Result<()> {
        self.secondary.catch_up().map(drop)
    }
}
