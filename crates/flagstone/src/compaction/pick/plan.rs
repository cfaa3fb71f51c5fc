//! What the picker decides: a compaction, ready to run.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::expand::bounds;
use super::pieces::Merging;
use super::proximal::ProximalOutput;
use crate::base::compression::CompressionType;
use crate::base::{FileNumber, Temperature};
use crate::manifest::{TableFile, Version};
pub use crate::options::CompactionReason;

/// The inputs from one level.
#[derive(Debug, Clone)]
pub struct LevelInput {
    /// The level.
    pub level: usize,
    /// The tables, in the level's order; never none.
    pub files: Vec<Arc<TableFile>>,
}

/// How large output tables become, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputSizes {
    /// What a table should have.
    pub target: u64,
    /// Where a table ends in any case: more than the target if that lets it end where a grandparent
    /// does.
    pub max: u64,
    /// What a table and the grandparents below it may have together.
    pub max_with_grandparents: u64,
}

impl OutputSizes {
    /// One table for everything.
    pub const UNLIMITED: Self =
        Self { target: u64::MAX, max: u64::MAX, max_with_grandparents: u64::MAX };
}

/// How output tables are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputCompression {
    /// The codec.
    pub codec: CompressionType,
    /// Whether the parameters for the bottommost level apply to it.
    pub is_bottommost: bool,
}

impl OutputCompression {
    /// No compression.
    pub const NONE: Self = Self { codec: CompressionType::None, is_bottommost: false };
}

/// What output tables are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputForm {
    /// How they are compressed.
    pub compression: OutputCompression,
    /// How often they are expected to be read.
    pub temperature: Temperature,
}

impl OutputForm {
    /// Neither compressed nor of a temperature.
    pub const NONE: Self =
        Self { compression: OutputCompression::NONE, temperature: Temperature::UNKNOWN };
}

/// The user keys of a compaction's inputs, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRange {
    /// The smallest.
    pub smallest: Vec<u8>,
    /// The largest.
    pub largest: Vec<u8>,
}

impl InputRange {
    pub(super) fn of((smallest, largest): (&[u8], &[u8])) -> Self {
        Self { smallest: smallest.to_vec(), largest: largest.to_vec() }
    }
}

/// One compaction, ready to run. Whoever runs it marks the inputs as being compacted, under the
/// lock under which the version was picked from.
#[derive(Debug, Clone)]
pub struct CompactionPlan {
    /// Why.
    pub reason: CompactionReason,
    /// The inputs by level, the start level first.
    pub inputs: Vec<LevelInput>,
    /// Where the outputs go. A table written to level 0 takes the smallest epoch number of the
    /// inputs.
    pub output_level: usize,
    /// Where young entries go, if not there.
    pub proximal: Option<ProximalOutput>,
    /// Which of the family's directories the outputs go to.
    pub path_id: u32,
    /// The inputs change their level and need not be rewritten.
    pub trivial_move: bool,
    /// The inputs go with all that is in them, and nothing is written.
    pub drops_inputs: bool,
    /// The blob files that it moves values out of, so that they can be removed.
    pub emptied: BTreeSet<FileNumber>,
    /// Nothing older than the inputs lies below the output, in the range of keys of the inputs.
    pub bottommost: bool,
    /// The tables that the output overlaps in the next level below it that has any there: a later
    /// compaction of the outputs has to read them.
    pub grandparents: Vec<Arc<TableFile>>,
    /// How large the outputs become.
    pub sizes: OutputSizes,
    /// What the outputs are like.
    pub form: OutputForm,
    /// The user keys of the inputs.
    pub range: InputRange,
    /// Where the next piece begins, if it is one of those in which all is merged (universal).
    pub rest: Option<Vec<u8>>,
    /// It merges all runs, or a piece or part of them, for which there is room once: no other such
    /// begins before its inputs are removed (universal).
    pub takes_turn: bool,
}

impl CompactionPlan {
    /// All tables into the last level, for whoever wants to know what would come of it; `None` if
    /// there are none.
    pub fn of_all(version: &Version) -> Option<Self> {
        let inputs = version.levels.iter().enumerate().filter(|(_, files)| !files.is_empty());
        let inputs: Vec<_> =
            inputs.map(|(level, files)| LevelInput { level, files: files.clone() }).collect();
        let user = version.comparator.keys();
        let files: Vec<_> = inputs.iter().flat_map(|input| &input.files).cloned().collect();
        let range = (!files.is_empty()).then(|| InputRange::of(bounds(user, files.iter())))?;
        Some(Self {
            reason: CompactionReason::Manual,
            output_level: version.levels.len() - 1,
            proximal: None,
            path_id: 0,
            trivial_move: false,
            drops_inputs: false,
            emptied: BTreeSet::new(),
            bottommost: true,
            grandparents: Vec::new(),
            sizes: OutputSizes::UNLIMITED,
            form: OutputForm::NONE,
            range,
            rest: None,
            takes_turn: false,
            inputs,
        })
    }

