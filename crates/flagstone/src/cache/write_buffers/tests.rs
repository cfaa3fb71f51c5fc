use std::sync::Arc;

use super::*;
use crate::base::sync::AtomicUsize;

/// A member, and how often it was woken.
fn member(manager: &Arc<WriteBufferManager>) -> (Arc<WriteBuffers>, Arc<AtomicUsize>) {
    let (member, woken) = (manager.join(), Arc::new(AtomicUsize::new(0)));
    let counted = woken.clone();
    member.wake_with(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    (member, woken)
}

#[test]
fn memtables_of_all_databases_count_together() {
    let manager = WriteBufferManager::new(800, false);
    let ((one, _), (two, _)) = (member(&manager), member(&manager));
    one.grow(400);
    two.grow(300);
    assert!(!one.is_full());
    two.grow(1);
    assert!(one.is_full() && two.is_full());
    one.shrink(400);
    one.set_waiting(400);
    assert_eq!((manager.memory_usage(), manager.mutable_memtable_memory_usage()), (701, 301));
    one.set_waiting(0);
    drop(two);
    one.leave();
    one.grow(5);
    assert_eq!(manager.memory_usage(), 0);
}

#[test]
fn half_of_the_limit_is_full_while_all_have_reached_it() {
    let manager = WriteBufferManager::new(800, false);
    let (one, _) = member(&manager);
    one.grow(400);
    one.set_waiting(399);
    assert!(!one.is_full());
    one.set_waiting(400);
    assert!(one.is_full());
}

#[test]
fn a_database_with_twice_as_much_switches_in_place_of_the_writers() {
    let manager = WriteBufferManager::new(800, false);
    let ((writer, _), (idle, woken)) = (member(&manager), member(&manager));
    writer.grow(250);
    idle.grow(500);
    assert!(writer.is_full() && writer.takes_switch(), "it has half as much");
    idle.grow(2);
    assert!(!writer.takes_switch());
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    assert!(!writer.is_full(), "one is asked already");
    assert!(idle.take_request() && !idle.take_request());
    idle.shrink(502);
    idle.answer();
    assert!(!writer.is_full());
}

#[test]
fn writers_wait_at_the_limit_until_memory_is_free() {
    let manager = WriteBufferManager::new(800, true);
    let ((writer, told), (other, asked)) = (member(&manager), member(&manager));
    writer.grow(100);
    other.set_waiting(700);
    assert!(asked.load(Ordering::Relaxed) > 0 && writer.take_look(), "all are told");
    assert!(writer.stalls_writers() && other.take_request());
    other.answer();
    let before = told.load(Ordering::Relaxed);
    other.set_waiting(699);
    assert!(told.load(Ordering::Relaxed) > before && writer.take_look());
    assert!(!writer.stalls_writers());
    other.set_waiting(700);
    assert!(writer.stalls_writers());
    manager.set_allow_stall(false);
    assert!(writer.take_look() && !writer.stalls_writers());
    manager.set_allow_stall(true);
    assert!(writer.stalls_writers());
    drop(other);
    assert!(writer.take_look() && !writer.stalls_writers());
}

#[test]
fn a_cache_is_charged_in_whole_steps() {
    let charged = Arc::new(AtomicU64::new(0));
    let last = charged.clone();
    let manager = WriteBufferManager::charging(1 << 30, false, move |bytes| {
        last.store(bytes, Ordering::Relaxed);
    });
    let (one, _) = member(&manager);
    one.grow(1);
    assert_eq!(charged.load(Ordering::Relaxed), CHARGE_STEP);
    one.grow(CHARGE_STEP);
    assert_eq!(manager.charged_to_cache(), 2 * CHARGE_STEP);
    one.leave();
    assert_eq!(charged.load(Ordering::Relaxed), 0);
}

/// A request that came as a database left was never answered, and nobody was asked any more.
#[test]
fn who_is_asked_too_late_answers_all_the_same() {
    let manager = WriteBufferManager::new(800, false);
    let ((writer, _), (leaving, woken)) = (member(&manager), member(&manager));
    writer.grow(800);
    leaving.leave();
    leaving.ask();
    assert!(writer.is_full(), "nobody is asked");
    assert_eq!(woken.load(Ordering::Relaxed), 0);
    // One that looks for requests, and leaves, while it is asked.
    manager.is_anyone_asked.store(true, Ordering::Relaxed);
    leaving.is_asked.store(true, Ordering::Relaxed);
    leaving.leave();
    assert!(writer.is_full() && !leaving.take_request());
}

#[test]
fn one_whose_flushes_are_paused_is_not_asked() {
    let manager = WriteBufferManager::new(800, true);
    let ((writer, told), (paused, asked)) = (member(&manager), member(&manager));
    writer.grow(200);
    paused.grow(600);
    assert!(writer.stalls_writers() && paused.take_request());
    paused.answer();
    let before = told.load(Ordering::Relaxed);
    paused.set_paused(true);
    assert!(told.load(Ordering::Relaxed) > before && writer.take_look(), "it is to ask again");
    let before = asked.load(Ordering::Relaxed);
    assert!(writer.takes_switch(), "nobody else can");
    assert!(writer.stalls_writers() && writer.take_request());
    writer.answer();
    assert_eq!(asked.load(Ordering::Relaxed), before);
    paused.set_paused(false);
    assert!(!writer.takes_switch() && paused.take_request());
}
