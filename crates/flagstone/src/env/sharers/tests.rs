use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[test]
fn whoever_comes_or_goes_is_heard_of_by_the_others() {
    static SHARERS: SharedGroup = SharedGroup::new();
    let heard = [const { AtomicUsize::new(0) }; 2].map(Arc::new);
    let join = |which: usize| {
        let heard = heard[which].clone();
        SHARERS.join(move || {
            heard.store(SHARERS.count(), Ordering::Relaxed);
        })
    };
    let counts = || heard.each_ref().map(|heard| heard.load(Ordering::Relaxed));
    let first = join(0);
    assert_eq!((SHARERS.count(), counts()), (1, [0, 0]), "nobody hears of itself");
    let second = join(1);
    assert_eq!((SHARERS.count(), counts()), (2, [2, 0]));
    drop(first);
    assert_eq!((SHARERS.count(), counts()), (1, [2, 1]));
    drop(second);
    assert_eq!((SHARERS.count(), counts()), (0, [2, 1]));
}
