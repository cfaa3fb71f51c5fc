//! The names under which options are set, and whether they belong to a database, a column family or
//! a table.

use crate::base::{Error, Result};

use super::cf_settings::CfSettings;
use super::db_settings::DbSettings;
use super::filters::{FILTER, FILTER_FACTORY};
use super::known::{self, KNOWN};
use super::rate_limiter::{AUTO_TUNED, RATE_LIMITER};
use super::removed;
use super::secondary_cache::{BLOB_CACHE, SECONDARY_CACHE};
use super::table::{Row, Section, Settings};
use super::table_settings::TableSettings;
use super::text::{pairs, without_braces};

pub use super::text::nearest;

/// Components, which are set by the name of a built-in one.
const COMPONENT_NAMES: [&str; 10] = [
    "comparator",
    "merge_operator",
    "prefix_extractor",
    FILTER,
    FILTER_FACTORY,
    "block_cache",
    BLOB_CACHE,
    SECONDARY_CACHE,
    RATE_LIMITER,
    AUTO_TUNED,
];

/// Names of the struct of table settings.
pub(super) const TABLE_FACTORY_NAMES: [&str; 2] = ["block_based_table_factory", "table_factory"];

/// Splits a struct of table settings (`block_based_table_factory={name=value;...}`) into its
/// settings; any other setting is returned as it is. RocksDB keeps the block cache in that struct;
/// here it belongs to the database.
///
/// # Errors
/// `InvalidArgument` saying what is malformed.
pub fn taken_apart(name: &str, value: &str) -> Result<Vec<(String, String)>> {
    if !TABLE_FACTORY_NAMES.contains(&name) || !value.contains('=') {
        return Ok(vec![(name.to_string(), value.to_string())]);
    }
    let parts = pairs(without_braces(value))?.into_iter();
    let own_name =
        |part: &str| if part == "block_cache" { part.to_string() } else { format!("table.{part}") };
    Ok(parts.map(|(part, value)| (own_name(part), value.to_string())).collect())
}

/// A shorter name of a setting.
const ALIASES: [(&str, &str); 1] = [("memtable", "memtable_factory")];

/// The full name of a setting that may be given by its short name.
pub(super) fn without_alias(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
}

/// All rows outside nested structs.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    DbSettings::ROWS.iter().chain(CfSettings::ROWS).chain(TableSettings::ROWS)
}

/// The error for a name that does not exist where it was looked for.
pub(super) fn unknown_name(name: &str) -> Error {
    let all = rows()
        .map(|row| row.name)
        .chain(KNOWN.iter().map(|known| known.name))
        .chain(COMPONENT_NAMES)
        .chain(TABLE_FACTORY_NAMES)
        .chain(ALIASES.map(|(alias, _)| alias));
    Error::invalid_argument(match nearest(name, all) {
        Some(near) if near == name => {
            format!(
                "'{name}' is set elsewhere: database, column families and tables each have their own options"
            )
        }
        Some(near) => format!("there is no option '{name}'; did you mean '{near}'?"),
        None => format!("there is no option '{name}'"),
    })
}

/// Checks that a setting may change while the database is open, and that it belongs to the database
/// or, if `of_database` is false, to a column family.
///
/// # Errors
/// `InvalidArgument` otherwise, or if there is no such setting.
pub fn check_live(name: &str, of_database: bool) -> Result<()> {
    if let Some((prefix @ ("db" | "cf"), own)) = name.split_once('.') {
        let call = if prefix == "db" { "set_db_options" } else { "set_options" };
        return Err(Error::invalid_argument(format!(
            "'{name}': {call} expects '{own}' without '{prefix}.'"
        )));
    }
    let outer = without_alias(name.split('.').next().unwrap_or(name));
    let is_table = outer == "table" || TABLE_FACTORY_NAMES.contains(&outer);
    let (row, known) = (rows().find(|row| row.name == outer), known::find(name));
    if row.is_some_and(|row| !row.live) || COMPONENT_NAMES.contains(&outer) {
        return Err(Error::invalid_argument(format!(
            "option '{name}' cannot change while the database is open; close it, set the option, and reopen"
        )));
    }
    if row.is_none() && known.is_none() && removed::find(outer).is_none() && !is_table {
        return Err(unknown_name(name));
    }
    let is_the_database_s = DbSettings::ROWS.iter().any(|row| row.name == outer)
        || known.is_some_and(|known| known.section == Section::Db);
    match (is_the_database_s, of_database) {
        (true, false) => Err(Error::invalid_argument(format!(
            "'{name}' is an option of the database; set it with set_db_options"
        ))),
        (false, true) => Err(Error::invalid_argument(format!(
            "'{name}' is an option of column families; set it with set_options"
        ))),
        _ => Ok(()),
    }
}
