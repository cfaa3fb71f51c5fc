//! Databases and column families: opening, closing, making, dropping, destroying.

use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flagstone::db::ColumnFamily;
use flagstone_rocksdb as rdb;
use flagstone_rocksdb::parts::{Access, Store, list_families, open_store, repair_database};

use crate::abi::{
    self, Array, ErrorSlot, Out, Ref, Tagged, Text, copied, copied_array, copied_text, count,
    handles, make, returned,
};
use crate::api::{c_api, destroys};
use crate::cache::Cache;
use crate::env::Env;
use crate::options::Options;

/// An open database. What reads and writes it shares the store, which closes when the last is gone
/// or when C closes it.
#[derive(Clone)]
pub struct Db {
    pub(crate) store: Arc<Store>,
}

/// A column family of an open database.
#[derive(Clone)]
pub struct Family {
    pub(crate) engine: ColumnFamily,
}

impl abi::Handle for Db {
    const NAME: &'static str = "rocksdb_t";
}

handles! { Family = "column_family_handle", }
destroys! { rocksdb_column_family_handle_destroy: Family, }

impl rdb::AsColumnFamilyRef for Family {
    fn inner(&self) -> &ColumnFamily {
        &self.engine
    }
}

/// Whether a flush of all families is atomic: by option, or because there is only one.
pub fn flushes_atomically(store: &Store) -> bool {
    let db = store.db();
    db.options().atomic_flush || db.column_families().len() == 1
}

impl Db {
    /// The engine's handle.
    pub fn engine(&self) -> &flagstone::db::Db {
        self.store.db()
    }

    /// The family, or the default one.
    pub fn family<'a>(&'a self, family: Option<&'a Family>) -> &'a ColumnFamily {
        family.map_or_else(|| self.store.default_family(), |family| &family.engine)
    }

    /// The handle of a database that was opened.
    pub fn of(store: Arc<Store>) -> Self {
        Self { store }
    }

    /// As [`flushes_atomically`].
    pub fn flushes_atomically(&self) -> bool {
        flushes_atomically(&self.store)
    }

    /// Gives the directory up, also if iterators or families are left.
    pub fn close(self) {
        if let Err(error) = self.engine().close() {
            tracing::warn!(%error, "closing a database");
        }
    }
}

/// The arrays that an opening with families takes: names, options, and room for handles.
pub struct Families {
    pub(crate) len: i32,
    pub(crate) names: Array<Text>,
    pub(crate) options: Array<Ref<Options>>,
    pub(crate) handles: Array<*mut Tagged<Family>>,
}

impl Families {
    fn descriptors(&self, ttls: Option<&[i32]>) -> abi::Result<Vec<rdb::ColumnFamilyDescriptor>> {
        let len = count(self.len);
        let pairs = self.names.slice(len)?.iter().zip(self.options.slice(len)?);
        let of = |(at, (name, options)): (usize, (&Text, &Ref<Options>))| {
            let ttl = ttls.map_or(rdb::ColumnFamilyTtl::SameAsDb, |ttls| ttl_of(ttls[at]));
            let options = options.get()?.rdb.clone();
            Ok(rdb::ColumnFamilyDescriptor::new_with_ttl(name.utf8()?, options, ttl))
        };
        let descriptors = pairs.enumerate().map(of).collect::<abi::Result<Vec<_>>>()?;
        if !descriptors.iter().any(|one| one.name() == rdb::DEFAULT_COLUMN_FAMILY_NAME) {
            return Err(rdb::Error::invalid_argument("Default column family not specified"));
        }
        Ok(descriptors)
    }

    fn fill(&self, store: &Store) -> abi::Result<()> {
        for (at, name) in self.names.slice(count(self.len))?.iter().enumerate() {
            let found = store.db().column_family(name.utf8()?);
            let family = found.map(|engine| make(Family { engine }));
            self.handles.set(at, family.unwrap_or(std::ptr::null_mut()));
        }
        Ok(())
    }
}

/// Seconds; none that is positive is for ever.
fn ttl_of(seconds: i32) -> rdb::ColumnFamilyTtl {
    match u64::try_from(seconds) {
        Ok(seconds) if seconds > 0 => rdb::ColumnFamilyTtl::Duration(Duration::from_secs(seconds)),
        _ => rdb::ColumnFamilyTtl::Disabled,
    }
}

fn seconds(number: i32) -> Duration {
    Duration::from_secs(u64::try_from(number).unwrap_or_default())
}

