//! Damaged files: each byte of each file of a small database is flipped, and each file is cut off
//! at many lengths.
//!
//! Opening, reading and verifying then give the right answer or an error; never a wrong value, a
//! panic or a hang. The WAL is the exception that point-in-time recovery makes: damage there ends
//! history, which must then be an exact prefix. A MANIFEST that is cut off is another: that is how
//! a crash during a change leaves it, and the format has nothing to tell the two apart, so there
//! only panics and hangs are looked for. `FLAGSTONE_DAMAGE_STRIDE=1` visits every byte, and flips
//! all of its bits and one; by default every seventh, in turns.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flagstone::base::Result;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{FileSystem, IoMode, read_file};
use flagstone::options::{self, Options};

use crate::seeds::Telling;
use crate::{Edit, Model, compare, settings, steps};

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A database with every kind of file, closed, and its history by number of batches.
struct Sound {
    files: Files,
    history: Vec<Model>,
    /// Batches that are in tables.
    flushed: usize,
}

fn options(fs: MemoryFileSystem) -> Options {
    let mut options = settings::tiny(&steps::world(Arc::new(fs), 1));
    let changes = [
        ("enable_blob_files", "true"),
        ("min_blob_size", "100"),
        ("blob_commit_min_size", "200"),
        ("compression", "kLZ4Compression"),
        ("table.filter_policy", "bloomfilter:10:false"),
        ("table.block_size", "512"),
        ("disable_auto_compactions", "true"),
    ];
    settings::set(&mut options, &changes);
    options
}

fn files_of(fs: &MemoryFileSystem) -> Files {
    let directory = Path::new("/db");
    let names = fs.list(directory).expect("files in memory");
    let paths = names.into_iter().filter(|name| name != "LOCK").map(|name| directory.join(name));
    paths
        .map(|path| (path.clone(), read_file(fs, &path, 1 << 20).expect("files in memory")))
        .collect()
}

fn disk_of(files: &Files) -> MemoryFileSystem {
    let fs = MemoryFileSystem::new();
    fs.create_directory(Path::new("/db")).expect("files in memory");
    for (path, bytes) in files {
        fs.create_writable(path, IoMode::Buffered)
            .expect("files in memory")
            .write_at(0, bytes)
            .expect("it is sound");
    }
    fs
}

fn make() -> Sound {
    let fs = MemoryFileSystem::new();
    let options = options(fs.clone());
    let listed = [("default", options.cf.clone()), ("other", options.cf.clone())];
    let db = Db::open_with_families("/db", &options, &listed).expect("it is sound");
    let mut history = vec![Model::with_families(&["default", "other"])];
    let mut write = |number: usize| {
        let put = |name: &str, key: String, value: Vec<u8>| {
            (name.to_string(), Edit::Put { key: key.into_bytes(), value })
        };
        let long = if number.is_multiple_of(5) { 300 } else { 20 };
        let mut batch = vec![
            put(
                "default",
                format!("{:03}", number * 7 % 100),
                vec![b'a' + (number % 26) as u8; long],
            ),
            put("other", "counter".to_string(), number.to_string().into_bytes()),
        ];
        if number == 20 {
            let (begin, end) = (b"030".to_vec(), b"040".to_vec());
            batch.push(("default".to_string(), Edit::DeleteRange { begin, end }));
        }
        let mut model = history.last().expect("it has a beginning").clone();
        model.apply(&batch);
        history.push(model);
        db.write(compare::to_batch(&db, &batch)).expect("it is sound");
    };
    (1..=15).for_each(&mut write);
    db.flush_all().expect("it is sound");
    (16..=25).for_each(&mut write);
    db.flush_all().expect("it is sound");
    db.compact_range(db.default_column_family(), None, None, &Default::default())
        .expect("it is sound");
    (26..=30).for_each(&mut write);
    db.flush_all().expect("it is sound");
    (31..=40).for_each(&mut write);
    db.close().expect("it is sound");
    drop(db);
    Sound { files: files_of(&fs), history, flushed: 30 }
}

