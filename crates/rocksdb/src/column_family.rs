//! Column families: their names and options before they are opened, their handles afterwards.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use flagstone::db::ColumnFamily as EngineFamily;

use crate::db::MultiThreaded;
use crate::options::Options;

/// The name of the column family that every database has.
pub const DEFAULT_COLUMN_FAMILY_NAME: &str = "default";

/// A column family to open: its name and options.
pub struct ColumnFamilyDescriptor {
    pub(crate) name: String,
    pub(crate) options: Options,
    pub(crate) ttl: ColumnFamilyTtl,
}

impl ColumnFamilyDescriptor {
    /// A family whose values live as long as the database says, if it is opened with a time to
    /// live.
    pub fn new(name: impl Into<String>, options: Options) -> Self {
        Self::new_with_ttl(name, options, ColumnFamilyTtl::SameAsDb)
    }

    /// A family with its own time to live. It counts only in a database that is opened with one.
    pub fn new_with_ttl(name: impl Into<String>, options: Options, ttl: ColumnFamilyTtl) -> Self {
        Self { name: name.into(), options, ttl }
    }

    /// Changes the time to live. An open database does not see it.
    pub fn set_ttl(&mut self, ttl: ColumnFamilyTtl) {
        self.ttl = ttl;
    }

    /// Its options.
    #[doc(hidden)]
    pub fn into_options(self) -> Options {
        self.options
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The time to live.
    pub fn ttl(&self) -> ColumnFamilyTtl {
        self.ttl
    }
}

/// How long values of a column family live.
#[derive(Debug, Clone, Copy, Default)]
pub enum ColumnFamilyTtl {
    /// For ever.
    #[default]
    Disabled,
    /// This long, in whole seconds.
    Duration(Duration),
    /// As long as the database says.
    SameAsDb,
}

/// A column family of an open database.
pub struct ColumnFamily {
    pub(crate) inner: EngineFamily,
}

/// A column family of a database whose families may be created and dropped by several threads.
pub struct BoundColumnFamily<'a> {
    pub(crate) inner: EngineFamily,
    pub(crate) database: PhantomData<&'a MultiThreaded>,
}

/// A reference to a column family of [`DB`](crate::DB).
#[cfg(not(feature = "multi-threaded-cf"))]
pub type ColumnFamilyRef<'a> = &'a ColumnFamily;

/// A reference to a column family of [`DB`](crate::DB).
#[cfg(feature = "multi-threaded-cf")]
pub type ColumnFamilyRef<'a> = Arc<BoundColumnFamily<'a>>;

/// What calls take as a column family: `&ColumnFamily` or `Arc<BoundColumnFamily>`.
pub trait AsColumnFamilyRef {
    /// The engine's handle.
    #[doc(hidden)]
    fn inner(&self) -> &EngineFamily;
}

impl AsColumnFamilyRef for ColumnFamily {
    fn inner(&self) -> &EngineFamily {
        &self.inner
    }
}

impl AsColumnFamilyRef for &'_ ColumnFamily {
    fn inner(&self) -> &EngineFamily {
        &self.inner
    }
}

impl AsColumnFamilyRef for Arc<BoundColumnFamily<'_>> {
    fn inner(&self) -> &EngineFamily {
        &self.inner
    }
}
