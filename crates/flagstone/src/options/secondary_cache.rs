//! Caches in RocksDB's words: `block_cache` and `blob_cache` as structs, and `secondary_cache` as an address.
//!
//! ```text
//! block_cache      8M, or {capacity=8M;num_shard_bits=4;high_pri_pool_ratio=0.5;
//!                  secondary_cache={compressed_secondary_cache://capacity=16M;...};},
//!                  or auto: what a memory_budget in bytes leaves, else 32M
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
            format!("{{capacity={capacity};{NUM_SHARD_BITS}={bits};{HIGH_PRI_POOL_RATIO}={ratio};}}")
        }
    }
}

impl Options {
    /// Sets `block_cache`: what it does not say is as RocksDB makes it, but for the second tier, which stays.
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
                shape_text(capacity, self.block_cache_shard_bits, self.block_cache_high_priority_ratio)
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
                "a cache of values has no second tier: the files hold them in compressed form",
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
            (None, capacity) => {
                shape_text(capacity, self.blob_cache_shard_bits, self.blob_cache_high_priority_ratio)
            }
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
            "{NUM_SHARD_BITS}={text}: a cache has at most two to the power of {MAX_SHARD_BITS} shards"
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
            _ => return Err(Error::not_supported(format!("'{name}={value}' of a cache is not supported"))),
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
mod tests {
    use super::*;
    use crate::base::Code;

    #[test]
    fn rocksdb_s_words_are_understood() {
        for (name, value, expected) in [
            ("block_cache", "1k", (1 << 10, 7)),
            ("block_cache", "{capacity=4M;strict_capacity_limit=true;}", (4 << 20, 7)),
            ("block_cache", "{capacity=2M;secondary_cache=nullptr}", (2 << 20, 0)),
            (
                "block_based_table_factory",
                "{block_cache={capacity=1M;secondary_cache={compressed_secondary_cache://capacity=3M;\
                  compression_type=kLZ4Compression}};block_size=1k}",
                (1 << 20, 3 << 20),
            ),
            (SECONDARY_CACHE, "compressed_secondary_cache://capacity=5M;num_shard_bits=-1;", (99, 5 << 20)),
        ] {
            let mut options = Options { block_cache_size: Some(99), ..Options::default() };
            options.db.compressed_secondary_cache_size = 7;
            options.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
            let (first, second) = expected;
            assert_eq!(
                (options.block_cache_size, options.db.compressed_secondary_cache_size),
                (Some(first), second)
            );
        }
    }

    /// They were refused. What was set comes back as it can be set again; a plain number is RocksDB's cache of that size.
    #[test]
    fn a_cache_has_the_shape_that_was_asked_for() {
        let mut options = Options::default();
        for (text, shape, told) in [
            (
                "{capacity=1M;high_pri_pool_ratio=0.25;num_shard_bits=3;}",
                (Some(3), 0.25),
                "{capacity=1048576;num_shard_bits=3;high_pri_pool_ratio=0.250000;}",
            ),
            (
                "{capacity=7;high_pri_pool_ratio=1}",
                (None, 1.0),
                "{capacity=7;num_shard_bits=-1;high_pri_pool_ratio=1.000000;}",
            ),
            (
                "{num_shard_bits=0;capacity=7}",
                (Some(0), 0.5),
                "{capacity=7;num_shard_bits=0;high_pri_pool_ratio=0.500000;}",
            ),
            ("{capacity=9;num_shard_bits=-3;high_pri_pool_ratio=0.5}", (None, 0.5), "9"),
            ("5", (None, 0.5), "5"),
        ] {
            for text in [text, told] {
                options.set("block_cache", text).unwrap();
                let found = (options.block_cache_shard_bits, options.block_cache_high_priority_ratio);
                assert_eq!((found, options.get("block_cache").unwrap()), (shape, told.to_string()));
            }
        }
    }

    /// Only nullptr was taken.
    #[test]
    fn values_may_have_a_cache_of_their_own() {
        let mut options = Options::default();
        let before = options.block_cache_size;
        assert_eq!(options.get(BLOB_CACHE).unwrap(), "nullptr");
        for (text, size, told) in [
            ("8M", 8 << 20, "8388608"),
            (
                "{capacity=1M;num_shard_bits=2;}",
                1 << 20,
                "{capacity=1048576;num_shard_bits=2;high_pri_pool_ratio=0.500000;}",
            ),
            ("{capacity=1M;secondary_cache=nullptr;}", 1 << 20, "1048576"),
            ("nullptr", 0, "nullptr"),
            ("0", 0, "nullptr"),
        ] {
            for text in [text, told] {
                options
                    .set_everywhere(&mut [("other".into(), Default::default())], BLOB_CACHE, text)
                    .unwrap();
                assert_eq!(
                    (options.blob_cache_size, options.get(BLOB_CACHE).unwrap()),
                    (size, told.to_string())
                );
            }
        }
        assert_eq!(options.block_cache_size, before);
        let error = options.cf.set(BLOB_CACHE, "8M").unwrap_err();
        assert!(error.to_string().contains("the database's"), "{error}");
    }

    #[test]
    fn what_it_cannot_do_is_refused() {
        for (name, value, code) in [
            (BLOB_CACHE, "{num_shard_bits=2}", Code::InvalidArgument),
            (
                BLOB_CACHE,
                "{capacity=1;secondary_cache=compressed_secondary_cache://capacity=3M}",
                Code::NotSupported,
            ),
            (SECONDARY_CACHE, "compressed_secondary_cache://", Code::InvalidArgument),
            (SECONDARY_CACHE, "compressed_secondary_cache://capacity=many", Code::InvalidArgument),
            (
                SECONDARY_CACHE,
                "compressed_secondary_cache://capacity=1;compression_type=kZSTD",
                Code::NotSupported,
            ),
            (SECONDARY_CACHE, "cachelib://capacity=1", Code::NotSupported),
            ("block_cache", "{secondary_cache=nullptr}", Code::InvalidArgument),
            ("block_cache", "{num_shard_bits=3}", Code::InvalidArgument),
            ("block_cache", "{capacity=1;num_shard_bits=17}", Code::InvalidArgument),
            ("block_cache", "{capacity=1;num_shard_bits=few}", Code::InvalidArgument),
            ("block_cache", "{capacity=1;high_pri_pool_ratio=1.1}", Code::InvalidArgument),
            ("block_cache", "{capacity=1;high_pri_pool_ratio=-0.1}", Code::InvalidArgument),
            ("block_cache", "{capacity=1;low_pri_pool_ratio=0.5}", Code::NotSupported),
            (SECONDARY_CACHE, "compressed_secondary_cache://capacity=1;num_shard_bits=3", Code::NotSupported),
        ] {
            let error = Options::default().set(name, value).expect_err(value);
            assert_eq!(error.code(), code, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
