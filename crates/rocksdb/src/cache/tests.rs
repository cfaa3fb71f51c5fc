use super::{Cache, LruCacheOptions};

#[test]
fn a_new_cache_is_empty() {
    let cache = Cache::new_lru_cache(512 << 10);
    assert_eq!((cache.get_usage(), cache.get_pinned_usage()), (0, 0));
}

#[test]
fn clones_are_one_cache() {
    let mut options = LruCacheOptions::default();
    options.set_capacity(1 << 20);
    options.set_num_shard_bits(2);
    let cache = Cache::new_lru_cache_opts(&options);
    cache.clone().set_capacity(2 << 20);
    assert_eq!(cache.engine.capacity(), 2 << 20);
}
