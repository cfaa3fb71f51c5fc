//! How large a table would be with other compression, and how long writing it takes. What is
//! written is counted, and not kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use flagstone::base::compression::{CompressionOptions, CompressionType};
use flagstone::base::{InternalIterator, counted};
use flagstone::env::{RandomAccessFile, WritableFile};
use flagstone::options::names::nearest;
use flagstone::sst::{
    IndexType, IterSettings, Table, TableBuilder, TableBuilderSettings, TableSummary,
};
use serde_json::json;

use super::open::comparator_of;
use crate::arguments::Common;
use crate::failure::Failure;
use crate::json;
use crate::output::Output;
use crate::text;
use crate::world;

/// What is tried.
#[derive(Debug, Clone, Default, Args)]
pub struct Flags {
    /// Write each table anew with several compressions, without keeping it, and print sizes and
    /// times. The tables that are written have no filter
    #[arg(long)]
    recompress: bool,
    /// With --recompress, the compressions to try, such as lz4,zstd; all by default
    #[arg(long, value_name = "TYPES", alias = "compression_types", requires = "recompress")]
    #[arg(value_delimiter = ',', value_parser = compression_of)]
    compression_types: Vec<CompressionType>,
    /// With --recompress, the first level to try
    #[arg(long, value_name = "LEVEL", alias = "compression_level_from", requires = "recompress")]
    #[arg(allow_negative_numbers = true, requires = "compression_level_to")]
    compression_level_from: Option<i32>,
    /// With --recompress, the last level to try
    #[arg(long, value_name = "LEVEL", alias = "compression_level_to", requires = "recompress")]
    #[arg(allow_negative_numbers = true, requires = "compression_level_from")]
    compression_level_to: Option<i32>,
    /// With --recompress, the size of data blocks before compression, in bytes; repeatable. By
    /// default 16384
    #[arg(long, value_name = "BYTES", aliases = ["block_size", "set_block_size"])]
    #[arg(requires = "recompress", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    block_size: Vec<u32>,
    /// With --recompress, the largest dictionary in bytes; 0 for none
    #[arg(long, value_name = "BYTES", alias = "compression_max_dict_bytes", default_value_t = 0)]
    #[arg(requires = "recompress")]
    compression_max_dict_bytes: u32,
}

const BLOCK_SIZE: u32 = 16_384;

/// A compression by its short name, or as RocksDB calls it.
fn compression_of(text: &str) -> Result<CompressionType, String> {
    let bare = |name: &str| name.trim_start_matches('k').replace("Compression", "").to_lowercase();
    let wanted = match bare(text).as_str() {
        "no" => "none".to_string(),
        other => other.to_string(),
    };
    let names = || CompressionType::supported().into_iter().map(CompressionType::short_name);
    let found = CompressionType::supported().into_iter().find(|one| one.short_name() == wanted);
    found.ok_or_else(|| {
        let meant = nearest(&wanted, names())
            .map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
        let all = names().collect::<Vec<_>>().join(", ");
        format!("there is no compression '{text}'; there are {all}{meant}")
    })
}

/// The most levels that are tried in one run.
const LEVELS_MAX: u32 = 100;

impl Flags {
    pub(super) fn is_asked_for(&self) -> bool {
        self.recompress
    }

    /// Refuses a range of levels that is reversed or too long, and levels of several compressions,
    /// since each has its own.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let (Some(from), Some(to)) = (self.compression_level_from, self.compression_level_to)
        else {
            return Ok(());
        };
        if from > to {
            return Err(Failure::Usage(format!(
                "--compression-level-from {from} is above --compression-level-to {to}; exchange them"
            )));
        }
        if to.abs_diff(from) >= LEVELS_MAX {
            return Err(Failure::Usage(format!(
                "from --compression-level-from {from} to --compression-level-to {to} there are more than {LEVELS_MAX} levels"
            )));
        }
        if self.compression_types.len() != 1 {
            return Err(Failure::Usage(
                "levels are those of one compression: name it with --compression-types".to_string(),
            ));
        }
        Ok(())
    }

    fn levels(&self) -> Vec<i32> {
        match (self.compression_level_from, self.compression_level_to) {
            (Some(from), Some(to)) => (from..=to).collect(),
            _ => vec![CompressionOptions::DEFAULT_LEVEL],
        }
    }

    fn types(&self) -> Vec<CompressionType> {
        if self.compression_types.is_empty() {
            CompressionType::supported()
        } else {
            self.compression_types.clone()
        }
    }

    fn block_sizes(&self) -> Vec<u32> {
        if self.block_size.is_empty() { vec![BLOCK_SIZE] } else { self.block_size.clone() }
    }
}

