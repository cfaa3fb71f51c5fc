//! The caches of a database: of blocks, its second tier of compressed ones, and of values in blob
//! files.
//!
//! Others may have the first and the last, too (`Options::block_cache`, `Options::blob_cache`).
//! Those of its own follow a `memory_budget`.

use std::sync::{Arc, Weak};

use crate::cache::{CacheOwner, CacheSettings, MemoryAccount};
use crate::db::budget::{Budget, BudgetRule, CacheShares, CachesWanted};
use crate::db::tables::auto_cache::AutoCache;
use crate::db::tables::auto_size::BEGINNING;
use crate::options::{MemoryBudget, Options};
use crate::sst::{BlockCache, CompressedCache};

/// What blocks and values are kept in.
pub(in crate::db) struct Caches {
    blocks: Arc<BlockCache>,
    /// What of that is this database's.
    owner: CacheOwner,
    /// Others have it, too.
    is_shared: bool,
    /// Where values from blob files lie, if not in that.
    blobs: Option<BlobCache>,
    second_tier: Option<Arc<CompressedCache>>,
    /// Where rows lie, if anywhere, and who this database is there.
    rows: Option<(Arc<BlockCache>, CacheOwner)>,
    /// What sizes that of blocks, where nobody gave it a size.
    auto: Option<Arc<AutoCache>>,
}

impl Caches {
    /// Those that the options want; what they hold is sized by the budget, if there is one, and
    /// what `account` knows of.
    pub(in crate::db) fn new(
        options: &Options,
        account: &Arc<MemoryAccount>,
        budget: &BudgetRule,
    ) -> Self {
        let is_shared = options.block_cache.is_some();
        let auto = sizes_itself(options, budget)
            .then(|| Arc::new(AutoCache::new(&options.env, &options.db, account, budget)));
        let wanted = CachesWanted {
            blocks: block_cache_wanted(options),
            second_tier: options.db.compressed_secondary_cache_size as usize,
            blobs: options.blob_cache_size as usize,
        };
        let now = budget.now();
        let shares = match now {
            Some(budget) => budget.caches(account, &wanted),
            None => CacheShares {
                blocks: wanted.blocks.expect("only a number of bytes leaves it open"),
                second_tier: wanted.second_tier,
                blobs: wanted.blobs,
            },
        };
        // The half of a machine is hardly ever so little that tables leave their indexes to a cache
        // of a size of its own.
        let leaves_indexes = matches!(options.db.memory_budget, MemoryBudget::Bytes(_));
        let holds_indexes = leaves_indexes || options.cf.table.cache_index_and_filter_blocks;
        let blocks = match &options.block_cache {
            Some(shared) => shared.shared().clone(),
            None => Arc::new(BlockCache::new(&CacheSettings {
                holds_indexes,
                shard_bits: options.block_cache_shard_bits,
                high_priority_ratio: options.block_cache_high_priority_ratio,
                ..own_cache(options, shares.blocks)
            })),
        };
        let second_tier = (shares.second_tier > 0)
            .then(|| Arc::new(CompressedCache::new(&own_cache(options, shares.second_tier))));
        let blobs = BlobCache::new(options, shares.blobs);
        if let Some(auto) = &auto {
            auto.watch(&blocks);
        }
        if let Some(now) = now {
            let own_blobs = blobs.as_ref().filter(|blobs| !blobs.is_shared);
            let caches = OwnCaches {
                blocks: if is_shared { Weak::new() } else { Arc::downgrade(&blocks) },
                second_tier: second_tier.as_ref().map_or(Weak::new(), Arc::downgrade),
                blobs: own_blobs.map_or(Weak::new(), |blobs| Arc::downgrade(&blobs.cache)),
                auto: auto.clone(),
            };
            caches.follow(budget.clone(), now, account, wanted);
        }
        let rows = options.row_cache.as_ref().map(|rows| rows.shared().clone());
        let rows = rows.map(|rows| (rows.clone(), rows.new_owner()));
        Self { owner: blocks.new_owner(), blocks, is_shared, blobs, second_tier, rows, auto }
    }

    /// Of blocks, and of values that have none of their own.
    pub(in crate::db) fn blocks(&self) -> &Arc<BlockCache> {
        &self.blocks
    }

    /// What sizes that, where nobody gave it a size.
    pub(in crate::db) fn auto(&self) -> Option<&Arc<AutoCache>> {
        self.auto.as_ref()
    }

    /// Bytes of those that nobody else has.
    pub(in crate::db) fn own_usage(&self) -> usize {
        let blocks = if self.is_shared { 0 } else { self.blocks.usage() };
        let blobs = self.blobs.as_ref().filter(|blobs| !blobs.is_shared);
        let second_tier = self.second_tier.as_ref().map_or(0, |second| second.usage());
        blocks + blobs.map_or(0, |blobs| blobs.cache.usage()) + second_tier
    }

    /// What the cache of blocks, and that of values, takes beside its entries; nothing of one that
    /// others have, too.
    pub(in crate::db) fn own_overheads(&self) -> [usize; 2] {
        let blocks = if self.is_shared { 0 } else { self.blocks.overhead() };
        let blobs = self.blobs.as_ref().filter(|blobs| !blobs.is_shared);
        [blocks, blobs.map_or(0, |blobs| blobs.cache.overhead())]
    }

    /// Who this database is in the cache.
    pub(in crate::db) fn owner(&self) -> &CacheOwner {
        &self.owner
    }

