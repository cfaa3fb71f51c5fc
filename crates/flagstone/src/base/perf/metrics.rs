//! The counters of a [`PerfContext`](super::PerfContext), in RocksDB's order.

use super::PerfLevel;
use super::PerfLevel::{
    EnableCount as Count, EnableTime as Mutex, EnableTimeAndCpuTimeExceptForMutex as Cpu,
    EnableTimeExceptForMutex as Time, EnableWait as Wait,
};
use super::metric::metrics;

metrics! {
    /// A counter of single operations. Times are in nanoseconds.
    ///
    /// RocksDB has these names. A metric of which nothing is said but *always 0* counts what this
    /// engine does not do.
    PerfMetric {
        /// Comparisons of two user keys as a whole. Searches compare the first bytes of keys as
        /// numbers where the order allows it; that is not counted.
        UserKeyComparisonCount = "user_key_comparison_count", Count;
        /// Blocks found in the block cache.
        BlockCacheHitCount = "block_cache_hit_count", Count;
        /// Blocks of tables read from files; not those that a scan has read ahead.
        BlockReadCount = "block_read_count", Count;
        /// Bytes of these blocks, with their trailers.
        BlockReadByte = "block_read_byte", Count;
        /// Time spent reading these blocks.
        BlockReadTime = "block_read_time", Time;
        /// Processor time spent reading these blocks.
        BlockReadCpuTime = "block_read_cpu_time", Cpu;
        /// Index blocks found in the block cache.
        BlockCacheIndexHitCount = "block_cache_index_hit_count", Count;
        /// Always 0.
        BlockCacheStandaloneHandleCount = "block_cache_standalone_handle_count", Count;
        /// Blocks of the compressed secondary cache that went back into the block cache.
        BlockCacheRealHandleCount = "block_cache_real_handle_count", Count;
        /// Index blocks read from files.
        IndexBlockReadCount = "index_block_read_count", Count;
        /// Filter blocks found in the block cache.
        BlockCacheFilterHitCount = "block_cache_filter_hit_count", Count;
        /// Filter blocks read from files.
        FilterBlockReadCount = "filter_block_read_count", Count;
        /// Compression dictionaries read from files.
        CompressionDictBlockReadCount = "compression_dict_block_read_count", Count;
        /// Bytes of memory of the index blocks found in the block cache.
        BlockCacheIndexReadByte = "block_cache_index_read_byte", Count;
        /// Bytes of memory of the filter blocks found in the block cache.
        BlockCacheFilterReadByte = "block_cache_filter_read_byte", Count;
        /// Always 0: an open table keeps its dictionary.
        BlockCacheCompressionDictReadByte = "block_cache_compression_dict_read_byte", Count;
        /// Bytes of memory of all blocks found in the block cache.
        BlockCacheReadByte = "block_cache_read_byte", Count;
        /// Blocks found in the compressed secondary cache.
        SecondaryCacheHitCount = "secondary_cache_hit_count", Count;
        /// Blocks put into the compressed secondary cache.
        CompressedSecCacheInsertRealCount = "compressed_sec_cache_insert_real_count", Count;
        /// Blocks of which the compressed secondary cache only notes that they were offered once.
        CompressedSecCacheInsertDummyCount = "compressed_sec_cache_insert_dummy_count", Count;
        /// Always 0: blocks go to the compressed secondary cache as they are stored.
        CompressedSecCacheUncompressedBytes = "compressed_sec_cache_uncompressed_bytes", Count;
        /// Bytes of the blocks put into the compressed secondary cache.
        CompressedSecCacheCompressedBytes = "compressed_sec_cache_compressed_bytes", Count;
        /// Time spent on checksums of blocks.
        BlockChecksumTime = "block_checksum_time", Time;
        /// Time spent on decompressing blocks.
        BlockDecompressTime = "block_decompress_time", Time;
        /// Blocks that were decompressed.
        BlockDecompressCount = "block_decompress_count", Count;
        /// Bytes of the values that lookups of single keys returned.
        GetReadBytes = "get_read_bytes", Count;
        /// Bytes of the values that lookups of several keys returned.
        MultigetReadBytes = "multiget_read_bytes", Count;
        /// Bytes of the keys on which iterators stopped, and of the values that they had at hand
        /// there or made when asked.
        IterReadBytes = "iter_read_bytes", Count;
        /// Values of blob files found in the cache.
        BlobCacheHitCount = "blob_cache_hit_count", Count;
        /// Bytes of these values.
        BlobCacheReadByte = "blob_cache_read_byte", Count;
        /// Values read from blob files.
        BlobReadCount = "blob_read_count", Count;
        /// Bytes read from blob files for them.
        BlobReadByte = "blob_read_byte", Count;
        /// Time spent reading them.
        BlobReadTime = "blob_read_time", Time;
        /// Time spent on checksums of values in blob files.
        BlobChecksumTime = "blob_checksum_time", Time;
        /// Time spent on decompressing values of blob files.
        BlobDecompressTime = "blob_decompress_time", Time;
        /// Entries that iterators passed: the one on which they stood, older versions of a key, and
        /// what range tombstones hide.
        InternalKeySkippedCount = "internal_key_skipped_count", Count;
        /// Deletions that iterators passed.
        InternalDeleteSkippedCount = "internal_delete_skipped_count", Count;
        /// Entries that iterators passed because they are newer than what they see.
        InternalRecentSkippedCount = "internal_recent_skipped_count", Count;
        /// Operands that iterators collected to be merged.
        InternalMergeCount = "internal_merge_count", Count;
        /// Operands that lookups merged.
        InternalMergePointLookupCount = "internal_merge_point_lookup_count", Count;
        /// Seeks of iterators past keys that a range tombstone deletes.
        InternalRangeDelReseekCount = "internal_range_del_reseek_count", Count;
        /// Time until a lookup knows which moment it reads.
        GetSnapshotTime = "get_snapshot_time", Time;
        /// Time that lookups spent in memtables.
        GetFromMemtableTime = "get_from_memtable_time", Time;
        /// Memtables that lookups searched.
        GetFromMemtableCount = "get_from_memtable_count", Count;
        /// Time that lookups spent after the search, with merging and reading from blob files.
        GetPostProcessTime = "get_post_process_time", Time;
        /// Time that lookups spent in tables.
        GetFromOutputFilesTime = "get_from_output_files_time", Time;
        /// Time that iterators spent seeking in memtables.
        SeekOnMemtableTime = "seek_on_memtable_time", Time;
        /// Seeks of iterators in memtables, but for those to the first or last key.
        SeekOnMemtableCount = "seek_on_memtable_count", Count;
        /// Steps forward of iterators in memtables.
        NextOnMemtableCount = "next_on_memtable_count", Count;
        /// Steps back of iterators in memtables.
        PrevOnMemtableCount = "prev_on_memtable_count", Count;
        /// Time that iterators spent seeking in their sources.
        SeekChildSeekTime = "seek_child_seek_time", Time;
        /// Seeks of iterators in their sources.
        SeekChildSeekCount = "seek_child_seek_count", Count;
        /// Time spent on merging the sources of an iterator after a seek forward.
        SeekMinHeapTime = "seek_min_heap_time", Time;
        /// Time spent on merging the sources of an iterator after a seek back.
        SeekMaxHeapTime = "seek_max_heap_time", Time;
        /// Time that seeks of iterators spent until they stood on an entry.
        SeekInternalSeekTime = "seek_internal_seek_time", Time;
        /// Time that iterators spent from an entry to the next key that they show.
        FindNextUserEntryTime = "find_next_user_entry_time", Time;
        /// Time spent on writing to the WAL and syncing it.
        WriteWalTime = "write_wal_time", Time;
        /// Time spent on inserting into memtables.
        WriteMemtableTime = "write_memtable_time", Wait;
        /// Time that writers were delayed or stopped.
        WriteDelayTime = "write_delay_time", Wait;
        /// Time spent on switching memtables.
        WriteSchedulingFlushesCompactionsTime =
            "write_scheduling_flushes_compactions_time", Time;
        /// Time of writes outside of the four steps above.
        WritePreAndPostProcessTime = "write_pre_and_post_process_time", Time;
        /// Time that writers waited for the insertions of others, and for syncs that others lead.
        WriteThreadWaitNanos = "write_thread_wait_nanos", Wait;
        /// Time that writers waited for the commit lock.
        DbMutexLockNanos = "db_mutex_lock_nanos", Mutex;
        /// Time that stopped writers waited for progress of flushes and compactions.
        DbConditionWaitNanos = "db_condition_wait_nanos", Mutex;
        /// Time spent in merge operators.
        MergeOperatorTimeNanos = "merge_operator_time_nanos", Time;
        /// Time spent on finding or reading index blocks that are not kept with their table.
        ReadIndexBlockNanos = "read_index_block_nanos", Time;
        /// Time spent on finding or reading filter blocks that are not kept with their table.
        ReadFilterBlockNanos = "read_filter_block_nanos", Time;
        /// Time spent on finding or reading data blocks.
        NewTableBlockIterNanos = "new_table_block_iter_nanos", Time;
        /// Time spent on making cursors over tables.
        NewTableIteratorNanos = "new_table_iterator_nanos", Time;
        /// Time spent on searching in data blocks.
        BlockSeekNanos = "block_seek_nanos", Time;
        /// Time spent on opening tables.
        FindTableNanos = "find_table_nanos", Time;
        /// Keys that the filter of a memtable admitted.
        BloomMemtableHitCount = "bloom_memtable_hit_count", Count;
        /// Keys that the filter of a memtable ruled out.
        BloomMemtableMissCount = "bloom_memtable_miss_count", Count;
        /// Keys that the filter of a table admitted.
        BloomSstHitCount = "bloom_sst_hit_count", Count;
        /// Keys that the filter of a table ruled out.
        BloomSstMissCount = "bloom_sst_miss_count", Count;
        /// Time that transactions waited for locked keys.
        KeyLockWaitTime = "key_lock_wait_time", Time;
        /// Locks of keys that transactions had to wait for.
        KeyLockWaitCount = "key_lock_wait_count", Count;
        /// Always 0; so are the other times of an `Env`, which has no counterpart of `TimedEnv`.
        EnvNewSequentialFileNanos = "env_new_sequential_file_nanos", Time;
        /// Always 0.
        EnvNewRandomAccessFileNanos = "env_new_random_access_file_nanos", Time;
        /// Always 0.
        EnvNewWritableFileNanos = "env_new_writable_file_nanos", Time;
        /// Always 0.
        EnvReuseWritableFileNanos = "env_reuse_writable_file_nanos", Time;
        /// Always 0.
        EnvNewRandomRwFileNanos = "env_new_random_rw_file_nanos", Time;
        /// Always 0.
        EnvNewDirectoryNanos = "env_new_directory_nanos", Time;
        /// Always 0.
        EnvFileExistsNanos = "env_file_exists_nanos", Time;
        /// Always 0.
        EnvGetChildrenNanos = "env_get_children_nanos", Time;
        /// Always 0.
        EnvGetChildrenFileAttributesNanos = "env_get_children_file_attributes_nanos", Time;
        /// Always 0.
        EnvDeleteFileNanos = "env_delete_file_nanos", Time;
        /// Always 0.
        EnvCreateDirNanos = "env_create_dir_nanos", Time;
        /// Always 0.
        EnvCreateDirIfMissingNanos = "env_create_dir_if_missing_nanos", Time;
        /// Always 0.
        EnvDeleteDirNanos = "env_delete_dir_nanos", Time;
        /// Always 0.
        EnvGetFileSizeNanos = "env_get_file_size_nanos", Time;
        /// Always 0.
        EnvGetFileModificationTimeNanos = "env_get_file_modification_time_nanos", Time;
        /// Always 0.
        EnvRenameFileNanos = "env_rename_file_nanos", Time;
        /// Always 0.
        EnvLinkFileNanos = "env_link_file_nanos", Time;
        /// Always 0.
        EnvLockFileNanos = "env_lock_file_nanos", Time;
        /// Always 0.
        EnvUnlockFileNanos = "env_unlock_file_nanos", Time;
        /// Always 0.
        EnvNewLoggerNanos = "env_new_logger_nanos", Time;
        /// Processor time of lookups of single and several keys.
        GetCpuNanos = "get_cpu_nanos", Cpu;
        /// Processor time of steps forward of iterators.
        IterNextCpuNanos = "iter_next_cpu_nanos", Cpu;
        /// Processor time of steps back of iterators.
        IterPrevCpuNanos = "iter_prev_cpu_nanos", Cpu;
        /// Processor time of seeks of iterators.
        IterSeekCpuNanos = "iter_seek_cpu_nanos", Cpu;
        /// Steps forward of iterators.
        IterNextCount = "iter_next_count", Count;
        /// Steps back of iterators.
        IterPrevCount = "iter_prev_count", Count;
        /// Seeks of iterators, to the first and last key included.
        IterSeekCount = "iter_seek_count", Count;
        /// Time spent encrypting what is written to files.
        EncryptDataNanos = "encrypt_data_nanos", Time;
        /// Time spent decrypting what is read from files.
        DecryptDataNanos = "decrypt_data_nanos", Time;
        /// Always 0.
        NumberAsyncSeek = "number_async_seek", Count;
        /// Time of ingestions of external files.
        FileIngestionNanos = "file_ingestion_nanos", Time;
        /// Time for which ingestions held writers back.
        FileIngestionBlockingLiveWritesNanos =
            "file_ingestion_blocking_live_writes_nanos", Time;
        /// Bytes of `block_read_byte` of data blocks.
        DataBlockReadByte = "data_block_read_byte", Count;
        /// Bytes of `block_read_byte` of index blocks.
        IndexBlockReadByte = "index_block_read_byte", Count;
        /// Bytes of `block_read_byte` of filter blocks.
        FilterBlockReadByte = "filter_block_read_byte", Count;
        /// Bytes of `block_read_byte` of compression dictionaries.
        CompressionDictBlockReadByte = "compression_dict_block_read_byte", Count;
        /// Bytes of `block_read_byte` of all other blocks.
        MetadataBlockReadByte = "metadata_block_read_byte", Count;
        /// How often [`View::ranges`](crate::View::ranges) read ahead.
        MultiscanPrepareCount = "multiscan_prepare_count", Count;
        /// Blocks that it read.
        MultiscanBlocksPrefetched = "multiscan_blocks_prefetched", Count;
        /// Blocks that it found in the cache.
        MultiscanBlocksFromCache = "multiscan_blocks_from_cache", Count;
        /// Bytes that it read, without trailers.
        MultiscanPrefetchBytes = "multiscan_prefetch_bytes", Count;
        /// Reads of files that it made.
        MultiscanIoRequests = "multiscan_io_requests", Count;
        /// Always 0: each block is a read of its own.
        MultiscanIoCoalescedNonadjacent = "multiscan_io_coalesced_nonadjacent", Count;
    }
}
