//! Random databases, randomly damaged, then salvaged: every record whose bytes are intact comes
//! out, and nothing else.
//!
//! 1. A database is lived and closed. From its sound files follows where each version of each key
//!    lies: in which block of which table, or which record of which WAL, and in which record of a
//!    blob file.
//! 2. Files are damaged: bits flipped, pages zeroed, files cut off or removed, the MANIFEST and
//!    CURRENT too. In every third database some are where they do not belong, too: broken-off
//!    copies, strangers, directories in the place of files, files as they were earlier.
//! 3. What must come out for a key is its newest version of which no byte was touched; nothing, if
//!    that is a deletion. What comes out must have been written once.
//!
//! Every other database has more: blocks that do not tell where they end, merge operands, range
//! deletions in WALs alone, recycled WALs, several directories, values that expire, tables without
//! checksums (of which only parts are cut off, as nothing else can be seen), batches over several
//! families with data for the log alone, families that were dropped, hash indexes, tables that were
//! ingested. Half of these have still more: many families, flushed together, compressed WALs, WALs
//! in a directory of their own, values of up to 2 MiB. Half of those without end with a table that
//! was ingested, newer than what WALs hold.
//!
//! `FLAGSTONE_SALVAGES=200` says how many databases; 20 by default. `FLAGSTONE_SALVAGE_SEED=7`
//! takes that one alone, and both together 200 from the seventh on.

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod holdings;
mod life;
mod misplace;
mod reads;
mod take_in;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use common::*;
use damage::Damage;
use fastrand::Rng;
use flagstone::db::{Db, SalvageReport, TtlDb, TtlFamily, salvage, salvage_with_older_options};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, IoMode, read_file};
use flagstone::options::{self, ColumnFamilyOptions, Options, ReadOptions};
use holdings::{Holdings, Key};
use life::{Extras, live, random_options};
use misplace::Clutter;

const SOURCE: &str = "/source";
const TARGET: &str = "/target";

/// Where tables lie, if not in the database's own directory.
const DIRECTORIES: [&str; 2] = ["/fast", "/slow"];

/// Where WALs lie, if not there.
const LOGS: &str = "/logs";

/// All of them.
fn places() -> impl Iterator<Item = &'static str> {
    [SOURCE].into_iter().chain(DIRECTORIES).chain([LOGS])
}

type Bytes = Vec<u8>;
type Files = BTreeMap<String, Bytes>;

/// The database's files: those in its own directory by their names, others by their paths.
fn files_of(fs: &MemoryFileSystem) -> Files {
    let mut files = Files::new();
    for directory in places() {
        for name in fs.list(Path::new(directory)).unwrap_or_default() {
            let path = Path::new(directory).join(&name);
            if fs.metadata(&path).is_ok_and(|found| found.is_directory) {
                continue;
            }
            let bytes = match read_file(fs, &path, 1 << 30) {
                // While the database lives, one that was listed may go.
                Err(error) if error.is_not_found() => continue,
                bytes => bytes.expect("a file"),
            };
            let is_own = directory == SOURCE;
            files.insert(
                if is_own { name } else { path.to_str().expect("ASCII").to_string() },
                bytes,
            );
        }
    }
    files
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().expect("there is one")
}

fn disk_of(files: &Files) -> MemoryFileSystem {
    let fs = MemoryFileSystem::new();
    for directory in places() {
        fs.create_directory(Path::new(directory)).expect("files in memory");
    }
    for (name, bytes) in files {
        fs.create_writable(&Path::new(SOURCE).join(name), IoMode::Buffered)
            .and_then(|file| file.write_at(0, bytes))
            .expect("written");
    }
    fs
}

fn rebuild(fs: &MemoryFileSystem, extras: &Extras) -> SalvageReport {
    let env = Env::os().with_fs(Arc::new(fs.clone()));
    let (loaded, errors) = options::load_readable(&env, Path::new(SOURCE)).expect("a directory");
    let families = loaded.as_ref().map(|loaded| loaded.families.clone()).unwrap_or_default();
    let is_lost = loaded.is_none();
    let mut options = loaded.map(|loaded| loaded.options).unwrap_or_default();
    options.env = env;
    if extras.paths && is_lost {
        options.set("db_paths", &DIRECTORIES.join(":")).expect("as the document says");
    }
    if extras.log_directory && is_lost {
        options.set("wal_dir", LOGS).expect("as the document says");
    }
    let listed: Vec<(&str, ColumnFamilyOptions)> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone())).collect();
    let salvage = if errors.is_empty() { salvage } else { salvage_with_older_options };
    salvage(Path::new(SOURCE), Path::new(TARGET), &options, &listed, &mut |_| {}).expect("salvaged")
}

