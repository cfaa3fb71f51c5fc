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
