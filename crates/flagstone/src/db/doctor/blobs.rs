//! The rules for blob files.

use super::diagnose::{Findings, Severity, WORTH_SHAPING, bytes};
use super::facts::{DatabaseFacts, FamilyFacts};
use super::trees::{faster, snapshot_first};
use crate::compaction::pick::{blob_bytes_allowed, moved_per_byte, space_for};
use crate::options::CompactionStyle;

/// Less garbage is not worth collecting: compactions leave it.
const GARBAGE_LITTLE: u64 = 32 << 20;
/// With fewer bytes of values written it is not known what is moved for each.
const WRITTEN_MIN: u64 = 256 << 20;
/// What may be moved for each byte that is written without anybody's noticing.
const MOVED_LITTLE: f64 = 0.5;

impl Findings {
    /// How much of them is garbage.
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
        let exceeds =
            |times| *most > 0.0 && *blob_bytes > blob_bytes_allowed(family.table_bytes, live, times);
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
        let is_held_up =
            database.is_running && (1..=family.blob_waste_bytes).contains(&family.blob_waste_delays_at);
        let delays = format!(
            "more of it is hidden still, and writes are delayed to keep burst_space_amplification ({burst})"
        );
        let over = match burst > most && !family.disable_auto_compactions {
            true => format!("more than burst_space_amplification ({burst}) allows"),
            false => format!("more than max_space_amplification ({most}) allows"),
        };
        let advice = match family.disable_auto_compactions {
            true => "compactions run only on request: flagstone compact".to_string(),
            false => format!(
                "compactions are behind, or reads pin old files; {}wait, or flagstone compact; for compactions: {}",
                snapshot_first(database),
                faster(family, database)
            ),
        };
        if *most > 0.0 && is_held_up && !family.disable_auto_compactions {
            self.add(Severity::Slow, what, format!("{delays}: {advice}"));
        } else if is_much && (exceeds(*burst) || family.disable_auto_compactions && exceeds(*most)) {
            self.add(Severity::Slow, what, format!("{over}: {advice}"));
        } else if is_much && exceeds(*most) {
            let within = format!(
                "a burst of writes may leave up to burst_space_amplification ({burst}); compactions take it down to \
                 max_space_amplification ({most}) while the database is open"
            );
            self.add(Severity::Note, what, within);
        } else if is_much
            && *most == 0.0
            && !family.enable_blob_garbage_collection
            && garbage.saturating_mul(2) > *blob_bytes
        {
            let advice = "nothing collects it: set max_space_amplification from 0 to 1.3, or \
                          enable_blob_garbage_collection from false to true";
            self.add(Severity::Slow, what, advice);
        }
    }

    /// What the limit of space costs where values are too small for holes.
    pub(super) fn moves(&mut self, family: &FamilyFacts, database: &DatabaseFacts) {
        let FamilyFacts { name, blob_bytes, blob_values, max_space_amplification: most, .. } = family;
        let size = blob_bytes.checked_div(*blob_values).unwrap_or(u64::MAX);
        let at_least = moved_per_byte(most.max(1.01));
        let is_collected =
            family.compaction_style != CompactionStyle::Fifo && !family.disable_auto_compactions;
        let is_tight = is_collected && *most > 0.0 && at_least > 1.0 && family.blob_garbage_bytes > 0;
        let (written, moved) = (database.blob_written_bytes, database.blob_moved_bytes);
        let counted = (written >= WRITTEN_MIN).then(|| moved as f64 / written as f64);
        let is_seen = counted.map_or(*blob_bytes >= WORTH_SHAPING, |moved| moved > 1.0);
        if !is_tight || !is_seen || size >= family.holes_from {
            return;
        }
        let bound =
            format!("at least {at_least:.1} with max_space_amplification {most}, if any key is overwritten");
        let (severity, cost) = match counted {
            Some(moved) => {
                (Severity::Slow, format!("{moved:.1} bytes were for each that was written ({bound})"))
            }
            None => (Severity::Note, format!("bytes for each that is written, {bound}")),
        };
        let what = format!(
            "family '{name}': values in blob files, {} on average, make room only by being moved: {cost}",
            bytes(size)
        );
        // What is being moved exists twice, so that somewhat more is needed than the bound says.
        let enough = (space_for(MOVED_LITTLE) * 10.0).ceil() / 10.0;
        let advice = format!(
            "if writing matters more than space, set max_space_amplification from {most} to {enough:.1}: then about \
             {MOVED_LITTLE} are, so that {} times as much is written as values have",
            1.0 + MOVED_LITTLE
        );
        self.add(severity, what, advice);
    }
}
