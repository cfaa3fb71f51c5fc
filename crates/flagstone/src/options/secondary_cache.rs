//! Caches in RocksDB's notation: `block_cache` and `blob_cache` as structs, and `secondary_cache`
//! as an address.
//!
//! ```text
//! block_cache      8M, or {capacity=8M;num_shard_bits=4;high_pri_pool_ratio=0.5;
//!                  secondary_cache={compressed_secondary_cache://capacity=16M;...};},
//!                  or auto: what is left of a memory_budget in bytes; sized by its misses, from 32M on, with a budget
//!                  of auto; 32M without a budget
//! blob_cache       the same without a secondary_cache, or nullptr
//! secondary_cache  compressed_secondary_cache://capacity=16M;compression_type=kLZ4Compression;..., or nullptr
//! ```

use super::assembled::Options;
use super::text::{pairs, without_braces};
use super::value::SettingValue;
use crate::base::{Error, Result};
use crate::cache::{DEFAULT_HIGH_PRIORITY_RATIO, MAX_SHARD_BITS};

/// The name of the cache of values.
pub(super) const BLOB_CACHE: &str = "blob_cache";

/// The name of the address.
pub(super) const SECONDARY_CACHE: &str = "secondary_cache";

/// A block cache whose size the budget says.
const AUTO: &str = "auto";

const SCHEME: &str = "compressed_secondary_cache://";

const NUM_SHARD_BITS: &str = "num_shard_bits";
const HIGH_PRI_POOL_RATIO: &str = "high_pri_pool_ratio";

/// What RocksDB's structs may say besides, as long as it is this.
const FIXED: [(&str, &[&str]); 3] = [
    ("compression_type", &["kLZ4Compression"]),
    (NUM_SHARD_BITS, &["-1"]),
    ("strict_capacity_limit", &["false", "0", "true", "1"]),
];

/// A cache as it is asked for.
struct Shape {
    capacity: u64,
    shard_bits: Option<u32>,
    high_priority_ratio: f64,
    /// Of its second tier, where that is spoken of.
    second: Option<u64>,
}

impl Shape {
    fn parse(text: &str) -> Result<Self> {
        let (mut shard_bits, mut high_priority_ratio) = (None, DEFAULT_HIGH_PRIORITY_RATIO);
        let (mut second, mut others) = (None, Vec::new());
        let capacity = if text.contains('=') {
            for (name, value) in pairs(without_braces(text))? {
                match name {
                    SECONDARY_CACHE => second = Some(secondary_cache(value)?),
                    NUM_SHARD_BITS => shard_bits = num_shard_bits(value)?,
                    HIGH_PRI_POOL_RATIO => high_priority_ratio = high_pri_pool_ratio(value)?,
                    _ => others.push((name, value)),
                }
            }
            capacity(&others)?
        } else {
            bytes(text)?
        };
        Ok(Self { capacity, shard_bits, high_priority_ratio, second })
    }
}

/// What makes such a cache, but for its second tier.
fn shape_text(capacity: u64, shard_bits: Option<u32>, high_priority_ratio: f64) -> String {
    let capacity = capacity.text();
    match shard_bits {
        None if high_priority_ratio == DEFAULT_HIGH_PRIORITY_RATIO => capacity,
        bits => {
            let (bits, ratio) = (bits.map_or(-1, i64::from), high_priority_ratio.text());
            format!(
                "{{capacity={capacity};{NUM_SHARD_BITS}={bits};{HIGH_PRI_POOL_RATIO}={ratio};}}"
            )
        }
    }
}

impl Options {
    /// Sets `block_cache`: what it does not say is as RocksDB makes it, but for the second tier,
    /// which stays.
    pub(super) fn set_block_cache(&mut self, text: &str) -> Result<()> {
        if text == AUTO {
            (self.block_cache, self.block_cache_size) = (None, None);
            return Ok(());
        }
        let shape = Shape::parse(text)?;
        // One that others may share goes on without this database.
        self.block_cache = None;
        self.block_cache_size = Some(shape.capacity);
        self.block_cache_shard_bits = shape.shard_bits;
        self.block_cache_high_priority_ratio = shape.high_priority_ratio;
        if let Some(second) = shape.second {
            self.db.compressed_secondary_cache_size = second;
        }
        Ok(())
    }

