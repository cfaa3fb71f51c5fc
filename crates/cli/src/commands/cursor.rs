//! Walking over a range of keys.

use flagstone::db::{ColumnFamily, Db, Iter};
use flagstone::options::ReadOptions;

use crate::arguments::Bounds;
use crate::failure::Failure;

/// A cursor at the first (or, in reverse, the last) key within the bounds. It fills no cache.
pub fn cursor(db: &Db, family: &ColumnFamily, bounds: Bounds, reverse: bool) -> Result<Iter, Failure> {
    Ok(at_start(db.iter_cf(family, &read_options(bounds))?, reverse))
}

/// How to read the keys within the bounds, once.
pub fn read_options(bounds: Bounds) -> ReadOptions {
    ReadOptions {
        fill_cache: false,
        total_order_seek: true,
        iterate_lower_bound: bounds.0,
        iterate_upper_bound: bounds.1,
        ..ReadOptions::default()
    }
}

/// The cursor, sent to its first key, or in reverse to its last.
pub fn at_start(mut iter: Iter, reverse: bool) -> Iter {
    if reverse {
        iter.seek_to_last();
    } else {
        iter.seek_to_first();
    }
    iter
}
