//! A database that another process writes to.
//!
//! It is opened for reading, and opened again to catch up: that costs as much as an opening, which
//! reads the MANIFEST and what the WALs hold.

use std::sync::{PoisonError, RwLock};

use flagstone::db::{ColumnFamily, Db};
use flagstone::{Code, Error, Result};

type Open = dyn Fn() -> Result<Db> + Send + Sync;

pub(crate) struct Following {
    open: Box<Open>,
    /// As it was at the opening. The handles of families that callers have are of this one.
    first: Db,
    /// As it was when it last caught up.
    current: RwLock<Db>,
}

impl Following {
    /// # Errors
    /// What the opening says.
    pub(crate) fn new(open: Box<Open>) -> Result<Self> {
        let first = open()?;
        Ok(Self { open, current: RwLock::new(first.clone()), first })
    }

    pub(crate) fn first(&self) -> &Db {
        &self.first
    }

    /// The database as it was when it last caught up, and its handle of a family.
    ///
    /// # Errors
    /// `ColumnFamilyDropped`.
    pub(crate) fn current(&self, family: &ColumnFamily) -> Result<(Db, ColumnFamily)> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        match current.column_family(family.name()) {
            Some(family) => Ok((current, family)),
            None => Err(Error::new(Code::ColumnFamilyDropped, family.name())),
        }
    }

    pub(crate) fn latest_sequence_number(&self) -> u64 {
        self.current.read().unwrap_or_else(PoisonError::into_inner).latest_sequence_number()
    }

    /// Goes on with what has been written since.
    ///
    /// # Errors
    /// What the opening says; the database is then as it was.
    pub(crate) fn catch_up(&self) -> Result<()> {
        let newest = (self.open)()?;
        let before = {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, newest)
        };
        // Closing it takes longer than a reader should wait.
        drop(before);
        Ok(())
    }
}
