//! Databases whose values may carry the time of their writing: `--ttl`.

use std::ops::Range;
use std::path::Path;

use clap::Args;
use flagstone::WideColumns;
use flagstone::batch::WriteBatch;
use flagstone::db::{
    ColumnFamily, Db, Iter, TtlBlobWriter, TtlDb, TtlFamily, TtlIter, TtlOptions, Value,
    ValueReader, ValueWriter,
};
use flagstone::options::{ColumnFamilyOptions, ReadOptions, WriteOptions};
use flagstone::ttl::TTL_MAX;

use crate::arguments::{Bounds, Common};
use crate::beside_writer;
use crate::database::{self, Access, OpenOptions};
use crate::failure::Failure;
use crate::pieces::Pieces;
use crate::unreserved;

/// Whether values carry the time of their writing.
#[derive(Debug, Clone, Default, Args)]
pub struct Ttl {
    /// Values carry the time of their writing, as with RocksDB's ldb --ttl; with SECONDS, what is
    /// older has expired
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true,
          value_parser = clap::value_parser!(u64).range(..=TTL_MAX))]
    ttl: Option<Option<u64>>,
}

/// An open database.
pub enum Opened {
    /// Values are as they are.
    Plain(Db),
    /// Values carry the time of their writing; those of a new family live so long.
    Stamped(TtlDb, TtlOptions),
}

impl Ttl {
    /// Opens a database. Without SECONDS values live as long as its OPTIONS file says, and nothing
    /// is hidden.
    pub fn open(&self, common: &Common, path: &Path, access: Access) -> Result<Opened, Failure> {
        if let Some(flag) = common.following() {
            if self.ttl.is_some() {
                return Err(Failure::Usage(format!("{flag}: not with --ttl")));
            }
            return Ok(Opened::Plain(database::open(common, path, access)?));
        }
        let open = || self.open_with(database::options(common, path, access)?, path, access);
        let opened = if access.writes() { open() } else { beside_writer::open(path, open) };
        opened.map_err(|failure| database::of_setting(common, failure))
    }

    /// [`Ttl::open`] with these options.
    pub fn open_with(
        &self,
        options: OpenOptions,
        path: &Path,
        access: Access,
    ) -> Result<Opened, Failure> {
        let Some(seconds) = self.ttl else {
            return Ok(Opened::Plain(database::open_with(options, path, access)?));
        };
        let (options, families) = options;
        let of_application =
            |kept: &flagstone::options::KeptSetting| kept.name.starts_with("compaction_filter");
        if access.writes()
            && families.iter().any(|(_, family)| family.kept.iter().any(of_application))
        {
            return Err(Failure::Usage(
                "the database has an application's compaction filter: write to it with that application, or without --ttl".into(),
            ));
        }
        let families: Vec<TtlFamily<'_>> = families
            .iter()
            .map(|(name, family)| {
                let seconds = seconds.or_else(|| family.recorded_ttl());
                (name.as_str(), family.clone(), self.of_family(seconds))
            })
            .collect();
        let db = if access.writes() {
            let is_new = database::will_be_new(access, &options, path)?;
            let db = TtlDb::open_with_families(path, &options, &families)?;
            database::tell_if_new(is_new, path);
            unreserved::tell_if_short(db.base(), path);
            db
        } else {
            TtlDb::open_read_only_with_families(path, &options, &families)?
        };
        Ok(Opened::Stamped(db, self.of_family(seconds)))
    }

    /// How long the values of a family live, of which those seconds are known.
    fn of_family(&self, seconds: Option<u64>) -> TtlOptions {
        let strict_reads = self.ttl.flatten().is_some();
        TtlOptions { ttl_seconds: seconds.unwrap_or(0), strict_reads, ..TtlOptions::default() }
    }
}

impl Opened {
    /// The database as such.
    pub fn db(&self) -> &Db {
        match self {
            Self::Plain(db) => db,
            Self::Stamped(db, _) => db.base(),
        }
    }

    /// A reader of the value of a key.
    pub fn get_in_pieces(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: &[u8],
    ) -> Result<Option<ValueReader>, Failure> {
        Ok(match self {
            Self::Plain(db) => db.get_in_pieces(options, family, key)?,
            Self::Stamped(db, _) => db.get_in_pieces(options, family, key)?,
        })
    }

    /// These bytes of the value of a key.
    pub fn get_range(
        &self,
        options: &ReadOptions,
        family: &ColumnFamily,
        key: &[u8],
        range: Range<u64>,
    ) -> Result<Option<Value>, Failure> {
        let part = match self {
            Self::Plain(db) => db.get_range(options, family, key, range)?,
            Self::Stamped(db, _) => db.get_range(options, family, key, range)?,
        };
        Ok(part.map(|part| part.bytes))
    }

    /// Writes a batch so that it survives a power loss, and closes the database.
    pub fn write_synced(&self, batch: &mut WriteBatch) -> Result<(), Failure> {
        self.write(&WriteOptions::synced(), batch)?;
        Ok(self.db().close()?)
    }

    /// Writes a batch, which may be cleared and used again.
    pub fn write(&self, options: &WriteOptions, batch: &mut WriteBatch) -> Result<(), Failure> {
        match self {
            Self::Plain(db) => db.write_ref(options, batch)?,
            Self::Stamped(db, _) => db.write_with(options, batch)?,
        }
        Ok(())
    }