/// What a database that may be damaged answers; an error anywhere is an answer.
fn look(db: &Db, sound: &Sound, history_may_end: bool) -> Result<()> {
    let Some(other) = db.column_family("other") else {
        panic!("a family is missing without an error")
    };
    let scans = [
        compare::scan(db, db.default_column_family(), &Default::default()),
        compare::scan(db, &other, &Default::default()),
    ];
    let newest = sound.history.len() - 1;
    let number = match db.get_cf(&other, "counter") {
        Ok(Some(number)) => std::str::from_utf8(&number)
            .expect("the number of a batch")
            .parse()
            .expect("the number of a batch"),
        Ok(None) => 0,
        Err(_) => newest,
    };
    let oldest = if history_may_end { sound.flushed } else { newest };
    assert!((oldest..=newest).contains(&number), "history ends at batch {number}");
    let model = &sound.history[number];
    for (name, found) in ["default", "other"].iter().zip(&scans) {
        if let Ok(found) = found {
            compare::check_entries(name, found, &model.families[*name]);
        }
    }
    for key in (0..100).step_by(3).map(|number| format!("{number:03}")) {
        if let Ok(found) = db.get(&key) {
            let expected = model.families["default"].entries.get(key.as_bytes());
            assert_eq!(found.as_deref(), expected.map(Vec::as_slice), "key {key}");
        }
    }
    let back = compare::scan_back(db, db.default_column_family(), &Default::default());
    if let Ok(found) = &back {
        compare::check_entries("default, backwards", found, &model.families["default"]);
    }
    db.verify(|_| {});
    let _ = db.check();
    back.and(scans.into_iter().collect::<Result<Vec<_>>>().map(drop))
}

/// Opens the damaged files in both ways; whether all answers were right.
fn open_and_look(files: &Files, sound: &Sound, damaged: &Path) -> bool {
    if damaged.to_string_lossy().contains("OPTIONS") {
        // Opening does not read it, and its text has nothing but its end by which to tell damage.
        return options::load_latest(&options(disk_of(files)).env, Path::new("/db")).is_ok();
    }
    let is_wal = damaged.extension().is_some_and(|extension| extension == "log");
    let mut options = options(disk_of(files));
    options.db.create_if_missing = false;
    let read = Db::open_read_only("/db", &options).and_then(|db| look(&db, sound, is_wal));
    let written = Db::open("/db", &options).and_then(|db| {
        let seen = look(&db, sound, is_wal);
        let _ = db.compact_range(db.default_column_family(), None, None, &Default::default());
        seen.and_then(|()| look(&db, sound, is_wal))
    });
    read.is_ok() && written.is_ok()
}

fn stride() -> usize {
    std::env::var("FLAGSTONE_DAMAGE_STRIDE").ok().and_then(|text| text.parse().ok()).unwrap_or(7)
}

/// Flips bytes.
///
/// # Panics
/// At the first wrong answer.
pub fn flips() {
    let sound = make();
    for (path, bytes) in &sound.files {
        let (mut flips, mut errors) = (0, 0);
        for (visit, at) in (0..bytes.len()).step_by(stride()).enumerate() {
            // All bits or one; both where every byte is visited, in turns otherwise.
            let masks = [0xff, 1 << (at % 8)];
            let chosen = if stride() == 1 { &masks[..] } else { &masks[visit % 2..][..1] };
            for &mask in chosen {
                let _telling = Telling(format!(
                    "{}: byte {at} of {} ^ {mask:#x}",
                    path.display(),
                    bytes.len()
                ));
                let mut files = sound.files.clone();
                files.get_mut(path).expect("it was listed")[at] ^= mask;
                flips += 1;
                errors += usize::from(!open_and_look(&files, &sound, path));
            }
        }
        println!(
            "{}: {} bytes, {flips} flips, {errors} led to errors",
            path.display(),
            bytes.len()
        );
    }
}

/// Cuts files off.
///
/// # Panics
/// At the first wrong answer.
pub fn cuts() {
    let sound = make();
    for (path, bytes) in &sound.files {
        let (mut cuts, mut errors) = (0, 0);
        for length in (0..bytes.len()).step_by(stride() * 2) {
            let _telling =
                Telling(format!("{} cut off at {length} of {}", path.display(), bytes.len()));
            let mut files = sound.files.clone();
            files.get_mut(path).expect("it was listed").truncate(length);
            cuts += 1;
            if path.to_string_lossy().contains("MANIFEST") {
                let disk = options(disk_of(&files));
                let opened = Db::open("/db", &disk).map(|db| drop(db.verify(|_| {})));
                errors += usize::from(opened.is_err());
                continue;
            }
            errors += usize::from(!open_and_look(&files, &sound, path));
        }
        println!("{}: {} bytes, {cuts} cuts, {errors} led to errors", path.display(), bytes.len());
    }
}

/// Leaves files out.
///
/// # Panics
/// At the first wrong answer.
pub fn losses() {
    let sound = make();
    for path in sound.files.keys() {
        // Without its WAL a database is as if nothing had been written since the last flush.
        let _telling = Telling(format!("{} is missing", path.display()));
        let mut files = sound.files.clone();
        files.remove(path);
        let right = open_and_look(&files, &sound, path);
        println!("{} missing: {}", path.display(), if right { "no matter" } else { "an error" });
    }
}
