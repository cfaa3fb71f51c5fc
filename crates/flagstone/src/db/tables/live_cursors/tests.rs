use crate::db::handle::Db;
use crate::env::Env;
use crate::options::{Options, ReadOptions};

/// Iterators come and go in any order; each that is there is listed once, and none that is gone.
#[test]
fn every_iterator_is_listed_while_it_is_in_use() {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    let db = Db::open("/db", &options).unwrap();
    let listed = || db.inner().tables.live_cursors().in_use().len();
    let mut random = fastrand::Rng::with_seed(3);
    let mut open = Vec::new();
    for round in 0..400 {
        match random.u8(..5) {
            0..3 => open.push(db.iter(&ReadOptions::default()).unwrap()),
            3 if !open.is_empty() => drop(open.swap_remove(random.usize(..open.len()))),
            _ => {
                db.put(format!("{round}"), "value").unwrap();
                if round % 50 == 0 {
                    db.flush_all().unwrap();
                }
            }
        }
        assert_eq!(listed(), open.len());
    }
    drop(open);
    assert_eq!(listed(), 0, "those that are parked are nobody's");
    db.flush_all().unwrap();
    db.put("more", "value").unwrap();
    db.flush_all().unwrap();
    let entries = db
        .inner()
        .tables
        .live_cursors()
        .lists
        .iter()
        .map(|list| list.0.lock().len())
        .sum::<usize>();
    assert_eq!(entries, 0, "and are dropped with their super version");
}