    /// Begins to set a key to a value that is written piece by piece.
    pub fn put_stream(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        options: &WriteOptions,
    ) -> Result<Writer, Failure> {
        Ok(match self {
            Self::Plain(db) => Writer::Plain(db.put_stream(family, key, options)?),
            Self::Stamped(db, _) => Writer::Stamped(db.put_stream(family, key, options)?),
        })
    }

    /// Makes a column family.
    pub fn create_family(
        &self,
        name: &str,
        options: &ColumnFamilyOptions,
    ) -> Result<ColumnFamily, Failure> {
        Ok(match self {
            Self::Plain(db) => db.create_column_family(name, options)?,
            Self::Stamped(db, ttl) => db.create_column_family(name, options, *ttl)?,
        })
    }

    /// A cursor at the first (or, in reverse, the last) key within the bounds. It fills no cache.
    pub fn cursor(
        &self,
        options: ReadOptions,
        family: &ColumnFamily,
        bounds: Bounds,
        reverse: bool,
    ) -> Result<Cursor, Failure> {
        let options = ReadOptions {
            fill_cache: false,
            total_order_seek: true,
            iterate_lower_bound: bounds.0,
            iterate_upper_bound: bounds.1,
            ..options
        };
        let mut cursor = match self {
            Self::Plain(db) => Cursor::Plain(db.iter_cf(family, &options)?),
            Self::Stamped(db, _) => Cursor::Stamped(db.iter_cf(family, &options)?),
        };
        match (&mut cursor, reverse) {
            (Cursor::Plain(iter), false) => iter.seek_to_first(),
            (Cursor::Plain(iter), true) => iter.seek_to_last(),
            (Cursor::Stamped(iter), false) => iter.seek_to_first(),
            (Cursor::Stamped(iter), true) => iter.seek_to_last(),
        }
        Ok(cursor)
    }
}

/// A value that is being written piece by piece.
pub enum Writer {
    /// As it is.
    Plain(ValueWriter),
    /// With a stamp at its end.
    Stamped(TtlBlobWriter),
}

impl Writer {
    /// Adds a piece.
    pub fn append(&mut self, piece: &[u8]) -> flagstone::base::Result<()> {
        match self {
            Self::Plain(writer) => writer.append(piece),
            Self::Stamped(writer) => writer.append(piece),
        }
    }

    /// Bytes so far.
    pub fn size(&self) -> u64 {
        match self {
            Self::Plain(writer) => writer.size(),
            Self::Stamped(writer) => writer.size(),
        }
    }

    /// Sets the key to what was written.
    pub fn commit(self) -> flagstone::base::Result<()> {
        match self {
            Self::Plain(writer) => writer.commit(),
            Self::Stamped(writer) => writer.commit(),
        }
    }
}

/// A cursor over an [`Opened`] database.
pub enum Cursor {
    /// Over values as they are.
    Plain(Iter),
    /// Over values without their stamps.
    Stamped(TtlIter),
}

impl Cursor {
    /// Whether it stands on a key.
    pub fn valid(&self) -> bool {
        match self {
            Self::Plain(iter) => iter.valid(),
            Self::Stamped(iter) => iter.valid(),
        }
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Plain(iter) => iter.key(),
            Self::Stamped(iter) => iter.key(),
        }
    }

    /// The timestamp of the version shown; empty where keys have none.
    pub fn timestamp(&self) -> &[u8] {
        match self {
            Self::Plain(iter) => iter.timestamp(),
            Self::Stamped(_) => &[],
        }
    }

    /// The sequence number of the version shown, on the way forward; 0 if it is not known.
    pub fn sequence(&self) -> u64 {
        match self {
            Self::Plain(iter) => iter.version().0,
            Self::Stamped(_) => 0,
        }
    }

    /// The time that the value carries, in seconds since 1970; `None` if values carry none.
    pub fn write_time(&mut self) -> Result<Option<u64>, Failure> {
        match self {
            Self::Plain(_) => Ok(None),
            Self::Stamped(iter) => Ok(Some(iter.write_time()?)),
        }
    }

    /// The columns, if the key is set to an entity; `None` for a plain value.
    pub fn columns(&mut self) -> Result<Option<WideColumns>, Failure> {
        match self {
            Self::Plain(iter) if iter.is_entity() => Ok(Some(iter.columns()?)),
            _ => Ok(None),
        }
    }

    /// The value, to be passed on.
    pub fn value(&mut self) -> Result<Pieces<'_>, Failure> {
        let large = match self {
            Self::Plain(iter) => iter.value_in_pieces()?,
            Self::Stamped(iter) => iter.value_in_pieces()?,
        };
        Ok(match (large, self) {
            (Some(reader), _) => Pieces::Reader(Box::new(reader)),
            (None, Self::Plain(iter)) => Pieces::Whole(iter.value()?),
            (None, Self::Stamped(iter)) => Pieces::Whole(iter.value()?),
        })
    }

    /// Moves on, or in reverse back.
    pub fn step(&mut self, reverse: bool) {
        match (self, reverse) {
            (Self::Plain(iter), false) => iter.next(),
            (Self::Plain(iter), true) => iter.prev(),
            (Self::Stamped(iter), false) => iter.next(),
            (Self::Stamped(iter), true) => iter.prev(),
        }
    }

    /// What ended it.
    pub fn status(&self) -> Result<(), Failure> {
        let status = match self {
            Self::Plain(iter) => iter.status(),
            Self::Stamped(iter) => iter.status(),
        };
        Ok(status?)
    }
}
