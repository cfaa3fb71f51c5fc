//! Walking over a range of keys.

use flagstone::db::{ColumnFamily, Db, Iter};
use flagstone::options::ReadOptions;

use crate::arguments::Bounds;
use crate::failure::Failure;

/// A cursor at the first (or, in reverse, the last) key within the bounds. It fills no cache.
pub fn cursor(db: &Db, family: &ColumnFamily, bounds: Bounds, reverse: bool) -> Result<Iter, Failure> {
    let options = ReadOptions {
        fill_cache: false,
        total_order_seek: true,
        iterate_lower_bound: bounds.0,
        iterate_upper_bound: bounds.1,
        ..ReadOptions::default()
    };
    let mut iter = db.iter_cf(family, &options)?;
    if reverse {
        iter.seek_to_last();
    } else {
        iter.seek_to_first();
    }
    Ok(iter)
}
