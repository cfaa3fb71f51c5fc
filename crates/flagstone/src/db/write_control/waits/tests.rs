use crate::base::sync::{AtomicBool, Ordering};
use crate::db::handle::Db;
use crate::db::write_control::WriteControl;
use crate::env::Env;
use crate::options::Options;

/// Of several who waited at once each counted, and who waited still did not.
#[test]
fn the_time_counts_in_which_anybody_waits() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    let (clock, control) = (&db.inner().context.env.clock, db.inner().pipeline.control());
    // What is owed is not paid off before anybody waits, however long the machine takes to come to
    // that.
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
