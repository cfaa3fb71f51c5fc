//! Functions with the parameters that they had before RocksDB changed them, for programs that were
//! linked to such a version. `build.rs` knows which.

#[cfg(before_9)]
crate::api::c_api! {
    fn rocksdb_enable_file_deletions(db: &crate::db::Db, force: flag, error) {
        db.engine().enable_file_deletions(force)?;
    }
}

#[cfg(before_11)]
use {
    crate::abi::{Destructor, State, Tagged},
    crate::components::{InDomain, NameCallback, SliceTransform, Transform, called},
    std::ffi::c_void,
};

#[cfg(before_11)]
crate::api::c_api! {
    fn rocksdb_slicetransform_create(
        state: *mut c_void, destructor: Option<Destructor>, transform: Transform,
        in_domain: InDomain, _in_range: InDomain, name_of: NameCallback
    ) -> *mut Tagged<SliceTransform> {
        called(State::new(state, destructor), transform, in_domain, name_of)
    }
}
