use LockMode::{Exclusive, Shared};

use super::*;

/// Owners by number, none of which expires.
fn owner(id: u64) -> Arc<Owner> {
    Owner::new(id, None)
}

fn text(mode: LockMode) -> &'static str {
    match mode {
        Shared => "S",
        Exclusive => "X",
    }
}

/// The mode and the holders, then the queue: `S 1 2 < X3 S4`.
fn told(lock: &Lock) -> String {
    let mut told = text(lock.mode()).to_string();
    for holder in lock.holders() {
        told += &format!(" {}", holder.id());
    }
    let queue: Vec<String> =
        lock.queue().map(|waiter| format!("{}{}", text(waiter.mode), waiter.owner.id())).collect();
    if queue.is_empty() { told } else { format!("{told} < {}", queue.join(" ")) }
}

/// Takes the lock or joins the queue.
fn want(lock: &mut Lock, id: u64, mode: LockMode) {
    if !lock.try_take(&owner(id), mode) {
        lock.enqueue(Waiter::new(owner(id), mode));
    }
}

fn blockers(lock: &Lock, id: u64, mode: LockMode) -> Vec<u64> {
    lock.blockers(&owner(id), mode).iter().map(|owner| owner.id()).collect()
}

#[test]
fn readers_share_and_a_writer_waits_for_all_of_them() {
    let mut lock = Lock::new(owner(1), Shared);
    want(&mut lock, 2, Shared);
    want(&mut lock, 3, Exclusive);
    assert_eq!(told(&lock), "S 1 2 < X3");
    assert_eq!(blockers(&lock, 3, Exclusive), [1, 2]);
    assert!(!lock.release(&owner(1)));
    assert_eq!(told(&lock), "S 2 < X3");
    assert!(!lock.release(&owner(2)));
    assert_eq!(told(&lock), "X 3");
    assert!(lock.release(&owner(3)), "nobody has it");
}

#[test]
fn a_reader_does_not_overtake_a_writer_that_waits() {
    let mut lock = Lock::new(owner(1), Shared);
    want(&mut lock, 2, Exclusive);
    want(&mut lock, 3, Shared);
    want(&mut lock, 4, Shared);
    assert_eq!(told(&lock), "S 1 < X2 S3 S4");
    assert_eq!(blockers(&lock, 4, Shared), [2], "it is not in the way of another reader");
    lock.release(&owner(1));
    assert_eq!(told(&lock), "X 2 < S3 S4");
    lock.release(&owner(2));
    assert_eq!(told(&lock), "S 3 4", "both readers at once");
}

#[test]
fn a_reader_that_is_alone_becomes_a_writer_at_once() {
    let mut lock = Lock::new(owner(1), Shared);
    want(&mut lock, 2, Exclusive);
    want(&mut lock, 1, Exclusive);
    assert_eq!(told(&lock), "X 1 < X2");
    want(&mut lock, 1, Shared);
    assert_eq!(told(&lock), "X 1 < X2", "it holds more than that");
    let mut lock = Lock::new(owner(1), Shared);
    want(&mut lock, 1, Exclusive);
    assert_eq!(told(&lock), "X 1");
}

#[test]
fn an_upgrade_goes_before_those_that_hold_nothing() {
    let mut lock = Lock::new(owner(1), Shared);
    want(&mut lock, 2, Shared);
    want(&mut lock, 3, Exclusive);
    want(&mut lock, 1, Exclusive);
    assert_eq!(told(&lock), "S 1 2 < X1 X3");
    assert_eq!(blockers(&lock, 1, Exclusive), [2]);
    // Neither of two that hold it can go first.
    want(&mut lock, 2, Exclusive);
    assert_eq!(told(&lock), "S 1 2 < X1 X2 X3");
    assert_eq!(blockers(&lock, 2, Exclusive), [1, 1]);
    lock.release(&owner(2));
    assert_eq!(told(&lock), "X 1 < X2 X3");
}

#[test]
fn one_that_gives_up_lets_those_behind_it_advance() {
    let mut lock = Lock::new(owner(1), Shared);
    let writer = Waiter::new(owner(2), Exclusive);
    lock.enqueue(writer.clone());
    want(&mut lock, 3, Shared);
    assert_eq!(told(&lock), "S 1 < X2 S3");
    lock.remove(&writer);
    assert!(!lock.settle());
    assert_eq!(told(&lock), "S 1 3");
}

#[test]
fn a_writer_that_need_not_write_shares() {
    let mut lock = Lock::new(owner(1), Exclusive);
    want(&mut lock, 2, Shared);
    want(&mut lock, 3, Exclusive);
    lock.weaken(&owner(2));
    assert_eq!(told(&lock), "X 1 < S2 X3", "it does not hold it");
    lock.weaken(&owner(1));
    assert_eq!(told(&lock), "S 1 2 < X3");
}

#[test]
fn only_holders_that_have_expired_are_robbed() {
    let (old, young) = (Owner::new(1, Some(100)), Owner::new(2, Some(200)));
    let mut lock = Lock::new(old.clone(), Shared);
    assert!(lock.try_take(&young, Shared));
    want(&mut lock, 3, Exclusive);
    assert_eq!((lock.rob(99), lock.next_expiry_us(99)), (0, Some(100)));
    assert_eq!(lock.rob(100), 1);
    assert!(!lock.settle());
    assert_eq!(told(&lock), "S 2 < X3");
    assert!(old.was_robbed() && !young.was_robbed());
    // One that is being written keeps its locks.
    assert!(young.begin_commit(150));
    assert_eq!((lock.rob(300), lock.next_expiry_us(300)), (0, None));
    young.resume();
    assert_eq!(lock.rob(300), 1);
    assert!(!young.begin_commit(150), "what was robbed is never written");
    lock.settle();
    assert_eq!(told(&lock), "X 3");
}

/// What a million locks take is in the documentation of transactions.
#[test]
fn a_lock_with_one_holder_is_small() {
    assert_eq!(size_of::<Lock>(), 16);
}
