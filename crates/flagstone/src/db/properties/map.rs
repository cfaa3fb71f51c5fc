//! Properties that are maps.

use std::collections::BTreeMap;

use crate::db::DbInner;
use crate::db::family::Family;
use crate::db::properties::{cf_stats, db_stats, tables};

pub(super) fn map_property(
    db: &DbInner,
    family: &Family,
    name: &str,
) -> Option<BTreeMap<String, String>> {
    let version = || family.current.load().version.clone();
    let sums = |level| tables::sum_of_properties(db, family, &version(), level);
    Some(match name {
        "rocksdb.cfstats" => cf_stats::cf_map(db, family),
        "rocksdb.cf-write-stall-stats" => cf_stats::cf_write_stalls_map(db, family),
        "rocksdb.dbstats" => db_stats::db_map(db),
        "rocksdb.db-write-stall-stats" => db_stats::write_stalls_map(db),
        "rocksdb.aggregated-table-properties" => tables::aggregated_map(&sums(None)?),
        _ => {
            let level = name.strip_prefix("rocksdb.aggregated-table-properties-at-level")?;
            let level = level.parse().ok().filter(|level| *level < version().levels.len())?;
            tables::aggregated_map(&sums(Some(level))?)
        }
    })
}
