use std::ffi::{CStr, CString};

use super::{CFSTATS_NO_FILE_HISTOGRAM, PropName, PropertyName, STATS, num_files_at_level};
use crate::c_text::CStrLike;

#[test]
fn names_are_texts_and_c_strings() {
    assert_eq!("rocksdb.cfstats-no-file-histogram", CFSTATS_NO_FILE_HISTOGRAM.as_str());
    assert_eq!(*"rocksdb.stats", *STATS);
    assert_eq!(*c"rocksdb.stats", *STATS);
    let borrowed: &CStr = STATS;
    assert_eq!(borrowed, c"rocksdb.stats");
    let owned: PropertyName = STATS.to_owned();
    assert_eq!(owned, "rocksdb.stats".to_string());
    assert_eq!(CString::from(c"rocksdb.stats"), owned);
    assert_eq!((&owned).bake(), Ok(c"rocksdb.stats"));
    assert_eq!(owned.into_string(), "rocksdb.stats");
}

#[test]
fn a_name_may_end_in_a_level() {
    let name = num_files_at_level(5);
    let borrowed: &PropName = &name;
    assert_eq!(borrowed.as_str(), "rocksdb.num-files-at-level5");
    assert_eq!(name.into_c_string().as_c_str(), c"rocksdb.num-files-at-level5");
}
