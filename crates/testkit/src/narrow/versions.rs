//! Few keys, each with so many versions under snapshots that they fill several tables of every
//! level, and range deletions between the versions.

use std::sync::Arc;

use flagstone::base::Snapshot;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::options::{ReadOptions, WriteOptions};

use crate::{Edit, Model, compare, for_each_seed, settings, steps};

const KEYS: u64 = 3;
const ROUNDS: u64 = 150;

/// Takes a snapshot after every write, lets the background work as it likes, and compares what each
/// snapshot sees.
///
/// # Panics
/// When one sees something else than it did.
pub fn straddling_versions() {
    for_each_seed(30, |seed| {
        let mut options = settings::tiny(&steps::world(Arc::new(MemoryFileSystem::new()), seed));
        let changes = [
            ("write_buffer_size", "4096"),
            ("target_file_size_base", "1000"),
            ("max_bytes_for_level_base", "3000"),
            ("max_bytes_for_level_multiplier", "2"),
            ("level_compaction_dynamic_level_bytes", "false"),
        ];
        settings::set(&mut options, &changes);
        // Cut at any of the keys, or not at all.
        settings::set(&mut options, &[("max_subcompactions", ["4", "1"][seed as usize % 2])]);
        let db = Db::open("/db", &options).expect("a new database");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut model = Model::with_families(&["default"]);
        let mut seen: Vec<(Snapshot, Model)> = Vec::new();
        for round in 0..ROUNDS {
            let number = random.u64(..KEYS);
            let key = format!("key {number}").into_bytes();
            let edit = match random.u8(..9) {
                // What is written next lies in the same tables as the deletion, and is newer.
                8 => Edit::DeleteRange {
                    begin: key,
                    end: format!("key {}", KEYS.min(number + 2)).into_bytes(),
                },
                0 => Edit::Delete { key },
                1 => Edit::Merge { key, operand: round.to_string().into_bytes() },
                _ => {
                    Edit::Put { key, value: [round.to_string().as_bytes(), &[b'.'; 300]].concat() }
                }
            };
            let batch = [("default".to_string(), edit)];
            db.write_with(&WriteOptions::default(), compare::to_batch(&db, &batch))
                .expect("a write");
            model.apply(&batch);
            seen.push((db.snapshot(), model.clone()));
            if random.u8(..3) == 0 {
                db.background_step().expect("a step");
            }
            if round % 25 == 24 {
                seen.iter().for_each(|(snapshot, then)| check(&db, snapshot, then));
                // Some go, so that compactions have something to drop.
                seen.retain(|_| random.u8(..8) > 0);
            }
        }
        compare::check_database(&db, &model);
    });
}

fn check(db: &Db, snapshot: &Snapshot, model: &Model) {
    let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
    let family = db.default_column_family();
    let keys: Vec<_> = (0..KEYS).map(|number| format!("key {number}").into_bytes()).collect();
    compare::check_scans(db, family, &model.families["default"], &options);
    compare::check_lookups(db, family, &model.families["default"], &options, &keys);
}
