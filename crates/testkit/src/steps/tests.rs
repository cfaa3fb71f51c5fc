use std::collections::BTreeSet;

use super::*;
use crate::{CrashFs, settings};
use flagstone::db::Db;

/// What a life full of flushes and compactions does to its disk, call by call.
fn live(seed: u64) -> Vec<String> {
    let fs = CrashFs::new();
    let options = settings::tiny(&world(Arc::new(fs.clone()), seed));
    let db = Db::open("/db", &options).expect("a new database");
    for number in 0..400 {
        db.put(format!("{:03}", number * 37 % 400), vec![b'x'; 200]).expect("a write");
        // So seldom that there is something to flush and something to compact: who goes first is
        // all that is drawn.
        if number % 30 == 0 {
            db.background_step().expect("a step");
        }
    }
    db.flush_all().expect("a flush");
    db.compact_range(db.default_column_family(), None, None, &Default::default())
        .expect("a compaction");
    db.close().expect("a clean close");
    (0..=fs.changes()).map(|at| fs.describe(at)).collect()
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let first = live(1);
    assert!(first.len() > 300, "flushes and compactions happen: {} changes", first.len());
    assert_eq!(first, live(1));
    let stories: BTreeSet<_> = (1..=12).map(live).collect();
    assert!(stories.len() > 6, "other orders of steps: {} stories of 12 seeds", stories.len());
}
