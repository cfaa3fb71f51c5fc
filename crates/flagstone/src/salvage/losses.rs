//! The keys of which damaged or missing tables may have cost a family something.

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

    /// Whether the last range that begins at `key` or before it reaches as far as wanted. Ranges are apart, so the ones
    /// before that end earlier.
    fn overlap(&self, comparator: &Comparator, key: &[u8], reaches: impl Fn(&[u8]) -> bool) -> bool {
        let begun = self
            .ranges
            .partition_point(|(first, _)| first.is_empty() || comparator.compare(first, key).is_le());
        self.is_anywhere || begun > 0 && reaches(&self.ranges[begun - 1].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_are_one() {
        let mut losses = Losses::default();
        for (first, last) in [("m", "p"), ("c", "d"), ("", "b"), ("n", "n"), ("o", "s"), ("x", "x")] {
            losses.add(Some((first.into(), last.into())));
        }
        losses.finish(&Comparator::Bytewise);
        assert_eq!(losses.ranges.len(), 4, "{losses:?}");
        let held = |key: &str| losses.hold(&Comparator::Bytewise, key.as_bytes());
        let keys: String = ('a'..='z').filter(|key| held(&key.to_string())).collect();
        assert_eq!(keys, "abcdmnopqrsx");
        let touched =
            |begin: &str, end: &str| losses.touch(&Comparator::Bytewise, begin.as_bytes(), end.as_bytes());
        assert!(touched("a", "z") && touched("p", "v") && touched("w", "y") && touched("e", "n"));
        assert!(!touched("e", "l") && !touched("t", "w") && !touched("y", "z"));
    }

    #[test]
    fn nothing_is_lost_of_nothing_and_of_all_anything() {
        let mut losses = Losses::default();
        assert!(!losses.hold(&Comparator::Bytewise, b"k") && !losses.touch(&Comparator::Bytewise, b"", b"z"));
        losses.add(None);
        losses.finish(&Comparator::Bytewise);
        assert!(losses.hold(&Comparator::Bytewise, b"k") && losses.touch(&Comparator::Bytewise, b"", b"z"));
    }

    /// In the reverse order the empty key is the last.
    #[test]
    fn the_first_block_of_a_table_has_no_key_before_it() {
        let mut losses = Losses::default();
        losses.add(Some((Vec::new(), b"m".to_vec())));
        losses.finish(&Comparator::ReverseBytewise);
        let held = |key: &[u8]| losses.hold(&Comparator::ReverseBytewise, key);
        assert!(held(b"z") && held(b"m") && !held(b"a"));
    }
}
