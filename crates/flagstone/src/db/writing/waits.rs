//! For how long writers are held up: what is felt of it, however many wait at a time.

use crate::base::sync::{AtomicU64, Mutex, Ordering};
use crate::env::Clock;

/// When anybody has waited.
#[derive(Default)]
pub(in crate::db) struct Waits {
    counted: Mutex<Counted>,
    /// When the last stop began, in microseconds of the clock.
    stopped_at_us: AtomicU64,
}

#[derive(Default)]
struct Counted {
    waiting: usize,
    /// When the first of those who wait began.
    since_us: u64,
    /// Microseconds of what was before.
    ended_us: u64,
}

impl Waits {
    /// A writer waits until the answer is dropped.
    pub(in crate::db) fn begin<'a>(&'a self, clock: &'a dyn Clock) -> Waiting<'a> {
        let mut counted = self.counted.lock();
        if counted.waiting == 0 {
            counted.since_us = clock.now_us();
        }
        counted.waiting += 1;
        Waiting { waits: self, clock }
    }

    /// For how many microseconds anybody has waited, those among them who wait still.
    pub(in crate::db) fn total_us(&self, now_us: u64) -> u64 {
        let counted = self.counted.lock();
        let present = if counted.waiting > 0 { now_us.saturating_sub(counted.since_us) } else { 0 };
        counted.ended_us + present
    }

    /// All writers are stopped from now on.
    pub(in crate::db) fn note_stop(&self, now_us: u64) {
        self.stopped_at_us.store(now_us, Ordering::Relaxed);
    }

    /// Microseconds since they were.
    pub(in crate::db) fn since_stop_us(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.stopped_at_us.load(Ordering::Relaxed))
    }
}

/// A writer who waits.
pub(in crate::db) struct Waiting<'a> {
    waits: &'a Waits,
    clock: &'a dyn Clock,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut counted = self.waits.counted.lock();
        counted.waiting -= 1;
        if counted.waiting == 0 {
            counted.ended_us += self.clock.now_us().saturating_sub(counted.since_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::base::sync::{AtomicBool, Ordering};
    use crate::db::Db;
    use crate::db::writing::write_control::WriteControl;
    use crate::env::Env;
    use crate::options::Options;

    /// Of several who waited at once each counted, and who waited still did not.
    #[test]
    fn the_time_counts_in_which_anybody_waits() {
        let mut options = Options { env: Env::memory(), ..Options::default() };
        options.create_if_missing = true;
        let db = Db::open("/db", &options).unwrap();
        let (clock, control) = (&db.inner().context.env.clock, &db.inner().pipeline.control);
        // What is owed is not paid off before anybody waits, however long the machine takes to come to that.
        control.set_delayed(1, None, None, false);
        let (began_us, is_over) = (clock.now_us(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (db, is_over) = (&db, &is_over);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        db.put([writer], [7; 10_000]).unwrap();
                    }
                });
            }
            while control.held_up_us(clock.now_us()) < 20_000 {
                std::thread::yield_now();
            }
            is_over.store(true, Ordering::Relaxed);
            control.set_normal();
        });
        let taken_us = clock.now_us() - began_us;
        let held_up_us = db.facts().unwrap().database.stall_us;
        assert!((20_000..=taken_us).contains(&held_up_us), "{held_up_us} of {taken_us}");
        control.set_stopped(clock.now_us());
        std::thread::scope(|scope| {
            scope.spawn(|| db.put("key", "value").unwrap());
            while control.held_up_us(clock.now_us()) <= held_up_us {
                std::thread::yield_now();
            }
            assert!(db.facts().unwrap().database.stall_us > held_up_us);
            db.inner().tree.update_stall(&mut db.inner().tree.lock());
        });
        assert_eq!(control.stopped_us(clock.now_us()), 0);
    }

    #[test]
    fn a_stop_lasts_from_its_beginning() {
        let control = WriteControl::default();
        assert_eq!(control.stopped_us(7), 0);
        control.set_stopped(1000);
        // The tree has changed, and is as far behind as before.
        control.set_stopped(3000);
        assert_eq!(control.stopped_us(5000), 4000);
        control.set_normal();
        control.set_stopped(6000);
        assert_eq!(control.stopped_us(7000), 1000);
    }
}
