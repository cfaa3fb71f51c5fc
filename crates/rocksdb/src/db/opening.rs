//! Opening a database, its column families, and what is done with a directory that is not open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flagstone::ColumnFamilyOptions;
use flagstone::db::{Db, TtlDb, TtlFamily, TtlOptions};

use super::{
    DBCommon, DBInner, DBWithThreadMode, DBWithThreadModeInner, MultiThreaded, SingleThreaded,
    ThreadMode,
};
use crate::column_family::{
    BoundColumnFamily, ColumnFamily, ColumnFamilyDescriptor, ColumnFamilyTtl,
    DEFAULT_COLUMN_FAMILY_NAME,
};
use crate::error::Error;
use crate::following::Following;
use crate::options::{Opening, Options};
use crate::store::{Handle, Store};

/// The longest time to live, in seconds; RocksDB has a signed number of 32 bits for it.
const TTL_MAX: u64 = i32::MAX as u64;

/// What the engine says of a directory without a database.
const NO_DATABASE: &str = "there is no database here";

/// How a database is opened.
pub enum Access {
    /// For reading and writing.
    ReadWrite,
    /// With transactions that lock nothing.
    Optimistic,
    /// With transactions that lock their keys.
    Locking(flagstone::TransactionDbOptions),
    /// For reading.
    ReadOnly {
        /// Whether a WAL fails the opening.
        error_if_log_file_exist: bool,
    },
    /// With values that expire after this time.
    WithTtl(Duration),
    /// For reading, while another process writes.
    Secondary {
        /// The directory of the reader.
        directory: PathBuf,
    },
}

