//! Defaults of RocksDB 11.8.
//!
//! Most defaults of the engine are RocksDB's. The others are set here, and so are options that only
//! the engine has, where they would do what RocksDB does not.

use flagstone::options as engine;

/// Bytes of a block cache that was not given.
pub(super) const BLOCK_CACHE_SIZE: u64 = 32 << 20;

/// A database's and a family's.
pub(super) fn options() -> engine::Options {
    let mut options =
        engine::Options { block_cache_size: Some(BLOCK_CACHE_SIZE), ..engine::Options::default() };
    options.db.max_background_jobs = 2;
    options.db.recycle_log_file_num = 0;
    options.db.max_log_file_size = 0;
    options.db.keep_log_file_num = 1000;
    options.db.manifest_preallocation_size = 4 << 20;
    own_of_database(&mut options.db);
    let family = &mut options.cf;
    family.settings.compression = compression();
    family.settings.enable_blob_files = Some(false);
    family.settings.min_blob_size = Some(0);
    family.settings.blob_compression_type = Some(engine::CompressionType::None);
    own_of_family(&mut family.settings);
    family.table = tables();
    options
}

/// The compression of a build of RocksDB with these codecs, so that such a build reads the files.
fn compression() -> engine::CompressionType {
    if cfg!(feature = "lz4") {
        engine::CompressionType::Lz4
    } else if cfg!(feature = "snappy") {
        engine::CompressionType::Snappy
    } else {
        engine::CompressionType::None
    }
}

/// Options that only the engine has.
pub(super) fn own_of_database(settings: &mut engine::DbSettings) {
    settings.memory_budget = engine::MemoryBudget::None;
}

/// Options that only the engine has. Values go to blob files at a flush, as in RocksDB, which can
/// then open what a crash leaves; garbage in blob files and deletions start no work of their own.
pub(super) fn own_of_family(settings: &mut engine::CfSettings) {
    settings.blob_write_mode = engine::BlobWriteMode::Flush;
    settings.max_space_amplification = 0.0;
    settings.deletion_compaction_delay = 0;
}

/// Those of tables.
pub(super) fn tables() -> engine::TableSettings {
    engine::TableSettings {
        format_version: 7,
        filter_policy: None,
        ..engine::TableSettings::default()
    }
}
