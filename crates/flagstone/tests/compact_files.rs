//! Compactions of chosen tables, and those that are followed and canceled.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking, as tests do")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flagstone::base::compression::CompressionType;
use flagstone::base::{
    Code, CompactionFilter, FileNumber, FilterDecision, FilteredKind, Result, Snapshot, SubCode,
};
use flagstone::batch::WriteBatch;
use flagstone::db::{Db, LiveFile, Ticker};
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{Env, FileSystem, FileSystemAround};
use flagstone::options::{
    BottommostLevelCompaction, CompactFilesOptions, CompactRangeOptions, CompactionControl,
    Options, ReadOptions, SizeApproximationOptions,
};
use testkit::settings;

/// Longer than any of this takes on a busy machine.
const TOO_LONG: Duration = Duration::from_secs(60);

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn options(changes: &[(&str, &str)]) -> Options {
    let mut options = settings::tiny(&Env::memory());
    settings::set(
        &mut options,
        &[
            ("disable_auto_compactions", "true"),
            ("level0_stop_writes_trigger", "1000"),
            ("level0_slowdown_writes_trigger", "1000"),
            ("write_buffer_size", "65536"),
        ],
    );
    settings::set(&mut options, changes);
    options
}

fn tables(db: &Db) -> Vec<LiveFile> {
    db.live_files().into_iter().filter(|file| file.level.is_some()).collect()
}

fn sound(db: &Db) {
    let report = db.verify(|_| ());
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}

fn numbers(files: &[LiveFile]) -> Vec<FileNumber> {
    files.iter().map(|file| file.number).collect()
}

/// Some tables of level 0, a hundred keys each: one memtable holds them, so that no flush in time
/// divides them.
fn filled(options: &Options, count: usize) -> Db {
    let db = Db::open("/db", options).unwrap();
    for table in 0..count {
        (0..100).for_each(|key| {
            db.put(format!("{key:03}"), format!("{table} {}", "x".repeat(50))).unwrap()
        });
        db.flush_all().unwrap();
    }
    db
}

fn all(db: &Db, snapshot: Option<&Snapshot>) -> Contents {
    let options = ReadOptions { snapshot: snapshot.cloned(), ..ReadOptions::default() };
    let mut iter = db.iter(&options).unwrap();
    iter.seek_to_first();
    let mut found = BTreeMap::new();
    while iter.valid() {
        found.insert(iter.key().to_vec(), iter.value().unwrap().to_vec());
        iter.next();
    }
    iter.status().unwrap();
    found
}

#[test]
fn chosen_tables_go_where_they_are_sent() {
    let db = filled(&options(&[]), 3);
    let family = db.default_column_family();
    let before = tables(&db);
    let written = db
        .compact_files(family, &numbers(&before)[..1], 4, &CompactFilesOptions::default())
        .unwrap();
    let after = tables(&db);
    assert_eq!(written, numbers(&after), "the others overlap and came along");
    assert!(after.iter().all(|file| file.level == Some(4)));
    // One of them alone, in smaller parts that are compressed otherwise.
    let small = CompactFilesOptions {
        output_file_size_limit: 2000,
        compression: Some(CompressionType::None),
        ..CompactFilesOptions::default()
    };
    let written = db.compact_files(family, &written[..1], 5, &small).unwrap();
    assert!(written.len() > 2, "{written:?}");
    assert!(db.get("042").unwrap().unwrap().starts_with(b"2 "));
    sound(&db);
}

#[test]
fn a_caller_learns_what_a_compaction_read_and_wrote() {
    let db = filled(&options(&[]), 3);
    let (family, how) = (db.default_column_family(), CompactFilesOptions::default());
    let chosen = tables(&db);
    let job = db.compact_files_reported(family, &numbers(&chosen), 1, &how).unwrap();
    let read: Vec<_> = job.inputs.iter().map(|table| table.number).collect();
    assert_eq!((read.len(), job.output_level, job.stats.is_manual), (3, 1, true));
    assert!(job.inputs.iter().all(|table| table.properties.is_some()));
    let written = tables(&db);
    assert_eq!(job.tables.len(), written.len());
    for (told, listed) in job.tables.iter().zip(&written) {
        assert_eq!((told.number, &told.path), (listed.number, &listed.path));
        assert_eq!(told.key_range, (listed.smallest.clone(), listed.largest.clone()));
    }
    let again = db.compact_files_reported(family, &read, 1, &how).unwrap_err();
    assert_eq!(again.code(), Code::InvalidArgument);
}

