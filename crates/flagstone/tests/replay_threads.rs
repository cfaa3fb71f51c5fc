//! A replay by several threads comes to what one in a single thread comes to, whatever WALs and
//! blob files have suffered.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flagstone::base::Result;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem};
use flagstone::options::{FlushOptions, Options, ReadOptions};
use testkit::{compare, steps};

/// Families with their entries.
type Found = Vec<(String, compare::Entries)>;

type Files = Vec<(PathBuf, Arc<Vec<u8>>)>;

const PATH: &str = "/db";
const MODES: [&str; 4] = [
    "kTolerateCorruptedTailRecords",
    "kAbsoluteConsistency",
    "kPointInTimeRecovery",
    "kSkipAnyCorruptedRecords",
];

fn options(env: Env, text: &str) -> Options {
    let mut options = Options { env, ..Options::default() };
    options.create_if_missing = true;
    options
        .set_all("enable_blob_files=true;min_blob_size=500;blob_commit_min_size=500")
        .expect("options");
    options
        .set_all("disable_auto_compactions=true;level0_stop_writes_trigger=1000")
        .expect("options");
    options.set_all(text).expect("options");
    options
}

/// What a process leaves that dies with all in its WALs, of which there are several: puts of small
/// and large values, deletions of keys and ranges, batches over several families.
fn left_behind(random: &mut fastrand::Rng) -> Files {
    let fs = MemoryFileSystem::new();
    let db = Db::open(PATH, &options(Env::memory().with_fs(Arc::new(fs.clone())), ""))
        .expect("it works");
    let mut families = vec![db.default_column_family().clone()];
    for name in ["one", "two", "three"] {
        families.push(
            db.create_column_family(name, &db.default_column_family().options()).expect("it works"),
        );
    }
    for at in 0..400 {
        let mut batch = WriteBatch::new();
        for _ in 0..random.usize(1..4) {
            let family = &families[random.usize(..families.len())];
            let (key, other) = (random.u8(..), random.u8(..));
            match random.u8(..10) {
                0 => batch.delete_cf(family, [key]).expect("it works"),
                1 => batch
                    .delete_range_cf(
                        family,
                        [key.min(other)],
                        [key.max(other).min(key.saturating_add(3))],
                    )
                    .expect("it works"),
                2..4 => batch.put_cf(family, [key], vec![key; 500 + at]).expect("it works"),
                _ => batch.put_cf(family, [key], format!("{at}").as_bytes()).expect("it works"),
            }
        }
        db.write(batch).expect("it works");
        if at % 150 == 149 {
            db.flush(&families[at % 4], &FlushOptions::default()).expect("it works");
        }
    }
    fs.files()
}

/// Does something to a WAL or blob file, most of the time.
fn suffer(files: &mut Files, random: &mut fastrand::Rng) {
    let is_hit = |path: &Path| path.extension().is_some_and(|kind| kind == "log" || kind == "blob");
    let hit: Vec<usize> = (0..files.len()).filter(|&at| is_hit(&files[at].0)).collect();
    let bytes = Arc::make_mut(&mut files[hit[random.usize(..hit.len())]].1);
    if bytes.is_empty() {
        return;
    }
    let at = random.usize(..bytes.len());
    match random.u8(..4) {
        0 => bytes[at] ^= 1 << random.u8(..8),
        1 => bytes.truncate(at),
        2 => {
            let end = bytes.len().min(at + random.usize(1..5000));
            bytes[at..end].fill(0);
        }
        _ => {}
    }
}

fn disk(files: &Files) -> Arc<dyn FileSystem> {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new(PATH)).expect("a directory");
    files.iter().for_each(|(path, bytes)| fs.put(path, bytes.clone()));
    Arc::new(fs)
}

/// Everything that an opening finds, or why it fails.
fn found(env: Env, text: &str) -> Result<Found> {
    let db = Db::open(PATH, &options(env, text))?;
    let scan = |family| {
        Ok((
            String::from(family),
            compare::scan(
                &db,
                &db.column_family(family).expect("a family"),
                &ReadOptions::default(),
            )?,
        ))
    };
    ["default", "one", "two", "three"].into_iter().map(scan).collect()
}

#[test]
fn threads_recover_what_one_would() {
    testkit::for_each_seed(6, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let whole = left_behind(&mut random);
        let (mut opened, mut refused) = (0, 0);
        for round in 0..6 {
            let mut files = whole.clone();
            suffer(&mut files, &mut random);
            for mode in MODES {
                let sizes = [
                    "write_buffer_size=20000",
                    "db_write_buffer_size=100000",
                    "max_background_jobs=2",
                ];
                let text =
                    format!("wal_recovery_mode={mode};{}", sizes[random.usize(..sizes.len())]);
                let alone = found(steps::world(disk(&files), seed), &text);
                let together = found(Env::memory().with_fs(disk(&files)), &text);
                assert_eq!(format!("{together:?}"), format!("{alone:?}"), "round {round}, {text}");
                *if alone.is_ok() { &mut opened } else { &mut refused } += 1;
            }
        }
        assert!(opened > 3 && opened + refused == 24);
    });
}
