//! Random lives of a database, compared with ordered maps.
//!
//! `FLAGSTONE_SEEDS=1000 cargo test --test model` tells more of them; `FLAGSTONE_SEEDS==17` one alone.

#[test]
fn the_engine_does_what_ordered_maps_do() {
    testkit::for_each_seed(60, |seed| testkit::history::live(seed, 600));
}