#[test]
fn sizes_of_ranges_may_be_wrong_by_as_much_as_is_said() {
    let mut options = options(&[("enable_blob_files", "true"), ("min_blob_size", "1000")]);
    options.cf.settings.target_file_size_base = 1 << 20;
    let db = Db::open("/db", &options).unwrap();
    for table in 0..20u8 {
        for key in 0..50u8 {
            db.put([table, key], vec![key; 900]).unwrap();
        }
        db.put([table, 50], vec![b'b'; 5_000]).unwrap();
        db.flush_all().unwrap();
    }
    let size = |range: (&[u8], &[u8]), sizes: SizeApproximationOptions| {
        db.approximate_sizes(db.default_column_family(), &[range], &sizes).unwrap()[0]
    };
    let range = (&[0, 25][..], &[19, 25][..]);
    let exact = size(range, SizeApproximationOptions::default());
    let margin = SizeApproximationOptions {
        files_size_error_margin: 0.2,
        ..SizeApproximationOptions::default()
    };
    let about = size(range, margin);
    let (ends, within): (Vec<_>, Vec<_>) =
        tables(&db).into_iter().partition(|file| file.smallest[0] % 19 == 0);
    let sum = |files: &[LiveFile]| files.iter().map(|file| file.size).sum::<u64>();
    assert_eq!((ends.len(), about), (2, sum(&within) + sum(&ends) / 2), "half of the ends counts");
    assert!(about.abs_diff(exact) <= sum(&ends) / 2, "{about}, not {exact}");

    let blobs = SizeApproximationOptions {
        include_files: false,
        include_blob_files: true,
        ..SizeApproximationOptions::default()
    };
    let all: u64 =
        db.live_files().iter().filter(|file| file.level.is_none()).map(|file| file.size).sum();
    let found = size((&[0], &[20]), blobs);
    assert!(all > 100_000 && found.abs_diff(all) < all / 100, "{found} of {all}");
    assert!(size((&[0], &[10]), blobs).abs_diff(all / 2) < all / 20);
    assert_eq!(size((&[30], &[40]), blobs), 0);
}

#[test]
fn what_is_listed_of_a_file_is_enough_for_a_policy() {
    let db = Db::open("/db", &options(&[("enable_blob_files", "true"), ("min_blob_size", "1000")]))
        .unwrap();
    for _ in 0..2 {
        db.put("large", "x".repeat(2000)).unwrap();
        db.put("small", "x").unwrap();
        db.delete("gone").unwrap();
        db.flush_all().unwrap();
    }
    let [newer, older] = &tables(&db)[..] else { panic!("two tables") };
    assert_eq!((newer.entries, older.entries), (Some((3, 1)), Some((3, 1))));
    assert!(
        newer.sequences.0 > older.sequences.1
            && newer.created >= older.created
            && older.created > 0
    );
    assert!(!newer.being_compacted && (&*newer.smallest, &*newer.largest) == (b"gone", b"small"));
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    let blobs: Vec<_> = db.live_files().into_iter().filter(|file| file.level.is_none()).collect();
    assert!(
        blobs.iter().all(|blob| blob.garbage_bytes == 0 && blob.size > 2000) && blobs.len() == 1,
        "{blobs:?}"
    );
}

