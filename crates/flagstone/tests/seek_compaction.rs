//! Tables that lookups search in vain go down: `seek_compaction_bytes`.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use flagstone::db::{Db, Ticker};
use flagstone::env::Env;
use flagstone::options::Options;
use testkit::settings;

fn options(changes: &[(&str, &str)]) -> Options {
    let mut options = settings::tiny(&Env::memory());
    let common = [
        ("write_buffer_size", "1000000"),
        ("level0_file_num_compaction_trigger", "8"),
        ("block_based_table_factory", "{filter_policy=nullptr}"),
        ("deletion_compaction_delay", "0"),
    ];
    settings::set(&mut options, &common);
    settings::set(&mut options, changes);
    options
}

/// Even keys in the last level, some odd ones in three tables of level 0 above it.
fn filled(options: &Options) -> Db {
    let db = Db::open("/db", options).unwrap();
    (0..1000).step_by(2).for_each(|key| db.put(format!("{key:04}"), "below").unwrap());
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    for table in 0..3 {
        (0..10).for_each(|key| db.put(format!("{:04}", 100 * key + 2 * table + 1), "above").unwrap());
        db.flush_all().unwrap();
    }
    db.wait_for_compactions().unwrap();
    db
}

fn level0(db: &Db) -> usize {
    db.live_files().iter().filter(|file| file.level == Some(0)).count()
}

fn look_up(db: &Db, rounds: usize) {
    for _ in 0..rounds {
        (0..1000).for_each(|key| {
            assert_eq!(db.get(format!("{key:04}")).unwrap().is_some(), key % 2 == 0 || key % 100 < 6)
        });
    }
}

#[test]
fn tables_that_are_searched_in_vain_go_down() {
    let db = filled(&options(&[("seek_compaction_bytes", "1")]));
    assert_eq!(level0(&db), 3);
    look_up(&db, 1);
    db.wait_for_compactions().unwrap();
    // Their sizes are some 1,200 bytes: so many searches are allowed, and each was searched some 900 times.
    assert_eq!(level0(&db), 3, "not yet");
    look_up(&db, 2);
    db.wait_for_compactions().unwrap();
    assert_eq!(level0(&db), 0);
    let before = db.statistics().get(Ticker::CompactWriteBytes);
    look_up(&db, 3);
    db.wait_for_compactions().unwrap();
    assert_eq!(
        db.statistics().get(Ticker::CompactWriteBytes),
        before,
        "below the last level there is nothing"
    );
}

#[test]
fn they_stay_unless_that_is_asked_for_and_where_filters_spare_the_searches() {
    let bloom = "{filter_policy=bloomfilter:20:false}";
    for changes in [&[][..], &[("seek_compaction_bytes", "1"), ("block_based_table_factory", bloom)]] {
        let db = filled(&options(changes));
        look_up(&db, 10);
        db.wait_for_compactions().unwrap();
        assert_eq!(level0(&db), 3, "{changes:?}");
    }
    // It can be asked for while the database is open.
    let db = filled(&options(&[]));
    look_up(&db, 3);
    db.set_options(db.default_column_family(), &[("seek_compaction_bytes", "1")]).unwrap();
    look_up(&db, 3);
    db.wait_for_compactions().unwrap();
    assert_eq!(level0(&db), 0);
}
