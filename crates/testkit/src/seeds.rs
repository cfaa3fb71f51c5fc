//! Running one story for many seeds.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Tells `story` for the seeds `0..count`; the environment variable `FLAGSTONE_SEEDS` sets another
/// count (`500`), or a single seed (`=17`). The seed of a failure is printed.
pub fn for_each_seed(count: u64, story: impl Fn(u64)) {
    let asked = std::env::var("FLAGSTONE_SEEDS").unwrap_or_default();
    let seeds = match asked.strip_prefix('=').map(str::parse) {
        Some(seed) => {
            let seed = seed.expect("FLAGSTONE_SEEDS==NUMBER");
            seed..seed + 1
        }
        None if asked.is_empty() => 0..count,
        None => 0..asked.parse().expect("FLAGSTONE_SEEDS=COUNT"),
    };
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| story(seed))) {
            eprintln!("failed with seed {seed}; to repeat it alone: FLAGSTONE_SEEDS=={seed}");
            resume_unwind(panic);
        }
    }
}

/// Says where a story was when it failed.
pub struct Telling(pub String);

impl Drop for Telling {
    fn drop(&mut self) {
        if std::thread::panicking() {
            crate::caught::tell(format!("while telling: {}", self.0));
        }
    }
}
