//! What an opening is given, and what follows it.
//!
//! 1. [`Opening::new`] turns options into the engine's. What cannot be had fails it.
//! 2. The caller opens the database with [`Opening::options`] and [`Opening::families`].
//! 3. [`Opening::opened`] adds the database to statistics. The caller drops what it returns before
//!    its own handle, so that closing is the caller's.

use std::path::Path;
use std::sync::Arc;

use flagstone::db::Db;
use flagstone::options as engine;
use flagstone::options::table::Settings;

use super::Options;
use crate::error::Error;
use crate::statistics::{CountedDatabase, Histogram, Statistics};

/// The niceness of threads that give way to all others.
const NICENESS_MAX: i32 = 19;

/// RocksDB's least bytes of a memtable.
const WRITE_BUFFER_SIZE_MIN: u64 = 64 << 10;

/// A family's name and options.
type Family = (String, engine::ColumnFamilyOptions);

/// An opening that is under way.
pub(crate) struct Opening {
    options: engine::Options,
    families: Vec<Family>,
    statistics: Option<Arc<Statistics>>,
}

/// What belongs to an open database beside its handle. It holds the database open.
#[derive(Default)]
pub(crate) struct Opened {
    counted: Option<CountedDatabase>,
}

impl Opening {
    /// The opening of the database in `path` with these families, each with its own options;
    /// `options` are those of the database.
    ///
    /// # Errors
    /// `Not implemented` or `Invalid argument` for an option that cannot be had.
    pub(crate) fn new(
        options: &Options,
        path: &Path,
        families: &[(&str, &Options)],
    ) -> Result<Self, Error> {
        let mut engine = options.engine()?;
        forget_own_directory(&mut engine.db.wal_dir, path);
        let of_default = families.iter().find(|(name, _)| *name == "default");
        let each = of_default.into_iter().chain(families).map(|(_, family)| *family);
        let each = || each.clone().chain([options]);
        let blocks = each().find_map(|family| family.block_cache.as_ref());
        let blobs = each().find_map(|family| family.blob_cache.as_ref());
        engine.block_cache = blocks.map(|cache| cache.engine.clone());
        engine.blob_cache = blobs.map(|cache| cache.engine.clone());
        if let Some((_, family)) = of_default {
            engine.cf = family.engine_family()?;
        }
        let with_engine_options = |(name, family): &(&str, &Options)| -> Result<Family, Error> {
            Ok(((*name).to_string(), family.engine_family()?))
        };
        let families = families.iter().map(with_engine_options).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { options: engine, families, statistics: options.statistics.clone() })
    }

    /// The options of the database, and in `cf` those of the default family.
    pub(crate) fn options(&self) -> &engine::Options {
        &self.options
    }

    /// The families, in the order in which they were given.
    pub(crate) fn families(&self) -> &[Family] {
        &self.families
    }

    /// The database is open.
    pub(crate) fn opened(self, db: &Db) -> Opened {
        Opened { counted: self.statistics.map(|statistics| statistics.count(db)) }
    }
}

impl Opened {
    /// Does `work`, and measures how long it takes if statistics are enabled.
    pub(crate) fn measure<T>(&self, histogram: Histogram, work: impl FnOnce() -> T) -> T {
        match &self.counted {
            Some(counted) => counted.measure(histogram, work),
            None => work(),
        }
    }

    /// The statistics, if they are enabled.
    pub(crate) fn statistics(&self) -> Option<&Statistics> {
        self.counted.as_ref().map(CountedDatabase::statistics)
    }
}

impl Options {
    /// The options as the engine takes them, with those of the family in `cf`.
    ///
    /// # Errors
    /// `Not implemented` or `Invalid argument` for an option that cannot be had.
    #[doc(hidden)]
    pub fn engine(&self) -> Result<engine::Options, Error> {
        if let Some((_, why)) = self.refused.first() {
            return Err(why.clone());
        }
        let mut options = self.db.clone();
        fit_all(&mut options.db);
        let (log, level) = self.logger.engine(options.db.info_log_level);
        options.info_log = log;
        options.db.info_log_level = level;
        options.cf = self.engine_family()?;
        options.block_cache = self.block_cache.as_ref().map(|cache| cache.engine.clone());
        options.blob_cache = self.blob_cache.as_ref().map(|cache| cache.engine.clone());
        let files = self.sst_file_manager.as_ref();
        options.sst_file_manager = files.map(|manager| manager.engine.clone());
        let memtables = self.write_buffer_manager.as_ref();
        options.write_buffer_manager = memtables.map(|manager| manager.engine.clone());
        if self.env.as_ref().is_some_and(|env| env.gives_way()) && cfg!(target_os = "linux") {
            options.db.background_niceness = NICENESS_MAX;
        }
        options.db.background_idle_io =
            cfg!(target_os = "linux") && self.env.as_ref().is_some_and(|env| env.has_idle_io());
        Ok(options)
    }

    /// The options of the column family as the engine takes them.
    ///
    /// # Errors
    /// None so far.
    #[doc(hidden)]
    pub fn engine_family(&self) -> Result<engine::ColumnFamilyOptions, Error> {
        let mut family = self.db.cf.clone();
        let settings = &mut family.settings;
        fit_all(settings);
        settings.write_buffer_size = settings.write_buffer_size.max(WRITE_BUFFER_SIZE_MIN);
        fit_all(&mut settings.compression_opts);
        fit_all(&mut settings.bottommost_compression_opts);
        fit_all(&mut settings.compaction_options_universal);
        fit_all(&mut settings.compaction_options_fifo);
        if family.prefix_extractor.is_none()
            && matches!(settings.memtable_factory, engine::MemTableFactory::PrefixHash { .. })
        {
            settings.memtable_factory = engine::MemTableFactory::default();
        }
        let format_version = family.table.format_version;
        fit_all(&mut family.table);
        // Another format is refused.
        family.table.format_version = format_version;
        if family.table.index_type != engine::IndexType::TwoLevel {
            family.table.partition_filters = false;
        }
        if family.table.index_type == engine::IndexType::HashSearch {
            family.table.index_block_restart_interval = 1;
        }
        Ok(family)
    }
}

/// Takes every setting to the nearest value in its range.
fn fit_all<T: Settings>(settings: &mut T) {
    for row in T::ROWS {
        settings.fit(row.name);
    }
}

/// WAL files lie in the database's directory anyway.
fn forget_own_directory(wal_dir: &mut String, path: &Path) {
    // Comparing paths passes over a slash at the end.
    if Path::new(wal_dir.as_str()) == path {
        wal_dir.clear();
    }
}
