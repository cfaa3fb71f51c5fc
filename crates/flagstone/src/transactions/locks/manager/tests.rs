use std::sync::atomic::AtomicI64;
use std::thread;

use LockMode::{Exclusive, Shared};

use super::*;

/// A clock that stands until it is turned.
#[derive(Default)]
struct Hands(AtomicU64);

impl Hands {
    fn turn(&self, seconds: u64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn unix_seconds(&self) -> u64 {
        self.now_us() / 1_000_000
    }

    fn sleep(&self, _: Duration) {
        unreachable!("a lock is waited for with a condition");
    }
}

const FAMILY: ColumnFamilyId = ColumnFamilyId(7);
const SECOND: Duration = Duration::from_secs(1);
const AT_ONCE: Patience = Patience { timeout: Duration::ZERO, detect_depth: None };
const PATIENT: Patience = Patience { timeout: Duration::MAX, detect_depth: None };
/// Of two that look, either may find the circle: one that waits looks only afterwards.
const DETECTING: Patience = Patience { timeout: Duration::MAX, detect_depth: Some(50) };

struct World {
    locks: LockManager,
    clock: Arc<Hands>,
    table: Arc<FamilyLocks>,
}

fn world(locks_max: Option<u64>) -> World {
    let clock = Arc::new(Hands::default());
    let settings = LockSettings { stripes: 4, locks_max, deadlocks_max: 2 };
    let locks = LockManager::new(settings, clock.clone());
    let table = locks.family(FAMILY);
    World { locks, clock, table }
}

impl World {
    fn lock(
        &self,
        owner: &Arc<Owner>,
        key: &str,
        mode: LockMode,
        patience: &Patience,
    ) -> Result<Granted, LockFailure> {
        self.locks.lock(&self.table, owner, key.as_bytes(), mode, patience)
    }

    fn take(&self, owner: &Arc<Owner>, key: &str) {
        self.lock(owner, key, Exclusive, &AT_ONCE).expect("the key is free");
    }

    fn release(&self, owner: &Owner, key: &str) {
        self.table.release(owner, key.as_bytes());
    }
}

fn wait_until_waiting(owner: &Owner) {
    while owner.waits().is_none() {
        thread::yield_now();
    }
}

#[test]
fn nothing_is_left_of_a_key_that_nobody_has() {
    let world = world(None);
    let owner = world.locks.begin(None);
    for number in 0..10_000 {
        world.take(&owner, &number.to_string());
        world.take(&owner, &number.to_string());
    }
    assert_eq!((world.locks.count(), world.locks.locked_keys().len()), (10_000, 10_000));
    for number in 0..10_000 {
        world.release(&owner, &number.to_string());
    }
    assert_eq!((world.locks.count(), world.locks.locked_keys().len()), (0, 0));
    assert!(world.locks.owners().is_empty());
    assert!(world.table.capacity() <= 4 * 128, "{} slots are kept", world.table.capacity());
}

#[test]
fn a_wait_ends_with_its_time_out_by_the_clock() {
    let world = world(None);
    let (holder, waiter) = (world.locks.begin(None), world.locks.begin(None));
    world.take(&holder, "a");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let patience = Patience { timeout: SECOND, detect_depth: None };
            world.lock(&waiter, "a", Exclusive, &patience)
        });
        wait_until_waiting(&waiter);
        let listed = world.locks.locked_keys();
        assert_eq!((listed[0].family, listed[0].waiters[0].id()), (FAMILY, waiter.id()));
        assert!(!waiting.is_finished(), "no time has passed");
        world.clock.turn(1);
        match waiting.join().unwrap() {
            Err(LockFailure::TimedOut { blockers }) => assert_eq!(blockers[0].id(), holder.id()),
            outcome => panic!("{outcome:?}"),
        }
    });
    assert!(waiter.waits().is_none());
    assert!(world.locks.locked_keys()[0].waiters.is_empty());
    // Without patience it does not wait at all.
    assert!(matches!(
        world.lock(&waiter, "a", Shared, &AT_ONCE),
        Err(LockFailure::TimedOut { .. })
    ));
}

#[test]
fn those_that_wait_are_served_in_their_order() {
    let world = world(None);
    let holder = world.locks.begin(None);
    world.take(&holder, "a");
    let owners: Vec<_> = (0..5).map(|_| world.locks.begin(None)).collect();
    let served = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for owner in &owners {
            let (world, served) = (&world, &served);
            scope.spawn(move || {
                let granted = world.lock(owner, "a", Exclusive, &PATIENT).unwrap();
                assert!(granted.waited);
                served.lock().push(owner.id());
                world.release(owner, "a");
            });
            wait_until_waiting(owner);
        }
        world.release(&holder, "a");
    });
    let ids: Vec<u64> = owners.iter().map(|owner| owner.id()).collect();
    assert_eq!(*served.lock(), ids);
    assert_eq!(world.locks.count(), 0);
}

