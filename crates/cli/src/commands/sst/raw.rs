//! All of a table as it is stored, from its end to its data blocks.

use std::collections::BTreeMap;
use std::path::Path;

use flagstone::sst::{IndexedBlock, Table};
use serde_json::{Value, json};

use super::entries::{compression_name, type_name};
use super::properties::{meta_block_lines, meta_blocks, properties_of};
use crate::arguments::Common;
use crate::failure::Failure;
use crate::json;
use crate::output::Output;
use crate::text::Notation;

/// Prints it part by part; with `--json` each part, and each entry, is an object.
pub(super) fn print(
    table: &Table,
    path: &Path,
    notation: Notation,
    common: &Common,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut dump = Dump { table, path, notation, as_json: common.json, output };
    dump.footer()?;
    dump.meta_blocks()?;
    dump.properties()?;
    dump.filter()?;
    let blocks = table.indexed_blocks()?;
    dump.index(&blocks)?;
    dump.range_deletions()?;
    let mut by_compression: BTreeMap<String, u64> = BTreeMap::new();
    for (number, block) in (1..).zip(&blocks) {
        let compression = dump.data_block(number, block)?;
        *by_compression.entry(compression_name(compression)).or_default() += 1;
    }
    dump.summary(&blocks, &by_compression)
}

struct Dump<'a> {
    table: &'a Table,
    path: &'a Path,
    notation: Notation,
    as_json: bool,
    output: &'a mut Output,
}

