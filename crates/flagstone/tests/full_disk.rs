//! What a full disk must not leave behind.

use std::path::Path;
use std::sync::Arc;

use flagstone::base::SubCode;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem};
use flagstone::options::Options;
use testkit::QuotaFs;

/// A file that was to replace another (an OPTIONS file, CURRENT) stayed as `NNNNNN.dbtmp` when there was no room for it,
/// one more with every attempt, until the database was opened again.
#[test]
fn what_could_not_be_written_does_not_stay() {
    let memory = Arc::new(MemoryFileSystem::new());
    let path = Path::new("/db");
    let fs = QuotaFs::new(memory.clone(), path, u64::MAX).expect("an empty directory");
    let mut options = Options { env: Env::memory().with_fs(Arc::new(fs.clone())), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open(path, &options).expect("a database");
    fs.set_limit(fs.used() + 10);
    for size in ["1000000", "2000000", "3000000"] {
        let refused = db.set_options(db.default_column_family(), &[("write_buffer_size", size)]);
        assert_eq!(refused.expect_err("there is no room").subcode(), SubCode::NoSpace);
    }
    let names = memory.list(path).expect("a listing");
    assert!(!names.iter().any(|name| name.ends_with(".dbtmp")), "{names:?}");
}

/// Space is reserved ahead of what is written around the system's cache. Where there was not enough for that, the attempt took
/// what was left and kept it until the file was closed: a blob file, until a flush that found no room any more.
#[test]
fn what_cannot_be_reserved_is_left_to_others() {
    let path = Path::new("/db");
    let fs = QuotaFs::new(Arc::new(MemoryFileSystem::new()), path, u64::MAX).expect("an empty directory");
    let mut options = Options { env: Env::memory().with_fs(Arc::new(fs.clone())), ..Options::default() };
    let set = "create_if_missing=true;enable_blob_files=true;min_blob_size=100;blob_commit_min_size=100;\
               blob_commit_direct_min_size=100;use_direct_io_for_flush_and_compaction=true";
    options.set_all(set).expect("options");
    let db = Db::open(path, &options).expect("a database");
    fs.set_limit(fs.used() + 200_000);
    db.put("large", vec![b'x'; 20_000]).expect("room for the value");
    assert!(fs.used() + 100_000 < fs.limit(), "{} of {} bytes are taken", fs.used(), fs.limit());
    db.flush_all().expect("room for a table");
}
