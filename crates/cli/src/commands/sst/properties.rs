//! What a table says about itself.

use std::path::Path;

use flagstone::base::{WriteTimes, counted};
use flagstone::sst::{Table, TableProperties};
use serde_json::{Map, Value, json};

use crate::arguments::Common;
use crate::failure::Failure;
use crate::json;
use crate::output::Output;
use crate::text::Notation;

/// The value of a property: numbers are stored as varints, names as they are, and some in forms of
/// their own.
fn property_value(name: &str, value: &[u8], as_json: bool) -> Value {
    let shown = |text: String| if as_json { json::value(value) } else { json!(text) };
    if TableProperties::is_text(name) {
        return shown(Notation::Plain.show(value));
    }
    if name.ends_with(".filtering") {
        return json!(value == b"1");
    }
    if name.ends_with("table.index.type") {
        return json!(flagstone::base::coding::fixed32_at(value, 0));
    }
    if name == "rocksdb.seqno.time.map"
        && let Ok(times) = WriteTimes::decode(value)
    {
        let words = times.samples().iter().map(|one| format!("{}@{}", one.sequence, one.time));
        return json!(words.collect::<Vec<_>>().join(" "));
    }
    let mut decoder = flagstone::base::coding::Decoder::new(value);
    if name.ends_with(".embedded.blob.stats") {
        return json!([decoder.varint64(), decoder.varint64()]);
    }
    let printable =
        value.len() > 1 && value.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    match decoder.varint64() {
        Some(number) if decoder.is_empty() && !printable => json!(number),
        _ => shown(value.escape_ascii().to_string()),
    }
}

/// `faults` are how many were found, if they were looked for.
pub(super) fn print_properties(
    table: &Table,
    path: &Path,
    size: u64,
    faults: Option<u64>,
    common: &Common,
    output: &mut Output,
) -> Result<(), Failure> {
    let properties = properties_of(table, common.json);
    let meta_blocks = meta_blocks(table);
    if common.json {
        let mut facts =
            json!({ "bytes": size, "properties": properties, "meta_blocks": meta_blocks });
        json::tell_path(&mut facts, "file", Some(path));
        if let Some(faults) = faults {
            facts["faults"] = json!(faults);
        }
        return output.line(facts.to_string());
    }
    let verdict = match faults {
        None => String::new(),
        Some(0) => ", every block read: sound".to_string(),
        Some(faults) => format!(", every block read: {}", counted(faults, "fault")),
    };
    output
        .line(format!("{size} bytes, format_version {}{verdict}", table.footer().format_version))?;
    for (name, value) in &properties {
        output.line(format!("  {name}: {value}"))?;
    }
    meta_block_lines(table, output)
}

/// The properties by name.
pub(super) fn properties_of(table: &Table, as_json: bool) -> Map<String, Value> {
    let named = table.properties().raw.iter();
    let named = named.map(|(name, value)| (name.escape_ascii().to_string(), value));
    named.map(|(name, value)| (name.clone(), property_value(&name, value, as_json))).collect()
}

/// The blocks that are not data, for JSON.
pub(super) fn meta_blocks(table: &Table) -> Vec<Value> {
    let blocks = table.meta_blocks().iter();
    blocks
        .map(
            |(name, handle)| json!({ "name": name, "offset": handle.offset, "bytes": handle.size }),
        )
        .collect()
}

/// The blocks that are not data, one line each.
pub(super) fn meta_block_lines(table: &Table, output: &mut Output) -> Result<(), Failure> {
    table.meta_blocks().iter().try_for_each(|(name, handle)| {
        output.line(format!("  meta block {name}: {} bytes at {}", handle.size, handle.offset))
    })
}

/// Prints the blocks that are not data.
pub(super) fn print_meta_blocks(
    table: &Table,
    path: &Path,
    common: &Common,
    output: &mut Output,
) -> Result<(), Failure> {
    if !common.json {
        return meta_block_lines(table, output);
    }
    let mut facts = json!({ "meta_blocks": meta_blocks(table) });
    json::tell_path(&mut facts, "file", Some(path));
    output.line(facts.to_string())
}