    /// The text of `block_cache`, without the second tier.
    pub(super) fn block_cache_text(&self) -> String {
        match &self.block_cache {
            Some(shared) => (shared.capacity() as u64).text(),
            None => self.block_cache_size.map_or(AUTO.to_string(), |capacity| {
                shape_text(
                    capacity,
                    self.block_cache_shard_bits,
                    self.block_cache_high_priority_ratio,
                )
            }),
        }
    }

    /// Sets `blob_cache`.
    pub(super) fn set_blob_cache(&mut self, text: &str) -> Result<()> {
        let shape = match without_braces(text) {
            "nullptr" | "" => Shape::parse("0")?,
            _ => Shape::parse(text)?,
        };
        if shape.second.is_some_and(|second| second > 0) {
            return Err(Error::not_supported(
                "a blob cache has no second tier: blob files are compressed already",
            ));
        }
        self.blob_cache = None;
        self.blob_cache_size = shape.capacity;
        self.blob_cache_shard_bits = shape.shard_bits;
        self.blob_cache_high_priority_ratio = shape.high_priority_ratio;
        Ok(())
    }

    /// The text of `blob_cache`.
    pub(super) fn blob_cache_text(&self) -> String {
        match (&self.blob_cache, self.blob_cache_size) {
            (Some(shared), _) => (shared.capacity() as u64).text(),
            (None, 0) => "nullptr".to_string(),
            (None, capacity) => shape_text(
                capacity,
                self.blob_cache_shard_bits,
                self.blob_cache_high_priority_ratio,
            ),
        }
    }
}

/// As RocksDB has it, negative for as many shards as suit the capacity.
fn num_shard_bits(text: &str) -> Result<Option<u32>> {
    let mut bits = 0i32;
    bits.assign(text)?;
    match u32::try_from(bits) {
        Err(_) => Ok(None),
        Ok(bits) if bits <= MAX_SHARD_BITS => Ok(Some(bits)),
        Ok(_) => Err(Error::invalid_argument(format!(
            "{NUM_SHARD_BITS}={text}: at most {MAX_SHARD_BITS} is possible"
        ))),
    }
}

fn high_pri_pool_ratio(text: &str) -> Result<f64> {
    let mut ratio = 0f64;
    ratio.assign(text)?;
    if (0.0..=1.0).contains(&ratio) {
        Ok(ratio)
    } else {
        Err(Error::invalid_argument(format!("{HIGH_PRI_POOL_RATIO}={text}: not between 0 and 1")))
    }
}

/// The capacity of the second tier, given its address.
pub(super) fn secondary_cache(text: &str) -> Result<u64> {
    let text = without_braces(text);
    if matches!(text, "nullptr" | "") {
        return Ok(0);
    }
    let Some(inner) = text.strip_prefix(SCHEME) else {
        return Err(Error::not_supported(format!(
            "secondary cache '{text}': only {SCHEME}capacity=BYTES is supported"
        )));
    };
    capacity(&pairs(inner)?)
}

fn capacity(settings: &[(&str, &str)]) -> Result<u64> {
    let mut capacity = None;
    for &(name, value) in settings {
        let fixed = FIXED.iter().find(|(fixed, _)| *fixed == name);
        match (name, fixed) {
            ("capacity", _) => capacity = Some(bytes(value)?),
            (_, Some((_, values))) if values.contains(&value) => {}
            _ => {
                return Err(Error::not_supported(format!(
                    "'{name}={value}' of a cache is not supported"
                )));
            }
        }
    }
    capacity.ok_or_else(|| Error::invalid_argument("a cache needs a capacity in bytes"))
}

fn bytes(text: &str) -> Result<u64> {
    let mut bytes = 0u64;
    bytes.assign(text)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