/// Tries all that is asked for, and prints a line for each.
pub(super) fn print(
    table: &Arc<Table>,
    path: &Path,
    flags: &Flags,
    common: &Common,
    output: &mut Output,
) -> Result<(), Failure> {
    if comparator_of(table.properties()).is_unknown() {
        return Err(Failure::Other(format!(
            "{}: a table in the order of an application ({}) cannot be written anew",
            path.display(),
            text::name(&table.properties().comparator)
        )));
    }
    let clock = world::env().clock;
    for block_size in flags.block_sizes() {
        for compression in flags.types() {
            for level in flags.levels() {
                let began_us = clock.now_us();
                let written =
                    write(table, settings(table, flags, (block_size, compression, level)))?;
                let took_us = clock.now_us().saturating_sub(began_us);
                let tried = Tried { block_size, compression, level, took_us };
                output.line(tried.line(&written, path, common.json))?;
            }
        }
    }
    Ok(())
}

fn settings(
    table: &Table,
    flags: &Flags,
    (block_size, compression, level): (u32, CompressionType, i32),
) -> TableBuilderSettings {
    // A hash over prefixes needs their rule; it changes the size of no data block.
    let index_type = match table.index_type() {
        IndexType::HashSearch => IndexType::BinarySearch,
        other => other,
    };
    let max_dict_bytes = flags.compression_max_dict_bytes;
    TableBuilderSettings {
        comparator: comparator_of(table.properties()),
        compression,
        compression_options: CompressionOptions {
            level,
            max_dict_bytes,
            ..CompressionOptions::default()
        },
        block_size: block_size as usize,
        index_type,
        ..TableBuilderSettings::default()
    }
}

fn write(table: &Arc<Table>, settings: TableBuilderSettings) -> Result<TableSummary, Failure> {
    let mut builder = TableBuilder::new(Arc::new(Counted::default()), settings)?;
    let mut iter = table.iter(IterSettings::default());
    iter.seek_to_first();
    while iter.valid() {
        builder.add(iter.key(), iter.value())?;
        iter.next();
    }
    iter.status()?;
    for range in table.stored_range_deletions()? {
        builder.add_range_tombstone(&range.start, &range.end, range.sequence);
    }
    Ok(builder.finish()?)
}

/// What a table was written with.
struct Tried {
    block_size: u32,
    compression: CompressionType,
    level: i32,
    took_us: u64,
}

impl Tried {
    fn line(&self, written: &TableSummary, path: &Path, as_json: bool) -> String {
        let Self { block_size, compression, level, took_us } = self;
        let name = compression.short_name();
        let (bytes, properties) = (written.size, &written.properties);
        let level = (*level != CompressionOptions::DEFAULT_LEVEL).then_some(*level);
        if as_json {
            let mut facts = json!({
                "block_size": block_size, "compression": name, "level": level, "bytes": bytes,
                "data_bytes": properties.data_size, "data_blocks": properties.num_data_blocks,
                "took_us": took_us,
            });
            json::tell_path(&mut facts, "file", Some(path));
            return facts.to_string();
        }
        let level = level.map_or("default".to_string(), |level| level.to_string());
        format!(
            "block size {block_size}, compression {name}, level {level}: {bytes} bytes, of data {} in {}, {}.{:03} ms",
            properties.data_size,
            counted(properties.num_data_blocks, "data block"),
            took_us / 1000,
            took_us % 1000
        )
    }
}

/// A file of which only the size is known.
#[derive(Default)]
struct Counted {
    size: AtomicU64,
    path: PathBuf,
}

impl RandomAccessFile for Counted {
    fn read_at(&self, _offset: u64, _buffer: &mut [u8]) -> flagstone::base::Result<usize> {
        Ok(0)
    }

    fn size(&self) -> flagstone::base::Result<u64> {
        Ok(self.size.load(Ordering::Relaxed))
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl WritableFile for Counted {
    fn write_at(&self, offset: u64, data: &[u8]) -> flagstone::base::Result<()> {
        self.size.fetch_max(offset + data.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self) -> flagstone::base::Result<()> {
        Ok(())
    }

    fn truncate(&self, length: u64) -> flagstone::base::Result<()> {
        self.size.store(length, Ordering::Relaxed);
        Ok(())
    }
}
