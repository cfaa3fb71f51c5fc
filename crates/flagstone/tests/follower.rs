//! Stories of a follower: it has what another handle, or process, has flushed, under names of its
//! own.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests stand outside the engine and use the operating system"
)]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use common::{create, entries, newest_batch, temporary};
use flagstone::base::{Code, Result};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, Follower, destroy};
use flagstone::env::{Env, FileSystem, FileSystemAround};
use flagstone::options::{ColumnFamilyOptions, Options};
use testkit::Referee;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

const BLOBS: &str = "enable_blob_files=true;min_blob_size=2000;blob_file_size=65536;\
                     enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=1.0";

/// It refreshes when it is told to.
const BY_CALL: &str = "follower_refresh_catchup_period_ms=0";

fn options(settings: &str) -> Options {
    let mut options = create();
    let text =
        "write_buffer_size=65536;target_file_size_base=65536;max_bytes_for_level_base=262144";
    for setting in text.split(';').chain(settings.split(';')).filter(|text| !text.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap();
        options.set(name, value).unwrap();
    }
    options
}

/// A leader in a new directory, and where its follower has its own.
struct Pair {
    directory: tempfile::TempDir,
    options: Options,
}

impl Pair {
    fn new(settings: &str) -> Self {
        Self { directory: temporary(), options: options(&format!("{BY_CALL};{settings}")) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("db")
    }

    fn own(&self) -> PathBuf {
        self.directory.path().join("own")
    }

    fn leader(&self) -> Db {
        Db::open(self.path(), &self.options).unwrap()
    }

    fn follower(&self) -> Follower {
        self.try_follower(&self.options).unwrap()
    }

    fn try_follower(&self, options: &Options) -> Result<Follower> {
        Follower::open(self.own(), self.path(), options)
    }

    /// The tables and blob files in a directory.
    fn files(directory: &Path) -> Vec<String> {
        let names = Env::os().fs.list(directory).unwrap().into_iter();
        let is_data = |name: &String| name.ends_with(".sst") || name.ends_with(".blob");
        let mut names: Vec<_> = names.filter(is_data).collect();
        names.sort();
        names
    }
}

fn contents(db: &Db) -> BTreeMap<String, Entries> {
    let families = db.column_families();
    families.iter().map(|family| (family.name().to_string(), entries(db, family))).collect()
}

fn fill(db: &Db, from: u32, count: u32, size: usize) {
    for number in from..from + count {
        db.put(format!("key{number:06}"), vec![number as u8; size]).unwrap();
    }
}

fn compact(db: &Db) {
    db.compact_range(db.default_column_family(), None, None, &Default::default()).unwrap();
    db.wait_for_compactions().unwrap();
}

/// It has what the leader has, once that is flushed, and no more files than the leader.
fn assert_follows(pair: &Pair, leader: &Db, follower: &Follower) {
    leader.flush_all().unwrap();
    leader.wait_for_compactions().unwrap();
    follower.catch_up().unwrap();
    assert_eq!(contents(&follower.now()), contents(leader));
    let (own, its) = (Pair::files(&pair.own()), Pair::files(&pair.path()));
    assert!(own.iter().all(|name| its.contains(name)), "{own:?} of {its:?}");
}

#[test]
fn it_sees_what_is_flushed_once_it_catches_up() {
    let pair = Pair::new("");
    let leader = pair.leader();
    leader.put("a", "1").unwrap();
    let follower = pair.follower();
    assert!(follower.now().get("a").unwrap().is_none(), "it is in the WAL alone");
    assert!(!follower.catch_up().unwrap(), "nothing was flushed");
    leader.flush_all().unwrap();
    assert!(follower.catch_up().unwrap());
    assert_eq!(follower.now().get("a").unwrap().unwrap(), "1");
    leader.put("a", "2").unwrap();
    follower.catch_up().unwrap();
    assert_eq!(follower.now().get("a").unwrap().unwrap(), "1");
    let refused = follower.now().put("a", "1").unwrap_err();
    assert_eq!(refused.code(), Code::NotSupported);
    assert_follows(&pair, &leader, &follower);
}

#[test]
fn it_follows_flushes_and_compactions_and_new_lives() {
    for settings in ["max_manifest_file_size=1000", BLOBS] {
        let pair = Pair::new(settings);
        let mut leader = pair.leader();
        let mut follower = pair.follower();
        for round in 0..9 {
            fill(&leader, round * 50, 150, if round % 2 == 0 { 200 } else { 3000 });
            match round % 4 {
                0 => leader.flush_all().unwrap(),
                1 => compact(&leader),
                2 => {
                    drop(leader);
                    leader = pair.leader();
                }
                _ => {
                    drop(follower);
                    follower = pair.follower();
                }
            }
            assert_follows(&pair, &leader, &follower);
        }
    }
}

#[test]
fn families_come_and_go() {
    let pair = Pair::new("");
    let leader = pair.leader();
    let follower = pair.follower();
    let blue = leader.create_column_family("blue", &ColumnFamilyOptions::default()).unwrap();
    leader.put_cf(&blue, "sky", "clear").unwrap();
    assert_follows(&pair, &leader, &follower);
    let before = follower.now();
    let handle = before.column_family("blue").unwrap();
    leader.drop_column_family(&blue).unwrap();
    drop(blue);
    let blue = leader.create_column_family("blue", &ColumnFamilyOptions::default()).unwrap();
    leader.put_cf(&blue, "sea", "calm").unwrap();
    leader.flush_all().unwrap();
    follower.catch_up().unwrap();
    assert_eq!(contents(&follower.now()), contents(&leader));
    assert_eq!(before.get_cf(&handle, "sky").unwrap().unwrap(), "clear");
    drop((before, handle));
    assert_follows(&pair, &leader, &follower);
}

#[test]
fn a_state_keeps_its_files_and_they_go_with_it() {
    let pair = Pair::new(BLOBS);
    let leader = pair.leader();
    fill(&leader, 0, 100, 3000);
    fill(&leader, 100, 100, 30);
    leader.flush_all().unwrap();
    let follower = pair.follower();
    let (first, expected) = (follower.now(), contents(&leader));
    let before = Pair::files(&pair.own());
    for round in 1..4 {
        fill(&leader, 0, 200, 2500 + round);
        leader.flush_all().unwrap();
        compact(&leader);
        follower.catch_up().unwrap();
    }
    let own = Pair::files(&pair.own());
    assert!(before.iter().all(|name| own.contains(name)), "{before:?} in {own:?}");
    assert_eq!(contents(&first), expected);
    first.checkpoint(pair.directory.path().join("copy")).unwrap();
    drop(first);
    follower.catch_up().unwrap();
    let own = Pair::files(&pair.own());
    let mut tables = before.iter().filter(|name| name.ends_with(".sst"));
    assert!(tables.all(|name| !own.contains(name)), "{before:?} not in {own:?}");
    assert_follows(&pair, &leader, &follower);
    let copy = Db::open(pair.directory.path().join("copy"), &pair.options).unwrap();
    assert_eq!(contents(&copy), expected);
}

#[test]
fn it_serves_on_when_its_leader_is_destroyed_and_made_anew() {
    let pair = Pair::new(BLOBS);
    let leader = pair.leader();
    fill(&leader, 0, 100, 3000);
    leader.flush_all().unwrap();
    let follower = pair.follower();
    let expected = contents(&leader);
    drop(leader);
    destroy(pair.path(), &pair.options, &[]).unwrap();
    for _ in 0..2 {
        let error = follower.catch_up().unwrap_err();
        assert_eq!((error.code(), error.is_not_found()), (Code::IoError, true));
        assert_eq!(error.path(), Some(&*pair.path().join("CURRENT")));
        assert!(error.to_string().contains("the database that is followed is gone"), "{error}");
        assert_eq!(contents(&follower.now()), expected);
    }
    // The same file numbers, with other contents.
    let leader = pair.leader();
    fill(&leader, 0, 300, 2999);
    leader.flush_all().unwrap();
    for _ in 0..3 {
        let error = follower.catch_up().unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(error.path(), Some(&*pair.path()));
        assert!(error.to_string().contains("another database has taken the place"), "{error}");
        assert_eq!(contents(&follower.now()), expected);
        assert_eq!(follower.failure().map(|error| error.code()), Some(Code::InvalidArgument));
    }
    drop(follower);
    let error = pair.try_follower(&pair.options).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(error.path(), Some(&*pair.own().join("FOLLOWER")));
    destroy(pair.own(), &pair.options, &[]).unwrap();
    assert_follows(&pair, &leader, &pair.follower());
}

/// A restored copy has the same identity, and gives the same numbers to other files.
#[test]
fn it_takes_no_file_of_an_earlier_history_for_one_of_this() {
    let pair = Pair::new(&format!("disable_auto_compactions=true;{BLOBS}"));
    let leader = pair.leader();
    let copy = pair.directory.path().join("copy");
    leader.checkpoint(&copy).unwrap();
    // Flushes with blob files take more numbers: soon the two histories give out the same.
    let write = |leader: &Db, from: u32, every: u32| {
        for round in 0..20 {
            let size = if round % every == 0 { 3000 } else { 30 };
            fill(leader, from + round, 20, size);
            leader.flush_all().unwrap();
        }
    };
    write(&leader, 0, 2);
    drop(pair.follower());
    let numbers = Pair::files(&pair.own());
    drop(leader);
    destroy(pair.path(), &pair.options, &[]).unwrap();
    std::fs::rename(&copy, pair.path()).unwrap();
    let leader = pair.leader();
    write(&leader, 50, 3);
    assert!(Pair::files(&pair.path()).iter().any(|name| numbers.contains(name)));
    assert_follows(&pair, &leader, &pair.follower());
}

#[test]
fn a_file_that_the_leader_lost_is_named() {
    let pair = Pair::new("disable_auto_compactions=true");
    let leader = pair.leader();
    fill(&leader, 0, 100, 30);
    leader.flush_all().unwrap();
    let follower = pair.follower();
    let expected = contents(&leader);
    let before = Pair::files(&pair.path());
    fill(&leader, 0, 100, 31);
    leader.flush_all().unwrap();
    let is_new = |name: &String| !before.contains(name);
    let lost = pair.path().join(Pair::files(&pair.path()).into_iter().find(is_new).unwrap());
    std::fs::remove_file(&lost).unwrap();
    for _ in 0..2 {
        let error = follower.catch_up().unwrap_err();
        assert!(error.is_not_found() && error.path() == Some(&*lost), "{error}");
        assert_eq!(contents(&follower.now()), expected);
    }
    // What replaces it, the leader's own memory has no part in.
    fill(&leader, 0, 100, 32);
    leader.flush_all().unwrap();
    follower.catch_up().unwrap_err();
    assert_eq!(contents(&follower.now()), expected);
}

#[test]
fn it_takes_no_directory_that_has_data() {
    let pair = Pair::new("");
    let leader = pair.leader();
    fill(&leader, 0, 10, 30);
    leader.flush_all().unwrap();
    let refused = |directory: &Path| {
        let error = Follower::open(directory, pair.path(), &pair.options).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        error.to_string()
    };
    assert!(refused(&pair.path()).contains("not the leader's"));
    let other = pair.directory.path().join("other");
    std::os::unix::fs::symlink(pair.path(), &other).unwrap();
    assert!(refused(&other).contains("not the leader's"));
    let copy = pair.directory.path().join("copy");
    leader.checkpoint(&copy).unwrap();
    assert!(refused(&copy).contains("a database's"));
    for name in Env::os().fs.list(&copy).unwrap() {
        if !name.ends_with(".sst") {
            std::fs::remove_file(copy.join(name)).unwrap();
        }
    }
    assert!(refused(&copy).contains("a database's"));
    assert_eq!(Pair::files(&copy).len(), 1, "nothing was removed");

    let follower = pair.follower();
    let error = pair.try_follower(&pair.options).unwrap_err();
    assert_eq!(error.code(), Code::Busy, "one at a time: {error}");
    assert_eq!(destroy(pair.own(), &pair.options, &[]).unwrap_err().code(), Code::Busy);
    let error = Db::open(pair.own(), &pair.options).unwrap_err();
    assert!(error.to_string().contains("a follower of"), "{error}");
    drop(follower);
    let error = Db::open(pair.own(), &pair.options).unwrap_err();
    assert!(error.to_string().contains("a follower of"), "{error}");
    destroy(pair.own(), &pair.options, &[]).unwrap();
    assert!(!pair.own().exists());
    assert_follows(&pair, &leader, &pair.follower());
}

#[test]
fn a_record_of_the_leader_that_is_damaged_is_named() {
    let pair = Pair::new("");
    let _leader = pair.leader();
    drop(pair.follower());
    let file = pair.own().join("FOLLOWER");
    std::fs::write(&file, "/somewhere").unwrap();
    for error in [
        pair.try_follower(&pair.options).unwrap_err(),
        Db::open(pair.own(), &pair.options).unwrap_err(),
    ] {
        assert_eq!((error.code(), error.path()), (Code::Corruption, Some(&*file)), "{error}");
    }
}

/// Calls something once, right before the first table gets its second name.
struct BeforeLinks {
    fs: Arc<dyn FileSystem>,
    call: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl FileSystemAround for BeforeLinks {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn link(&self, source: &Path, target: &Path) -> Result<()> {
        let call = self.call.lock().unwrap().take();
        if let Some(call) = call {
            // The leader is another process, and has no part in the follower's locks.
            std::thread::scope(|scope| {
                scope.spawn(call);
            });
        }
        self.fs.link(source, target)
    }
}

#[test]
fn a_leader_may_remove_files_between_its_manifest_and_their_links() {
    let pair = Pair::new(BLOBS);
    let leader = pair.leader();
    fill(&leader, 0, 100, 3000);
    leader.flush_all().unwrap();
    let env = Env::os();
    let fs = Arc::new(BeforeLinks { fs: env.fs.clone(), call: Mutex::default() });
    let options = Options { env: env.with_fs(fs.clone()), ..pair.options.clone() };
    let replace_all = |leader: Db, size: usize| {
        move || {
            fill(&leader, 0, 100, size);
            leader.flush_all().unwrap();
            compact(&leader);
        }
    };
    let before = Pair::files(&pair.path());
    *fs.call.lock().unwrap() = Some(Box::new(replace_all(leader.clone(), 3001)));
    let follower = pair.try_follower(&options).unwrap();
    let after = Pair::files(&pair.path());
    assert!(before.iter().all(|name| !after.contains(name)), "all of {before:?} are gone");
    assert_eq!(contents(&follower.now()), contents(&leader));
    fill(&leader, 0, 100, 3002);
    leader.flush_all().unwrap();
    *fs.call.lock().unwrap() = Some(Box::new(replace_all(leader.clone(), 3003)));
    assert!(follower.catch_up().unwrap());
    assert_eq!(contents(&follower.now()), contents(&leader));
    assert_follows(&pair, &leader, &follower);
}

#[test]
fn it_refreshes_by_itself() {
    let pair = Pair::new("atomic_flush=true");
    let mut options = pair.options.clone();
    for (name, value) in
        [("follower_refresh_catchup_period_ms", "1"), ("follower_catchup_retry_wait_ms", "1")]
    {
        options.set(name, value).unwrap();
    }
    let leader = pair.leader();
    let follower = pair.try_follower(&options).unwrap();
    leader.put("a", "1").unwrap();
    leader.flush_all().unwrap();
    while follower.now().get("a").unwrap().is_none() {
        std::thread::yield_now();
    }
    assert!(follower.failure().is_none());
    drop(leader);
    destroy(pair.path(), &pair.options, &[]).unwrap();
    while follower.failure().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(follower.now().get("a").unwrap().unwrap(), "1");
}

#[test]
fn beside_a_leader_at_full_speed_each_state_is_one_that_it_had() {
    for settings in [
        "max_manifest_file_size=5000",
        "enable_blob_files=true;min_blob_size=100;blob_write_mode=commit;blob_commit_min_size=100",
        "enable_blob_files=true;min_blob_size=100;blob_file_size=20000;\
         enable_blob_garbage_collection=true;blob_garbage_collection_age_cutoff=1.0",
    ] {
        let pair = Pair::new(&format!("atomic_flush=true;write_buffer_size=30000;{settings}"));
        let leader = pair.leader();
        let blue = leader.create_column_family("blue", &pair.options.cf).unwrap();
        let (done, flushed) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    number += 1;
                    let mut batch = WriteBatch::new();
                    let value = format!("{number:0300}");
                    for key in ["last", &format!("key{}", number % 60)] {
                        batch.put(key, &value).unwrap();
                        batch.put_cf(&blue, key, &value).unwrap();
                    }
                    leader.write(batch).unwrap();
                    if number.is_multiple_of(100) {
                        leader.flush_all().unwrap();
                        flushed.store(number, Ordering::Release);
                    }
                    if number.is_multiple_of(700) {
                        compact(&leader);
                    }
                }
            });
            let follow = || {
                let mut follower = pair.follower();
                let (mut seen, mut rounds) = (0, 0);
                while rounds < 60 || seen < 3000 {
                    let least = flushed.load(Ordering::Acquire);
                    follower.catch_up().unwrap();
                    let found = newest_batch(&follower.now());
                    assert!(found >= least.max(seen), "{found} after {least} and {seen}");
                    (seen, rounds) = (found, rounds + 1);
                    if rounds % 20 == 0 {
                        drop(follower);
                        follower = pair.follower();
                    }
                }
            };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(follow));
            done.store(true, Ordering::Relaxed);
            if let Err(panic) = outcome {
                std::panic::resume_unwind(panic);
            }
        });
    }
}

