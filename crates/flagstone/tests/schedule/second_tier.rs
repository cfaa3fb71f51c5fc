//! The second tier of the block cache: readers bring blocks in and find them there, while a
//! compaction removes the tables that they belong to.

use flagstone::db::Db;
use flagstone::options::ReadOptions;

use crate::explore::explore;
use crate::world::{close, join, open, thread, write};

const KEYS: u64 = 4;

fn value(n: u64) -> String {
    format!("{n:060}")
}

fn read(db: &Db) {
    for n in 0..KEYS {
        let found = db.get(format!("key {n}")).expect("a lookup").expect("a key that is there");
        assert_eq!(found, value(n).as_bytes());
    }
}

/// Every lookup finds its own value, and what is left at the end is of tables that are left.
#[test]
fn tables_go_while_their_blocks_come() {
    explore("second_tier::tables_go_while_their_blocks_come", 200, || {
        let (disk, db) = open(&[
            ("block_cache", "0"),
            ("compressed_secondary_cache_size", "20000"),
            ("disable_auto_compactions", "true"),
        ]);
        let family = db.default_column_family().clone();
        for parity in [0, 1] {
            for n in (parity..KEYS).step_by(2) {
                write(&db, false, &[(&family, &format!("key {n}"), &value(n))]).expect("a write");
            }
            db.flush_all().expect("a flush");
        }
        let reader = |db: Db| thread(move || (0..3).for_each(|_| read(&db)));
        let compactor = {
            let (db, family) = (db.clone(), family.clone());
            thread(move || {
                db.compact_range(&family, None, None, &Default::default()).expect("a compaction")
            })
        };
        join(vec![reader(db.clone()), compactor, reader(db.clone())]);
        // What somebody lets go of after files were removed leaves when they are removed the next
        // time.
        write(&db, false, &[(&family, "key 0", &value(0))]).expect("a write");
        db.compact_range(&family, None, None, &Default::default()).expect("a compaction");
        db.wait_for_compactions().expect("rest");
        (0..2).for_each(|_| read(&db));
        let entries = db
            .int_property(&family, "flagstone.compressed-secondary-cache-entries")
            .expect("a number");
        assert!(
            (1..=2).contains(&entries),
            "{entries} blocks, of the table that is left and perhaps the one before"
        );
        let in_memory = ReadOptions { cache_only: true, ..ReadOptions::default() };
        assert!(db.get_with(&in_memory, &family, "key 0").expect("a lookup").is_some());
        close(&disk, &db);
    });
}
