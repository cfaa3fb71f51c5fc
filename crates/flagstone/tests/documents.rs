//! What the documents say is true where a test can tell.

use flagstone::options::known::KNOWN;
use flagstone::options::table::Settings;
use flagstone::options::{CfSettings, DbSettings, TableSettings};

const DIFFERENCES: &str = include_str!("../../../docs/rocksdb-differences.md");

#[test]
fn every_option_that_is_refused_is_listed() {
    let sources = [
        include_str!("../src/options/db_settings.rs"),
        include_str!("../src/options/cf_settings.rs"),
        include_str!("../src/options/table_settings.rs"),
    ];
    let planned = sources.iter().flat_map(|source| source.lines()).filter_map(|line| {
        line.trim_start().strip_prefix("planned ").and_then(|rest| rest.split(':').next())
    });
    let missing: Vec<&str> = planned
        .chain(KNOWN.iter().map(|known| known.name))
        .filter(|name| !DIFFERENCES.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "docs/rocksdb-differences.md does not name {missing:?}");
}

#[test]
fn options_that_tuning_names_exist() {
    let tuning = include_str!("../../../docs/tuning.md");
    let rows: Vec<&str> = [DbSettings::ROWS, CfSettings::ROWS, TableSettings::ROWS]
        .concat()
        .iter()
        .map(|row| row.name)
        .collect();
    let set = tuning.split('`').skip(1).step_by(2).filter_map(|code| code.split_once('='));
    for (name, _) in
        set.filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
    {
        assert!(rows.contains(&name), "docs/tuning.md sets '{name}', which is no option");
    }
}
