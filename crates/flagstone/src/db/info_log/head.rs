//! The head of a log: version and options in RocksDB's form, `Options.name: value`, and of tables
//! `name: value`. True is 1, and false 0. Of many families with the same options one has them
//! listed.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::options::known::KNOWN;
use crate::options::table::Settings;
use crate::options::{ColumnFamilyOptions, KeptSetting, Options, Section, TableSettings};

/// Families that are all listed in full; with more, those with the same options are listed once.
const LISTED_MAX: usize = 16;

pub(super) fn text(options: &Options, families: &[(String, ColumnFamilyOptions)]) -> String {
    let mut text = format!("Flagstone version: {}\n", env!("CARGO_PKG_VERSION"));
    text.push_str("Jemalloc supported: 0\n");
    settings(&mut text, &options.db, &options.kept, Section::Db);
    let mut listed: HashMap<String, &str> = HashMap::new();
    for (at, (name, family)) in families.iter().enumerate() {
        let _ = writeln!(text, "--------------- Options for column family [{name}]:");
        let own = family_text(family);
        match listed.get(&own).filter(|_| families.len() > LISTED_MAX) {
            Some(same) => {
                let _ = writeln!(text, "those of [{same}]");
            }
            None => {
                text.push_str(&own);
                listed.insert(own, name);
            }
        }
        // All families share it.
        if let Some(cache) = options.block_cache.as_ref().filter(|_| at == 0) {
            let _ = writeln!(text, "  block_cache_options:\n    capacity : {}", cache.capacity());
        }
    }
    text
}

fn family_text(family: &ColumnFamilyOptions) -> String {
    let mut text = String::new();
    for component in ["comparator", "merge_operator", "prefix_extractor"] {
        let value = family.get(component).unwrap_or_default();
        let _ = writeln!(text, "Options.{component}: {value}");
    }
    let collectors = family.table_properties_collectors.0.iter();
    let collectors: Vec<_> = collectors.map(|factory| factory.description()).collect();
    let _ = writeln!(text, "Options.table_properties_collectors: {}", collectors.join("; "));
    settings(&mut text, &family.settings, &family.kept, Section::ColumnFamily);
    text.push_str("Options.table_factory: BlockBasedTable\ntable_factory options:\n");
    tables(&mut text, &family.table, &family.kept);
    text
}

/// Lines as messages: those that are indented by four spaces belong to the one before.
pub(super) fn messages(lines: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for line in lines.lines() {
        match messages.last_mut() {
            Some(message) if line.starts_with("    ") => {
                message.push('\n');
                message.push_str(line);
            }
            _ => messages.push(line.to_string()),
        }
    }
    messages
}

fn as_number(value: &str) -> &str {
    match value {
        "true" => "1",
        "false" => "0",
        other => other,
    }
}

/// A compression as RocksDB's log names it.
fn compression(value: &str) -> &str {
    match value {
        "kNoCompression" => "NoCompression",
        "kDisableCompressionOption" => "Disabled",
        named => {
            let bare = named.strip_prefix('k').unwrap_or(named);
            bare.strip_suffix("Compression").unwrap_or(bare)
        }
    }
}

/// The settings of a section, and those of RocksDB's that have no effect.
fn settings<T: Settings>(text: &mut String, settings: &T, kept: &[KeptSetting], section: Section) {
    for row in T::ROWS {
        let value = settings.text(row.name).unwrap_or_default();
        let value = match row.name {
            "compression" | "bottommost_compression" => compression(&value),
            _ => as_number(&value),
        };
        let _ = writeln!(text, "Options.{}: {value}", row.name);
    }
    for (name, value) in without_effect(kept, section) {
        let _ = writeln!(text, "Options.{name}: {}", as_number(value));
    }
}

/// RocksDB's settings that the engine does not act on, with what was asked for.
fn without_effect(kept: &[KeptSetting], section: Section) -> impl Iterator<Item = (&str, &str)> {
    KNOWN.iter().filter(move |known| known.section == section).map(|known| {
        let asked = kept.iter().find(|kept| kept.name == known.name);
        (known.name, asked.map_or(known.defaults[0], |kept| kept.value.as_str()))
    })
}

fn tables(text: &mut String, table: &TableSettings, kept: &[KeptSetting]) {
    for row in TableSettings::ROWS {
        let value = match row.name {
            "index_type" => (table.index_type as i32).to_string(),
            "data_block_index_type" => (table.data_block_index_type as i32).to_string(),
            "checksum" => (table.checksum as i32).to_string(),
            "index_shortening" => (table.index_shortening as i32).to_string(),
            name => table.text(name).unwrap_or_default(),
        };
        let _ = writeln!(text, "  {}: {}", row.name, as_number(&value));
    }
    for (name, value) in without_effect(kept, Section::Table) {
        let _ = writeln!(text, "  {name}: {}", as_number(value));
    }
}
