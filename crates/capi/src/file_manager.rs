//! What files take, how fast they are removed, and their checksums.

use flagstone::options::FileChecksumGenFactory;
use flagstone_rocksdb as rdb;

use crate::abi::{Result, Tagged, handles, make};
use crate::api::{c_api, destroys};
use crate::calls::ReadOptions;
use crate::db::Db;
use crate::env::Env;
use crate::options::Options;

/// A limit of the space that databases take, and of how fast files are removed.
pub struct SstFileManager(rdb::SstFileManager);

/// Computes checksums of whole files: the built-in one.
pub struct FileChecksums;

handles! { SstFileManager = "sst_file_manager", FileChecksums = "file_checksum_gen_factory", }

destroys! {
    rocksdb_sst_file_manager_destroy: SstFileManager,
    rocksdb_file_checksum_gen_factory_destroy: FileChecksums,
}

/// Compares whole files with the checksums that the MANIFEST has.
///
/// # Errors
/// `InvalidArgument` in a database that records none; `Corruption`.
fn verify_file_checksums(db: &Db) -> Result<()> {
    if db.engine().options().file_checksum_gen_factory == FileChecksumGenFactory::None {
        let message = "the database has no file_checksum_gen_factory";
        return Err(rdb::Error::invalid_argument(message));
    }
    Ok(db.engine().verify_file_checksums()?)
}

c_api! {
    fn rocksdb_sst_file_manager_create(env: ?Env) -> *mut Tagged<SstFileManager> {
        let manager = match env {
            Some(env) => rdb::SstFileManager::new(&env.rdb),
            None => rdb::SstFileManager::new(&rdb::Env::new().expect("the system's never fails")),
        };
        make(SstFileManager(manager))
    }

    fn rocksdb_options_set_sst_file_manager(o: &mut Options, manager: &SstFileManager) {
        o.rdb.set_sst_file_manager(&manager.0);
    }

    fn rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(
        manager: &SstFileManager, rate: i64
    ) {
        manager.0.set_delete_rate_bytes_per_second(rate);
    }

    fn rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(manager: &SstFileManager) -> i64 {
        manager.0.get_delete_rate_bytes_per_second()
    }

    fn rocksdb_sst_file_manager_set_max_trash_db_ratio(manager: &SstFileManager, ratio: f64) {
        manager.0.set_max_trash_db_ratio(ratio);
    }

    fn rocksdb_sst_file_manager_get_max_trash_db_ratio(manager: &SstFileManager) -> f64 {
        manager.0.get_max_trash_db_ratio()
    }

    fn rocksdb_sst_file_manager_set_max_allowed_space_usage(
        manager: &SstFileManager, bytes: u64
    ) {
        manager.0.set_max_allowed_space_usage(bytes);
    }

    fn rocksdb_sst_file_manager_set_compaction_buffer_size(
        manager: &SstFileManager, bytes: u64
    ) {
        manager.0.set_compaction_buffer_size(bytes);
    }

    fn rocksdb_sst_file_manager_is_max_allowed_space_reached(manager: &SstFileManager) -> bool {
        manager.0.is_max_allowed_space_reached()
    }

    fn rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(
        manager: &SstFileManager
    ) -> bool {
        manager.0.is_max_allowed_space_reached_including_compactions()
    }

    fn rocksdb_sst_file_manager_get_total_size(manager: &SstFileManager) -> u64 {
        manager.0.get_total_size()
    }

    fn rocksdb_sst_file_manager_get_total_trash_size(manager: &SstFileManager) -> u64 {
        manager.0.get_total_trash_size()
    }

    fn rocksdb_file_checksum_gen_crc32c_factory_create() -> *mut Tagged<FileChecksums> {
        make(FileChecksums)
    }

    fn rocksdb_options_set_file_checksum_gen_factory(o: &mut Options, factory: ?FileChecksums) {
        o.rdb.db.db.file_checksum_gen_factory = match factory {
            Some(_) => FileChecksumGenFactory::Crc32c,
            None => FileChecksumGenFactory::None,
        };
    }

    fn rocksdb_verify_file_checksums(db: &Db, error) {
        verify_file_checksums(db)?;
    }

    fn rocksdb_verify_file_checksums_with_options(db: &Db, _options: &ReadOptions, error) {
        verify_file_checksums(db)?;
    }
}
