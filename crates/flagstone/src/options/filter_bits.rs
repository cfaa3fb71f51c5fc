//! `filter_bits_per_level`: how many bits per key the filters of each level have.
//!
//! ```text
//! levels := "" | bits (":" bits)*       that of level 0 and of flushes first; the last is for all deeper levels, too
//! bits   := a number from 0 to 100      below 0.5: no filter
//! ```

use super::value::{RandomBits, SettingValue};
use crate::base::{Error, Result};
use crate::sst::FilterPolicy;

/// Bits per key by level; none where the filter policy's own are for all levels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FilterBits(Vec<f64>);

impl FilterBits {
    /// What `policy` is for a table that is written to `level`; a flush writes to level 0.
    pub fn of_level(&self, policy: FilterPolicy, level: usize) -> Option<FilterPolicy> {
        match self.0.get(level).or(self.0.last()) {
            None => Some(policy),
            Some(bits) if *bits < FilterPolicy::LEAST_BITS => None,
            Some(bits) => Some(policy.with_bits(*bits)),
        }
    }
}

impl SettingValue for FilterBits {
    fn assign(&mut self, text: &str) -> Result<()> {
        let bits = |part: &str| {
            let bits = part.trim().parse().ok().filter(|bits| (0.0..=100.0).contains(bits));
            bits.ok_or_else(|| {
                Error::invalid_argument(format!(
                    "expected bits per key from 0 to 100 for each level, as in 14:14:12:10, found '{text}'"
                ))
            })
        };
        self.0 = match text.trim() {
            "" => Vec::new(),
            text => text.split(':').map(bits).collect::<Result<_>>()?,
        };
        Ok(())
    }

    fn text(&self) -> String {
        self.0.iter().map(f64::to_string).collect::<Vec<_>>().join(":")
    }

    fn sample(random: RandomBits<'_>) -> Self {
        Self((0..random() % 4).map(|_| (random() % 40) as f64 / 2.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<FilterBits> {
        let mut bits = FilterBits::default();
        bits.assign(text).map(|()| bits)
    }

    #[test]
    fn each_level_has_its_bits_and_the_last_is_for_those_below() {
        let bloom = |bits_per_key| FilterPolicy::Bloom { bits_per_key };
        let of = |text: &str| {
            [0, 1, 2, 6].map(|level| parse(text).unwrap().of_level(FilterPolicy::DEFAULT, level))
        };
        assert_eq!(of(""), [Some(FilterPolicy::DEFAULT); 4]);
        assert_eq!(of("14"), [Some(bloom(14.0)); 4]);
        assert_eq!(of("14:12.5:0"), [Some(bloom(14.0)), Some(bloom(12.5)), None, None]);
        let ribbon =
            |bits| FilterPolicy::Ribbon { bloom_equivalent_bits_per_key: bits, bloom_before_level: 2 };
        assert_eq!(parse("14:8").unwrap().of_level(ribbon(10.0), 3), Some(ribbon(8.0)));
        for text in ["", "14", "14:12.5:0"] {
            assert_eq!(parse(text).unwrap().text(), text);
        }
        for wrong in ["14:", "-1", "14:101", "14:x", "14;12"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains("14:14:12:10") && error.contains(wrong), "{error}");
        }
    }
}
