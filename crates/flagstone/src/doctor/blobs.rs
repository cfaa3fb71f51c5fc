//! Rules for blob files.

use super::diagnose::{Findings, Severity, WORTH_SHAPING, bytes};
use super::trees::{faster, snapshot_first};
use crate::base::Remedy;
use crate::compaction::pick::{blob_bytes_allowed, moved_per_byte, space_for};
use crate::db::{DatabaseFacts, FamilyFacts};
use crate::options::CompactionStyle;

/// Bytes of garbage below which collecting is not worthwhile; compactions leave it.
const GARBAGE_LITTLE: u64 = 32 << 20;
/// Part of the blob files below which unflushed writes cannot add much garbage.
const UNFLUSHED_PART: u64 = 10;
/// Bytes of values written that are needed to judge how much is moved for each.
const WRITTEN_MIN: u64 = 256 << 20;
/// Bytes that may be moved for each byte written without being noticed.
const MOVED_LITTLE: f64 = 0.5;

impl Findings {
    /// Garbage in blob files.
    pub(super) fn blobs(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts {
            name,
            blob_bytes,
            blob_garbage_bytes: garbage,
            max_space_amplification: most,
            burst_space_amplification: burst,
            ..
        } = family;
        let live = blob_bytes.saturating_sub(*garbage);
        let exceeds = |times| {
            *most > 0.0 && *blob_bytes > blob_bytes_allowed(family.table_bytes, live, times)
        };
        let what = format!(
            "family '{name}': {} of {} in blob files are garbage",
            bytes(*garbage),
            bytes(*blob_bytes)
        );
        // The oldest tables go as a whole, with what they refer to.
        if family.compaction_style == CompactionStyle::Fifo {
            return;
        }
        let is_much = *garbage >= GARBAGE_LITTLE;
        // Who writes waits for what is hidden still, too, however little is known to be garbage.
        let is_held_up = database.is_running
            && (1..=family.blob_waste_bytes).contains(&family.blob_waste_delays_at);
        let delays = format!(
            "more is not identified yet, and writes are delayed to stay within burst_space_amplification ({burst})"
        );
        let over = if burst > most && !family.disable_auto_compactions {
            format!("more than burst_space_amplification ({burst}) allows")
        } else {
            format!("more than max_space_amplification ({most}) allows")
        };
        let (by_request, is_running) = (family.disable_auto_compactions, database.is_running);
        let moved = live.saturating_mul(2).saturating_add(family.table_bytes);
        let collect =
            Remedy::CollectGarbage { family: name.clone(), by_request, is_running, bytes: moved };
        let mut advice: Vec<Remedy> =
            snapshot_first(database).into_iter().chain([collect]).collect();
        if is_running && !by_request {
            advice.extend(faster(family, database));
        }
        if *most > 0.0 && is_held_up && !family.disable_auto_compactions {
            self.add(Severity::Slow, format!("{what}; {delays}"), advice);
        } else if is_much && (exceeds(*burst) || family.disable_auto_compactions && exceeds(*most))
        {
            self.add(Severity::Slow, format!("{what}, {over}"), advice);
        } else if is_much && exceeds(*most) {
            let pass = Remedy::LetBurstPass { burst: burst.to_string(), most: most.to_string() };
            self.add(Severity::Note, what, pass);
        } else if is_much
            && *most == 0.0
            && !family.enable_blob_garbage_collection
            && garbage.saturating_mul(2) > *blob_bytes
        {
            let advice = Remedy::set("max_space_amplification", 0, 1.3)
                .when("nothing collects it: ")
                .but(", or enable_blob_garbage_collection from false to true");
            self.add(Severity::Slow, what, advice);
        }
    }

    /// Writes in WALs that overwrite values, which count as garbage only after a flush. A running
    /// database flushes them.
    pub(super) fn unflushed(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts { name, unflushed_bytes: unflushed, blob_bytes, .. } = family;
        let is_much = unflushed.saturating_mul(UNFLUSHED_PART) >= *blob_bytes && *blob_bytes > 0;
        if database.is_running || *unflushed == 0 || !is_much {
            return;
        }
        let what = format!(
            "family '{name}': {} are not flushed: values that they overwrite in blob files do not count as garbage yet",
            bytes(*unflushed)
        );
        self.add(Severity::Note, what, Remedy::Flush);
    }

    /// The cost of the space limit if values are too small for holes.
    pub(super) fn moves(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts { name, blob_bytes, blob_values, max_space_amplification: most, .. } =
            family;
        let size = blob_bytes.checked_div(*blob_values).unwrap_or(u64::MAX);
        let at_least = moved_per_byte(most.max(1.01));
        let is_collected =
            family.compaction_style != CompactionStyle::Fifo && !family.disable_auto_compactions;
        let is_tight =
            is_collected && *most > 0.0 && at_least > 1.0 && family.blob_garbage_bytes > 0;
        let (written, moved) = (database.blob_written_bytes, database.blob_moved_bytes);
        let counted = (written >= WRITTEN_MIN).then(|| moved as f64 / written as f64);
        let is_seen = counted.map_or(*blob_bytes >= WORTH_SHAPING, |moved| moved > 1.0);
        if !is_tight || !is_seen || size >= family.holes_from {
            return;
        }
        let bound = format!(
            "at least {at_least:.1} with max_space_amplification {most} if keys are overwritten at random"
        );
        let (severity, cost) = match counted {
            Some(moved) => (
                Severity::Slow,
                format!("{moved:.1} bytes were moved for each byte written ({bound})"),
            ),
            None => (Severity::Note, format!("bytes moved for each byte written, {bound}")),
        };
        let what = format!(
            "family '{name}': values in blob files, {} on average, free space only by being moved: {cost}",
            bytes(size)
        );
        // What is being moved exists twice, so that somewhat more is needed than the bound says.
        let enough = (space_for(MOVED_LITTLE) * 10.0).ceil() / 10.0;
        let but = format!(
            ": then about {MOVED_LITTLE} bytes are moved for each, or {} written in all",
            1.0 + MOVED_LITTLE
        );
        let advice = Remedy::set("max_space_amplification", most, format_args!("{enough:.1}"))
            .when("if writing matters more than space, ")
            .but(but);
        self.add(severity, what, advice);
    }
}
