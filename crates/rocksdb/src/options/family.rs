//! Setters of a column family: memtables, iterators and blob files.

use super::{DBCompressionType, MemtableFactory, Options};
use crate::cache::Cache;

impl Options {
    /// Bytes of a memtable at which it is flushed, at least 64 KiB. Default: 64 MiB.
    pub fn set_write_buffer_size(&mut self, size: usize) {
        self.db.cf.write_buffer_size = size as u64;
    }

    /// Memtables, the one being written among them, at which writes stop. Default: 2.
    pub fn set_max_write_buffer_number(&mut self, nbuf: i32) {
        self.db.cf.max_write_buffer_number = nbuf;
    }

    /// The same as
    /// [`set_min_write_buffer_number_to_merge`](Self::set_min_write_buffer_number_to_merge), as in
    /// the rocksdb crate.
    pub fn set_min_write_buffer_number(&mut self, nbuf: i32) {
        self.set_min_write_buffer_number_to_merge(nbuf);
    }

    /// Full memtables that are flushed together. Default: 1.
    pub fn set_min_write_buffer_number_to_merge(&mut self, to_merge: i32) {
        self.db.cf.min_write_buffer_number_to_merge = to_merge;
    }

    /// Has no effect: flushed memtables are not kept.
    pub fn set_max_write_buffer_size_to_maintain(&mut self, size: i64) {
        self.note("max_write_buffer_size_to_maintain", size);
    }

    /// Bytes of one block of a memtable's arena; 0 leaves it to the engine. Default: 0.
    pub fn set_arena_block_size(&mut self, size: usize) {
        self.db.cf.arena_block_size = size as u64;
    }

    /// The structure of memtables. Default: one for any use.
    pub fn set_memtable_factory(&mut self, factory: MemtableFactory) {
        self.db.cf.memtable_factory = factory.into();
    }

    /// The part of `write_buffer_size`, up to 0.25, that a memtable has for a Bloom filter over
    /// prefixes; 0 for no filter. Default: 0.
    pub fn set_memtable_prefix_bloom_ratio(&mut self, ratio: f64) {
        self.db.cf.memtable_prefix_bloom_size_ratio = ratio;
    }

    /// Puts whole keys into that filter, too. Default: false.
    pub fn set_memtable_whole_key_filtering(&mut self, whole_key_filter: bool) {
        self.db.cf.memtable_whole_key_filtering = whole_key_filter;
    }

    /// Has no effect: a lookup in that filter touches one cache line.
    pub fn set_bloom_locality(&mut self, v: u32) {
        self.note("bloom_locality", v);
    }

    /// Has no effect: the system may use huge pages for memtables as it likes.
    pub fn set_memtable_huge_page_size(&mut self, size: usize) {
        self.note("memtable_huge_page_size", size);
    }

    /// Has no effect: a memtable keeps all versions of a value.
    pub fn set_inplace_update_support(&mut self, enabled: bool) {
        self.note("inplace_update_support", enabled);
    }

    /// Has no effect: see [`set_inplace_update_support`](Self::set_inplace_update_support).
    pub fn set_inplace_update_locks(&mut self, num: usize) {
        self.note("inplace_update_num_locks", num);
    }

    /// Has no effect: a flush always writes a table.
    pub fn set_experimental_mempurge_threshold(&mut self, threshold: f64) {
        self.note("experimental_mempurge_threshold", format!("{threshold:.6}"));
    }

    /// Merge operands of one key in a memtable at which the next one is merged with them as it is
    /// written; 0 for never. Default: 0.
    pub fn set_max_successive_merges(&mut self, num: usize) {
        self.db.cf.max_successive_merges = num as u64;
    }

    /// Entries of one key that an iterator steps over before it seeks. Default: 8.
    pub fn set_max_sequential_skip_in_iterations(&mut self, num: u64) {
        self.db.cf.max_sequential_skip_in_iterations = num;
    }

    /// Writes no filter where nothing older lies below: for lookups that mostly find something.
    /// Default: false.
    pub fn set_optimize_filters_for_hits(&mut self, optimize_for_hits: bool) {
        self.db.cf.optimize_filters_for_hits = optimize_for_hits;
    }

    /// Keeps values of `min_blob_size` bytes and more in blob files, which flushes and compactions
    /// write. Default: false.
    pub fn set_enable_blob_files(&mut self, val: bool) {
        self.db.cf.enable_blob_files = Some(val);
    }

    /// The smallest value, in bytes, that goes to a blob file. Default: 0.
    pub fn set_min_blob_size(&mut self, val: u64) {
        self.db.cf.min_blob_size = Some(val);
    }

    /// Bytes at which a blob file is closed. Default: 256 MiB.
    pub fn set_blob_file_size(&mut self, val: u64) {
        self.db.cf.blob_file_size = val;
    }

    /// How values in blob files are compressed. Default: not at all.
    pub fn set_blob_compression_type(&mut self, val: DBCompressionType) {
        self.db.cf.blob_compression_type = Some(val.into());
    }

    /// Moves live values out of old blob files in compactions. Default: false.
    pub fn set_enable_blob_gc(&mut self, val: bool) {
        self.db.cf.enable_blob_garbage_collection = val;
    }

    /// The part of the blob files, from the oldest on, that values are moved out of. Default: 0.25.
    pub fn set_blob_gc_age_cutoff(&mut self, val: f64) {
        self.db.cf.blob_garbage_collection_age_cutoff = val;
    }

    /// The part of garbage in these blob files at which a compaction is started for them. Default:
    /// 1.
    pub fn set_blob_gc_force_threshold(&mut self, val: f64) {
        self.db.cf.blob_garbage_collection_force_threshold = val;
    }

    /// Bytes of each blob file that a compaction reads ahead; 0 for none. Default: 0.
    pub fn set_blob_compaction_readahead_size(&mut self, val: u64) {
        self.db.cf.blob_compaction_readahead_size = val;
    }

    /// A cache for values from blob files. A database has one for all of its column families: that
    /// of `default`, or else the first that a family has. Default: none.
    pub fn set_blob_cache(&mut self, cache: &Cache) {
        self.blob_cache = Some(cache.clone());
    }
}
