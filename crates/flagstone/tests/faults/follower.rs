//! A follower on a disk that fails, beside a leader whose calls all succeed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flagstone::base::Result;
use flagstone::db::{Db, Follower};
use flagstone::env::FileSystem;
use flagstone::options::{Options, ReadOptions};
use testkit::{FaultFs, Injection, Plan, Survival, compare, steps};

use super::World;

const SETTINGS: &[(&str, &str)] = &[
    ("follower_refresh_catchup_period_ms", "0"),
    ("enable_blob_files", "true"),
    ("min_blob_size", "100"),
    ("enable_blob_garbage_collection", "true"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
];

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// A leader on the disk, and a follower on what may fail above it.
struct Pair {
    world: World,
    leader: Db,
}

impl Pair {
    fn new() -> Self {
        let world = World::new(SETTINGS);
        let leader = Self::leader(&world.options, Arc::new(world.disk.clone()));
        let pair = Self { world, leader };
        pair.replace_all(b'a');
        pair
    }

    fn leader(options: &Options, fs: Arc<dyn FileSystem>) -> Db {
        Db::open("/db", &Options { env: steps::world(fs, 0), ..options.clone() }).unwrap()
    }

    /// Afterwards none of the leader's files are those of before.
    fn replace_all(&self, letter: u8) {
        replace_all(&self.leader, letter);
    }

    fn follow(&self) -> Result<Follower> {
        Follower::open("/own", "/db", &self.world.options)
    }

    /// What follows has all that the leader has, and the leader lacks nothing.
    fn check(&self, follower: &Follower) {
        assert_eq!(entries(&follower.now()), entries(&self.leader));
        compare::check_files(&self.leader);
        let names = |directory: &str| {
            let mut names = self.world.disk.list(Path::new(directory)).unwrap();
            names.retain(|name| [".sst", ".blob", ".dbtmp"].iter().any(|end| name.ends_with(end)));
            names.sort();
            names
        };
        assert_eq!(names("/own"), names("/db"));
    }
}

fn replace_all(leader: &Db, letter: u8) {
    for number in 0..6 {
        leader.put(format!("key{number}"), vec![letter; 30 + number * 40]).unwrap();
    }
    leader.flush_all().unwrap();
    leader.compact_range(leader.default_column_family(), None, None, &Default::default()).unwrap();
}

fn entries(db: &Db) -> Entries {
    try_entries(db).unwrap()
}

fn try_entries(db: &Db) -> Result<Entries> {
    let mut iter = db.iter(&ReadOptions::default())?;
    let mut found = Vec::new();
    iter.seek_to_first();
    while iter.valid() {
        found.push((iter.key().to_vec(), iter.value()?.to_vec()));
        iter.next();
    }
    iter.status()?;
    Ok(found)
}

#[test]
fn every_call_of_a_follower_may_fail() {
    for injection in [Injection::Io, Injection::NoSpace, Injection::Late] {
        for at in 0.. {
            let pair = Pair::new();
            let before = entries(&pair.leader);
            pair.world.fs.plan(Plan::Once { at, injection });
            let first = pair.follow();
            if let Ok(follower) = &first
                && let Ok(found) = try_entries(&follower.now())
            {
                assert_eq!(found, before);
            }
            pair.replace_all(b'b');
            let refreshed = first.inspect(|follower| {
                if follower.catch_up().is_err() {
                    assert_eq!(entries(&follower.now()), before);
                }
            });
            pair.world.fs.heal();
            let follower = refreshed.or_else(|_| pair.follow()).unwrap();
            // What could not be removed at once goes with the next refresh.
            follower.catch_up().unwrap();
            pair.check(&follower);
            if pair.world.fs.failed().is_empty() {
                assert!(at > 20, "{at} calls are suspiciously few");
                break;
            }
        }
    }
}

#[test]
fn a_follower_may_die_at_every_call() {
    for at in 0.. {
        let mut pair = Pair::new();
        let fs = pair.world.fs.clone();
        fs.plan(Plan::Once { at, injection: Injection::Io });
        let dying = fs.clone();
        fs.when_one_fails(move || dying.kill());
        let first = pair.follow();
        pair.replace_all(b'b');
        if let Ok(follower) = &first {
            let _dead_or_not = follower.catch_up();
        }
        let is_alive = fs.failed().is_empty();
        drop(first);
        pair.world.fs = fs.new_process();
        pair.world.fs.heal();
        pair.world.options.env.fs = Arc::new(pair.world.fs.clone());
        pair.check(&pair.follow().unwrap());
        if is_alive {
            assert!(at > 20, "{at} calls are suspiciously few");
            return;
        }
    }
}

#[test]
fn a_power_loss_takes_nothing_that_cannot_be_linked_again() {
    let pair = Pair::new();
    let from = pair.world.disk.changes();
    let follower = pair.follow().unwrap();
    pair.replace_all(b'b');
    follower.catch_up().unwrap();
    for at in from..=pair.world.disk.changes() {
        for survival in [Survival::Lost, Survival::Kept] {
            let disk = pair.world.disk.after_crash(at, survival);
            let fs: Arc<dyn FileSystem> = Arc::new(disk);
            let leader = Pair::leader(&pair.world.options, fs.clone());
            let env = steps::world(fs, 0);
            let options = Options { env, ..pair.world.options.clone() };
            let follower = Follower::open("/own", "/db", &options).unwrap();
            assert_eq!(entries(&follower.now()), entries(&leader), "after {at} changes");
            replace_all(&leader, b'c');
            follower.catch_up().unwrap();
            assert_eq!(entries(&follower.now()), entries(&leader), "after {at} changes");
        }
    }
}

/// Between the look at the MANIFEST and the links, and everywhere else.
#[test]
fn the_leader_may_replace_its_files_before_any_call() {
    for at in 0.. {
        let pair = Pair::new();
        let fs = FaultFs::new(Arc::new(pair.world.disk.clone()));
        let (calls, leader) = (Arc::new(AtomicU64::new(0)), pair.leader.clone());
        let counted = calls.clone();
        fs.before_each(move |_, _| {
            if counted.fetch_add(1, Ordering::Relaxed) == at {
                // It is another process, and has no part in the follower's locks.
                std::thread::scope(|scope| {
                    scope.spawn(|| replace_all(&leader, b'b'));
                });
            }
        });
        let env = steps::world(Arc::new(fs.clone()), 0);
        let options = Options { env, ..pair.world.options.clone() };
        let follower = Follower::open("/own", "/db", &options).unwrap();
        check_is_one_state(&follower);
        pair.replace_all(b'c');
        follower.catch_up().unwrap();
        check_is_one_state(&follower);
        fs.before_each(|_, _| {});
        follower.catch_up().unwrap();
        pair.check(&follower);
        if calls.load(Ordering::Relaxed) <= at {
            assert!(at > 20, "{at} calls are suspiciously few");
            return;
        }
    }
}

/// All values are of one round.
fn check_is_one_state(follower: &Follower) {
    let found = entries(&follower.now());
    let letter = found[0].1[0];
    assert!(found.iter().all(|(_, value)| value.iter().all(|byte| *byte == letter)));
    assert_eq!(found.len(), 6);
}
