//! Log records that wait in memory until somebody asks for them (`manual_wal_flush`), and what the
//! death of the process takes.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::path::Path;
use std::sync::{Arc, Mutex};

use flagstone::base::{Code, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::{Env, FileSystem, FileSystemAround};
use flagstone::options::{self, Options, WriteOptions};
use testkit::{CrashFs, settings};

const MODES: [&str; 2] = ["mapped", "plain"];

/// A database on a disk that survives the process.
struct World {
    fs: CrashFs,
    options: Options,
    db: Db,
}

impl World {
    fn new(changes: &[(&str, &str)]) -> Self {
        let fs = CrashFs::new();
        let mut options = settings::tiny(&Env::memory().with_fs(Arc::new(fs.clone())));
        settings::set(
            &mut options,
            &[("manual_wal_flush", "true"), ("write_buffer_size", "1000000")],
        );
        settings::set(&mut options, changes);
        let db = Db::open("/db", &options).unwrap();
        Self { fs, options, db }
    }

    /// The process dies, and another one opens what it left.
    fn kill(self) -> Self {
        let Self { fs, mut options, db } = self;
        let fs = fs.kill();
        drop(db);
        options.env = Env::memory().with_fs(Arc::new(fs.clone()));
        let db = Db::open("/db", &options).unwrap();
        Self { fs, options, db }
    }

    fn put_all(&self, keys: &[&str]) {
        keys.iter().for_each(|key| self.db.put(key, "value").unwrap());
    }

    fn keys(&self) -> String {
        keys(&self.db)
    }

    fn wal_bytes(&self) -> u64 {
        self.db.wal_files().last().unwrap().size
    }
}

fn keys(db: &Db) -> String {
    let mut iter = db.iter(&Default::default()).unwrap();
    iter.seek_to_first();
    let mut found = Vec::new();
    while iter.valid() {
        found.push(iter.key().escape_ascii().to_string());
        iter.next();
    }
    found.join(" ")
}

#[test]
fn a_kill_takes_what_was_not_flushed_and_nothing_before_it() {
    for mode in MODES {
        let world = World::new(&[("wal_write_mode", mode)]);
        world.put_all(&["a", "b"]);
        assert_eq!(
            (world.keys().as_str(), world.wal_bytes()),
            ("a b", 0),
            "readers see what waits"
        );
        world.db.flush_wal(false).unwrap();
        assert!(world.wal_bytes() > 0);
        world.put_all(&["c"]);
        let world = world.kill();
        assert_eq!(world.keys(), "a b", "{mode}");

        // A sync brings all before it along, and so do a flush of a memtable, and closing.
        world.put_all(&["c"]);
        let mut synced = WriteBatch::new();
        synced.put(b"d", b"value").unwrap();
        world
            .db
            .write_with(&WriteOptions { sync: true, ..WriteOptions::default() }, synced)
            .unwrap();
        world.put_all(&["e"]);
        let world = world.kill();
        assert_eq!(world.keys(), "a b c d", "{mode}");
        world.put_all(&["e"]);
        world.db.sync_wal().unwrap();
        world.put_all(&["f"]);
        world.db.flush_wal(true).unwrap();
        world.put_all(&["g"]);
        let world = world.kill();
        assert_eq!(world.keys(), "a b c d e f", "{mode}");
        world.put_all(&["g"]);
        world.db.flush_all().unwrap();
        world.put_all(&["h"]);
        let world = world.kill();
        assert_eq!(world.keys(), "a b c d e f g", "{mode}");
        world.put_all(&["h"]);
        world.db.close().unwrap();
        assert_eq!(world.kill().keys(), "a b c d e f g h", "{mode}");
    }
}

#[test]
fn no_more_waits_than_the_buffer_holds() {
    for mode in MODES {
        let world =
            World::new(&[("wal_write_mode", mode), ("writable_file_max_buffer_size", "4096")]);
        let numbers: Vec<String> = (0..30).map(|number| format!("{number:02}")).collect();
        for key in &numbers {
            world.db.put(key, [b'v'; 1_000]).unwrap();
        }
        // Three records of some thousand bytes wait at most.
        let world = world.kill();
        let found = world.keys();
        assert!(
            numbers.join(" ").starts_with(&found) && found.split(' ').count() >= 27,
            "{mode}: {found}"
        );

        // What the buffer never holds goes to the file at once, behind what waits.
        world.put_all(&["large-before"]);
        world.db.put("large", [b'v'; 10_000]).unwrap();
        world.put_all(&["lost"]);
        assert_eq!(world.kill().keys(), format!("{found} large large-before"), "{mode}");
    }
}

#[test]
fn sync_pays_for_all_that_waits_with_one_write() {
    let world = World::new(&[("wal_write_mode", "plain")]);
    let before = world.fs.changes();
    world.put_all(&["a", "b", "c", "d"]);
    world.db.flush_wal(true).unwrap();
    let told: Vec<_> = (before + 1..=world.fs.changes()).map(|at| world.fs.describe(at)).collect();
    let writes =
        told.iter().filter(|change| change.starts_with("write") && change.contains(".log"));
    assert_eq!(writes.count(), 1, "{told:#?}");
}

/// Lets something happen when a directory is created.
struct Meanwhile {
    fs: CrashFs,
    happens: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl FileSystemAround for Meanwhile {
    fn inner(&self) -> &dyn FileSystem {
        &self.fs
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        if path == Path::new("/copy")
            && let Some(happens) = self.happens.lock().expect("nobody panics with it").take()
        {
            happens();
        }
        self.inner().create_directory(path)
    }
}

#[test]
fn a_checkpoint_has_what_waits_in_memory() {
    let fs = Arc::new(Meanwhile { fs: CrashFs::new(), happens: Mutex::default() });
    let mut options = settings::tiny(&Env::memory().with_fs(fs.clone()));
    settings::set(&mut options, &[("manual_wal_flush", "true")]);
    let db = Db::open("/db", &options).unwrap();
    db.put("before", "value").unwrap();
    let writer = db.clone();
    // After the checkpoint has flushed the memtables, and before it looks at the WAL.
    *fs.happens.lock().unwrap() = Some(Box::new(move || writer.put("meanwhile", "value").unwrap()));
    db.checkpoint("/copy").unwrap();
    assert_eq!(keys(&Db::open("/copy", &options).unwrap()), "before meanwhile");
}

#[test]
fn the_option_is_kept_and_cannot_change_while_the_database_is_open() {
    let world = World::new(&[]);
    let refused = world.db.set_db_options(&[("manual_wal_flush", "false")]).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let written = options::load_latest(&world.options.env, Path::new("/db")).unwrap().unwrap();
    assert!(written.options.manual_wal_flush && written.warnings().is_empty());
}

#[test]
fn without_the_option_nothing_waits() {
    let world = World::new(&[("manual_wal_flush", "false")]);
    world.put_all(&["a"]);
    let bytes = world.wal_bytes();
    assert!(bytes > 0);
    world.db.flush_wal(false).unwrap();
    assert_eq!(world.wal_bytes(), bytes);
    assert_eq!(world.kill().keys(), "a");

    let world = World::new(&[]);
    world.db.close().unwrap();
    assert_eq!(world.db.flush_wal(false).unwrap_err().code(), Code::ShutdownInProgress);
    let reader = Db::open_read_only("/db", &world.options).unwrap();
    assert_eq!(reader.flush_wal(false).unwrap_err().code(), Code::NotSupported);
}
