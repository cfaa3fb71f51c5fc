use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::env::Env;

#[test]
fn one_sync_serves_everybody_before_it() {
    let (sync, syncs, clock) = (WalSync::default(), AtomicU64::new(0), Env::memory().clock);
    let sync_to_ten = || {
        syncs.fetch_add(1, Ordering::Relaxed);
        Ok(10)
    };
    for sequence in [3, 10, 7] {
        sync.wait_for(sequence, &*clock, sync_to_ten).unwrap();
    }
    assert_eq!(syncs.load(Ordering::Relaxed), 1);
}

#[test]
fn a_failed_sync_is_nobodys_success() {
    let (sync, clock) = (WalSync::default(), Env::memory().clock);
    let failing = || Err(crate::base::Error::corruption("no"));
    assert!(sync.wait_for(1, &*clock, failing).is_err());
    assert!(sync.wait_for(1, &*clock, failing).is_err());
}

#[test]
fn nobody_is_waited_for_in_vain_for_long() {
    let mut sync_wait = SyncWait::default();
    assert_eq!(sync_wait.patience_us(), 0);
    sync_wait.note(true, 16, 400);
    assert_eq!((sync_wait.expected, sync_wait.patience_us()), (16, 400));
    let waits = (0..1_000).filter(|_| {
        let waits = sync_wait.patience_us() > 0;
        sync_wait.note(false, 16, 400);
        waits
    });
    assert_eq!(waits.count(), 8 + 14, "each wait in vain doubles the rounds to the next, up to 64");
    sync_wait.note(true, 16, 1_000_000);
    assert!(sync_wait.patience_us() <= 2_000, "a disk that stood still");
}

/// Once patience shrank with each wait in vain, and what was left of it was too short for anybody
/// to come: a single late writer split sixteen into two groups for good, each of which missed the
/// other's sync.
#[test]
fn late_writers_are_waited_for_again() {
    let mut sync_wait = SyncWait::default();
    sync_wait.note(true, 16, 400);
    // Writers need three quarters of a sync to wake up and write; three times something else comes
    // between.
    for _ in 0..3 {
        sync_wait.note(false, 16, 400);
    }
    for _ in 0..2 {
        let complete = sync_wait.patience_us() >= 300;
        sync_wait.note(complete, 16, 400);
    }
    assert_eq!(sync_wait.patience_us(), 400);
    for _ in 0..100 {
        assert_eq!(sync_wait.patience_us(), 400);
        sync_wait.note(true, 16, 400);
    }
}
