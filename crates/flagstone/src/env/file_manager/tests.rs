use std::path::{Path, PathBuf};

use super::space::Space;
use crate::base::SubCode;

fn space(max_allowed: u64, files: &[(u64, &str, u64)]) -> Space {
    let mut space = Space::default();
    space.max_allowed = max_allowed;
    for (database, path, size) in files {
        space.add(*database, PathBuf::from(path), *size);
    }
    space
}

#[test]
fn a_file_counts_once_with_its_last_size() {
    let mut space = space(0, &[(0, "a", 5), (0, "a", 7), (1, "a", 10)]);
    assert_eq!(space.total(), 17);
    space.remove(0, Path::new("a"));
    space.remove(0, Path::new("never there"));
    assert_eq!(space.total(), 10);
    space.forget(1);
    assert_eq!((space.total(), space.files().len()), (0, 0));
}

#[test]
fn the_limit_is_reached_at_it() {
    assert!(!space(18, &[(0, "a", 17)]).is_reached(false));
    assert!(space(17, &[(0, "a", 17)]).is_reached(false));
    assert!(!space(0, &[(0, "a", u64::MAX), (0, "b", 1)]).is_reached(true), "there is none");
    let refused = space(17, &[(0, "a", 17)]).check_room().expect_err("it is reached");
    assert_eq!(refused.subcode(), SubCode::SpaceLimit);
}

#[test]
fn compactions_share_what_is_left() {
    let mut space = space(100, &[(0, "a", 50)]);
    space.compaction_buffer = 10;
    space.reserve(30).expect("30 and 10 of 50");
    space.reserve(11).expect_err("one too much");
    space.reserve(10).expect("all that is left");
    assert!(!space.is_reached(false) && !space.is_reached(true));
    space.release(40);
    space.reserve(40).expect("it was given back");
    space.reserve(u64::MAX).expect_err("far too much");
}