/// Opens a database that has no family but the default one.
pub fn open(options: &Options, path: &Path, access: &Access) -> abi::Result<Arc<Store>> {
    let name = rdb::DEFAULT_COLUMN_FAMILY_NAME;
    let family = rdb::ColumnFamilyDescriptor::new(name, options.rdb.clone());
    Ok(Arc::new(open_store(&options.rdb, path, &[family], access)?))
}

/// Opens a database with families, and fills in their handles.
pub fn open_with(
    options: &Options,
    path: &Path,
    families: &Families,
    access: &Access,
    ttls: Option<&[i32]>,
) -> abi::Result<Arc<Store>> {
    let descriptors = families.descriptors(ttls)?;
    let store = Arc::new(open_store(&options.rdb, path, &descriptors, access)?);
    families.fill(&store)?;
    Ok(store)
}

fn opened(store: abi::Result<Arc<Store>>) -> abi::Result<*mut Tagged<Db>> {
    Ok(make(Db::of(store?)))
}

fn read_only(error_if_log_file_exist: bool) -> Access {
    Access::ReadOnly { error_if_log_file_exist }
}

fn secondary(directory: &Path) -> Access {
    Access::Secondary { directory: directory.to_path_buf() }
}

c_api! {
    fn rocksdb_open(options: &Options, path: path, error) -> *mut Tagged<Db> {
        opened(open(options, path, &Access::ReadWrite))?
    }

    fn rocksdb_open_with_ttl(
        options: &Options, path: path, ttl: i32, error
    ) -> *mut Tagged<Db> {
        opened(open(options, path, &Access::WithTtl(seconds(ttl))))?
    }

    fn rocksdb_open_for_read_only(
        options: &Options, path: path, error_if_wal: flag, error
    ) -> *mut Tagged<Db> {
        opened(open(options, path, &read_only(error_if_wal)))?
    }

    fn rocksdb_open_as_secondary(
        options: &Options, path: path, directory: path, error
    ) -> *mut Tagged<Db> {
        opened(open(options, path, &secondary(directory)))?
    }

    fn rocksdb_open_column_families(
        options: &Options, path: path, len: i32, names: Array<Text>, families: Array<Ref<Options>>,
        handles: Array<*mut Tagged<Family>>, error
    ) -> *mut Tagged<Db> {
        let families = Families { len, names, options: families, handles };
        opened(open_with(options, path, &families, &Access::ReadWrite, None))?
    }

    fn rocksdb_open_and_trim_history(
        options: &Options, path: path, len: i32, names: Array<Text>, families: Array<Ref<Options>>,
        handles: Array<*mut Tagged<Family>>, timestamp: *mut c_char, timestamp_len: usize, error
    ) -> *mut Tagged<Db> {
        let families = Families { len, names, options: families, handles };
        let trim = returned(timestamp, timestamp_len, <[u8]>::to_vec).unwrap_or_default();
        let store = open_with(options, path, &families, &Access::ReadWrite, None)?;
        for family in store.db().column_families() {
            if family.comparator().timestamp_size() > 0 {
                store.db().trim_history(&family, &trim)?;
            }
        }
        opened(Ok(store))?
    }

    fn rocksdb_open_column_families_with_ttl(
        options: &Options, path: path, len: i32, names: Array<Text>, families: Array<Ref<Options>>,
        handles: Array<*mut Tagged<Family>>, ttls: Array<i32>, error
    ) -> *mut Tagged<Db> {
        let families = Families { len, names, options: families, handles };
        let ttls = ttls.slice(count(len))?;
        let access = Access::WithTtl(Duration::ZERO);
        opened(open_with(options, path, &families, &access, Some(ttls)))?
    }

    fn rocksdb_open_for_read_only_column_families(
        options: &Options, path: path, len: i32, names: Array<Text>, families: Array<Ref<Options>>,
        handles: Array<*mut Tagged<Family>>, error_if_wal: flag, error
    ) -> *mut Tagged<Db> {
        let families = Families { len, names, options: families, handles };
        opened(open_with(options, path, &families, &read_only(error_if_wal), None))?
    }

    fn rocksdb_open_as_secondary_column_families(
        options: &Options, path: path, directory: path, len: i32, names: Array<Text>,
        families: Array<Ref<Options>>, handles: Array<*mut Tagged<Family>>, error
    ) -> *mut Tagged<Db> {
        let families = Families { len, names, options: families, handles };
        opened(open_with(options, path, &families, &secondary(directory), None))?
    }

    fn rocksdb_close(db: own Db) {
        if let Some(db) = db {
            db.close();
        }
    }

    fn rocksdb_try_catch_up_with_primary(db: &Db, error) {
        db.store.catch_up()?
    }

    fn rocksdb_destroy_db(options: &Options, path: path, error) {
        flagstone::db::destroy(path, &options.rdb.engine()?, &[])?
    }

    fn rocksdb_repair_db(options: &Options, path: path, error) {
        repair_database(&options.rdb, path)?
    }

    fn rocksdb_list_column_families(
        options: &Options, path: path, len: Out<usize>, error
    ) -> *mut *mut c_char {
        len.set(0);
        let names = list_families(&options.rdb, path)?;
        len.set(names.len());
        let names: Vec<_> = names.iter().map(copied_text).collect();
        copied_array(&names)
    }

    fn rocksdb_list_column_families_destroy(list: Array<*mut c_char>, len: usize) {
        abi::free_texts(list, len);
    }

    fn rocksdb_create_column_family(
        db: &Db, options: &Options, name: str, error
    ) -> *mut Tagged<Family> {
        make(Family { engine: db.store.create_family(name, &options.rdb.engine_family()?)? })
    }

    fn rocksdb_create_column_families(
        db: Ref<Db>, options: Ref<Options>, len: i32, names: Array<Text>, made: Out<usize>,
        errptr: ErrorSlot
    ) -> *mut *mut Tagged<Family> {
        // One after the other: the caller gets those before the first that fails.
        let mut families = Vec::new();
        errptr.guard(|| {
            let (db, options) = (db.get()?, options.get()?.rdb.engine_family()?);
            for name in names.slice(count(len))? {
                let engine = db.store.create_family(name.utf8()?, &options)?;
                families.push(make(Family { engine }));
            }
            Ok(())
        });
        made.set(families.len());
        copied_array(&families)
    }

    fn rocksdb_create_column_families_destroy(list: Array<*mut Tagged<Family>>) {
        abi::free_array(list);
    }

    fn rocksdb_create_column_family_with_ttl(
        db: &Db, options: &Options, name: str, ttl: i32, error
    ) -> *mut Tagged<Family> {
        let ttl = seconds(ttl).as_secs();
        let options = options.rdb.engine_family()?;
        make(Family { engine: db.store.create_expiring_family(name, &options, ttl)? })
    }

    fn rocksdb_drop_column_family(db: &Db, family: &Family, error) {
        db.store.drop_family(&family.engine)?
    }

    fn rocksdb_get_default_column_family_handle(db: &Db) -> *mut Tagged<Family> {
        make(Family { engine: db.store.default_family().clone() })
    }

    fn rocksdb_column_family_handle_get_id(family: &Family) -> u32 {
        family.engine.id().0
    }

    fn rocksdb_column_family_handle_get_name(family: &Family, len: Out<usize>) -> *mut c_char {
        len.set(family.engine.name().len());
        copied(family.engine.name().as_bytes())
    }

    fn rocksdb_load_latest_options(
        path: path, env: &Env, ignore_unknown: bool, cache: ?Cache,
        database: Out<*mut Tagged<Options>>, len: Out<usize>, names: Out<*mut *mut c_char>,
        families: Out<*mut *mut Tagged<Options>>, error
    ) {
        let cache = cache.map(|cache| cache.0.clone());
        let cache = cache.unwrap_or_else(|| rdb::Cache::new_lru_cache(BLOCK_CACHE_SIZE));
        let loaded = rdb::Options::load_latest(path, env.rdb.clone(), ignore_unknown, cache)?;
        let (options, descriptors) = loaded;
        let wrap = |rdb: rdb::Options| make(Options { rdb, ..Options::default() });
        let texts: Vec<_> = descriptors.iter().map(|one| copied_text(one.name())).collect();
        len.set(texts.len());
        names.set(copied_array(&texts));
        let wrapped: Vec<_> = descriptors.into_iter().map(|one| wrap(one.into_options())).collect();
        families.set(copied_array(&wrapped));
        database.set(wrap(options));
    }

    fn rocksdb_load_latest_options_destroy(
        database: own Options, names: Array<*mut c_char>, families: Array<*mut Tagged<Options>>,
        len: usize
    ) {
        let _destroyed = database;
        abi::free_texts(names, len);
        abi::free_handles(families, len);
    }

    fn rocksdb_free(pointer: *mut std::ffi::c_void) {
        abi::free(pointer);
    }
}

/// Bytes of RocksDB's block cache where none is given.
const BLOCK_CACHE_SIZE: usize = 32 << 20;
