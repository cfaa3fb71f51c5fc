//! The keys of a family that damaged or missing tables may have held.

use crate::base::Comparator;

/// Ranges of user keys, both ends included; an empty first key stands for all before the last.
#[derive(Debug, Default)]
pub(super) struct Losses {
    is_anywhere: bool,
    ranges: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Losses {
    /// Adds a range; `None` is all keys.
    pub(super) fn add(&mut self, range: Option<(Vec<u8>, Vec<u8>)>) {
        match range {
            Some(range) => self.ranges.push(range),
            None => self.is_anywhere = true,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_anywhere && self.ranges.is_empty()
    }

    /// Puts what was added in order, so that it can be asked for.
    pub(super) fn finish(&mut self, comparator: &Comparator) {
        self.ranges.sort_by(|(a, _), (b, _)| {
            (!a.is_empty()).cmp(&!b.is_empty()).then_with(|| comparator.compare(a, b))
        });
        self.ranges.dedup_by(|next, last| {
            let is_apart = !next.0.is_empty() && comparator.compare(&next.0, &last.1).is_gt();
            if !is_apart && comparator.compare(&next.1, &last.1).is_gt() {
                last.1 = std::mem::take(&mut next.1);
            }
            !is_apart
        });
    }

    /// Whether something of a key may be lost.
    pub(super) fn hold(&self, comparator: &Comparator, key: &[u8]) -> bool {
        self.overlap(comparator, key, |last| comparator.compare(key, last).is_le())
    }

    /// Whether something between two keys may be lost, the second one excluded.
    pub(super) fn touch(&self, comparator: &Comparator, begin: &[u8], end: &[u8]) -> bool {
        self.overlap(comparator, end, |last| comparator.compare(begin, last).is_le())
    }

    /// Whether the last range that begins at `key` or before it reaches as far as wanted. Ranges
    /// are apart, so the ones before that end earlier.
    fn overlap(
        &self,
        comparator: &Comparator,
        key: &[u8],
        reaches: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let begun = self.ranges.partition_point(|(first, _)| {
            first.is_empty() || comparator.compare(first, key).is_le()
        });
        self.is_anywhere || begun > 0 && reaches(&self.ranges[begun - 1].1)
    }
}

#[cfg(test)]
mod tests;