    /// Where values from blob files lie.
    #[inline]
    pub(in crate::db) fn blobs(&self) -> &Arc<BlockCache> {
        self.blobs.as_ref().map_or(&self.blocks, |blobs| &blobs.cache)
    }

    /// Who this database is there.
    #[inline]
    pub(in crate::db) fn blob_owner(&self) -> &CacheOwner {
        self.blobs.as_ref().map_or(&self.owner, |blobs| &blobs.owner)
    }

    /// Whether that is a cache of values alone.
    pub(in crate::db) fn has_blob_cache(&self) -> bool {
        self.blobs.is_some()
    }

    /// Where rows lie, if anywhere, and who this database is there.
    pub(in crate::db) fn rows(&self) -> Option<&(Arc<BlockCache>, CacheOwner)> {
        self.rows.as_ref()
    }

    /// The second tier, if there is one.
    pub(in crate::db) fn second_tier(&self) -> Option<&Arc<CompressedCache>> {
        self.second_tier.as_ref()
    }
}

impl Drop for Caches {
    /// Nobody is left who could ask for what others would have to drive out.
    fn drop(&mut self) {
        if self.is_shared {
            self.blocks.erase_all_of(&self.owner);
        }
        if let Some(blobs) = self.blobs.as_ref().filter(|blobs| blobs.is_shared) {
            blobs.cache.erase_all_of(&blobs.owner);
        }
        if let Some((rows, owner)) = &self.rows {
            rows.erase_all_of(owner);
        }
    }
}

/// A cache of values alone.
struct BlobCache {
    cache: Arc<BlockCache>,
    owner: CacheOwner,
    is_shared: bool,
}

impl BlobCache {
    /// The one that the options want, of so many bytes if it is not shared.
    fn new(options: &Options, capacity: usize) -> Option<Self> {
        let cache = match &options.blob_cache {
            Some(shared) => shared.shared().clone(),
            None if options.blob_cache_size == 0 => return None,
            None => Arc::new(BlockCache::new(&CacheSettings {
                shard_bits: options.blob_cache_shard_bits,
                high_priority_ratio: options.blob_cache_high_priority_ratio,
                ..own_cache(options, capacity)
            })),
        };
        let is_that_of_blocks =
            options.block_cache.as_ref().is_some_and(|blocks| Arc::ptr_eq(blocks.shared(), &cache));
        let owner = cache.new_owner();
        (!is_that_of_blocks).then(|| Self { cache, owner, is_shared: options.blob_cache.is_some() })
    }
}

/// The caches that a budget sizes. The account, to which these belong, outlives them: a value that
/// somebody keeps has it.
struct OwnCaches {
    blocks: Weak<BlockCache>,
    second_tier: Weak<CompressedCache>,
    blobs: Weak<BlockCache>,
    auto: Option<Arc<AutoCache>>,
}

impl OwnCaches {
    /// From now on the caches have what others leave them of the budget.
    fn follow(
        self,
        rule: BudgetRule,
        now: Budget,
        account: &Arc<MemoryAccount>,
        wanted: CachesWanted,
    ) {
        let own = [&self.blocks, &self.blobs].into_iter().filter_map(Weak::upgrade);
        own.for_each(|cache| cache.count_kept_in(account));
        let held = Arc::downgrade(account);
        account.follow(now.step(), move |_| {
            let (Some(held), Some(budget)) = (held.upgrade(), rule.now()) else { return };
            held.follow_every(budget.step());
            held.release_every(budget.release_step());
            let blocks = self.auto.as_ref().map_or(wanted.blocks, |auto| Some(auto.bytes()));
            let shares = budget.caches(&held, &CachesWanted { blocks, ..wanted });
            held.freed(self.set(&shares) + rule.free_if_pressed(&budget, &held));
        });
        account.release_every(now.release_step());
    }

    /// How many bytes they gave up.
    fn set(&self, shares: &CacheShares) -> usize {
        let mut freed = 0;
        for (cache, bytes) in [(&self.blocks, shares.blocks), (&self.blobs, shares.blobs)] {
            let Some(cache) = cache.upgrade() else { continue };
            let before = cache.capacity();
            if before != bytes {
                cache.set_capacity(bytes);
                freed += before.saturating_sub(bytes);
            }
        }
        if let Some(tier) =
            self.second_tier.upgrade().filter(|tier| tier.capacity() != shares.second_tier)
        {
            freed += tier.capacity().saturating_sub(shares.second_tier);
            tier.set_capacity(shares.second_tier);
        }
        freed
    }
}

/// Whether the block cache is of a size that nobody gave, in a budget of which nobody said that it
/// is to be used up.
fn sizes_itself(options: &Options, budget: &BudgetRule) -> bool {
    let has_size = options.block_cache.is_some() || options.block_cache_size.is_some();
    !has_size && options.db.memory_budget == MemoryBudget::Auto && budget.now().is_some()
}

/// The most bytes of the block cache, at first; `None` for what a budget of so many bytes leaves.
fn block_cache_wanted(options: &Options) -> Option<usize> {
    match (options.block_cache_size, options.db.memory_budget) {
        (Some(bytes), _) => Some(bytes as usize),
        (None, MemoryBudget::Bytes(_)) => None,
        (None, MemoryBudget::Auto | MemoryBudget::None) => Some(BEGINNING as usize),
    }
}

/// How a database makes a cache of its own, with so many bytes if it has a budget.
fn own_cache(options: &Options, capacity: usize) -> CacheSettings {
    CacheSettings { policy: options.db.cache_policy, ..CacheSettings::with_capacity(capacity) }
}
