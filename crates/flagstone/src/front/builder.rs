//! How a database is opened.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::{Error, Result};
use crate::db;
use crate::front::database::Db;
use crate::front::expiring::{recorded, whole_seconds};
use crate::front::reports::SalvageReport;
use crate::front::transaction_db::TransactionDb;
use crate::options::{self, ColumnFamilyOptions, DEFAULT_COLUMN_FAMILY_NAME, Options};
use crate::salvage::salvage;
use crate::transactions::TransactionDbOptions;
use crate::ttl::{TtlDb, TtlOptions};

/// How a database is opened: made by [`Db::builder`].
///
/// ```
/// # fn main() -> flagstone::Result<()> {
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path();
/// let db = flagstone::Db::builder(path)
///     .options(|options| options.max_background_jobs = 4)
///     .column_family("photos", |family| family.write_buffer_size = 32 << 20)
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
    families: Vec<Named>,
}

/// A family that a builder was told of.
#[derive(Debug, Clone)]
struct Named {
    name: String,
    options: ColumnFamilyOptions,
    ttl: Option<Duration>,
    /// From the OPTIONS file, and not changed since.
    is_stored: bool,
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

    /// Takes the options of the database and of all its families from its newest OPTIONS file,
    /// Flagstone's or RocksDB's, in place of what this builder was told before.
    /// [`Builder::options`] and [`Builder::column_family`] change them: a merge operator,
    /// comparator or filter of the program's own is in no file.
    ///
    /// ```
    /// # use flagstone::Db;
    /// # fn main() -> flagstone::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path();
    /// # let longest = |_: &[u8], before: Option<&[u8]>, added: &[&[u8]]| {
    /// #     let all = before.into_iter().chain(added.iter().copied());
    /// #     all.max_by_key(|value| value.len()).map(<[u8]>::to_vec)
    /// # };
    /// # let merges = |log: &mut flagstone::ColumnFamilyOptions| {
    /// #     log.merge_with("longest", longest);
    /// # };
    /// # Db::builder(path).column_family("log", merges).open()?.close()?;
    /// let db = Db::builder(path)
    ///     .stored_options()?
    ///     .column_family("log", |log| { log.merge_with("longest", longest); })
    ///     .open()?;
    /// db.column_family("log")?.merge("key", "value")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if there is no OPTIONS file, or the newest has a mistake; `IoError`.
    #[doc(alias = "LoadLatestOptions")]
    pub fn stored_options(mut self) -> Result<Self> {
        let Some(stored) = options::load_latest(&self.options.env, &self.path)? else {
            let message = "there is no OPTIONS file, which a database writes when it is opened";
            return Err(self.refuse(message.into()));
        };
        self.options = Options { env: self.options.env.clone(), ..stored.options };
        let families = stored.families.into_iter();
        self.families = families
            .map(|(name, options)| {
                let ttl = options.recorded_ttl().map(recorded);
                Named { name, options, ttl, is_stored: true }
            })
            .collect();
        Ok(self)
    }

    /// Opens the column family of that name with default options, or those that
    /// [`Builder::stored_options`] has found, as changed by `with`, and makes it if there is none.
    /// Without `create_if_missing` none is made.
    pub fn column_family(
        mut self,
        name: impl Into<String>,
        with: impl FnOnce(&mut ColumnFamilyOptions),
    ) -> Self {
        self.name_family(name.into(), None, with);
        self
    }

    /// Opens a column family whose values live for `ttl` from their writing on, and are then no
    /// longer found; compactions remove them. It is made if there is none, with default options as
    /// changed by `with`. [`Family::put_for`](crate::Family::put_for) gives a value a time to live
    /// of its own.
    ///
    /// The time of writing is stored with each value, as RocksDB's `DBWithTTL` does, so a family
    /// either expires from its creation on or never. Its time to live may change from opening to
    /// opening, and then holds for what is stored, too. Where the family is not named, the last one
    /// goes on. It is rounded up to whole seconds; [`Duration::MAX`] is for ever, and zero is
    /// refused (`InvalidArgument`).
    ///
    /// The family takes puts, merges, deletions and batches. It refuses transactions, entities,
    /// values in pieces and ingested tables.
    pub fn expiring_family(
        mut self,
        name: impl Into<String>,
        ttl: Duration,
        with: impl FnOnce(&mut ColumnFamilyOptions),
    ) -> Self {
        self.name_family(name.into(), Some(ttl), with);
        self
    }

    /// Opens the database, with all families that it has.
    ///
    /// # Errors
    /// As [`Db::open`]; also `InvalidArgument` if a family is named twice, an option is out of
    /// range, a family that expires is opened as one that does not, or the other way round, there
    /// is no database and `create_if_missing` is off, or there is one and `error_if_exists` is on.
    pub fn open(mut self) -> Result<Db> {
        self.options.create_missing_column_families |= self.options.create_if_missing;
        let families = self.all_families()?;
        let (path, options) = (&self.path, &self.options);
        open_by(options, &families, |listed| db::Db::open_with_families(path, options, listed))
    }

    /// Opens the database, with all families that it has, for transactions that lock their keys,
    /// with `allow_2pc`.
    ///
    /// # Errors
    /// As [`TransactionDb::open`] and [`Builder::open`].
    #[doc(alias = "TransactionDB::Open")]
    pub fn open_transaction_db(mut self, options: &TransactionDbOptions) -> Result<TransactionDb> {
        self.options.allow_2pc = true;
        TransactionDb::of(&self.open()?, options)
    }

