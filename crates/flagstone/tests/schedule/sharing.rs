//! Databases that share threads.

use std::sync::Arc;

use flagstone::db::Db;
use flagstone::options::{BackgroundThreads, BackgroundThreadsOptions};
use testkit::compare;

use crate::explore::explore;
use crate::world::{Disk, PATH, close, join, options, put, thread};

/// Two databases on two threads, written to by two others. One is closed while the threads may be
/// at work for either: that neither hangs nor takes anything from the other, and the threads end
/// with the last of them.
#[test]
fn one_of_two_is_closed() {
    explore("sharing::one_of_two_is_closed", 300, || {
        let disks = [Disk::default(), Disk::default()];
        let changes = [("write_buffer_size", "2048"), ("level0_file_num_compaction_trigger", "2")];
        let mut shared = options(&disks[0], &changes);
        let threads =
            BackgroundThreadsOptions { niceness: 0, ..BackgroundThreadsOptions::default() };
        let threads = BackgroundThreads::with_env(threads, &shared.env).expect("good options");
        shared.background_threads = Some(Arc::new(threads));
        let databases = disks.clone().map(|disk| {
            shared.env.fs = Arc::new(disk);
            Db::open(PATH, &shared).expect("a new database")
        });
        let writers = databases.iter().cloned().map(|db| {
            thread(move || {
                for n in 0..3 {
                    put(&db, n == 1, &format!("key {n}"), "value").expect("a write");
                    db.flush_all().expect("a flush");
                }
                db
            })
        });
        let mut written = join(writers.collect());
        let (second, first) = (written.pop().expect("two"), written.pop().expect("two"));
        drop((databases, written));
        let closer = thread(move || first.close().expect("a clean close"));
        put(&second, false, "key 0", "newer").expect("a write");
        second.flush_all().expect("a flush");
        close(&disks[1], &second);
        join(vec![closer]);
        drop(second);

        shared.background_threads = None;
        for (disk, expected) in disks.iter().zip(["value", "newer"]) {
            shared.env.fs = Arc::new(disk.clone());
            let db = Db::open(PATH, &shared).expect("it opens again");
            assert_eq!(
                db.get("key 0").expect("a lookup").expect("it is there"),
                expected.as_bytes()
            );
            assert!(db.get("key 2").expect("a lookup").is_some());
            compare::check_files(&db);
        }
    });
}