/// What the rebuilt database holds.
fn contents(fs: &MemoryFileSystem, extras: &Extras) -> BTreeMap<Key, Bytes> {
    let env = Env::os().with_fs(Arc::new(fs.clone()));
    let loaded = options::load_latest(&env, Path::new(TARGET)).expect("readable").expect("there");
    let mut options = loaded.options;
    options.env = env;
    if extras.operands > 0 {
        // A damaged OPTIONS file may have lost its name.
        options.set("merge_operator", life::APPEND).expect("there is one");
    }
    let db = Db::open(TARGET, &options).expect("it opens");
    let faults = db.verify(|_| {}).faults;
    assert!(faults.is_empty(), "{faults:?}");
    let mut found = BTreeMap::new();
    for family in db.column_families() {
        for (key, value) in entries(&db, &family) {
            found.insert((family.name().to_string(), key), value);
        }
    }
    db.close().expect("closed");
    if extras.expiring {
        expect_expiring(&options, &loaded.families, &found);
    }
    found
}

/// That a database of values that expire is still one.
fn expect_expiring(
    options: &Options,
    families: &[(String, ColumnFamilyOptions)],
    found: &BTreeMap<Key, Bytes>,
) {
    let families: Vec<TtlFamily<'_>> =
        families.iter().map(|(name, family)| (name.as_str(), family.clone(), life::TTL)).collect();
    let db = TtlDb::open_with_families(TARGET, options, &families).expect("it opens");
    let mut count = 0;
    for family in db.base().column_families() {
        let mut iter = db.iter_cf(&family, &ReadOptions::default()).expect("a cursor");
        iter.seek_to_first();
        while iter.valid() {
            let stored = &found[&(family.name().to_string(), iter.key().to_vec())];
            let value = iter.value().expect("a value");
            assert_eq!(value, &stored[..stored.len() - 4], "{}", family.name());
            count += 1;
            iter.next();
        }
        iter.status().expect("no error");
    }
    assert_eq!(count, found.len());
    db.base().close().expect("closed");
}

fn is_data(name: &str) -> bool {
    [".sst", ".log", ".blob", "MANIFEST"].iter().any(|part| name.contains(part))
}

/// The numbers of the WALs, as they stand in their names.
fn logs(files: &Files) -> impl Iterator<Item = String> {
    let names = files.keys().filter_map(|name| name.strip_suffix(".log"));
    names.map(|name| name.rsplit('/').next().unwrap_or(name).to_string())
}

/// Damages files, each seed in its own way.
fn inflicted(
    seed: u64,
    random: &mut Rng,
    extras: &Extras,
    files: &mut Files,
    before: &Files,
) -> (Damage, Clutter) {
    let mut damage = Damage { spares_bits_of_tables: extras.unprotected, ..Damage::default() };
    // One that is healthy comes out as it was, whatever it has.
    if !seed.is_multiple_of(5) {
        (0..random.u32(1..5)).for_each(|_| damage.inflict(random, files));
    }
    // Drawn apart, so that the others stay what they were.
    let (mut others, mut clutter) = (Rng::with_seed(seed ^ 0xc107_7e55), Clutter::default());
    if seed.is_multiple_of(3) && !seed.is_multiple_of(5) && !extras.unprotected {
        (0..others.u32(1..4)).for_each(|_| clutter.add(&mut others, files, before, &mut damage));
    }
    // What was ingested is then told from what was flushed by the tables alone.
    if extras.takes_in && !seed.is_multiple_of(5) && others.bool() {
        damage.lose(files, "MANIFEST");
    }
    (damage, clutter)
}

/// One database; how many damages there were, and how many keys were lost.
fn story(seed: u64, extras: &Extras) -> String {
    let mut random = Rng::with_seed(seed);
    let fs = MemoryFileSystem::new();
    let options = random_options(&mut random, extras, &fs);
    let before = live(&mut random, extras, &options, &fs);
    let mut files = files_of(&fs);
    let holdings = Holdings::of(&disk_of(&files), &files, extras.compression.is_some());
    let newest_log = logs(&files).max();
    let (damage, clutter) = inflicted(seed, &mut random, extras, &mut files, &before);
    let what = format!("seed {seed} {extras:?}: {}", damage.words.join("; "));
    if !files.keys().any(|name| is_data(name)) {
        return format!("{what}: nothing is left");
    }
    let disk = disk_of(&files);
    for name in &clutter.directories {
        disk.create_directory(&Path::new(SOURCE).join(name)).expect("nothing is there");
    }
    let report = rebuild(&disk, extras);
    let found = contents(&disk, extras);
    assert_eq!(files_of(&disk), files, "{what}: the source was changed");

    let expected = holdings.expected(&damage);
    expect_contents(&what, &report, &holdings, &expected, &found);
    let sound = holdings.expected(&Damage::default());
    let is_lossy = expected.iter().any(|(key, value)| sound[key] != *value);
    // Nothing names a WAL that is newer than the one that the MANIFEST names, while that one is
    // there.
    let is_unknown = clutter.hides_end_of_logs
        || newest_log > logs(&files).max() && logs(&files).next().is_some();
    if is_lossy
        && !is_unknown
        && !damage.touches_file("MANIFEST")
        && !damage.touches_file("CURRENT")
    {
        assert!(!report.is_complete(), "{what}\nthe report says that nothing was lost");
    }
    if damage.words.is_empty() {
        assert!(report.is_complete() && report.harmless.is_empty(), "{report:#?}");
    }
    format!(
        "{what}: {} keys of {}, {} losses",
        found.len(),
        holdings.versions.len(),
        report.losses.len()
    )
}

