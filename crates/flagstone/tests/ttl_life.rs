//! Random lives of a database whose values expire, with a clock in hand.

use testkit::{expiring, for_each_seed};

#[test]
fn lives_agree_with_a_model() {
    for_each_seed(8, |seed| expiring::live(seed, 400));
}
