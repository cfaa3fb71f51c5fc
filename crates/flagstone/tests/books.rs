//! What is recorded of files is what they hold, and what no reader may see is not seen.

#[test]
fn garbage_is_counted_exactly_and_nothing_is_left_behind() {
    testkit::laboratory::begin();
    testkit::audit::books();
}

#[test]
fn a_write_whose_sync_failed_is_never_seen() {
    testkit::laboratory::begin();
    testkit::unseen::failed_syncs();
}