impl Dump<'_> {
    /// A part as an object under its name.
    fn object(&mut self, name: &str, part: Value) -> Result<(), Failure> {
        let mut facts = json!({ name: part });
        json::tell_path(&mut facts, "file", Some(self.path));
        self.output.line(facts.to_string())
    }

    fn footer(&mut self) -> Result<(), Failure> {
        let footer = self.table.footer();
        let checksum = format!("{:?}", footer.checksum).to_lowercase();
        if self.as_json {
            let mut facts = json!({
                "format_version": footer.format_version, "checksum": checksum,
                "metaindex": { "offset": footer.metaindex.offset, "bytes": footer.metaindex.size },
            });
            if let Some(index) = footer.index {
                facts["index"] = json!({ "offset": index.offset, "bytes": index.size });
            }
            return self.object("footer", facts);
        }
        self.output.line("footer")?;
        let (version, metaindex) = (footer.format_version, footer.metaindex);
        self.output.line(format!("  format_version {version}, checksum {checksum}"))?;
        self.output
            .line(format!("  metaindex: {} bytes at {}", metaindex.size, metaindex.offset))?;
        match footer.index {
            Some(index) => {
                self.output.line(format!("  index: {} bytes at {}", index.size, index.offset))
            }
            None => self.output.line("  index: named in the metaindex"),
        }
    }

    fn meta_blocks(&mut self) -> Result<(), Failure> {
        if self.as_json {
            return self.object("meta_blocks", json!(meta_blocks(self.table)));
        }
        self.output.line("meta blocks")?;
        meta_block_lines(self.table, self.output)
    }

    fn properties(&mut self) -> Result<(), Failure> {
        let properties = properties_of(self.table, self.as_json);
        if self.as_json {
            return self.object("properties", Value::Object(properties));
        }
        self.output.line("properties")?;
        let mut lines = properties.iter();
        lines.try_for_each(|(name, value)| self.output.line(format!("  {name}: {value}")))
    }

    fn filter(&mut self) -> Result<(), Failure> {
        let properties = self.table.properties();
        let (policy, bytes) = (&properties.filter_policy, properties.filter_size);
        let is_there = self.table.meta_blocks().iter().any(|(name, _)| name.contains("filter."));
        let form = if self.table.has_filter_partitions() { "partitions" } else { "one block" };
        if self.as_json {
            let facts = json!({ "policy": policy, "bytes": bytes, "form": form });
            return self.object("filter", if is_there { facts } else { Value::Null });
        }
        self.output.line("filter")?;
        self.output.line(if is_there {
            format!("  {policy}, {form}, {bytes} bytes")
        } else {
            "  none".to_string()
        })
    }

    fn index(&mut self, blocks: &[IndexedBlock]) -> Result<(), Failure> {
        if !self.as_json {
            self.output.line(format!("index, {:?}", self.table.index_type()))?;
        }
        for (number, IndexedBlock { handle, user_key }) in (1u64..).zip(blocks) {
            let (offset, size) = (handle.offset, handle.size);
            if self.as_json {
                let mut facts = json!({ "block": number, "offset": offset, "bytes": size });
                json::tell(&mut facts, "key", user_key, self.notation);
                self.object("index_entry", facts)?;
            } else {
                let key = self.notation.show(user_key);
                self.output.line(format!("  {key}\tblock {number}: {size} bytes at {offset}"))?;
            }
        }
        Ok(())
    }

    fn range_deletions(&mut self) -> Result<(), Failure> {
        let ranges = self.table.stored_range_deletions()?;
        if !self.as_json && !ranges.is_empty() {
            self.output.line("range deletions")?;
        }
        for range in ranges {
            if self.as_json {
                let mut facts = json!({ "sequence": range.sequence });
                json::tell(&mut facts, "key", &range.start, self.notation);
                json::tell(&mut facts, "end_key", &range.end, self.notation);
                self.object("range_deletion", facts)?;
            } else {
                let (start, end) =
                    (self.notation.show(&range.start), self.notation.show(&range.end));
                self.output.line(format!("  {start}\t{}\t{end}", range.sequence))?;
            }
        }
        Ok(())
    }

    /// Prints a data block; the byte that says how it is compressed.
    fn data_block(&mut self, number: u64, block: &IndexedBlock) -> Result<u8, Failure> {
        let (handle, as_json, notation) = (block.handle, self.as_json, self.notation);
        let mut lines = Vec::new();
        // A block that cannot be read to its end is not begun.
        let compression = self.table.show_block(handle, |key, value| {
            lines.push(if as_json {
                let mut facts = json!({
                    "block": number, "sequence": key.sequence(), "type": type_name(key),
                });
                json::tell(&mut facts, "key", key.user_key(), notation);
                json::tell(&mut facts, "value", value, notation);
                facts.to_string()
            } else {
                let (shown, value) = (notation.show(key.user_key()), notation.show(value));
                format!("  {shown}\t{}\t{}\t{value}", key.sequence(), type_name(key))
            });
            Ok::<(), Failure>(())
        })?;
        let (size, offset) = (handle.size, handle.offset);
        let name = compression_name(compression);
        if as_json {
            let facts = json!({
                "number": number, "offset": offset, "bytes": size, "compression": name,
                "entries": lines.len(),
            });
            self.object("data_block", facts)?;
        } else {
            self.output.line(format!(
                "data block {number}: {size} bytes at {offset}, compression {name}"
            ))?;
        }
        lines.iter().try_for_each(|line| self.output.line(line))?;
        Ok(compression)
    }

    fn summary(
        &mut self,
        blocks: &[IndexedBlock],
        by_compression: &BTreeMap<String, u64>,
    ) -> Result<(), Failure> {
        let sizes = || blocks.iter().map(|block| block.handle.size);
        let (smallest, largest) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
        let mean = sizes().sum::<u64>().checked_div(blocks.len() as u64).unwrap_or(0);
        if self.as_json {
            let facts = json!({
                "data_blocks": blocks.len(), "smallest_bytes": smallest, "largest_bytes": largest,
                "mean_bytes": mean, "by_compression": by_compression,
            });
            return self.object("summary", facts);
        }
        let compressed: Vec<_> =
            by_compression.iter().map(|(name, count)| format!("{name}: {count}")).collect();
        self.output.line("summary of the data blocks")?;
        self.output.line(format!(
            "  number {}, bytes from {smallest} to {largest}, mean {mean}; by compression: {}",
            blocks.len(),
            if compressed.is_empty() { "none".to_string() } else { compressed.join(", ") }
        ))
    }
}
