use super::*;
use crate::env::Env;

/// Each was looked for among all that the other look had found: of a WAL of some megabytes of bad
/// records for hours.
#[test]
fn two_looks_that_find_many_faults_are_soon_compared() {
    const COUNT: u64 = 50_000;
    let found = || {
        let fault = |offset| Error::corruption("bad").at("/db/000007.log").at_offset(offset);
        LogReport { faults: (0..COUNT).map(fault).collect(), ..LogReport::default() }
    };
    let (mut second, first) = (found(), found());
    let clock = Env::os().clock;
    let began = clock.now_us();
    second.confirm(&first);
    // Minutes otherwise.
    assert!(clock.now_us() - began < 20_000_000);
    assert_eq!(second.faults.len() as u64, COUNT);
}