/// 1 waits for 2, 2 for 3, and 3 closes the circle.
#[test]
fn a_circle_of_waiters_is_found_and_told() {
    let world = world(None);
    let owners: Vec<_> = (0..3).map(|_| world.locks.begin(None)).collect();
    let keys = ["a", "b", "c"];
    for (owner, key) in owners.iter().zip(keys) {
        world.take(owner, key);
    }
    thread::scope(|scope| {
        for (at, owner) in owners[..2].iter().enumerate() {
            let (world, awaited) = (&world, keys[at + 1]);
            scope.spawn(move || {
                world.lock(owner, awaited, Exclusive, &PATIENT).unwrap();
                world.release(owner, awaited);
                world.release(owner, keys[at]);
            });
            wait_until_waiting(owner);
        }
        let failure = world.lock(&owners[2], "a", Shared, &DETECTING).unwrap_err();
        let LockFailure::Deadlock(deadlock) = failure else { panic!("{failure:?}") };
        let path: Vec<_> =
            deadlock.path.iter().map(|step| (step.transaction, &*step.key, step.mode)).collect();
        let ids: Vec<u64> = owners.iter().map(|owner| owner.id()).collect();
        assert_eq!(
            path,
            [(ids[2], &b"a"[..], Shared), (ids[0], b"b", Exclusive), (ids[1], b"c", Exclusive)]
        );
        assert_eq!(world.locks.deadlocks(), [deadlock]);
        assert!(owners[2].waits().is_none(), "it does not wait any more");
        world.release(&owners[2], "c");
    });
    assert_eq!(world.locks.count(), 0);
}

#[test]
fn two_readers_that_want_to_write_are_a_circle() {
    let world = world(None);
    let (first, second) = (world.locks.begin(None), world.locks.begin(None));
    for owner in [&first, &second] {
        world.lock(owner, "a", Shared, &AT_ONCE).unwrap();
    }
    thread::scope(|scope| {
        let waiting = scope.spawn(|| world.lock(&first, "a", Exclusive, &PATIENT));
        wait_until_waiting(&first);
        let failure = world.lock(&second, "a", Exclusive, &DETECTING).unwrap_err();
        assert!(matches!(failure, LockFailure::Deadlock(_)), "{failure:?}");
        world.release(&second, "a");
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(world.locks.locked_keys()[0].mode, Exclusive);
}

/// A reader waits behind a writer that waits for another reader.
#[test]
fn a_circle_goes_through_a_queue() {
    let world = world(None);
    let [reader, writer, behind] = [(); 3].map(|()| world.locks.begin(None));
    world.lock(&reader, "a", Shared, &AT_ONCE).unwrap();
    world.take(&behind, "b");
    thread::scope(|scope| {
        scope.spawn(|| {
            world.lock(&writer, "a", Exclusive, &PATIENT).unwrap();
            world.release(&writer, "a");
        });
        wait_until_waiting(&writer);
        scope.spawn(|| {
            world.lock(&behind, "a", Shared, &PATIENT).unwrap();
            world.release(&behind, "a");
        });
        wait_until_waiting(&behind);
        let failure = world.lock(&reader, "b", Exclusive, &DETECTING).unwrap_err();
        assert!(matches!(failure, LockFailure::Deadlock(_)), "{failure:?}");
        world.release(&reader, "a");
    });
}

#[test]
fn a_search_that_is_too_long_counts_as_a_deadlock() {
    let world = world(None);
    let owners: Vec<_> = (0..5).map(|_| world.locks.begin(None)).collect();
    for (owner, number) in owners.iter().zip(0..) {
        world.take(owner, &format!("{number}"));
    }
    let last = world.locks.begin(None);
    thread::scope(|scope| {
        for (at, owner) in owners[..4].iter().enumerate() {
            let world = &world;
            scope.spawn(move || world.lock(owner, &format!("{}", at + 1), Exclusive, &PATIENT));
            wait_until_waiting(owner);
        }
        let within = |depth| Patience { timeout: Duration::ZERO, detect_depth: Some(depth) };
        assert!(matches!(
            world.lock(&last, "0", Exclusive, &within(3)),
            Err(LockFailure::TimedOut { .. })
        ));
        let patient = |depth| Patience { detect_depth: Some(depth), ..PATIENT };
        let failure = world.lock(&last, "0", Exclusive, &patient(4)).unwrap_err();
        let LockFailure::Deadlock(deadlock) = failure else { panic!("{failure:?}") };
        assert!(deadlock.limit_exceeded && deadlock.path.is_empty());
        for number in (0..5).rev() {
            world.release(&owners[number], &format!("{number}"));
            if number > 0 {
                while owners[number - 1].waits().is_some() {
                    thread::yield_now();
                }
                world.release(&owners[number - 1], &format!("{number}"));
            }
        }
    });
    for _ in 0..3 {
        let (first, second) = (world.locks.begin(None), world.locks.begin(None));
        world.take(&first, "x");
        world.take(&second, "y");
        thread::scope(|scope| {
            scope.spawn(|| world.lock(&first, "y", Exclusive, &PATIENT));
            wait_until_waiting(&first);
            world.lock(&second, "x", Exclusive, &DETECTING).unwrap_err();
            world.release(&second, "y");
        });
        world.release(&first, "x");
        world.release(&first, "y");
    }
    let deadlocks = world.locks.deadlocks();
    assert_eq!(deadlocks.len(), 2, "the last ones are remembered");
    assert!(deadlocks.iter().all(|deadlock| !deadlock.limit_exceeded));
}

#[test]
fn what_an_expired_owner_holds_is_taken_over() {
    let world = world(None);
    let old = world.locks.begin(Some(SECOND));
    world.take(&old, "a");
    world.take(&old, "b");
    let thief = world.locks.begin(None);
    assert!(world.lock(&thief, "a", Exclusive, &AT_ONCE).is_err());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| world.lock(&thief, "a", Exclusive, &PATIENT));
        wait_until_waiting(&thief);
        world.clock.turn(1);
        assert_eq!(waiting.join().unwrap().unwrap().robbed, 1);
    });
    assert!(!world.locks.begin_commit(&old), "it can never be written");
    assert!(matches!(world.lock(&old, "c", Shared, &AT_ONCE), Err(LockFailure::Expired)));
    world.release(&old, "a");
    assert_eq!(world.locks.locked_keys()[0].holders[0].id(), thief.id(), "it is not old's");
    assert_eq!(world.lock(&thief, "b", Exclusive, &AT_ONCE).unwrap().robbed, 1);
}

