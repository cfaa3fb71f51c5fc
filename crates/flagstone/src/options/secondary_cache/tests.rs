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
        (
            SECONDARY_CACHE,
            "compressed_secondary_cache://capacity=5M;num_shard_bits=-1;",
            (99, 5 << 20),
        ),
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

/// They were refused. What was set comes back as it can be set again; a plain number is RocksDB's
/// cache of that size.
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
    assert!(error.to_string().contains("belongs to the database"), "{error}");
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
        (
            SECONDARY_CACHE,
            "compressed_secondary_cache://capacity=1;num_shard_bits=3",
            Code::NotSupported,
        ),
    ] {
        let error = Options::default().set(name, value).expect_err(value);
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}
