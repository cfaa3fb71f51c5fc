//! Levels that are moved as a whole, between others that hold older and newer values of the same
//! keys.

use std::cell::Cell;
use std::sync::Arc;

use flagstone::base::Code;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{CompactRangeOptions, ReadOptions, WriteOptions};

use crate::{Edit, Model, compare, for_each_seed, settings, steps};

const KEYS: u64 = 12;
const ROUNDS: u64 = 80;

/// Lets single tables sink to any level, so that a key has values in several; compacts single keys,
/// and moves the level in which that ends to another. Whether it is refused or done, nothing older
/// is found afterwards.
///
/// # Panics
/// When an older value comes back, or nothing was ever in the way.
pub fn moved_levels() {
    let refused = Cell::new(0);
    for_each_seed(4, |seed| {
        let mut options = settings::tiny(&steps::world(Arc::new(MemoryFileSystem::new()), seed));
        let changes = [
            ("disable_auto_compactions", "true"),
            ("num_levels", "6"),
            ("level_compaction_dynamic_level_bytes", "false"),
            ("level0_slowdown_writes_trigger", "1000"),
            ("level0_stop_writes_trigger", "1000"),
        ];
        settings::set(&mut options, &changes);
        let db = Db::open("/db", &options).expect("a new database");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut model = Model::with_families(&["default"]);
        for round in 0..ROUNDS {
            let numbers = random.choose_multiple(0..KEYS, 2);
            let put =
                |number| Edit::Put { key: key(number), value: round.to_string().into_bytes() };
            let batch: Vec<_> =
                numbers.into_iter().map(|number| ("default".to_string(), put(number))).collect();
            db.write_with(&WriteOptions::default(), compare::to_batch(&db, &batch))
                .expect("a write");
            model.apply(&batch);
            db.flush_all().expect("a flush");
            sink(&db, &mut random);
            if random.bool() && !moves(&db, &mut random) {
                refused.set(refused.get() + 1);
            }
            let family = db.default_column_family();
            let keys: Vec<_> = (0..KEYS).map(key).collect();
            compare::check_lookups(
                &db,
                family,
                &model.families["default"],
                &ReadOptions::default(),
                &keys,
            );
        }
        compare::check_database(&db, &model);
    });
    assert!(refused.get() > 0, "nothing was in the way");
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Some table goes to some level, if it may go there.
fn sink(db: &Db, random: &mut fastrand::Rng) {
    let tables: Vec<_> = db.live_files().into_iter().filter(|file| file.level.is_some()).collect();
    let table = &tables[random.usize(..tables.len())];
    let (family, level) = (db.default_column_family(), random.usize(1..6));
    match db.compact_files(family, &[table.number], level, &Default::default()) {
        Err(error) if !matches!(error.code(), Code::InvalidArgument | Code::Aborted) => {
            panic!("a table sinks: {error}")
        }
        _ => {}
    }
}

/// Whether nothing was in the way.
fn moves(db: &Db, random: &mut fastrand::Rng) -> bool {
    let target_level = random.i32(0..6);
    let options =
        CompactRangeOptions { change_level: true, target_level, ..CompactRangeOptions::default() };
    let key = key(random.u64(..KEYS));
    match db.compact_range(db.default_column_family(), Some(&key), Some(&key), &options) {
        Err(error)
            if error.code() == Code::NotSupported && error.message().ends_with("is not empty") =>
        {
            false
        }
        Ok(()) => true,
        // Level 0 is moved nowhere, and nothing but a single table to it.
        Err(error) if matches!(error.code(), Code::NotSupported | Code::Aborted) => true,
        Err(error) => panic!("a level moves: {error}"),
    }
}
