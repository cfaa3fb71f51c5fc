//! The plan of a compaction that another process does.

use std::sync::Arc;

use super::format::{Fields, put_flag, put_numbers};
use crate::base::coding::{put_varint32, put_varint64};
use crate::base::compression::CompressionType;
use crate::base::{Error, FileNumber, Result, Temperature};
use crate::compaction::pick::{
    CompactionPlan, CompactionReason, InputRange, LevelInput, OutputCompression, OutputForm,
    OutputSizes,
};
use crate::manifest::{TableFile, Version};

/// The reasons by their bytes.
const REASONS: [CompactionReason; 15] = [
    CompactionReason::Level0Files,
    CompactionReason::LevelSize,
    CompactionReason::SizeAmplification,
    CompactionReason::SizeRatio,
    CompactionReason::SortedRuns,
    CompactionReason::FifoSize,
    CompactionReason::IntraLevel0,
    CompactionReason::Marked,
    CompactionReason::Bottommost,
    CompactionReason::Ttl,
    CompactionReason::Temperature,
    CompactionReason::Periodic,
    CompactionReason::Deletions,
    CompactionReason::BlobGarbage,
    CompactionReason::Manual,
];

/// A table that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderedFile {
    /// Its number.
    pub number: FileNumber,
    /// Its size in bytes.
    pub size: u64,
}

/// The tables of one level that are read, in the level's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedLevel {
    /// The level.
    pub level: usize,
    /// The tables.
    pub files: Vec<OrderedFile>,
}

/// A [`CompactionPlan`] whose tables are numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedPlan {
    /// Why.
    pub reason: CompactionReason,
    /// What is read, the start level first.
    pub inputs: Vec<OrderedLevel>,
    /// Where the outputs go.
    pub output_level: usize,
    /// Which of the family's directories the outputs go to.
    pub path_id: u32,
    /// Whether nothing older lies below the output.
    pub bottommost: bool,
    /// The blob files that it moves values out of.
    pub emptied: Vec<FileNumber>,
    /// The tables that the output overlaps below.
    pub grandparents: Vec<FileNumber>,
    /// How large the outputs become.
    pub sizes: OutputSizes,
    /// How the outputs are compressed.
    pub compression: OutputCompression,
    /// How often the outputs are expected to be read.
    pub temperature: Temperature,
}

impl OrderedPlan {
    /// This plan, which rewrites tables.
    pub fn of(plan: &CompactionPlan) -> Self {
        let file =
            |file: &Arc<TableFile>| OrderedFile { number: file.number(), size: file.meta.size };
        let level = |input: &LevelInput| OrderedLevel {
            level: input.level,
            files: input.files.iter().map(file).collect(),
        };
        Self {
            reason: plan.reason,
            inputs: plan.inputs.iter().map(level).collect(),
            output_level: plan.output_level,
            path_id: plan.path_id,
            bottommost: plan.bottommost,
            emptied: plan.emptied.iter().copied().collect(),
            grandparents: plan.grandparents.iter().map(|file| file.number()).collect(),
            sizes: plan.sizes,
            compression: plan.form.compression,
            temperature: plan.form.temperature,
        }
    }