    /// All tables of a level, of which there are some, change it as they are.
    pub(super) fn moving(version: &Version, level: usize, output_level: usize) -> Self {
        let inputs = vec![LevelInput { level, files: version.levels[level].clone() }];
        let plan = Self::without_output(version, CompactionReason::Manual, inputs);
        Self { output_level, trivial_move: true, ..plan }
    }

    /// Tables, by level, go as they are; `None` if there are none.
    pub(super) fn dropping(
        version: &Version,
        reason: CompactionReason,
        levels: Vec<(usize, Vec<Arc<TableFile>>)>,
    ) -> Option<Self> {
        let inputs: Vec<_> =
            levels.into_iter().map(|(level, files)| LevelInput { level, files }).collect();
        inputs.iter().flat_map(|input| &input.files).next()?;
        let plan = Self::without_output(version, reason, inputs);
        Some(Self { drops_inputs: true, ..plan })
    }

    /// Whether tables are written.
    pub fn rewrites(&self) -> bool {
        !self.trivial_move && !self.drops_inputs
    }

    /// Whether tables go with keys that somebody could read, or deletions below which older
    /// versions come back. Of those that range deletions leave nothing of, nobody misses anything.
    pub fn drops_keys(&self) -> bool {
        self.drops_inputs && self.reason != CompactionReason::Deletions
    }

    /// Nothing is written for these tables, of which there are some.
    fn without_output(
        version: &Version,
        reason: CompactionReason,
        inputs: Vec<LevelInput>,
    ) -> Self {
        let files = inputs.iter().flat_map(|input| &input.files);
        let range = InputRange::of(bounds(version.comparator.keys(), files));
        Self {
            reason,
            output_level: 0,
            proximal: None,
            path_id: 0,
            trivial_move: false,
            drops_inputs: false,
            emptied: BTreeSet::new(),
            // What is deleted must not come back from an older table.
            bottommost: false,
            grandparents: Vec::new(),
            sizes: OutputSizes::UNLIMITED,
            form: OutputForm::NONE,
            range,
            rest: None,
            takes_turn: false,
            inputs,
        }
    }

    /// The level that the compaction starts from.
    pub fn start_level(&self) -> usize {
        self.inputs[0].level
    }

    /// All input tables with their levels.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<TableFile>)> {
        self.inputs.iter().flat_map(|input| input.files.iter().map(|file| (input.level, file)))
    }

    /// The bytes of all input tables.
    pub fn input_bytes(&self) -> u64 {
        self.files().map(|(_, file)| file.meta.size).fold(0, u64::saturating_add)
    }

    /// The oldest blob file that an input refers to.
    pub fn oldest_blob_file(&self) -> Option<FileNumber> {
        self.files().filter_map(|(_, file)| file.meta.oldest_blob_file).min()
    }

    /// Whether FIFO compaction drops its oldest tables. They need not be readable for that, and
    /// were they left while newer ones go, old values would be seen again.
    pub fn drops_oldest(&self) -> bool {
        self.drops_inputs
            && matches!(self.reason, CompactionReason::Ttl | CompactionReason::FifoSize)
    }

    /// The merging of all runs that goes on when this has ended, which made `after`, if `before`
    /// did until then. Compactions fill levels up to `last`. The next file gets the number `next`.
    pub fn merging_after(
        &self,
        before: Option<Merging>,
        (after, last): (&Version, usize),
        next: FileNumber,
    ) -> Option<Merging> {
        let merging = match &self.rest {
            // Whoever asked for it remembers that himself.
            Some(rest) if self.reason != CompactionReason::Manual => {
                let older_than = before
                    .filter(|before| before.reason == self.reason)
                    .map_or(next, |begun| begun.older_than);
                Some(Merging { begin: rest.clone(), reason: self.reason, older_than })
            }
            _ => before,
        };
        merging.filter(|merging| merging.is_left(after, last))
    }

    /// What other picks have to know of it while it runs.
    pub fn running(&self) -> RunningCompaction {
        RunningCompaction {
            start_level: self.start_level(),
            output_level: self.output_level,
            proximal_level: self.proximal.map(|proximal| proximal.level),
            sorted_runs: self.sorted_runs(),
            smallest: self.range.smallest.clone(),
            largest: self.range.largest.clone(),
        }
    }

    /// What it merges: each table of level 0 by itself, other levels as a whole.
    fn sorted_runs(&self) -> usize {
        let runs = |input: &LevelInput| if input.level == 0 { input.files.len() } else { 1 };
        self.inputs.iter().filter(|input| !input.files.is_empty()).map(runs).sum()
    }
}

/// A compaction under way. (Its inputs know that they are being compacted.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCompaction {
    /// The level it started from.
    pub start_level: usize,
    /// The level it writes to.
    pub output_level: usize,
    /// Another level that it writes to.
    pub proximal_level: Option<usize>,
    /// How many sorted runs it merges.
    pub sorted_runs: usize,
    /// Smallest user key of its inputs.
    pub smallest: Vec<u8>,
    /// Largest user key of its inputs.
    pub largest: Vec<u8>,
}

impl RunningCompaction {
    /// Whether it writes to this level.
    pub fn writes_to(&self, level: usize) -> bool {
        self.output_level == level || self.proximal_level == Some(level)
    }
}