#[test]
fn it_follows_a_leader_that_is_rocksdb() {
    let Some(referee) = Referee::find() else {
        println!("SKIPPED: ldb and sst_dump are not installed");
        return;
    };
    let pair = Pair::new("");
    let path = pair.path();
    let blobs = ["--enable_blob_files", "--min_blob_size=100", "--enable_blob_garbage_collection"];
    let ldb = |arguments: &[&str]| {
        referee.ldb(&path, &[arguments, &blobs].concat()).unwrap();
    };
    ldb(&["--create_if_missing", "put", "made", "first"]);
    let follower = pair.follower();
    let first = follower.now();
    let mut expected = BTreeMap::from([("made".to_string(), "first".to_string())]);
    for round in 0..4 {
        for key in ["a", "b"] {
            let value = format!("{key}{round}").repeat(if key == "a" { 100 } else { 1 });
            ldb(&["put", key, &value]);
            expected.insert(key.to_string(), value);
        }
        if round == 2 {
            ldb(&["delete", "made"]);
            expected.remove("made");
        }
        ldb(&["compact"]);
        follower.catch_up().unwrap();
        let found = entries(&follower.now(), follower.now().default_column_family());
        let expected: Entries = expected
            .iter()
            .map(|(key, value)| (key.clone().into(), value.clone().into()))
            .collect();
        assert_eq!(found, expected, "round {round}");
        assert_eq!(Pair::files(&pair.own()), Pair::files(&path));
    }
    drop(first);
}
