//! Properties of families.

use std::collections::BTreeMap;

use crate::front::family::Family;

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
}
