//! Tables of a family in one level or range.

use std::ffi::c_char;

use flagstone::db::ColumnFamily;

use crate::abi::{Out, Tagged, handles, make};
use crate::api::{c_api, c_settings, creates, destroys};
use crate::db::{Db, Family};
use crate::event_infos::lend_at;
use crate::report::{FamilyMetadata, metadata_of};

/// Which tables are listed.
pub struct Wanted {
    /// Negative for all.
    level: i32,
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { level: -1, start: None, end: None }
    }
}

handles! { Wanted = "column_family_metadata_options", }
creates! { rocksdb_column_family_metadata_options_create: Wanted, }
destroys! { rocksdb_column_family_metadata_options_destroy: Wanted, }

c_settings! { "rocksdb_column_family_metadata_options", Wanted, |o| {
    value i32, level: o.level;
} }

/// A range of keys, open where there is none.
#[derive(Clone)]
struct Range<'a> {
    order: &'a flagstone::Comparator,
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
}

impl Range<'_> {
    fn is_before(&self, a: &[u8], b: &[u8]) -> bool {
        self.order.compare(a, b).is_lt()
    }

    fn overlaps(&self, smallest: &[u8], largest: &[u8]) -> bool {
        self.start.as_ref().is_none_or(|start| !self.is_before(largest, start))
            && self.end.as_ref().is_none_or(|end| !self.is_before(end, smallest))
    }

    /// Takes in the bounds of a table; whether that made it larger.
    fn grow(&mut self, smallest: &[u8], largest: &[u8]) -> bool {
        let before = self.start.as_ref().is_some_and(|start| self.is_before(smallest, start));
        let behind = self.end.as_ref().is_some_and(|end| self.is_before(end, largest));
        if before {
            self.start = Some(smallest.to_vec());
        }
        if behind {
            self.end = Some(largest.to_vec());
        }
        before || behind
    }
}

/// The tables that overlap the range, and in level 0 those that overlap these. As in RocksDB,
/// levels without any are left out.
fn wanted(db: &Db, family: &ColumnFamily, options: Option<&Wanted>) -> *mut Tagged<FamilyMetadata> {
    let default = Wanted::default();
    let options = options.unwrap_or(&default);
    let mut all = metadata_of(db, family);
    let order = family.comparator();
    let range = Range { order, start: options.start.clone(), end: options.end.clone() };
    let mut of_level_0 = range.clone();
    while all.of_level_0().any(|(smallest, largest)| {
        of_level_0.overlaps(smallest, largest) && of_level_0.grow(smallest, largest)
    }) {}
    all.retain(|level, smallest, largest| {
        let range = if level == 0 { &of_level_0 } else { &range };
        (options.level < 0 || level == options.level) && range.overlaps(smallest, largest)
    });
    make(all)
}

c_api! {
    fn rocksdb_column_family_metadata_options_set_start_key(o: &mut Wanted, key: ?[u8]) {
        o.start = key.map(<[u8]>::to_vec);
    }

    fn rocksdb_column_family_metadata_options_get_start_key(
        o: &Wanted, len: Out<usize>
    ) -> *const c_char {
        lend_at(o.start.as_deref(), len)
    }

    fn rocksdb_column_family_metadata_options_set_end_key(o: &mut Wanted, key: ?[u8]) {
        o.end = key.map(<[u8]>::to_vec);
    }

    fn rocksdb_column_family_metadata_options_get_end_key(
        o: &Wanted, len: Out<usize>
    ) -> *const c_char {
        lend_at(o.end.as_deref(), len)
    }

    fn rocksdb_get_column_family_metadata_with_options(
        db: &Db, options: ?Wanted
    ) -> *mut Tagged<FamilyMetadata> {
        wanted(db, db.store.default_family(), options)
    }

    fn rocksdb_get_column_family_metadata_cf_with_options(
        db: &Db, family: &Family, options: ?Wanted
    ) -> *mut Tagged<FamilyMetadata> {
        wanted(db, &family.engine, options)
    }
}
