//! Narrow experiments: each looks at one promise that random lives rarely put to the test.

use testkit::{laboratory, narrow};

#[test]
fn garbage_is_counted_exactly_and_nothing_is_left_behind() {
    laboratory::begin();
    narrow::books();
}

#[test]
fn a_checkpoint_takes_the_wals_along() {
    laboratory::begin();
    narrow::copies();
}

#[test]
fn a_write_whose_sync_failed_is_never_seen() {
    laboratory::begin();
    narrow::failed_syncs();
}

#[test]
fn a_family_whose_drop_was_refused_keeps_what_is_written_to_it() {
    laboratory::begin();
    narrow::doubtful_drops();
}

#[test]
fn a_table_whose_name_another_has_lost_is_not_counted_on() {
    laboratory::begin();
    narrow::lost_names();
}

#[test]
fn snapshots_go_on_seeing_what_they_saw() {
    laboratory::begin();
    narrow::straddling_versions();
}

#[test]
fn anything_may_happen_in_the_middle_of_a_job() {
    laboratory::begin();
    narrow::interruptions();
}

#[test]
fn what_comes_back_among_the_deleted_is_found() {
    laboratory::begin();
    narrow::queues();
}

#[test]
fn a_level_is_moved_over_nothing_newer_or_older() {
    laboratory::begin();
    narrow::moved_levels();
}

#[test]
fn a_conflict_is_seen_wherever_the_write_has_got_to() {
    laboratory::begin();
    narrow::conflicts();
}
