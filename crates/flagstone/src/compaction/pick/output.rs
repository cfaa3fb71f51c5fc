//! Where the output tables of a compaction end.
//!
//! A later compaction of an output table has to read all the grandparents that it overlaps, so
//! tables should end where grandparents do. Before a key, in this order, a table ends
//! 1. when it has its maximal size;
//! 2. at a grandparent's boundary, if together with the grandparents that it overlaps it is too
//!    large for one compaction;
//! 3. if the key skips a whole grandparent worth an eighth of the target size: which need then
//!    never be rewritten;
//! 4. at a grandparent's boundary, if it has half of its target size, and 5 % more for each
//!    boundary passed, at most 90 %.
//!
//! It may end between two versions of one user key; `expand` keeps such tables together. Level 0's
//! tables are never cut.

use std::sync::Arc;

use super::plan::CompactionPlan;
use super::proximal::ProximalOutput;
use crate::base::{Comparator, InternalKey, MAX_SEQUENCE_NUMBER, Sometimes};
use crate::manifest::TableFile;

/// What the end of output tables depends on.
#[derive(Debug, Clone)]
pub struct SplitRule {
    /// Whether tables are cut at all.
    pub cuts: bool,
    /// Bytes that a table should have.
    pub target_file_size: u64,
    /// Bytes at which a table ends anywhere.
    pub max_output_file_size: u64,
    /// Bytes that a table and the grandparents that it overlaps may have.
    pub max_compaction_bytes: u64,
    /// The tables below, ascending and disjoint.
    pub grandparents: Vec<Arc<TableFile>>,
}

impl From<&CompactionPlan> for SplitRule {
    fn from(plan: &CompactionPlan) -> Self {
        Self {
            cuts: plan.output_level > 0,
            target_file_size: plan.sizes.target,
            max_output_file_size: plan.sizes.max,
            max_compaction_bytes: plan.sizes.max_with_grandparents,
            grandparents: plan.grandparents.clone(),
        }
    }
}

impl From<&ProximalOutput> for SplitRule {
    fn from(proximal: &ProximalOutput) -> Self {
        Self {
            cuts: true,
            target_file_size: proximal.table_bytes,
            max_output_file_size: proximal.table_bytes,
            max_compaction_bytes: u64::MAX,
            grandparents: Vec::new(),
        }
    }
}

/// Follows the keys of a compaction's output and says where tables end.
pub struct OutputSplitter {
    rule: SplitRule,
    user: Comparator,
    /// The first grandparent that does not end before the last key.
    position: usize,
    /// The last key lies in front of that grandparent.
    in_gap: bool,
    /// Bytes of the grandparents that the open table overlaps.
    overlapped_bytes: u64,
    /// Boundaries of grandparents that the open table has passed.
    passed: u64,
}

impl OutputSplitter {
    /// Nothing written yet; `user` orders the keys.
    pub fn new(rule: SplitRule, user: Comparator) -> Self {
        Self { rule, user, position: 0, in_gap: true, overlapped_bytes: 0, passed: 0 }
    }

    /// Whether the open table of `current_size` bytes ends before `key`, which must not be smaller
    /// than the one before. `None`: no table is open, `key` begins one.
    ///
    /// To be asked before every key that is written; after a yes, `key` begins the next table.
    #[inline]
    pub fn should_stop_before(&mut self, key: InternalKey<'_>, current_size: Option<u64>) -> bool {
        if !self.rule.cuts {
            return false;
        }
        let overlapped_before = self.overlapped_bytes;
        let crossed =
            if self.rule.grandparents.is_empty() { 0 } else { self.advance(key.user_key()) };
        let stops = current_size.is_some_and(|size| self.stops(size, crossed, overlapped_before));
        if stops || current_size.is_none() {
            self.passed = 0;
            self.overlapped_bytes = if self.in_gap { 0 } else { self.size_at(self.position) };
        }
        stops
    }

    fn stops(&self, size: u64, crossed: u64, overlapped_before: u64) -> bool {
        if size >= self.rule.max_output_file_size {
            return true;
        }
        if crossed == 0 {
            return false;
        }
        let target = self.rule.target_file_size;
        let skipping = if self.in_gap { 2 } else { 3 };
        let percent = 50 + (self.passed * 5).min(40);
        let stops = self.overlapped_bytes.saturating_add(size) > self.rule.max_compaction_bytes
            || (crossed >= skipping && self.overlapped_bytes - overlapped_before > target / 8)
            || size >= target.div_ceil(100).saturating_mul(percent);
        if stops {
            Sometimes::CutAtGrandparents.reached();
        }
        stops
    }

    /// Moves on to `user_key`; how many boundaries of grandparents lie on the way.
    fn advance(&mut self, user_key: &[u8]) -> u64 {
        let mut crossed = 0;
        while let Some(file) = self.rule.grandparents.get(self.position) {
            if self.in_gap {
                if self.user.compare(user_key, file.meta.smallest.user_key()).is_lt() {
                    break;
                }
                self.in_gap = false;
                self.overlapped_bytes = self.overlapped_bytes.saturating_add(file.meta.size);
            } else {
                if !self.ends_before(self.position, user_key) {
                    break;
                }
                self.in_gap = true;
                self.position += 1;
            }
            crossed += 1;
        }
        self.passed += crossed;
        crossed
    }

    /// Whether the grandparent ends before `user_key`; of two that share the key, the first does.
    fn ends_before(&self, position: usize, user_key: &[u8]) -> bool {
        let largest = &self.rule.grandparents[position].meta.largest;
        let order = self.user.compare(largest.user_key(), user_key);
        let exclusive = largest.as_key().sequence() == MAX_SEQUENCE_NUMBER;
        let next_has_key = || {
            let next = self.rule.grandparents.get(position + 1);
            next.is_some_and(|next| {
                self.user.compare(next.meta.smallest.user_key(), user_key).is_le()
            })
        };
        order.is_lt() || (order.is_eq() && (exclusive || next_has_key()))
    }

    fn size_at(&self, position: usize) -> u64 {
        self.rule.grandparents.get(position).map_or(0, |file| file.meta.size)
    }
}
