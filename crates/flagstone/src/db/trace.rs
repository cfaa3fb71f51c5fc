//! Records what the block cache is asked for.

use std::path::Path;

use super::{Db, DbInner};
use crate::base::Result;
use crate::base::sync::Ordering;
use crate::cache::{TraceOptions, TraceSummary};

impl Db {
    /// Begins to record in a new file which blocks, and values of blob files, the block cache is asked for (RocksDB's
    /// `StartBlockCacheTrace`). `flagstone cache-sim` tells from such a trace what other policies and sizes would do. Ends with
    /// [`Db::end_block_cache_trace`] or when the database is closed.
    ///
    /// Values that have a cache of their own (`blob_cache`) are not in it.
    ///
    /// Of a cache that several databases share, the requests of all are recorded, until the database is closed that began it.
    ///
    /// While it goes on, each request takes a lock that all threads share. The file is not synced.
    ///
    /// # Errors
    /// `Busy` if that goes on already; `InvalidArgument` for a sampling frequency of 0, or a file that exists; `IoError`;
    /// `ShutdownInProgress`.
    pub fn start_block_cache_trace(&self, path: impl AsRef<Path>, options: &TraceOptions) -> Result<()> {
        let inner = self.inner();
        inner.context.check_open()?;
        inner.tables.caches().blocks().start_trace(&inner.context.env, path.as_ref(), options)?;
        inner.lifecycle.records_cache.store(true, Ordering::Release);
        Ok(())
    }

    /// Ends the recording, and tells what came of it; `None` if there is none (RocksDB's `EndBlockCacheTrace`).
    ///
    /// # Errors
    /// The first that writing the file met; what was asked for after it is not in the file.
    pub fn end_block_cache_trace(&self) -> Result<Option<TraceSummary>> {
        let inner = self.inner();
        inner.lifecycle.records_cache.store(false, Ordering::Release);
        inner.tables.caches().blocks().end_trace()
    }
}

impl DbInner {
    /// Writes what a recording still has in memory. That it cannot be written makes no database worse.
    pub(super) fn end_traces(&self) {
        // Another's, in a cache that is shared, goes on.
        if self.lifecycle.records_cache.swap(false, Ordering::AcqRel)
            && let Err(error) = self.tables.caches().blocks().end_trace()
        {
            tracing::error!(%error, "writing the block cache trace");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cache::TraceOptions;
    use crate::db::Db;
    use crate::env::Env;
    use crate::options::{Options, ReadOptions};

    /// Closing writes the rest, so that a program that forgets to end the recording has one all the same.
    #[test]
    fn reads_are_recorded_until_the_database_is_closed() {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        let db = Db::open("/db", &options).unwrap();
        (0..1000).for_each(|i| db.put(format!("key{i:04}"), [7; 100]).unwrap());
        db.flush_all().unwrap();
        db.start_block_cache_trace("/db/trace", &TraceOptions::default()).unwrap();
        let before = db.inner().tables.caches().blocks().statistics();
        (0..1000).for_each(|i| assert!(db.get(format!("key{i:04}")).unwrap().is_some()));
        // These find nothing, or have nothing kept.
        let unkept = ReadOptions { fill_cache: false, ..ReadOptions::default() };
        assert!(db.get("yes").unwrap().is_none());
        let mut iter = db.iter(&unkept).unwrap();
        iter.seek_to_first();
        assert!(iter.valid());
        drop(iter);
        let after = db.inner().tables.caches().blocks().statistics();
        let asked = after.hits - before.hits + after.inserts - before.inserts;
        db.close().unwrap();
        let size = options.env.fs.metadata("/db/trace".as_ref()).unwrap().size;
        assert_eq!(size, asked * 24);
        assert!(asked >= 1000, "{asked}");
        assert!(db.start_block_cache_trace("/db/other", &TraceOptions::default()).is_err());
    }
}
