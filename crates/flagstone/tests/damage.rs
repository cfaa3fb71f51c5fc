//! Damaged files: each byte of each file of a small database is flipped, and each file is cut off
//! at many lengths.
//!
//! `FLAGSTONE_DAMAGE_STRIDE=1` visits every byte; by default every seventh.

use testkit::{damage, laboratory};

#[test]
fn a_flipped_byte_is_never_a_wrong_answer() {
    laboratory::begin();
    damage::flips();
}

#[test]
fn a_file_that_is_cut_off_is_never_a_wrong_answer() {
    laboratory::begin();
    damage::cuts();
}

#[test]
fn a_file_that_is_missing_is_never_a_wrong_answer() {
    laboratory::begin();
    damage::losses();
}