    /// Opens the database as [`Builder::open`] does, and drops all that was written with timestamps
    /// after `trim` from the families that have some, by rewriting their tables. After an error
    /// some of it may be there; open it so again.
    ///
    /// # Errors
    /// As [`Builder::open`]; `InvalidArgument` if the timestamp has another size, or is before
    /// [`Family::full_history_ts_low`](crate::Family::full_history_ts_low); `NotSupported` with
    /// FIFO compaction, or where tables have no timestamps; those of a compaction.
    #[doc(alias = "OpenAndTrimHistory")]
    pub fn open_and_trim_history(self, trim: impl AsRef<[u8]>) -> Result<Db> {
        let db = self.open()?;
        let families = db.engine().column_families();
        let stamped = families.iter().filter(|one| one.comparator().timestamp_size() > 0);
        stamped.into_iter().try_for_each(|family| db.engine().trim_history(family, &trim))?;
        Ok(db)
    }

    /// Opens the database for reading, without changing anything in its directory. What a writer
    /// changes meanwhile is not seen.
    ///
    /// # Errors
    /// As [`Builder::open`]; `InvalidArgument` if there is no database or a family is not there.
    pub fn open_read_only(self) -> Result<Db> {
        let families = self.all_families()?;
        let (path, options) = (&self.path, &self.options);
        open_by(options, &families, |listed| {
            db::Db::open_read_only_with_families(path, options, listed)
        })
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
        let families = self.families.iter();
        let families: Vec<_> =
            families.map(|named| (named.name.as_str(), named.options.clone())).collect();
        salvage(&self.path, target.as_ref(), &self.options, &families, &mut |_| ())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn shown_options(&self) -> &Options {
        &self.options
    }

    /// Names a family, or changes what the OPTIONS file says of it.
    fn name_family(
        &mut self,
        name: String,
        ttl: Option<Duration>,
        with: impl FnOnce(&mut ColumnFamilyOptions),
    ) {
        let stored = self.families.iter_mut().find(|named| named.is_stored && named.name == name);
        if let Some(named) = stored {
            with(&mut named.options);
            named.ttl = ttl.or(named.ttl);
            named.is_stored = false;
            return;
        }
        let mut options = ColumnFamilyOptions::default();
        with(&mut options);
        self.families.push(Named { name, options, ttl, is_stored: false });
    }

    /// The families that are named, and those that exist beside them.
    pub(super) fn all_families(&self) -> Result<Vec<Opened>> {
        let stored = self.stored_ttls()?;
        let mut all = Vec::new();
        for Named { name, options, ttl, .. } in &self.families {
            if all.iter().any(|(earlier, _, _)| earlier == name) {
                return Err(self.refuse(format!("the column family '{name}' is named twice")));
            }
            match (stored.get(name), ttl) {
                (Some(Some(seconds)), None) => {
                    return Err(self.refuse(format!(
                        "the values of column family '{name}' expire, last after {seconds} seconds; open it as \
                         Builder::expiring_family"
                    )));
                }
                (Some(None), Some(_)) => {
                    return Err(self.refuse(format!(
                        "the values of column family '{name}' do not carry the time of their writing, so they cannot \
                         expire; copy them to a new family"
                    )));
                }
                _ => all.push((name.clone(), options.clone(), ttl.map(lifetime).transpose()?)),
            }
        }
        let existing = db::existing_families(&self.options.env, &self.path)?;
        let default = DEFAULT_COLUMN_FAMILY_NAME.to_string();
        for name in std::iter::once(default).chain(existing) {
            if !all.iter().any(|(named, _, _)| *named == name) {
                let ttl = stored.get(&name).copied().flatten().map(TtlOptions::strict);
                all.push((name, self.options.cf.clone(), ttl));
            }
        }
        Ok(all)
    }

    /// How long values of the families live in seconds, or for ever, as the newest OPTIONS file
    /// says that can be read.
    pub(super) fn stored_ttls(&self) -> Result<BTreeMap<String, Option<u64>>> {
        let env = &self.options.env;
        let stored = match options::load_readable(env, &self.path) {
            Err(error) if error.is_not_found() => return Ok(BTreeMap::new()),
            stored => stored?.0,
        };
        let families = stored.into_iter().flat_map(|stored| stored.families);
        Ok(families.map(|(name, family)| (name, family.recorded_ttl())).collect())
    }

    fn refuse(&self, message: String) -> Error {
        Error::invalid_argument(message).at(&self.path)
    }
}

/// A family to open: its name, its options, and how long its values live, unless for ever.
pub(super) type Opened = (String, ColumnFamilyOptions, Option<TtlOptions>);

/// Values that live for `ttl`, and are then not found.
pub(super) fn lifetime(ttl: Duration) -> Result<TtlOptions> {
    Ok(TtlOptions::strict(whole_seconds(ttl)?.unwrap_or(0)))
}

/// Opens a database with families some of which expire.
pub(super) fn open_by(
    options: &Options,
    families: &[Opened],
    open: impl FnOnce(&[(&str, ColumnFamilyOptions)]) -> Result<db::Db>,
) -> Result<Db> {
    let families: Vec<_> =
        families.iter().map(|(name, family, ttl)| (name.as_str(), family.clone(), *ttl)).collect();
    let engine = TtlDb::open_mixed(options, &families, open)?;
    Ok(Db::of(&engine.into()))
}
