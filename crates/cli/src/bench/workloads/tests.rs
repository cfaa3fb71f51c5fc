use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use flagstone::env::Clock;
use flagstone::options::Options;

use super::*;
use crate::bench::flags::tests::parse;

struct Stopped;

impl Clock for Stopped {
    fn now_us(&self) -> u64 {
        panic!("the clock stands still")
    }

    fn unix_seconds(&self) -> u64 {
        0
    }

    fn sleep(&self, _duration: Duration) {}
}

/// The writer beside it wrote for ever.
#[test]
fn a_reader_that_panics_is_at_it_no_longer() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    let env = Env { clock: Arc::new(Stopped), ..options.env };
    let (flags, _) = parse("flagstone bench --duration=1");
    for name in ["readwhilewriting", "seekrandomwhilewriting"] {
        let plan = Plan::new(name, &flags).unwrap();
        let shared = Shared {
            db: &db,
            flags: &flags,
            plan: &plan,
            env: &env,
            stopwatch: Stopwatch::begin(),
            readers: AtomicUsize::new(1),
            seed: 1,
            done: None,
            progress: None,
        };
        let (random, report) = (MersenneTwister::new(1), Report::default());
        let mut reader = Thread { shared: &shared, index: 1, random, report, unshown: 0 };
        assert!(catch_unwind(AssertUnwindSafe(|| reader.work())).is_err());
        assert_eq!(shared.readers.load(Ordering::Acquire), 0);
    }
}