#[test]
fn what_cannot_be_compacted_is_refused() {
    let db = filled(&options(&[]), 1);
    let family = db.default_column_family();
    let all = numbers(&tables(&db));
    let refused = |chosen: &[FileNumber], level, options: &CompactFilesOptions| {
        db.compact_files(family, chosen, level, options).unwrap_err()
    };
    let plain = CompactFilesOptions::default();
    assert!(
        refused(&[FileNumber(999)], 1, &plain).to_string().contains("table 000999 does not exist")
    );
    assert!(refused(&all, 99, &plain).to_string().contains("output level 99 does not exist"));
    let elsewhere = CompactFilesOptions { output_path_id: Some(3), ..plain.clone() };
    assert!(refused(&all, 1, &elsewhere).to_string().contains("output_path_id 3"));
    let fifo = filled(&options(&[("compaction_style", "kCompactionStyleFIFO")]), 1);
    let error = fifo
        .compact_files(fifo.default_column_family(), &numbers(&tables(&fifo)), 1, &plain)
        .unwrap_err();
    assert!(error.to_string().contains("level 0 only"), "{error}");
    assert_eq!(numbers(&tables(&db)), all, "nothing has changed");
}

/// Writes, deletions, snapshots and compactions of whatever tables into whatever level: what is
/// read stays the same, also for snapshots, and after the database is opened again.
#[test]
fn whatever_is_chosen_nothing_is_lost() {
    for (seed, style) in (0..12).map(|seed| {
        (seed, ["kCompactionStyleLevel", "kCompactionStyleUniversal"][seed as usize % 2])
    }) {
        let options = options(&[
            ("compaction_style", style),
            ("num_levels", "5"),
            ("target_file_size_base", "2000"),
        ]);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut db = Db::open("/db", &options).unwrap();
        let mut model: Contents = BTreeMap::new();
        let mut kept: Option<(Snapshot, Contents)> = None;
        let (mut compacted, mut refused) = (0, Vec::new());
        for step in 0..120 {
            write_some(&db, &mut model, &mut random, step);
            if random.usize(0..10) == 0 {
                kept = Some((db.snapshot(), model.clone()));
            }
            let files = tables(&db);
            let chosen: Vec<_> =
                files.iter().filter(|_| random.usize(0..4) == 0).map(|file| file.number).collect();
            let level = random.usize(0..5);
            match db.compact_files(
                db.default_column_family(),
                &chosen,
                level,
                &CompactFilesOptions::default(),
            ) {
                Ok(_) => compacted += 1,
                Err(error) => refused.push(error.code()),
            }
            if let Some((snapshot, seen)) = &kept {
                assert_eq!(
                    &all(&db, Some(snapshot)),
                    seen,
                    "seed {seed}, step {step}, as of a snapshot"
                );
            }
            assert_eq!(all(&db, None), model, "seed {seed}, step {step}");
            if random.usize(0..20) == 0 {
                kept = None;
                drop(db);
                db = Db::open("/db", &options).unwrap();
                assert_eq!(all(&db, None), model, "seed {seed}, step {step}, opened again");
            }
        }
        assert!(
            compacted > 20 && refused.iter().all(|code| *code == Code::InvalidArgument),
            "{compacted} {refused:?}"
        );
        sound(&db);
    }
}

fn write_some(db: &Db, model: &mut Contents, random: &mut fastrand::Rng, step: u32) {
    let mut key = || format!("{:02}", random.usize(0..60)).into_bytes();
    for _ in 0..8 {
        let key = key();
        db.put(&key, format!("{step} {}", "x".repeat(100))).unwrap();
        model.insert(key, format!("{step} {}", "x".repeat(100)).into_bytes());
    }
    let (mut begin, mut end) = (key(), key());
    if begin > end {
        std::mem::swap(&mut begin, &mut end);
    }
    if step.is_multiple_of(5) {
        let mut batch = WriteBatch::new();
        batch.delete_range(&begin, &end).unwrap();
        db.write(batch).unwrap();
        model.retain(|key, _| *key < begin || *key >= end);
    } else {
        db.delete(&begin).unwrap();
        model.remove(&begin);
    }
    db.flush_all().unwrap();
}