/// That what must come out was `found`, and nothing else.
fn expect_contents(
    what: &str,
    report: &SalvageReport,
    holdings: &Holdings,
    expected: &BTreeMap<Key, Option<Bytes>>,
    found: &BTreeMap<Key, Bytes>,
) {
    // A table whose family nothing tells goes to one of its own, and there is no order between the
    // two. Whose WAL records stand in the place of another's, by its number, it says of itself.
    let is_noted = |word: String| report.notes.iter().any(|note| note.starts_with(&word));
    let is_misnamed =
        |family: &String| is_noted(format!("Only WALs are left of family '{family}'"));
    let is_doubted = |family: &String| is_noted(format!("Family '{family}' is"));
    let strays: Vec<&Key> =
        found.keys().filter(|(family, _)| family.starts_with("salvaged")).collect();
    for ((family, key), value) in expected.iter().filter(|((family, _), _)| !is_misnamed(family)) {
        let at_home = found.get(&(family.clone(), key.clone()));
        let mut elsewhere = strays.iter().filter(|stray| stray.1 == *key);
        // Operands that came into another family than what they follow come to something else.
        let is_parted = holdings.has_operand(family, key) && elsewhere.clone().next().is_some();
        let mut is_elsewhere = || elsewhere.any(|stray| Some(&found[*stray]) == value.as_ref());
        let is_right = at_home == value.as_ref()
            || !strays.is_empty() && (value.is_none() || is_parted || is_elsewhere());
        assert!(
            is_right,
            "{what}\n{family} {} is {:?}, not {:?}\n{:#?}\n{report:#?}",
            key.escape_ascii(),
            at_home.map(|value| value[..value.len().min(20)].escape_ascii().to_string()),
            value.as_ref().map(|value| value[..value.len().min(20)].escape_ascii().to_string()),
            holdings.versions[&(family.clone(), key.clone())]
                .iter()
                .map(|version| (version.sequence, &version.places))
                .collect::<Vec<_>>(),
        );
    }
    for (key, value) in found.iter().filter(|(key, _)| !is_misnamed(&key.0)) {
        assert!(
            holdings.explain(key, value, is_doubted(&key.0)),
            "{what}\n{} {} was never written so",
            key.0,
            key.1.escape_ascii()
        );
    }
}

#[test]
fn whatever_is_intact_comes_out_and_nothing_else() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (first, count) = (number("FLAGSTONE_SALVAGE_SEED"), number("FLAGSTONE_SALVAGES"));
    let seeds = match first {
        Some(seed) => seed..seed + count.unwrap_or(1),
        None => 0..count.unwrap_or(20),
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| {
            let extras = match seed % 4 {
                1 => Extras::draw(seed),
                2 => Extras::newer(seed),
                3 => Extras::draw_all(seed),
                _ => Extras::default(),
            };
            story(seed, &extras)
        });
        match outcome {
            Ok(word) => println!("{word}"),
            Err(_) => panic!("FLAGSTONE_SALVAGE_SEED={seed} repeats this"),
        }
    }
}

/// A table that had lost its properties, and the MANIFEST its part: it was taken for the default
/// family's, as no table of the other one had been looked at yet, and its values were hidden by
/// those of the same keys there.
#[test]
fn a_table_that_names_no_family_is_not_mixed_up_with_the_default_ones() {
    println!("{}", story(5191, &Extras::default()));
}

/// The index of a table whose only block was damaged came out as its entries: keys with places for
/// values.
#[test]
fn an_index_none_of_whose_blocks_is_intact_is_not_taken_for_entries() {
    for seed in [9416, 9761] {
        println!("{}", story(seed, &Extras::default()));
    }
}

/// So did the one entry of an index of partitions, of which the partition was not found: it stood
/// in the way of the key's own.
#[test]
fn an_index_of_one_partition_that_is_lost_is_not_taken_for_entries() {
    println!("{}", story(100_571, &Extras::draw(100_571)));
}