impl<T: ThreadMode> DBWithThreadMode<T> {
    /// Opens the database in `path` with default options, and makes it if there is none.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_default<P: AsRef<Path>>(path: P) -> Result<Self, Error> {
        let mut options = Options::default();
        options.create_if_missing(true);
        Self::open(&options, path)
    }

    /// Opens the database in `path`, which must have no column family but the default one.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no database and `create_if_missing` is off, if it has other
    /// families, or if an option is out of range; `IOError`, also if it is open elsewhere;
    /// `Corruption`.
    pub fn open<P: AsRef<Path>>(opts: &Options, path: P) -> Result<Self, Error> {
        Self::open_plain(opts, path.as_ref(), Vec::new(), &Access::ReadWrite)
    }

    /// Opens the database in `path` for reading.
    ///
    /// # Errors
    /// As [`open`](Self::open); `Corruption` if `error_if_log_file_exist` and there is a WAL.
    pub fn open_for_read_only<P: AsRef<Path>>(
        opts: &Options,
        path: P,
        error_if_log_file_exist: bool,
    ) -> Result<Self, Error> {
        let access = Access::ReadOnly { error_if_log_file_exist };
        Self::open_plain(opts, path.as_ref(), Vec::new(), &access)
    }

    /// Opens the database in `path`, whose values expire after `ttl`: a compaction drops them.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_ttl<P: AsRef<Path>>(
        opts: &Options,
        path: P,
        ttl: Duration,
    ) -> Result<Self, Error> {
        Self::open_plain(opts, path.as_ref(), Vec::new(), &Access::WithTtl(ttl))
    }

    /// As [`open_with_ttl`](Self::open_with_ttl), with families of default options.
    ///
    /// # Errors
    /// As [`open_cf`](Self::open_cf).
    pub fn open_cf_with_ttl<P, I, N>(
        opts: &Options,
        path: P,
        cfs: I,
        ttl: Duration,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = N>,
        N: AsRef<str>,
    {
        Self::open_plain(opts, path.as_ref(), named(cfs), &Access::WithTtl(ttl))
    }

    /// As [`open_with_ttl`](Self::open_with_ttl), with families.
    ///
    /// # Errors
    /// As [`open_cf`](Self::open_cf).
    pub fn open_cf_descriptors_with_ttl<P, I>(
        opts: &Options,
        path: P,
        cfs: I,
        ttl: Duration,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        Self::open_plain(opts, path.as_ref(), cfs.into_iter().collect(), &Access::WithTtl(ttl))
    }

    /// Opens the database in `path` with these column families, each with default options. The
    /// default family may be left out.
    ///
    /// # Errors
    /// As [`open`](Self::open); `InvalidArgument` if the database has a family that is not named,
    /// or if one does not exist and `create_missing_column_families` is off.
    pub fn open_cf<P, I, N>(opts: &Options, path: P, cfs: I) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = N>,
        N: AsRef<str>,
    {
        Self::open_plain(opts, path.as_ref(), named(cfs), &Access::ReadWrite)
    }

    /// As [`open_cf`](Self::open_cf), each family with its own options.
    ///
    /// # Errors
    /// As [`open_cf`](Self::open_cf).
    pub fn open_cf_with_opts<P, I, N>(opts: &Options, path: P, cfs: I) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = (N, Options)>,
        N: AsRef<str>,
    {
        Self::open_plain(opts, path.as_ref(), with_options(cfs), &Access::ReadWrite)
    }

    /// As [`open_for_read_only`](Self::open_for_read_only), with families of default options.
    ///
    /// # Errors
    /// As [`open_for_read_only`](Self::open_for_read_only).
    pub fn open_cf_for_read_only<P, I, N>(
        opts: &Options,
        path: P,
        cfs: I,
        error_if_log_file_exist: bool,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = N>,
        N: AsRef<str>,
    {
        let access = Access::ReadOnly { error_if_log_file_exist };
        Self::open_plain(opts, path.as_ref(), named(cfs), &access)
    }

    /// As [`open_for_read_only`](Self::open_for_read_only), each family with its own options.
    ///
    /// # Errors
    /// As [`open_for_read_only`](Self::open_for_read_only).
    pub fn open_cf_with_opts_for_read_only<P, I, N>(
        db_opts: &Options,
        path: P,
        cfs: I,
        error_if_log_file_exist: bool,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = (N, Options)>,
        N: AsRef<str>,
    {
        let access = Access::ReadOnly { error_if_log_file_exist };
        Self::open_plain(db_opts, path.as_ref(), with_options(cfs), &access)
    }

    /// As [`open_for_read_only`](Self::open_for_read_only), with families.
    ///
    /// # Errors
    /// As [`open_for_read_only`](Self::open_for_read_only).
    pub fn open_cf_descriptors_read_only<P, I>(
        opts: &Options,
        path: P,
        cfs: I,
        error_if_log_file_exist: bool,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        let access = Access::ReadOnly { error_if_log_file_exist };
        Self::open_plain(opts, path.as_ref(), cfs.into_iter().collect(), &access)
    }

    /// Opens the database in `path` with these column families. The default family may be left out,
    /// and then has default options.
    ///
    /// # Errors
    /// As [`open_cf`](Self::open_cf).
    pub fn open_cf_descriptors<P, I>(opts: &Options, path: P, cfs: I) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        Self::open_plain(opts, path.as_ref(), cfs.into_iter().collect(), &Access::ReadWrite)
    }

    /// Opens a database that another process may be writing to, for reading. Reads see what
    /// [`try_catch_up_with_primary`](Self::try_catch_up_with_primary) last found; properties, sizes
    /// and lists of files are those of the opening, and so are snapshots, which cannot be used
    /// after it has caught up. `secondary_path` is made, and stays empty: there is no info log yet.
    ///
    /// # Errors
    /// As [`open_for_read_only`](Self::open_for_read_only).
    pub fn open_as_secondary<P: AsRef<Path>>(
        opts: &Options,
        primary_path: P,
        secondary_path: P,
    ) -> Result<Self, Error> {
        Self::open_cf_as_secondary(opts, primary_path, secondary_path, None::<&str>)
    }

    /// As [`open_as_secondary`](Self::open_as_secondary), with families of default options.
    ///
    /// # Errors
    /// As [`open_as_secondary`](Self::open_as_secondary).
    pub fn open_cf_as_secondary<P, I, N>(
        opts: &Options,
        primary_path: P,
        secondary_path: P,
        cfs: I,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = N>,
        N: AsRef<str>,
    {
        let access = Access::Secondary { directory: secondary_path.as_ref().to_path_buf() };
        Self::open_plain(opts, primary_path.as_ref(), named(cfs), &access)
    }

    /// As [`open_as_secondary`](Self::open_as_secondary), with families.
    ///
    /// # Errors
    /// As [`open_as_secondary`](Self::open_as_secondary).
    pub fn open_cf_descriptors_as_secondary<P, I>(
        opts: &Options,
        path: P,
        secondary_path: P,
        cfs: I,
    ) -> Result<Self, Error>
    where
        P: AsRef<Path>,
        I: IntoIterator<Item = ColumnFamilyDescriptor>,
    {
        let access = Access::Secondary { directory: secondary_path.as_ref().to_path_buf() };
        Self::open_plain(opts, path.as_ref(), cfs.into_iter().collect(), &access)
    }

    fn open_plain(
        opts: &Options,
        path: &Path,
        families: Vec<ColumnFamilyDescriptor>,
        access: &Access,
    ) -> Result<Self, Error> {
        Self::open_as(opts, path, families, access, |store| DBWithThreadModeInner {
            held_files: Mutex::default(),
            store,
        })
    }
}

impl<T: ThreadMode, D: DBInner> DBCommon<T, D> {
    pub(crate) fn open_as(
        opts: &Options,
        path: &Path,
        mut families: Vec<ColumnFamilyDescriptor>,
        access: &Access,
        inner: impl FnOnce(Store) -> D,
    ) -> Result<Self, Error> {
        // A database that is opened without a list gives no handle of its default family.
        let is_listed = !families.is_empty();
        if !families.iter().any(|family| family.name == DEFAULT_COLUMN_FAMILY_NAME) {
            let options = if is_listed { Options::default() } else { opts.clone() };
            families.push(ColumnFamilyDescriptor::new(DEFAULT_COLUMN_FAMILY_NAME, options));
        }
        let store = open_store(opts, path, &families, access)?;
        let mut handles = BTreeMap::new();
        for family in families.iter().filter(|_| is_listed) {
            if let Some(handle) = store.db().column_family(&family.name) {
                handles.insert(family.name.clone(), handle);
            }
        }
        let (cfs, path) = (T::with_families(handles), path.to_path_buf());
        Ok(Self { inner: inner(store), cfs, path })
    }
}

/// Opens the database in `path` with these families, of which one must be the default one.
///
/// # Errors
/// As [`DB::open_cf`](crate::DB::open_cf).
pub fn open_store(
    opts: &Options,
    path: &Path,
    families: &[ColumnFamilyDescriptor],
    access: &Access,
) -> Result<Store, Error> {
    let wanted: Vec<(&str, &Options)> =
        families.iter().map(|family| (family.name.as_str(), &family.options)).collect();
    let opening = Opening::new(opts, path, &wanted)?;
    let handle = open_handle(&opening, path, families, access).map_err(|error| match access {
        Access::ReadOnly { .. } | Access::Secondary { .. } => none_to_read(error),
        _ => error,
    })?;
    Ok(Store::new(opening.opened(handle.db()), handle))
}

fn open_handle(
    opening: &Opening,
    path: &Path,
    families: &[ColumnFamilyDescriptor],
    access: &Access,
) -> Result<Handle, Error> {
    let options = opening.options();
    let wanted = opening.families().iter();
    if let Access::WithTtl(ttl) = *access {
        let wanted: Vec<TtlFamily<'_>> = wanted
            .zip(families)
            .map(|((name, options), family)| (name.as_str(), options.clone(), ttl_of(family, ttl)))
            .collect();
        return Ok(Handle::Expiring(TtlDb::open_with_families(path, options, &wanted)?));
    }
    let wanted: Vec<(&str, ColumnFamilyOptions)> =
        wanted.map(|(name, options)| (name.as_str(), options.clone())).collect();
    match access {
        Access::ReadWrite | Access::WithTtl(_) => {
            Ok(Handle::Plain(Db::open_with_families(path, options, &wanted)?))
        }
        Access::Optimistic => {
            let db = Db::open_with_families(path, options, &wanted)?;
            Ok(Handle::Transactional(flagstone::Db::around(&db)?))
        }
        Access::Locking(of_locks) => {
            let mut options = options.clone();
            options.allow_2pc = true;
            let db = Db::open_with_families(path, &options, &wanted)?;
            let db = flagstone::TransactionDb::around(&db, of_locks)?;
            Ok(Handle::Transactional(flagstone::Db::clone(&db)))
        }
        Access::ReadOnly { error_if_log_file_exist } => {
            let db = Db::open_read_only_with_families(path, options, &wanted)?;
            if *error_if_log_file_exist && !db.wal_files().is_empty() {
                return Err(Error::new(format!(
                    "Corruption: {} has a WAL, and error_if_log_file_exist is on",
                    path.display()
                )));
            }
            Ok(Handle::Plain(db))
        }
        Access::Secondary { directory } => {
            Ok(Handle::Following(Box::new(Following::new(path, directory, options, &wanted)?)))
        }
    }
}

/// Where a database is only read, RocksDB misses its file CURRENT.
fn none_to_read(error: Error) -> Error {
    let text = error.as_ref();
    match text.strip_prefix("Invalid argument: ").filter(|text| text.contains(NO_DATABASE)) {
        Some(rest) => Error::new(format!("IO error: No such file or directory: {rest}")),
        None => error,
    }
}

/// The names of the column families of the database in `path`.
///
/// # Errors
/// `IOError`, also if there is no database; `Corruption`.
pub fn list_families(opts: &Options, path: &Path) -> Result<Vec<String>, Error> {
    Db::list_column_families(path, &opts.engine()?).map_err(|error| none_to_read(error.into()))
}

fn ttl_of(family: &ColumnFamilyDescriptor, of_database: Duration) -> TtlOptions {
    let seconds = match family.ttl {
        ColumnFamilyTtl::Disabled => 0,
        ColumnFamilyTtl::Duration(duration) => duration.as_secs(),
        ColumnFamilyTtl::SameAsDb => of_database.as_secs(),
    };
    let ttl_seconds = if seconds > TTL_MAX { 0 } else { seconds };
    TtlOptions { ttl_seconds, ..TtlOptions::default() }
}

pub(crate) fn named<N: AsRef<str>>(
    names: impl IntoIterator<Item = N>,
) -> Vec<ColumnFamilyDescriptor> {
    with_options(names.into_iter().map(|name| (name, Options::default())))
}

fn with_options<N: AsRef<str>>(
    families: impl IntoIterator<Item = (N, Options)>,
) -> Vec<ColumnFamilyDescriptor> {
    let families = families.into_iter();
    families.map(|(name, options)| ColumnFamilyDescriptor::new(name.as_ref(), options)).collect()
}

impl<T: ThreadMode, D: DBInner> DBCommon<T, D> {
    /// The names of the column families of the database in `path`.
    ///
    /// # Errors
    /// `IOError`, also if there is no database; `Corruption`.
    pub fn list_cf<P: AsRef<Path>>(opts: &Options, path: P) -> Result<Vec<String>, Error> {
        list_families(opts, path.as_ref())
    }

    /// Removes the database in `path`, and the directory if nothing else is in it. A directory that
    /// does not exist is as good.
    ///
    /// # Errors
    /// `IOError`, also if the database is open.
    pub fn destroy<P: AsRef<Path>>(opts: &Options, path: P) -> Result<(), Error> {
        Ok(flagstone::db::destroy(path, &opts.engine()?, &[])?)
    }

    /// Rebuilds the database in `path` from whatever is left of it. The files that were there lie
    /// in its subdirectory `lost` afterwards.
    ///
    /// # Errors
    /// `InvalidArgument` if nothing of a database is there; `IOError`, also if it is open.
    pub fn repair<P: AsRef<Path>>(opts: &Options, path: P) -> Result<(), Error> {
        repair_database(opts, path.as_ref())
    }

    fn create_family(
        &self,
        name: &str,
        opts: &Options,
    ) -> Result<flagstone::db::ColumnFamily, Error> {
        Ok(self.inner.inner().create_family(name, &opts.engine_family()?)?)
    }
}

/// As [`DB::repair`](crate::DB::repair).
///
/// # Errors
/// As [`DB::repair`](crate::DB::repair).
pub fn repair_database(opts: &Options, path: &Path) -> Result<(), Error> {
    let options = opts.engine()?;
    let fs = &options.env.fs;
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let (rebuilt, old) = (beside(".repaired"), beside(".damaged"));
    flagstone::db::salvage(path, &rebuilt, &options, &[], &mut |_| {})?;
    fs.rename(path, &old)?;
    fs.rename(&rebuilt, path)?;
    fs.rename(&old, &path.join("lost"))?;
    Ok(())
}

fn no_family(name: &str) -> Error {
    Error::new(format!("Invalid column family: {name}"))
}

impl<D: DBInner> DBCommon<SingleThreaded, D> {
    /// Makes a column family.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is taken, or an option is out of range; `IOError`.
    pub fn create_cf<N: AsRef<str>>(&mut self, name: N, opts: &Options) -> Result<(), Error> {
        let inner = self.create_family(name.as_ref(), opts)?;
        self.cfs.cfs.insert(name.as_ref().to_owned(), ColumnFamily { inner });
        Ok(())
    }

    /// Drops a column family, and what is in it.
    ///
    /// # Errors
    /// If it is not open; `IOError`.
    pub fn drop_cf(&mut self, name: &str) -> Result<(), Error> {
        let family = self.cfs.cfs.remove(name).ok_or_else(|| no_family(name))?;
        Ok(self.inner.inner().drop_family(&family.inner)?)
    }

    /// The column family of that name, if the database was opened with it or it was created since.
    pub fn cf_handle(&self, name: &str) -> Option<&ColumnFamily> {
        self.cfs.cfs.get(name)
    }
}

impl<D: DBInner> DBCommon<MultiThreaded, D> {
    /// Makes a column family.
    ///
    /// # Errors
    /// `InvalidArgument` if the name is taken, or an option is out of range; `IOError`.
    pub fn create_cf<N: AsRef<str>>(&self, name: N, opts: &Options) -> Result<(), Error> {
        // Taken first: who finds no handle may create the family, and must not find it there.
        let mut families = self.cfs.cfs.write().unwrap_or_else(PoisonError::into_inner);
        let inner = self.create_family(name.as_ref(), opts)?;
        families.insert(name.as_ref().to_owned(), MultiThreaded::bound(inner));
        Ok(())
    }

    /// Drops a column family, and what is in it.
    ///
    /// # Errors
    /// If it is not open; `IOError`.
    pub fn drop_cf(&self, name: &str) -> Result<(), Error> {
        let mut families = self.cfs.cfs.write().unwrap_or_else(PoisonError::into_inner);
        let family = families.remove(name).ok_or_else(|| no_family(name))?;
        Ok(self.inner.inner().drop_family(&family.inner)?)
    }

    /// The column family of that name, if the database was opened with it or it was created since.
    pub fn cf_handle(&self, name: &str) -> Option<Arc<BoundColumnFamily<'_>>> {
        let families = self.cfs.cfs.read().unwrap_or_else(PoisonError::into_inner);
        families.get(name).cloned()
    }
}
