//! A disk that fails at any call of a remote compaction, and a process that dies there.

use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use testkit::{FaultFs, Injection, Plan, steps};

use crate::{World, check, compact, fill};

fn world() -> (FaultFs, World) {
    let memory = Arc::new(MemoryFileSystem::new());
    let fs = FaultFs::new(memory.clone());
    let env = steps::world(Arc::new(fs.clone()), 1);
    let world = World::within(memory, env, |options| {
        options.set("enable_blob_files", "true").unwrap();
        options.set("min_blob_size", "1000").unwrap();
        options.set("enable_blob_garbage_collection", "true").unwrap();
        options.set("blob_garbage_collection_age_cutoff", "1.0").unwrap();
    });
    (fs, world)
}

/// Each call of the database fails once, in each way: it then compacts here, or has stopped, and
/// has all that was written.
#[test]
fn every_call_of_the_database_may_fail() {
    for injection in [Injection::Io, Injection::NoSpace, Injection::Late] {
        for at in 0.. {
            let (fs, world) = world();
            let db = world.open();
            fill(&db);
            fs.plan(Plan::Once { at, injection });
            let outcome = compact(&db);
            let was_met = !fs.failed().is_empty();
            fs.heal();
            if outcome.is_ok() {
                check(&db);
            }
            drop(db.close());
            let db = Db::open("/db", &world.options).unwrap();
            check(&db);
            assert!(world.outputs().is_empty(), "{at} {injection:?}: {:?}", world.outputs());
            compact(&db).unwrap();
            check(&db);
            if !was_met {
                assert!(at > 30, "{at} calls are too few");
                break;
            }
        }
    }
}
