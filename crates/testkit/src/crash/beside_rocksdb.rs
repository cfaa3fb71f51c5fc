//! States after power losses, read by Flagstone and by RocksDB.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, IoMode};

use super::aftermath::{State, list};
use super::choices::aftermaths;
use super::disk::Disk;
use super::examine::{self, Contents};
use super::life::{Life, grain, options, world};
use super::scenarios::{SCENARIOS, Scenario};
use crate::referee::Referee;

/// Lives a scenario and loses power at `count` of its moments, spread over the whole life, in one
/// way each that tears the newest WAL at most. Compares what RocksDB finds in each family with what
/// Flagstone finds there. Returns how many different databases that were.
///
/// # Panics
/// If they find something else, or only one of them finds a database.
pub fn compare_with_rocksdb(referee: &Referee, name: &str, seed: u64, count: usize) -> usize {
    let scenario =
        SCENARIOS.iter().find(|scenario| scenario.name == name).expect("a scenario's name");
    let life = Life::live(scenario, seed);
    let (mut disk, changes) = life.fs.recorded();
    let step = (changes.len() / count).max(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut seen = HashSet::new();
    for (at, change) in (1..).zip(&changes) {
        disk.apply(change);
        if at % step != 0 {
            continue;
        }
        let mut ways = aftermaths(&disk, Some(change), grain(seed), seed ^ at as u64);
        random.shuffle(&mut ways);
        let mut states = ways.iter().map(|way| (way, disk.after(way)));
        let (way, state) = states
            .find(|(_, state)| may_be_compared(&disk, state))
            .expect("all is kept in one of them");
        let Some(found) = found_here(scenario, seed, &state) else { continue };
        if !seen.insert(state.hash()) {
            continue;
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        copy(&state, Path::new(scenario.path), directory.path());
        for (family, text) in found {
            let told = || {
                format!(
                    "{name}, seed {seed}: after change {at}, {}; {way}\nfiles:\n{}",
                    life.fs.describe(at),
                    list(&state)
                )
            };
            let theirs = referee.scan(directory.path(), &family);
            let theirs = theirs.unwrap_or_else(|error| panic!("{error}\n{}", told()));
            let mut pairs = theirs.lines().zip(text.lines());
            assert!(
                theirs == text,
                "RocksDB finds {} entries in {family}, Flagstone {}; first other ones: {:?}\n{}",
                theirs.lines().count(),
                text.lines().count(),
                pairs.find(|(theirs, ours)| theirs != ours),
                told()
            );
        }
    }
    seen.len()
}

/// Whether no file but the newest WAL is torn, and no older WAL has lost anything. Where the last
/// record of a MANIFEST has holes, RocksDB refuses to open, and Flagstone takes it for one that
/// never was. Where an older WAL has lost its end, RocksDB goes on in the next one, and Flagstone
/// sees there what is missing.
fn may_be_compared(disk: &Disk, state: &State) -> bool {
    let is_wal = |path: &Path| path.extension().is_some_and(|end| end == "log");
    let newest_wal = state.files.keys().rfind(|path| is_wal(path));
    state.files.iter().all(|(path, (inode, bytes))| {
        let versions = &disk.files[inode];
        let is_newest = || versions.last().is_some_and(|newest| newest.hash == bytes.hash);
        let was_so = || versions.iter().any(|version| version.hash == bytes.hash);
        newest_wal == Some(path) || if is_wal(path) { is_newest() } else { was_so() }
    })
}

/// What Flagstone finds, by family, in the words of [`Referee::scan`]; `None` if there is no
/// database.
fn found_here(
    scenario: &'static Scenario,
    seed: u64,
    state: &State,
) -> Option<Vec<(String, String)>> {
    let mut options = options(scenario, seed);
    let fs: MemoryFileSystem = state.to_memory();
    options.env = world(scenario, Arc::new(fs), 1);
    options.db.create_if_missing = false;
    let db = match Db::open(scenario.path, &options) {
        Ok(db) => db,
        Err(error) if examine::is_absence(&error) => return None,
        Err(error) => panic!("opening: {error}"),
    };
    let contents: Contents = examine::contents(&db);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let told = contents.into_iter().map(|(name, _, entries)| {
        let line =
            |(key, value): &(Vec<u8>, Vec<u8>)| format!("{name} {} {}\n", hex(key), hex(value));
        let text = entries.iter().map(line).collect();
        (name, text)
    });
    Some(told.collect())
}

/// Copies the files of a database into a real directory.
fn copy(state: &State, source: &Path, target: &Path) {
    let fs = Env::os().fs;
    for path in state.list(source) {
        let bytes = state.file(path).expect("it was listed");
        let name = path.file_name().expect("it is a file");
        let file = fs.create_writable(&target.join(name), IoMode::Buffered).expect("a new file");
        file.write_at(0, bytes).expect("a copy");
    }
}
