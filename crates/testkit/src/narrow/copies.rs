//! A checkpoint of what lies in WALs.

use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;

use crate::{Generator, Model, compare, for_each_seed, settings, steps};

/// A database that is open for reading cannot flush before a checkpoint: all of its WALs go along.
///
/// # Panics
/// If the copy lacks something.
pub fn copies() {
    for_each_seed(5, |seed| {
        let mut options = settings::tiny(&steps::world(Arc::new(MemoryFileSystem::new()), seed));
        // Several WALs, since a memtable waits for others to be merged with.
        let changes = [("min_write_buffer_number_to_merge", "3"), ("max_write_buffer_number", "4")];
        settings::set(&mut options, &changes);
        let mut generator = Generator::new(seed);
        let mut model = Model::with_families(&["default"]);
        let db = Db::open("/db", &options).expect("a new database");
        for _ in 0..150 {
            let batch = generator.batch(&mut model);
            db.write(compare::to_batch(&db, &batch)).expect("a write");
            if generator.random.u8(..20) == 0 {
                db.background_step().expect("a step");
            }
        }
        db.close().expect("a clean close");
        drop(db);
        let db = Db::open_read_only("/db", &options).expect("a sound database");
        compare::check_database(&db, &model);
        db.checkpoint("/copy").expect("a checkpoint");
        let copy = Db::open("/copy", &options).expect("a sound copy");
        compare::check_database(&copy, &model);
        compare::check_files(&copy);
    });
}
