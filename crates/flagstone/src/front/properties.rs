//! Properties of families and of their tables.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::base::Result;
use crate::front::family::Family;
use crate::front::reports::TableProperties;

impl Family {
    /// The property `name` as text; `None` if there is none of that name.
    /// [`PROPERTY_NAMES`](crate::reports::PROPERTY_NAMES) lists them.
    #[doc(alias = "GetProperty")]
    #[doc(alias = "property_value")]
    pub fn property(&self, name: &str) -> Option<String> {
        self.engine().property(self.engine_family(), name)
    }

    /// The property `name` as a number; `None` if it is none.
    #[doc(alias = "GetIntProperty")]
    #[doc(alias = "property_int_value")]
    pub fn int_property(&self, name: &str) -> Option<u64> {
        self.engine().int_property(self.engine_family(), name)
    }

    /// The property `name` as a map, with RocksDB's keys; `None` if it is no map. Maps are
    /// `rocksdb.cfstats`, `rocksdb.dbstats`, `rocksdb.cf-write-stall-stats`,
    /// `rocksdb.db-write-stall-stats`, `rocksdb.aggregated-table-properties` and
    /// `rocksdb.aggregated-table-properties-at-level<N>`.
    #[doc(alias = "GetMapProperty")]
    pub fn map_property(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.engine().map_property(self.engine_family(), name)
    }

    /// The properties of all tables, by path. Opens tables that are not open yet.
    ///
    /// # Errors
    /// `Corruption`, `IoError`.
    #[doc(alias = "GetPropertiesOfAllTables")]
    pub fn properties_of_all_tables(&self) -> Result<BTreeMap<PathBuf, TableProperties>> {
        self.engine().properties_of_all_tables(self.engine_family())
    }

    /// The properties of the tables that overlap any of `ranges`, both ends inclusive, by path.
    ///
    /// # Errors
    /// As [`Family::properties_of_all_tables`].
    #[doc(alias = "GetPropertiesOfTablesInRange")]
    pub fn properties_of_tables_in_range<K: AsRef<[u8]>>(
        &self,
        ranges: &[std::ops::RangeInclusive<K>],
    ) -> Result<BTreeMap<PathBuf, TableProperties>> {
        let ranges: Vec<(&[u8], &[u8])> =
            ranges.iter().map(|range| (range.start().as_ref(), range.end().as_ref())).collect();
        self.engine().properties_of_tables_in_range(self.engine_family(), &ranges)
    }

    /// The properties of the tables of each level, by path; as many maps as there are levels.
    ///
    /// # Errors
    /// As [`Family::properties_of_all_tables`].
    #[doc(alias = "GetPropertiesOfTablesByLevel")]
    pub fn properties_of_tables_by_level(&self) -> Result<Vec<BTreeMap<PathBuf, TableProperties>>> {
        self.engine().properties_of_tables_by_level(self.engine_family())
    }
}