/// Cancels what it is asked about, after some entries.
#[derive(Default)]
struct Canceling {
    control: Arc<CompactionControl>,
    after: std::sync::atomic::AtomicU64,
    progress: std::sync::Mutex<Vec<(u64, u64)>>,
}

impl CompactionFilter for Canceling {
    fn name(&self) -> &str {
        "Canceling"
    }

    fn filter(&self, _: u32, _: &[u8], _: FilteredKind, _: &[u8]) -> FilterDecision {
        let seen = self.control.progress();
        self.progress.lock().unwrap().push((seen.bytes_done, seen.bytes_total));
        if self.after.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            self.control.cancel();
        }
        FilterDecision::Keep
    }
}

/// A database in which compactions are watched, and canceled after so many entries.
fn watched(after: u64) -> (Arc<Canceling>, Db) {
    let filter = Arc::new(Canceling { after: after.into(), ..Canceling::default() });
    let mut options =
        options(&[("write_buffer_size", "10000000"), ("target_file_size_base", "100000000")]);
    options.cf.compaction_filter = Some(filter.clone());
    let db = Db::open("/db", &options).unwrap();
    for table in 0..4 {
        (0..5000).for_each(|key| {
            db.put(format!("{key:05}"), format!("{table} {}", "x".repeat(100))).unwrap()
        });
        db.flush_all().unwrap();
    }
    (filter, db)
}

#[test]
fn a_canceled_compaction_leaves_everything_as_it_was() {
    let (filter, db) = watched(2000);
    let before = (numbers(&tables(&db)), all(&db, None));
    let options = CompactRangeOptions {
        control: Some(filter.control.clone()),
        ..CompactRangeOptions::default()
    };
    let error = db.compact_range(db.default_column_family(), None, None, &options).unwrap_err();
    assert_eq!(
        (error.code(), error.subcode()),
        (Code::Incomplete, SubCode::ManualCompactionPaused),
        "{error}"
    );
    assert!(filter.progress.lock().unwrap().len() < 4000, "soon");
    assert_eq!((numbers(&tables(&db)), all(&db, None)), before);
    assert!(db.check().unwrap().strays.is_empty(), "what it had written is gone");
    // Once canceled it ends what comes later, too; another one does not.
    let files = CompactFilesOptions {
        control: Some(filter.control.clone()),
        ..CompactFilesOptions::default()
    };
    let error = db.compact_files(db.default_column_family(), &before.0, 1, &files).unwrap_err();
    assert_eq!(error.code(), Code::Incomplete);
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    assert_eq!((tables(&db).len(), all(&db, None)), (1, before.1));
}

/// The last level was rewritten as a whole, also what the same call had just written to it.
#[test]
fn an_optimized_compaction_writes_everything_once() {
    let written = |how: BottommostLevelCompaction| {
        let small = [("target_file_size_base", "1000"), ("compression", "kNoCompression")];
        let db = filled(&options(&small), 2);
        let (family, default) = (db.default_column_family(), CompactRangeOptions::default());
        db.compact_range(family, None, None, &default).unwrap();
        assert!(tables(&db).len() > 3);
        // A fifth of the last level is met by something newer.
        (0..20).for_each(|key| db.put(format!("{key:03}"), "y".repeat(50)).unwrap());
        let before = db.statistics().get(Ticker::CompactWriteBytes);
        let options = CompactRangeOptions { bottommost_level_compaction: how, ..default };
        db.compact_range(family, None, None, &options).unwrap();
        assert_eq!(all(&db, None).len(), 100);
        db.statistics().get(Ticker::CompactWriteBytes) - before
    };
    let skipped = written(BottommostLevelCompaction::Skip);
    let optimized = written(BottommostLevelCompaction::ForceOptimized);
    let forced = written(BottommostLevelCompaction::Force);
    assert!(skipped < optimized && optimized < forced, "{skipped}, {optimized}, {forced}");
}

