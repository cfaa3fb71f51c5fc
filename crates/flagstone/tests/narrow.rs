//! Narrow experiments: what is recorded of files is what they hold, what no reader may see is not seen, and what a snapshot
//! saw it goes on seeing, however many tables its keys straddle.

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

#[test]
fn snapshots_go_on_seeing_what_they_saw() {
    testkit::laboratory::begin();
    testkit::versions::straddle_tables();
}