    /// The plan in a version, which has all tables that are read. Of the tables below, those that
    /// are gone decide nothing.
    ///
    /// # Errors
    /// `InvalidArgument` if the version lacks a table, or one has another size: the worker sees
    /// another state of the database, or another database.
    pub fn resolve(&self, version: &Version) -> Result<CompactionPlan> {
        let mut inputs = Vec::new();
        for OrderedLevel { level, files } in &self.inputs {
            let of_level = version.levels.get(*level).map_or(&[][..], |files| files);
            let find = |wanted: &OrderedFile| {
                let found = of_level.iter().find(|file| file.number() == wanted.number);
                found.filter(|file| file.meta.size == wanted.size).cloned().ok_or_else(|| {
                    Error::invalid_argument(format!(
                        "the database has no table {} of {} bytes in level {level}; the compaction is over, or ordered by \
                         another database",
                        wanted.number, wanted.size
                    ))
                })
            };
            let files: Vec<_> = files.iter().map(find).collect::<Result<_>>()?;
            if !files.is_empty() {
                inputs.push(LevelInput { level: *level, files });
            }
        }
        let range = range_of(version, &inputs);
        let Some(range) = range.filter(|_| self.output_level < version.levels.len()) else {
            return Err(Error::invalid_argument("the order has no tables, or no such level"));
        };
        let below = version.levels.iter().flatten();
        let grandparents =
            below.filter(|file| self.grandparents.contains(&file.number())).cloned().collect();
        Ok(CompactionPlan {
            reason: self.reason,
            inputs,
            output_level: self.output_level,
            path_id: self.path_id,
            trivial_move: false,
            drops_inputs: false,
            emptied: self.emptied.iter().copied().collect(),
            bottommost: self.bottommost,
            grandparents,
            sizes: self.sizes,
            form: OutputForm { compression: self.compression, temperature: self.temperature },
            range,
            rest: None,
            takes_turn: false,
            proximal: None,
        })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let reason = REASONS.iter().position(|reason| *reason == self.reason);
        out.push(reason.expect("all reasons are listed") as u8);
        put_varint32(out, self.inputs.len() as u32);
        for OrderedLevel { level, files } in &self.inputs {
            put_varint32(out, *level as u32);
            put_varint32(out, files.len() as u32);
            for file in files {
                put_varint64(out, file.number.0);
                put_varint64(out, file.size);
            }
        }
        put_varint32(out, self.output_level as u32);
        put_varint32(out, self.path_id);
        put_flag(out, self.bottommost);
        put_numbers(out, self.emptied.iter());
        put_numbers(out, self.grandparents.iter());
        for size in [self.sizes.target, self.sizes.max, self.sizes.max_with_grandparents] {
            put_varint64(out, size);
        }
        out.push(self.compression.codec.to_byte());
        put_flag(out, self.compression.is_bottommost);
        out.push(self.temperature.as_byte());
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self> {
        let reason = REASONS.get(usize::from(fields.byte("reason")?)).copied();
        let reason = reason.ok_or_else(|| fields.fault("reason"))?;
        let inputs = fields.list("levels", |fields| {
            let level = fields.v32("level")? as usize;
            let files = fields.list("tables", |fields| {
                Ok(OrderedFile { number: fields.number("table")?, size: fields.v64("size")? })
            })?;
            Ok(OrderedLevel { level, files })
        })?;
        let (output_level, path_id) = (fields.v32("output level")? as usize, fields.v32("path")?);
        let bottommost = fields.flag("bottommost")?;
        let emptied = fields.numbers("emptied blob files")?;
        let grandparents = fields.numbers("tables below")?;
        let sizes = OutputSizes {
            target: fields.v64("target size")?,
            max: fields.v64("largest size")?,
            max_with_grandparents: fields.v64("size with tables below")?,
        };
        let codec = CompressionType::from_byte(fields.byte("compression")?);
        let codec = codec.ok_or_else(|| fields.fault("compression"))?;
        let is_bottommost = fields.flag("compression")?;
        let temperature = Temperature::from_byte(fields.byte("temperature")?);
        let compression = OutputCompression { codec, is_bottommost };
        Ok(Self {
            reason,
            inputs,
            output_level,
            path_id,
            bottommost,
            emptied,
            grandparents,
            sizes,
            compression,
            temperature,
        })
    }
}

/// The user keys of tables; `None` if there are none.
fn range_of(version: &Version, inputs: &[LevelInput]) -> Option<InputRange> {
    let user = version.comparator.keys();
    let files = inputs.iter().flat_map(|input| &input.files);
    let ends = files.map(|file| (file.meta.smallest.user_key(), file.meta.largest.user_key()));
    let (smallest, largest) = ends.reduce(|a, b| {
        let smallest = if user.compare(b.0, a.0).is_lt() { b.0 } else { a.0 };
        (smallest, if user.compare(b.1, a.1).is_gt() { b.1 } else { a.1 })
    })?;
    Some(InputRange { smallest: smallest.to_vec(), largest: largest.to_vec() })
}
