//! What a database tells of itself.

use std::path::Path;

use flagstone::db::ColumnFamily as EngineFamily;
use flagstone::options::SizeApproximationOptions;

use super::{DBCommon, DBInner, ThreadMode};
use crate::c_text::CStrLike;
use crate::column_family::AsColumnFamilyRef;
use crate::db_iterator::DBWALIterator;
use crate::error::Error;

/// The keys from one up to but not including another.
pub struct Range<'a> {
    start_key: &'a [u8],
    end_key: &'a [u8],
}

impl<'a> Range<'a> {
    /// The keys from `start_key` up to but not including `end_key`.
    pub fn new(start_key: &'a [u8], end_key: &'a [u8]) -> Self {
        Self { start_key, end_key }
    }
}

/// The size of a column family.
#[derive(Debug, Clone)]
pub struct ColumnFamilyMetaData {
    /// Bytes of its tables.
    pub size: u64,
    /// Its name.
    pub name: String,
    /// How many tables it has.
    pub file_count: usize,
}

/// A table.
#[derive(Debug, Clone)]
pub struct LiveFile {
    /// The name of its column family.
    pub column_family_name: String,
    /// Its file name, after a slash.
    pub name: String,
    /// Its size in bytes.
    pub size: usize,
    /// Its level.
    pub level: i32,
    /// The smallest key in it.
    pub start_key: Option<Vec<u8>>,
    /// The largest key in it.
    pub end_key: Option<Vec<u8>>,
    /// How many entries it has, deletions included.
    pub num_entries: u64,
    /// How many deletions it has.
    pub num_deletions: u64,
}

impl<T: ThreadMode, D: DBInner> DBCommon<T, D> {
    pub(crate) fn engine(&self) -> &flagstone::db::Db {
        self.inner.inner().db()
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A property of the default family, or of the database, as text; `None` if there is none of
    /// that name. Names are in [`properties`](crate::properties).
    ///
    /// # Errors
    /// If there is a NUL byte in the name.
    pub fn property_value(&self, name: impl CStrLike) -> Result<Option<String>, Error> {
        self.property(self.inner.inner().default_family(), name)
    }

    /// As [`property_value`](Self::property_value), of a family.
    ///
    /// # Errors
    /// If there is a NUL byte in the name.
    pub fn property_value_cf(
        &self,
        cf: &impl AsColumnFamilyRef,
        name: impl CStrLike,
    ) -> Result<Option<String>, Error> {
        self.property(cf.inner(), name)
    }

    /// A property that is a number.
    ///
    /// # Errors
    /// As [`property_value`](Self::property_value); if the property is no number.
    pub fn property_int_value(&self, name: impl CStrLike) -> Result<Option<u64>, Error> {
        self.property_value(name)?.map(|text| number(&text)).transpose()
    }

    /// As [`property_int_value`](Self::property_int_value), of a family.
    ///
    /// # Errors
    /// As [`property_int_value`](Self::property_int_value).
    pub fn property_int_value_cf(
        &self,
        cf: &impl AsColumnFamilyRef,
        name: impl CStrLike,
    ) -> Result<Option<u64>, Error> {
        self.property_value_cf(cf, name)?.map(|text| number(&text)).transpose()
    }

    fn property(
        &self,
        family: &EngineFamily,
        name: impl CStrLike,
    ) -> Result<Option<String>, Error> {
        let name = name.bake().map_err(|error| {
            Error::new(format!("Failed to convert property name to CString: {error}"))
        })?;
        Ok(self.engine().property(family, &name.to_string_lossy()))
    }

    /// The sequence number of the last write.
    pub fn latest_sequence_number(&self) -> u64 {
        self.inner.inner().latest_sequence_number()
    }

    /// About how many bytes each range of the default family takes in tables. 0 stands for a range
    /// whose tables cannot be read, since the rocksdb crate has no place for an error here.
    pub fn get_approximate_sizes(&self, ranges: &[Range<'_>]) -> Vec<u64> {
        self.sizes(self.inner.inner().default_family(), ranges)
    }

    /// As [`get_approximate_sizes`](Self::get_approximate_sizes), of a family.
    pub fn get_approximate_sizes_cf(
        &self,
        cf: &impl AsColumnFamilyRef,
        ranges: &[Range<'_>],
    ) -> Vec<u64> {
        self.sizes(cf.inner(), ranges)
    }

    fn sizes(&self, family: &EngineFamily, ranges: &[Range<'_>]) -> Vec<u64> {
        let wanted: Vec<_> = ranges.iter().map(|range| (range.start_key, range.end_key)).collect();
        let sizes =
            self.engine().approximate_sizes(family, &wanted, &SizeApproximationOptions::default());
        sizes.unwrap_or_else(|error| {
            tracing::warn!(%error, "sizes of ranges");
            vec![0; ranges.len()]
        })
    }

    /// The writes behind a sequence number, from the WALs.
    ///
    /// # Errors
    /// `NotFound` if they are in the WALs no longer; `InvalidArgument` if the number is larger than
    /// that of the last write.
    pub fn get_updates_since(&self, seq_number: u64) -> Result<DBWALIterator, Error> {
        let updates = self.engine().get_updates_since(seq_number.saturating_add(1))?;
        Ok(DBWALIterator::new(updates, seq_number))
    }

    /// The size of the default family.
    pub fn get_column_family_metadata(&self) -> ColumnFamilyMetaData {
        self.metadata(self.inner.inner().default_family())
    }

    /// The size of a family.
    pub fn get_column_family_metadata_cf(
        &self,
        cf: &impl AsColumnFamilyRef,
    ) -> ColumnFamilyMetaData {
        self.metadata(cf.inner())
    }

    fn metadata(&self, family: &EngineFamily) -> ColumnFamilyMetaData {
        let name = family.name().to_owned();
        let files = self.engine().live_files();
        let tables = files.iter().filter(|file| file.column_family == name && file.level.is_some());
        let sizes: Vec<u64> = tables.map(|table| table.size).collect();
        ColumnFamilyMetaData { size: sizes.iter().sum(), name, file_count: sizes.len() }
    }

    /// The tables of all families.
    ///
    /// # Errors
    /// None.
    pub fn live_files(&self) -> Result<Vec<LiveFile>, Error> {
        let files = self.engine().live_files().into_iter();
        let tables = files.filter_map(|file| file.level.map(|level| (level, file)));
        let described = tables.map(|(level, file)| {
            let (num_entries, num_deletions) = file.entries.unwrap_or_default();
            LiveFile {
                column_family_name: file.column_family,
                name: format!("/{}.sst", file.number),
                size: file.size as usize,
                level: level as i32,
                start_key: Some(file.smallest),
                end_key: Some(file.largest),
                num_entries,
                num_deletions,
            }
        });
        Ok(described.collect())
    }

    /// What the database is called in its files; it stays the same for as long as it lives.
    ///
    /// # Errors
    /// None.
    pub fn get_db_identity(&self) -> Result<Vec<u8>, Error> {
        Ok(self.engine().identity().as_bytes().to_vec())
    }
}

fn number(text: &str) -> Result<u64, Error> {
    text.parse().map_err(|error| {
        Error::new(format!("Failed to convert property value {text} to int: {error}"))
    })
}
