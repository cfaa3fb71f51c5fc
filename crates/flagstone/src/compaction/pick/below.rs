//! Whether keys may have older versions below the output of a compaction.

use std::sync::Arc;

use crate::base::Comparator;
use crate::manifest::{TableFile, Version};

/// Answers for user keys that ascend; all answers together take time linear in the keys and tables.
pub struct KeysBelow<'a> {
    user: &'a Comparator,
    /// Older tables may lie in the output's own level.
    may_be_beside: bool,
    /// For each deeper level, the tables that do not end before the last key asked for.
    deeper: Vec<&'a [Arc<TableFile>]>,
}

impl<'a> KeysBelow<'a> {
    /// For a compaction of `version` that writes to `output_level`. Of one into level 0 nothing is
    /// known: older tables may lie in level 0 itself.
    pub fn new(version: &'a Version, output_level: usize) -> Self {
        let deeper = version.levels[output_level + 1..].iter().filter(|files| !files.is_empty());
        Self {
            user: version.comparator.keys(),
            may_be_beside: output_level == 0,
            deeper: deeper.map(Vec::as_slice).collect(),
        }
    }

    /// Whether no level below the output can have `user_key`, which must not be smaller than the
    /// one before.
    pub fn surely_absent(&mut self, user_key: &[u8]) -> bool {
        !self.may_be_beside
            && self.deeper.iter_mut().all(|files| {
                while let [first, rest @ ..] = *files
                    && self.user.compare(first.meta.largest.user_key(), user_key).is_lt()
                {
                    *files = rest;
                }
                files.first().is_none_or(|file| {
                    self.user.compare(user_key, file.meta.smallest.user_key()).is_lt()
                })
            })
    }
}

/// Whether no level below the output of a compaction of `version` to `output_level` has a table
/// that overlaps the user keys from `start` to `end`: range tombstones over them can go if no
/// snapshot needs them. Of a compaction into level 0 nothing is known.
pub fn range_surely_absent(
    version: &Version,
    output_level: usize,
    start: &[u8],
    end: &[u8],
) -> bool {
    let mut deeper = output_level + 1..version.levels.len();
    output_level > 0
        && deeper.all(|level| version.overlapping_range(level, Some(start), Some(end)).is_empty())
}
