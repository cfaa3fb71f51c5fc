//! Random lives of a database, compared with ordered maps.
//!
//! `cargo run --release -p testkit --bin laboratory -- histories` lives more of them, and replays
//! those that failed.

use testkit::history::experiment;

#[test]
fn the_engine_does_what_ordered_maps_do() {
    experiment(0..20);
}

#[test]
fn whatever_its_options_are() {
    experiment(20..40);
}
