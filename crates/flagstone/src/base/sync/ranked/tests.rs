use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

/// The message of the panic that `work` ends with.
fn panic_of(work: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(work)).expect_err("it panics");
    panic.downcast_ref::<String>().expect("a message").clone()
}

#[test]
fn the_order_may_be_taken_and_the_reverse_panics_with_both_names() {
    let (commit, state) = (ranked(Rank::Commit, 1u8), ranked(Rank::State, 2u16));
    let other = Mutex::new(3u32);
    {
        let _locks = (commit.lock(), state.lock(), other.lock());
    }
    let message = panic_of(|| {
        let _state = state.lock();
        let _commit = commit.lock();
    });
    for part in ["u8", "Commit", "u16", "State"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let message = panic_of(|| {
        let _other = other.lock();
        let _state = state.lock();
    });
    assert!(message.contains("u32"), "{message}");
    // The guards of the panics are gone, and so are their places on the list.
    let _locks = (commit.lock(), state.lock());
}

#[test]
fn the_map_behind_a_lock_of_readers_is_the_last_to_be_taken() {
    let (state, map) = (ranked(Rank::State, ()), RwLock::new(0u64));
    assert_eq!((*map.read(), *Mutex::new(1).lock()), (0, 1));
    *map.write() += 1;
    assert!(
        panic_of(|| {
            let _map = map.read();
            let _state = state.lock();
        })
        .contains("u64")
    );
}

#[test]
fn a_lock_is_not_taken_twice() {
    let state = ranked(Rank::State, ());
    let _held = state.lock();
    assert!(panic_of(|| drop(state.lock())).contains("State"));
}

#[test]
fn what_is_given_back_for_a_moment_is_not_held() {
    let (commit, state) = (ranked(Rank::Commit, ()), ranked(Rank::State, ()));
    let mut held = state.lock();
    MutexGuard::unlocked(&mut held, || drop(commit.lock()));
    assert!(panic_of(|| drop(commit.lock())).contains("State"));
}

#[test]
fn a_lock_that_was_only_tried_for_counts() {
    let (commit, state) = (ranked(Rank::Commit, ()), ranked(Rank::State, ()));
    let _state = state.try_lock().expect("it is free");
    assert!(panic_of(|| drop(commit.lock())).contains("Commit"));
}
