//! What is done, and what came of it.

use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::meter::Written;
use crate::data::KeyShape;

/// A row of activities on one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exercise {
    /// Large values: loaded, overwritten, read beside a writer, and read.
    Space,
    /// Small values: loaded and overwritten until compactions are in their stride, then measured.
    Steady,
}

impl Exercise {
    /// What is done, one after the other; each is waited for until the background has nothing left
    /// to do.
    pub fn activities(self) -> &'static [Activity] {
        use Activity as A;
        match self {
            Self::Space => {
                &[A::Load, A::Overwrite, A::LookupWriting, A::ScanWriting, A::Lookup, A::Scan]
            }
            Self::Steady => &[A::Load, A::WarmUp, A::Overwrite],
        }
    }

    /// Bytes of a memtable, small enough for the tree to have levels.
    pub fn memtable_bytes(self) -> u64 {
        match self {
            Self::Space => 16 << 20,
            Self::Steady => 8 << 20,
        }
    }
}

/// One phase of an exercise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// Every key once, in random order.
    Load,
    /// As many puts of any key as there are keys.
    WarmUp,
    /// Puts of any key.
    Overwrite,
    /// Lookups beside one writer who syncs each put.
    LookupWriting,
    /// Scans of ten entries beside such a writer.
    ScanWriting,
    /// Lookups.
    Lookup,
    /// Scans of ten entries.
    Scan,
}

impl Activity {
    /// The name for tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::WarmUp => "warm-up",
            Self::Overwrite => "overwrite",
            Self::LookupWriting => "lookups, synced writer",
            Self::ScanWriting => "scans, synced writer",
            Self::Lookup => "lookups",
            Self::Scan => "scans",
        }
    }
}

/// What one process is told to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Who does it.
    pub contender: Contender,
    /// What is done.
    pub exercise: Exercise,
    /// Bytes of a value.
    pub value_size: u32,
    /// Bytes of keys and values that live.
    pub live_bytes: u64,
    /// How many times as much is overwritten.
    pub times: u64,
    /// The round, from 0; it is the seed, too.
    pub round: u32,
    /// Options beyond the usual ones.
    pub options: Vec<(String, String)>,
}

impl Task {
    /// Keys are as short as those of the other workloads.
    pub const KEYS: KeyShape = KeyShape::Numbers;

    /// Bytes of an entry.
    pub fn entry_bytes(&self) -> u64 {
        u64::from(self.value_size) + Self::KEYS.length() as u64
    }

    /// Keys of the database.
    pub fn keys(&self) -> u64 {
        (self.live_bytes / self.entry_bytes()).max(16)
    }

    /// Puts of an activity.
    pub fn puts(&self, activity: Activity) -> u64 {
        /// Each waits for the device.
        const SYNCED_MAX: u64 = 100_000;
        match activity {
            Activity::Load | Activity::WarmUp => self.keys(),
            // One of the times is the warm-up.
            Activity::Overwrite if self.exercise == Exercise::Steady => {
                self.keys() * self.times.saturating_sub(1)
            }
            Activity::Overwrite => self.keys() * self.times,
            Activity::LookupWriting | Activity::ScanWriting => (self.keys() / 2).min(SYNCED_MAX),
            Activity::Lookup | Activity::Scan => 0,
        }
    }

    /// A name for messages.
    pub fn name(&self) -> String {
        let Self { contender, value_size, round, .. } = self;
        format!("{} with values of {value_size} bytes, round {}", contender.title(), round + 1)
    }
}

/// What came of one activity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What was done.
    pub activity: Activity,
    /// Puts.
    pub puts: u64,
    /// How long they took, with the work in the background that they left to do.
    pub seconds: f64,
    /// What the engine wrote.
    pub written: Written,
    /// The largest ratio of tables and blob files on the disk to live bytes, since the engine
    /// collected something first.
    pub space_peak: Option<f64>,
    /// The ratio in the end.
    pub space_idle: f64,
}

/// A task that was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The task.
    pub task: Task,
    /// The activities in their order.
    pub phases: Vec<Phase>,
}

#[cfg(test)]
pub mod tests;
