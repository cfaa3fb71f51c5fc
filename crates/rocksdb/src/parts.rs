//! What the C API is made of, beside the public names. It may change with any version.

use flagstone::options::BlockCache;

use crate::{Cache, Env, WriteBufferManager};

pub use crate::db::{Access, list_families, open_store, repair_database};
pub use crate::options::{bits_in_range, bloom, has_no_effect};
pub use crate::store::{Cursor, Store};
pub use crate::walker::Walker;

/// Counters of single operations.
pub mod perf {
    pub use flagstone::reports::{PerfContext, PerfLevel, PerfMetric, set_perf_level};
}

/// The engine's cache behind one.
pub fn engine_cache(cache: &Cache) -> &BlockCache {
    &cache.engine
}

/// The engine's limit of memtables behind one.
pub fn engine_manager(manager: &WriteBufferManager) -> &flagstone::options::WriteBufferManager {
    manager.engine()
}

/// The engine's environment behind one.
pub fn engine_env(env: &Env) -> &flagstone::Env {
    &env.engine
}
