//! The block cache in RocksDB's words: `block_cache` as a struct, and `secondary_cache` as an address.
//!
//! ```text
//! block_cache      8M, or {capacity=8M;secondary_cache={compressed_secondary_cache://capacity=16M;...};}
//! secondary_cache  compressed_secondary_cache://capacity=16M;compression_type=kLZ4Compression;..., or nullptr
//! ```

use super::text::{pairs, without_braces};
use super::value::SettingValue;
use crate::base::{Error, Result};

/// The name of the address.
pub(super) const SECONDARY_CACHE: &str = "secondary_cache";

const SCHEME: &str = "compressed_secondary_cache://";

/// What RocksDB's structs may say besides, as long as it is this.
const FIXED: [(&str, &[&str]); 3] = [
    ("compression_type", &["kLZ4Compression"]),
    ("num_shard_bits", &["-1"]),
    ("strict_capacity_limit", &["false", "0", "true", "1"]),
];

/// What `block_cache` says: its capacity, and that of its second tier, if it says that.
pub(super) fn block_cache(text: &str) -> Result<(u64, Option<u64>)> {
    if !text.contains('=') {
        return Ok((bytes(text)?, None));
    }
    let mut second = None;
    let mut others = Vec::new();
    for (name, value) in pairs(without_braces(text))? {
        match name {
            SECONDARY_CACHE => second = Some(secondary_cache(value)?),
            _ => others.push((name, value)),
        }
    }
    Ok((capacity(&others)?, second))
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
    use crate::options::Options;

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
            let mut options = Options { block_cache_size: 99, ..Options::default() };
            options.db.compressed_secondary_cache_size = 7;
            options.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
            assert_eq!((options.block_cache_size, options.db.compressed_secondary_cache_size), expected);
        }
    }

    #[test]
    fn what_it_cannot_do_is_refused() {
        for (name, value, code) in [
            (SECONDARY_CACHE, "compressed_secondary_cache://", Code::InvalidArgument),
            (SECONDARY_CACHE, "compressed_secondary_cache://capacity=many", Code::InvalidArgument),
            (
                SECONDARY_CACHE,
                "compressed_secondary_cache://capacity=1;compression_type=kZSTD",
                Code::NotSupported,
            ),
            (SECONDARY_CACHE, "cachelib://capacity=1", Code::NotSupported),
            ("block_cache", "{secondary_cache=nullptr}", Code::InvalidArgument),
            ("block_cache", "{capacity=1;num_shard_bits=3}", Code::NotSupported),
        ] {
            let error = Options::default().set(name, value).expect_err(value);
            assert_eq!(error.code(), code, "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
