//! Pauses of writers that met each other before they try again.

use std::time::Duration;

use crate::env::Env;

/// The first pause lasts up to this.
const FIRST: Duration = Duration::from_micros(20);
/// The longest pause lasts up to this.
const LONGEST: Duration = Duration::from_millis(20);

/// Pauses of a random length, each of which may be twice as long as the one before.
pub(super) struct Pauses {
    most: Duration,
}

impl Pauses {
    /// None was made yet.
    pub(super) fn new() -> Self {
        Self { most: FIRST }
    }

    /// Makes a pause. Two writers that met once shall not meet again, so its length is random.
    pub(super) fn sleep(&mut self, env: &Env) {
        let part = env.random.next_u64() as f64 / u64::MAX as f64;
        env.clock.sleep(self.most.mul_f64(part));
        self.most = (self.most * 2).min(LONGEST);
    }
}
