//! Who holds memory now.

use crate::cache::{CacheOwner, CacheValue, MemoryKind};
use crate::db::DbInner;
use crate::db::handle::Db;
use crate::db::memory::{CacheMemory, MemoryUsage};
use crate::sst::{BlockCache, CachedBlock, Slim};

impl Db {
    /// Who holds memory, and who keeps others from giving theirs back. RocksDB's
    /// `GetApproximateMemoryUsageByType`, in more detail.
    ///
    /// Looks at every cached block and every open table, and takes the engine's locks: for a look
    /// now and then.
    pub fn memory_usage(&self) -> MemoryUsage {
        memory_usage(self.inner())
    }
}

pub(super) fn memory_usage(db: &DbInner) -> MemoryUsage {
    let account = db.tables.account();
    let held = |holder| account.held(holder) as u64;
    let second_tier = db.tables.caches().second_tier();
    let mut usage = MemoryUsage {
        budget: db.context.settings.load().memory_budget.bytes(),
        recycled_arenas: held(MemoryKind::RecycledArenas),
        cache: memory_in(db.tables.caches().blocks(), db.tables.caches().owner()),
        auto_cache: db.tables.caches().auto().map(|auto| auto.report()),
        blob_cache: if db.tables.caches().has_blob_cache() {
            memory_in(db.tables.caches().blobs(), db.tables.caches().blob_owner())
        } else {
            CacheMemory::default()
        },
        compressed_cache: second_tier.map_or(0, |tier| tier.usage()) as u64,
        compressed_cache_capacity: second_tier.map_or(0, |tier| tier.capacity()) as u64,
        tables: held(MemoryKind::Tables),
        open_tables: account.pieces(MemoryKind::Tables) as u64,
        cursors: held(MemoryKind::Cursors),
        kept_blocks: held(MemoryKind::KeptBlocks),
        open_cursors: account.pieces(MemoryKind::Cursors) as u64,
        jobs: held(MemoryKind::Jobs),
        wal_buffers: held(MemoryKind::WalBuffers),
        writes: held(MemoryKind::Writes),
        values: held(MemoryKind::Values),
        oldest_snapshot: db.snapshots.oldest(),
        ..MemoryUsage::default()
    };
    let [of_blocks, of_blobs] = db.tables.caches().own_overheads();
    (usage.cache.overhead, usage.blob_cache.overhead) = (of_blocks as u64, of_blobs as u64);
    usage.wal_mapping = db.pipeline.mapped_wal_bytes();
    let now = db.context.env.clock.now_us();
    db.tree.add_memory(&mut usage, now);
    let in_use = usage.active_memtables + usage.immutable_memtables;
    usage.kept_memtables = held(MemoryKind::Memtables).saturating_sub(in_use);
    usage
}

/// What a cache holds of one database.
fn memory_in(cache: &BlockCache, owner: &CacheOwner) -> CacheMemory {
    let mut memory = CacheMemory { capacity: cache.capacity() as u64, ..CacheMemory::default() };
    cache.visit(|key, block, charge| {
        if !owner.has(key) {
            return;
        }
        let kind = match block {
            CachedBlock::Slim(Slim::Data(_)) => &mut memory.data,
            CachedBlock::Slim(Slim::Index(_)) => &mut memory.index,
            CachedBlock::Slim(Slim::Filter(_)) => &mut memory.filter,
            CachedBlock::Blob(_) | CachedBlock::Slim(Slim::Blob(_) | Slim::Pieces(_)) => {
                &mut memory.blob
            }
        };
        *kind += charge as u64;
        memory.pinned += if block.is_pinned() { charge as u64 } else { 0 };
    });
    memory
}
