//! How a filter policy reads and prints:
//!
//! ```text
//! policy := "nullptr" | bloom | ribbon | "{" "id=" policy ";" pairs "}"
//! bloom  := "bloomfilter:" bits [":" ("true" | "false")]     what follows the bits has no meaning any more
//! ribbon := "ribbonfilter:" bits [":" level]                 level: where Bloom filters end
//! ```

use crate::base::{Error, Result};
use crate::sst::FilterPolicy;

use super::text::{pairs, without_braces};
use super::value::{RandomBits, SettingValue};

/// What RocksDB calls its own.
const BUILT_IN: [&str; 4] =
    ["bloomfilter", "rocksdb.BloomFilter", "ribbonfilter", "rocksdb.RibbonFilter"];

fn parse(text: &str) -> Option<Option<FilterPolicy>> {
    // Old files name the policy without its bits; RocksDB then reads filters, but writes none.
    if matches!(text, "nullptr" | "" | "none" | FilterPolicy::COMPATIBILITY_NAME) {
        return Some(None);
    }
    if text.contains('=') {
        return parse_pairs(text);
    }
    let mut parts = text.split(':');
    let kind = parts.next()?;
    let bits_per_key = parts.next()?.parse().ok().filter(|bits| (0.0..=100.0).contains(bits))?;
    let extra = parts.next();
    if parts.next().is_some() {
        return None;
    }
    match kind {
        "bloomfilter" | "rocksdb.BloomFilter" if matches!(extra, None | Some("true" | "false")) => {
            Some(Some(FilterPolicy::Bloom { bits_per_key }))
        }
        "ribbonfilter" | "rocksdb.RibbonFilter" => {
            let bloom_before_level = extra.map_or(Some(0), |level| level.parse().ok())?;
            Some(Some(ribbon(bits_per_key, bloom_before_level)))
        }
        _ => None,
    }
}

/// `{id=ribbonfilter:10:-1;bloom_before_level=-1;}`: newer RocksDBs add pairs that the id states
/// already.
fn parse_pairs(text: &str) -> Option<Option<FilterPolicy>> {
    let found = pairs(without_braces(text)).ok()?;
    let (_, id) = found.iter().find(|(name, _)| *name == "id")?;
    match (parse(id)?, found.iter().find(|(name, _)| *name == "bloom_before_level")) {
        (Some(FilterPolicy::Ribbon { bloom_equivalent_bits_per_key, .. }), Some((_, level))) => {
            Some(Some(ribbon(bloom_equivalent_bits_per_key, level.parse().ok()?)))
        }
        (policy, _) => Some(policy),
    }
}

/// Whether the policy is called as one of RocksDB's is.
fn is_built_in(text: &str) -> bool {
    let found = pairs(without_braces(text)).unwrap_or_default();
    let id = found.iter().find(|(name, _)| *name == "id").map_or(text, |(_, id)| *id);
    BUILT_IN.contains(&id.split(':').next().unwrap_or(id))
}

fn ribbon(bloom_equivalent_bits_per_key: f64, bloom_before_level: i32) -> FilterPolicy {
    FilterPolicy::Ribbon { bloom_equivalent_bits_per_key, bloom_before_level }
}

impl SettingValue for Option<FilterPolicy> {
    fn assign(&mut self, text: &str) -> Result<()> {
        *self = parse(text).ok_or_else(|| {
            let message = format!(
                "expected nullptr, bloomfilter:BITS or ribbonfilter:BITS:LEVEL, found '{text}'"
            );
            // An application's own filters are not asked; an OPTIONS file that names them is good
            // all the same.
            if is_built_in(text) {
                Error::invalid_argument(message)
            } else {
                Error::not_supported(message)
            }
        })?;
        Ok(())
    }

    fn text(&self) -> String {
        match self {
            None => "nullptr".to_string(),
            Some(FilterPolicy::Bloom { bits_per_key }) => {
                format!("bloomfilter:{bits_per_key}:false")
            }
            Some(FilterPolicy::Ribbon { bloom_equivalent_bits_per_key, bloom_before_level }) => {
                format!("ribbonfilter:{bloom_equivalent_bits_per_key}:{bloom_before_level}")
            }
        }
    }

    fn sample(random: RandomBits<'_>) -> Self {
        let bits_per_key = 1.0 + (random() % 40) as f64 / 2.0;
        match random() % 3 {
            0 => None,
            1 => Some(FilterPolicy::Bloom { bits_per_key }),
            _ => Some(ribbon(bits_per_key, (random() % 4) as i32 - 1)),
        }
    }
}

#[cfg(test)]
mod tests;