#[test]
fn what_is_being_written_is_not_taken_over() {
    let world = world(None);
    let old = world.locks.begin(Some(SECOND));
    world.take(&old, "a");
    assert!(world.locks.begin_commit(&old));
    world.clock.turn(5);
    let other = world.locks.begin(None);
    assert!(world.lock(&other, "a", Exclusive, &AT_ONCE).is_err());
    world.release(&old, "a");
    world.take(&other, "a");
}

#[test]
fn as_many_keys_are_locked_as_may_be() {
    let world = world(Some(2));
    let owner = world.locks.begin(None);
    world.take(&owner, "a");
    world.take(&owner, "b");
    let failure = world.lock(&owner, "c", Exclusive, &PATIENT).unwrap_err();
    assert!(matches!(failure, LockFailure::Limit), "{failure:?}");
    world.take(&owner, "a");
    let other_family = world.locks.family(ColumnFamilyId(8));
    world.locks.lock(&other_family, &owner, b"c", Exclusive, &AT_ONCE).unwrap();
    world.release(&owner, "b");
    world.take(&owner, "c");
}

#[test]
fn a_family_that_is_forgotten_still_wakes_those_that_wait() {
    let world = world(None);
    let (holder, waiter) = (world.locks.begin(None), world.locks.begin(None));
    world.take(&holder, "a");
    thread::scope(|scope| {
        scope.spawn(|| world.lock(&waiter, "a", Exclusive, &PATIENT).unwrap());
        wait_until_waiting(&waiter);
        world.locks.forget_family(FAMILY);
        world.release(&holder, "a");
    });
    assert!(world.locks.known_family(FAMILY).is_none());
}

/// Threads lock few keys in any order, and count who is in.
#[test]
fn no_two_owners_are_in_where_only_one_may_be() {
    const KEYS: usize = 4;
    let world = world(None);
    let inside: [AtomicI64; KEYS] = Default::default();
    thread::scope(|scope| {
        for seed in 0..4 {
            let (world, inside) = (&world, &inside);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed);
                for _ in 0..500 {
                    visit(world, inside, &mut rng);
                }
            });
        }
    });
    assert_eq!(world.locks.count(), 0);
    assert!(world.locks.locked_keys().is_empty());
}

fn visit(world: &World, inside: &[AtomicI64], rng: &mut fastrand::Rng) {
    let owner = world.locks.begin(None);
    let mut held: Vec<(usize, LockMode)> = Vec::new();
    for _ in 0..rng.usize(1..5) {
        let key = rng.usize(0..inside.len());
        let mode = if rng.bool() { Shared } else { Exclusive };
        let before = held.iter().position(|(other, _)| *other == key);
        if world.lock(&owner, &key.to_string(), mode, &DETECTING).is_err() {
            break;
        }
        // A writer counts as a thousand readers.
        let (weight, seen) = match (before.map(|at| held[at].1), mode) {
            (Some(Exclusive), _) | (Some(Shared), Shared) => continue,
            (Some(Shared), Exclusive) => (999, 1),
            (None, Shared) => (1, 0),
            (None, Exclusive) => (1000, 0),
        };
        let others = inside[key].fetch_add(weight, Ordering::SeqCst) - seen;
        assert!(if mode == Shared { others < 1000 } else { others == 0 }, "{others} are in");
        match before {
            Some(at) => held[at].1 = Exclusive,
            None => held.push((key, mode)),
        }
    }
    for (key, mode) in held {
        let weight = if mode == Shared { 1 } else { 1000 };
        inside[key].fetch_sub(weight, Ordering::SeqCst);
        world.release(&owner, &key.to_string());
    }
}
