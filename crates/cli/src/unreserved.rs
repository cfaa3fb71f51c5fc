//! Opening where there is no room for what the engine reserves.
//!
//! A WAL reserves write_buffer_size and a tenth, so that a full disk shows before a write. Who deletes or compacts because a
//! disk is nearly full may not have that much, and needs a few bytes of it. So what is refused for that is tried again without;
//! RocksDB's ldb takes no notice of a reservation that fails, either. It is a matter of the moment: the OPTIONS file goes on to
//! say what it said of allow_fallocate.

use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use flagstone::base::{Error, Result, SubCode};
use flagstone::env::{File, FileSystem, FileSystemAround, OpenMode, UnreservedFile};
use flagstone::options::Options;

use crate::failure::say;

/// Opens a database by `open`; if there is too little room for what would be reserved, with nothing reserved, which is said.
pub fn open<T>(options: &Options, path: &Path, open: impl Fn(&Options) -> Result<T>) -> Result<T> {
    match open(options) {
        // What is kept for when the disk is full is used then.
        Err(error) if options.allow_fallocate && options.reserved_disk_space == 0 && lacks_room(&error) => {}
        outcome => return outcome,
    }
    let env = options.env.clone();
    let fs = Arc::new(Unreserved(env.fs.clone()));
    let opened = open(&Options { env: env.with_fs(fs), ..options.clone() })?;
    say(format_args!(
        "note: {}: there is no room for what a WAL reserves (write_buffer_size and a tenth); this command reserves none",
        path.display()
    ));
    Ok(opened)
}

fn lacks_room(error: &Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let is_too_large = source.is_some_and(|source| source.kind() == ErrorKind::FileTooLarge);
    error.subcode() == SubCode::NoSpace || is_too_large
}

/// Files of another file system, for which nothing is reserved.
struct Unreserved(Arc<dyn FileSystem>);

impl FileSystemAround for Unreserved {
    fn inner(&self) -> &dyn FileSystem {
        &*self.0
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let file = self.0.open(path, mode)?;
        Ok(if mode.only_reads() { file } else { Arc::new(UnreservedFile::new(file)) })
    }
}

#[cfg(test)]
mod tests {
    use flagstone::db::Db;
    use flagstone::env::{Env, FileAround};
    use flagstone::options::load_latest;

    use super::*;

    /// A disk with room for what is written, and not for more.
    struct Crammed(Arc<dyn FileSystem>);

    struct CrammedFile(Arc<dyn File>);

    impl FileSystemAround for Crammed {
        fn inner(&self) -> &dyn FileSystem {
            &*self.0
        }

        fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
            Ok(Arc::new(CrammedFile(self.0.open(path, mode)?)))
        }
    }

    impl FileAround for CrammedFile {
        fn inner(&self) -> &dyn File {
            &*self.0
        }

        fn allocate(&self, _length: u64, _keep_size: bool) -> Result<()> {
            Err(Error::io("reserve space", self.0.path(), ErrorKind::StorageFull.into()))
        }
    }

    /// `delete` and `compact` were refused where they were needed most, until one knew of an option.
    #[test]
    fn a_disk_without_room_for_a_reservation_is_written_to_without_one() {
        let env = Env::memory();
        let env = Env { fs: Arc::new(Crammed(env.fs.clone())), ..env };
        let mut options = Options { env: env.clone(), ..Options::default() };
        options.create_if_missing = true;
        let path = Path::new("/db");
        let refused = Db::open(path, &options).err().unwrap();
        assert!(lacks_room(&refused), "{refused}");

        let db = open(&options, path, |options| Db::open(path, options)).unwrap();
        db.put("key", "value").unwrap();
        db.delete("key").unwrap();
        db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
        db.close().unwrap();
        drop(db);
        // It stays the choice of one command.
        assert!(load_latest(&env, path).unwrap().unwrap().options.allow_fallocate);
        assert!(Db::open(path, &options).is_err());
    }
}
