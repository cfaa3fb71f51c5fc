//! Every fuzz target runs over its seeds and a few mutations of each. The long runs are
//! `scripts/fuzz-all.sh`.

use testkit::fuzz;
use testkit::laboratory::begin;

#[test]
fn decoders_survive_their_seeds_and_mutations_of_them() {
    begin();
    fuzz::smoke_decoders();
}

#[test]
fn damaged_databases_are_opened_and_used() {
    begin();
    fuzz::smoke_databases();
}