#[test]
fn a_compaction_tells_how_far_it_is() {
    let (filter, db) = watched(u64::MAX);
    let family = db.default_column_family();
    let bytes: u64 = tables(&db).iter().map(|file| file.size).sum();
    let plain = CompactRangeOptions {
        control: Some(filter.control.clone()),
        ..CompactRangeOptions::default()
    };
    assert_eq!(db.estimate_compact_range(family, None, None, &plain).unwrap(), bytes);
    assert_eq!(db.estimate_compact_range(family, Some(b"x"), None, &plain).unwrap(), 0);
    db.compact_range(family, None, None, &plain).unwrap();
    let seen = std::mem::take(&mut *filter.progress.lock().unwrap());
    assert!(seen.is_sorted() && seen.iter().all(|(_, total)| *total == bytes), "never backwards");
    let halves =
        seen.iter().filter(|(done, total)| (total / 4..total / 4 * 3).contains(done)).count();
    assert!(halves > seen.len() / 3, "steadily: {halves} of {}", seen.len());
    assert_eq!(filter.control.progress().bytes_done, bytes);
    // What lies in the last level alone is read only if that is asked for.
    let as_asked = |bottommost_level_compaction| {
        let options = CompactRangeOptions { bottommost_level_compaction, ..plain.clone() };
        db.estimate_compact_range(family, None, None, &options).unwrap()
    };
    let last: u64 = tables(&db).iter().map(|file| file.size).sum();
    assert_eq!(as_asked(BottommostLevelCompaction::Skip), 0);
    assert_eq!(as_asked(BottommostLevelCompaction::Force), last);
}

/// Whoever removes a table first tells that it has begun, and waits until it may go on.
struct SlowDisk {
    files: MemoryFileSystem,
    begun: Mutex<Option<Sender<()>>>,
    may_go_on: Mutex<Receiver<()>>,
}

impl FileSystemAround for SlowDisk {
    fn inner(&self) -> &dyn FileSystem {
        &self.files
    }

    fn remove(&self, path: &Path) -> Result<()> {
        if path.extension().is_some_and(|extension| extension == "sst")
            && let Some(begun) = self.begun.lock().unwrap().take()
        {
            begun.send(()).unwrap();
            self.may_go_on.lock().unwrap().recv_timeout(TOO_LONG).expect("a word to go on");
        }
        FileSystem::remove(&self.files, path)
    }
}

/// Such calls came back while another thread was still removing what compactions had replaced, and
/// the space was not free.
#[test]
fn who_asked_for_a_compaction_has_its_space_when_the_call_returns() {
    let ((tell, begun), (go_on, may_go_on)) = (channel(), channel());
    let fs = Arc::new(SlowDisk {
        files: MemoryFileSystem::new(),
        begun: Mutex::new(Some(tell)),
        may_go_on: Mutex::new(may_go_on),
    });
    let mut options = settings::tiny(&Env::memory().with_fs(fs.clone()));
    settings::set(
        &mut options,
        &[("level0_file_num_compaction_trigger", "2"), ("write_buffer_size", "65536")],
    );
    let db = filled(&options, 2);
    // A compaction of its own accord is over, and removes its inputs.
    begun.recv_timeout(TOO_LONG).expect("a compaction that removes its inputs");
    let stored = || {
        FileSystem::list(&*fs, Path::new("/db"))
            .unwrap()
            .iter()
            .filter(|name| name.ends_with(".sst"))
            .count()
    };
    let (returned, has_returned) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Its own: should it panic, nobody waits for what it would have sent.
            let returned = returned;
            db.compact_range(
                db.default_column_family(),
                None,
                None,
                &CompactRangeOptions::default(),
            )
            .unwrap();
            db.wait_for_compactions().unwrap();
            returned.send(stored()).unwrap();
        });
        let too_early = has_returned.recv_timeout(Duration::from_millis(200));
        go_on.send(()).unwrap();
        assert!(too_early.is_err(), "files are still being removed");
        assert_eq!(has_returned.recv_timeout(TOO_LONG).expect("it returns"), tables(&db).len());
    });
}
