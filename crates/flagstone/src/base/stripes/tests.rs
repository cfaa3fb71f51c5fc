use super::*;
use crate::base::sync::Mutex;

#[test]
fn nothing_that_threads_add_is_lost() {
    let counters: Counters<4> = Counters::default();
    let lock = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..2 * STRIPES + 1 {
            scope.spawn(|| {
                (0..1000).for_each(|_| counters.add(0, 1));
                for _ in 0..1000 {
                    let _alone = lock.lock();
                    counters.add_alone(3, 2);
                }
                counters.add(2, 7);
            });
        }
    });
    let threads = 2 * STRIPES as u64 + 1;
    let sums = [1000 * threads, 0, 7 * threads, 2000 * threads];
    assert_eq!([0, 1, 2, 3].map(|counter| counters.get(counter)), sums);
}
