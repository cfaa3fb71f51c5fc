//! A filter for the model's rewrites, and what its verdicts mean for the history.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::stream_model::is_single;
use crate::base::sync::Mutex;
use crate::base::{CompactionFilter, FilterDecision, FilteredKind, SequenceNumber};

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Kept,
    Removed,
    /// Its value begins with another letter.
    Changed,
}

impl Fate {
    /// The value or operand that is left of one that was written.
    pub(super) fn leaves(self, written: &[u8]) -> Vec<u8> {
        let mut left = written.to_vec();
        if self == Self::Changed {
            left[0] = b'W';
        }
        left
    }
}

/// Judges operands and values by the number of their first write, always with the same verdict. A
/// value or operand names all writes that it consists of: `V3,V5`.
#[derive(Default)]
pub(super) struct FilterOfOperands {
    verdicts: Mutex<Vec<(FilteredKind, Fate, Vec<u8>)>>,
}

impl CompactionFilter for FilterOfOperands {
    fn name(&self) -> &str {
        "FilterOfOperands"
    }

    fn filter(&self, _level: u32, key: &[u8], kind: FilteredKind, value: &[u8]) -> FilterDecision {
        let numbers = sequences(value);
        let fate = match (kind, numbers.first().map_or(0, |first| first % 8)) {
            (FilteredKind::WideColumnEntity, _) => Fate::Kept,
            _ if is_single(key) => Fate::Kept,
            (_, 1 | 2) => Fate::Removed,
            (_, 3 | 4) => Fate::Changed,
            _ => Fate::Kept,
        };
        let verdict = |fate| self.verdicts.lock().push((kind, fate, value.to_vec()));
        match fate {
            Fate::Kept => FilterDecision::Keep,
            Fate::Removed => {
                verdict(fate);
                FilterDecision::Remove
            }
            Fate::Changed => {
                verdict(fate);
                FilterDecision::ChangeValue(fate.leaves(value))
            }
        }
    }
}

impl FilterOfOperands {
    /// Notes what the filter did in a rewrite that had `newest` as the newest snapshot.
    pub(super) fn take_verdicts(
        &self,
        newest: Option<SequenceNumber>,
        filtered: &mut Filtered,
        log: &mut String,
    ) {
        for (kind, fate, value) in self.verdicts.lock().drain(..) {
            writeln!(log, "filtered {kind:?} {}: {fate:?}", value.escape_ascii()).unwrap();
            // No snapshot that is there may notice what becomes of an operand; of a value any may.
            let unseen_to =
                if kind == FilteredKind::MergeOperand { newest.unwrap_or(0) } else { 0 };
            let numbers = sequences(&value);
            let changed = if fate == Fate::Changed { &numbers[..1] } else { &numbers[..] };
            for number in changed {
                filtered.fates.entry(*number).or_default().push((fate, unseen_to));
            }
        }
    }
}

/// The writes of which a value consists.
fn sequences(value: &[u8]) -> Vec<SequenceNumber> {
    let pieces = value.split(|byte| *byte == b',').filter_map(|piece| piece.get(1..));
    pieces.filter_map(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).collect()
}

/// What became of the writes that a filter has judged.
#[derive(Default)]
pub(super) struct Filtered {
    /// For each write, with the newest snapshot that was there.
    fates: BTreeMap<SequenceNumber, Vec<(Fate, SequenceNumber)>>,
}

impl Filtered {
    /// What the snapshot sees of a write.
    pub(super) fn fate(&self, sequence: SequenceNumber, snapshot: SequenceNumber) -> Fate {
        let fates = self.fates.get(&sequence).into_iter().flatten();
        let seen = fates.filter(|(_, unseen_to)| snapshot > *unseen_to).map(|(fate, _)| *fate);
        seen.reduce(|first, second| if first == Fate::Removed { first } else { second })
            .unwrap_or(Fate::Kept)
    }
}
