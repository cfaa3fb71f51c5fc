use crate::db::handle::Db;
use crate::env::Env;
use crate::options::{Options, ReadOptions};

/// One that was made before went on with the former options, in all iterators up to the next super
/// version.
#[test]
fn a_cursor_of_former_options_is_not_kept() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    let family = db.default_column_family();
    let parked = || family.0.parked.0.lock().cursors.len();
    drop(db.iter(&ReadOptions::default()).unwrap());
    assert_eq!(parked(), 1);
    let before = db.iter(&ReadOptions::default()).unwrap();
    db.set_options(family, &[("max_auto_readahead_size", "0")]).unwrap();
    drop(before);
    assert_eq!(parked(), 0);
    drop(db.iter(&ReadOptions::default()).unwrap());
    assert_eq!(parked(), 1);
}
