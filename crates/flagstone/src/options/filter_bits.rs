//! `filter_bits_per_level`: how many bits per key the filters of each level have.
//!
//! ```text
//! levels := "" | bits (":" bits)*       that of level 0 and of flushes first; the last is for all deeper levels, too
//! bits   := a number from 0 to 100      below 0.5: no filter
//! ```

use super::value::{RandomBits, SettingValue};
use crate::base::{Error, Result};
use crate::sst::FilterPolicy;

/// Bits per key by level; empty for the filter policy's own on every level.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FilterBits(Vec<f64>);

impl FilterBits {
    /// The filter policy for a table written to `level`, given the family's `policy`. A flush
    /// writes to level 0.
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
mod tests;
