use super::*;

impl<T> CombiningLock<T> {
    /// Only for who holds the lock: nobody else takes anything from the list.
    fn count_asked(&self) -> usize {
        let mut next = self.asked.0.load(Ordering::Acquire);
        let mut count = 0;
        while !next.is_null() {
            count += 1;
            // SAFETY: it is on the list, and stays there while the lock is held.
            next = unsafe { *(*next).next.get() };
        }
        count
    }
}

/// Threads that add to a sum one after the other, some in vain.
fn add(lock: &CombiningLock<Vec<u64>>, threads: u64, each: u64) {
    thread::scope(|scope| {
        for own in 0..threads {
            scope.spawn(move || {
                for n in 0..each {
                    let number = own * each + n;
                    if n % 7 == 3 {
                        lock.lock().push(number);
                        continue;
                    }
                    let count = lock.run(|all| {
                        all.push(number);
                        all.len()
                    });
                    assert!(count as u64 > n, "its own are among them");
                }
            });
        }
    });
}

#[test]
fn everybody_s_work_is_done_once_and_in_its_own_order() {
    let (threads, each) = if cfg!(miri) { (3, 12) } else { (8, 20_000) };
    let lock = CombiningLock::new(Rank::Other, Vec::new());
    add(&lock, threads, each);
    let all = lock.lock();
    for own in 0..threads {
        let of_one = all.iter().filter(|number| **number / each == own);
        assert!(of_one.copied().eq(own * each..(own + 1) * each), "of thread {own}");
    }
    assert_eq!(all.len() as u64, threads * each);
}

#[test]
fn a_panic_is_that_of_who_asked() {
    let lock = CombiningLock::new(Rank::Other, 0u64);
    let (threads, each) = if cfg!(miri) { (3, 6) } else { (4, 500) };
    thread::scope(|scope| {
        for own in 0..threads {
            let lock = &lock;
            scope.spawn(move || {
                for n in 0..each {
                    let fails = (own + n) % 3 == 0;
                    let outcome = catch_unwind(AssertUnwindSafe(|| {
                        lock.run(|sum| {
                            *sum += 1;
                            if fails {
                                resume_unwind(Box::new(own));
                            }
                            own
                        })
                    }));
                    match outcome {
                        Ok(who) => assert!(!fails && who == own),
                        Err(panic) => assert!(fails && *panic.downcast::<u64>().unwrap() == own),
                    }
                }
            });
        }
    });
    assert_eq!(*lock.lock(), threads * each);
}

/// Work may use what its thread alone has, and leave something there.
#[test]
fn work_changes_what_is_lent_to_it() {
    let lock = CombiningLock::new(Rank::Other, Vec::<String>::new());
    let (threads, each) = if cfg!(miri) { (3, 8) } else { (4, 2_000) };
    thread::scope(|scope| {
        for own in 0..threads {
            let lock = &lock;
            scope.spawn(move || {
                let mut kept = Vec::new();
                for n in 0..each {
                    let mut name = format!("{own}, {n}");
                    let length = lock.run(|all| {
                        name.push('!');
                        kept.push(name.clone());
                        all.push(name.clone());
                        name.len()
                    });
                    assert!(
                        name.ends_with('!') && name.len() == length && kept.last() == Some(&name)
                    );
                }
                assert_eq!(kept.len(), each);
            });
        }
    });
    assert_eq!(lock.lock().len(), threads * each);
}

/// What is asked for while somebody holds the lock for long is done when it lets go, whoever that
/// is.
#[test]
fn who_waits_is_not_forgotten() {
    let lock = CombiningLock::new(Rank::Other, 0u64);
    thread::scope(|scope| {
        let held = lock.lock();
        let lock = &lock;
        let ask = |n| {
            lock.run(|sum| {
                *sum += 1;
                n
            })
        };
        let waiting = [0, 1, 2].map(|n| scope.spawn(move || ask(n)));
        while lock.count_asked() < 3 {
            thread::yield_now();
        }
        drop(held);
        assert!(waiting.into_iter().map(|one| one.join().unwrap()).eq(0..3));
    });
    assert_eq!(*lock.lock(), 3);
}
