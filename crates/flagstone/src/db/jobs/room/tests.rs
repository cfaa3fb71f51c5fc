use std::sync::OnceLock;
use std::sync::mpsc::{TryRecvError, channel};

use std::sync::Weak;

use super::*;
use crate::base::ColumnFamilyId;
use crate::base::sync::{AtomicU64, Ordering, yield_now};
use crate::base::{Code, Error, Result, SubCode};
use crate::compaction::pick::CompactionReason;
use crate::db::DbInner;
use crate::db::background::Role;
use crate::db::family::ColumnFamily;
use crate::db::handle::Db;
use crate::db::tree::Tree;
use crate::db::tree::compaction_job::CompactionJob;
use crate::env::{CompactionLimiter, Env, FileSystem, FileSystemAround, Join, Spawn};
use crate::options::{
    CompactFilesOptions, CompactRangeOptions, CompactionControl, DataPathList, Options,
};

fn options(changes: &str) -> Options {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    let small =
        "create_if_missing=true;compression=kNoCompression;level0_file_num_compaction_trigger=2";
    options.set_all(&format!("{small};{changes}")).unwrap();
    options
}

/// The threads of the database take no compaction: only this does.
fn take(inner: &DbInner) -> Option<CompactionJob> {
    let free = free_space(&inner.jobs);
    let mut state = inner.tree.lock();
    state.paused.compactions = 0;
    let job = inner.tree.take_compaction_in(&mut state, &free);
    state.paused.compactions = 1;
    job
}

/// Why there was another one.
fn run_next(inner: &DbInner) -> Option<CompactionReason> {
    let job = take(inner)?;
    inner.jobs.run_compaction(&job).unwrap();
    Some(job.plan.reason)
}

fn write(db: &Db, step: usize) {
    for number in (0..10_000_u32).step_by(step) {
        db.put(number.to_be_bytes(), [7; 100]).unwrap();
    }
    db.flush_all().unwrap();
}

/// All runs are about to be merged in pieces.
fn in_pieces() -> Db {
    let changes = "compaction_style=kCompactionStyleUniversal;target_file_size_base=16384;max_compaction_bytes=150000;\
        compaction_options_universal={max_size_amplification_percent=5;};blob_commit_min_size=0";
    let db = Db::open("/db", &options(changes)).unwrap();
    db.inner().tree.lock().paused.compactions = 1;
    write(&db, 1);
    db.compact_range(db.default_column_family(), None, None, &CompactRangeOptions::default())
        .unwrap();
    write(&db, 20);
    write(&db, 20);
    db
}

fn full_disk() -> Error {
    Error::new(Code::IoError, "no space left").with_subcode(SubCode::NoSpace)
}

/// Two tables of level 0, which are to be merged, or dropped if there may be none.
fn fill(db: &Db, family: &ColumnFamily) {
    for _ in 0..2 {
        db.put_cf(family, "key", "value").unwrap();
        db.flush_all().unwrap();
    }
}

/// Of two families with the same options each has tables to merge; a third drops its own.
fn with_others() -> (Db, ColumnFamily, ColumnFamily) {
    let db = Db::open("/db", &options("")).unwrap();
    db.inner().tree.lock().paused.compactions = 1;
    let dropping = options(
        "compaction_style=kCompactionStyleFIFO;compaction_options_fifo={max_table_files_size=1;}",
    );
    let dropping = db.create_column_family("dropping", &dropping.cf).unwrap();
    let other = db.create_column_family("other", &options("").cf).unwrap();
    fill(&db, db.default_column_family());
    (db, other, dropping)
}

/// Two compactions took the last space from each other, and both failed, again and again. Then all
/// waited for one that had begun before there was too little, perhaps for hours, also those that
/// want no space.
#[test]
fn on_a_full_disk_one_compaction_finds_out_whether_there_is_space() {
    let (db, other, dropping) = with_others();
    let inner = db.inner();
    let before = take(inner).unwrap();
    inner.context.poison.record_starved(Some(&full_disk()));
    fill(&db, &other);
    let first = take(inner).expect("it need not wait for one that began before");
    let third = db.create_column_family("third", &options("").cf).unwrap();
    fill(&db, &third);
    assert!(take(inner).is_none(), "one at a time");
    fill(&db, &dropping);
    assert_eq!(run_next(inner), Some(CompactionReason::FifoSize), "it wants no space");
    assert!(
        inner.context.poison.check_starved().is_err(),
        "who writes nothing knows nothing of space"
    );
    assert!(take(inner).is_none(), "still one at a time");
    assert!(inner.context.poison.check_starved().is_err(), "one waits for space");
    inner.jobs.run_compaction(&first).unwrap();
    inner.context.poison.check_starved().unwrap();
    let next = take(inner).unwrap();
    inner.context.poison.record_starved(Some(&full_disk()));
    fill(&db, &other);
    let again = take(inner).expect("the others began before");
    for job in [before, next, again] {
        inner.jobs.run_compaction(&job).unwrap();
    }
    assert!(take(inner).is_none());
}

/// Went wrong: a refusal by the limiter counted as nothing to do. The error about space was
/// withdrawn, although no compaction had found any.
#[test]
fn a_full_limiter_does_not_say_that_there_is_space() {
    let mut options = options("");
    let limiter = Arc::new(CompactionLimiter::new(Some(0)));
    options.cf.compaction_limiter = Some(limiter.clone());
    let db = Db::open("/db", &options).unwrap();
    let inner = db.inner();
    inner.tree.lock().paused.compactions = 1;
    fill(&db, db.default_column_family());
    inner.context.poison.record_starved(Some(&full_disk()));
    for _ in 0..2 {
        assert!(take(inner).is_none(), "none is allowed");
        assert!(inner.context.poison.check_starved().is_err(), "nothing was found out");
    }
    limiter.set_limit(Some(1));
    let job = take(inner).expect("there is a permit");
    inner.jobs.run_compaction(&job).unwrap();
    inner.context.poison.check_starved().unwrap();
}

/// Each look picked for each family that waited for a permit, under the lock of the state.
#[test]
fn what_waits_for_a_permit_is_picked_anew_only_after_a_change() {
    let mut options = options("");
    let limiter = Arc::new(CompactionLimiter::new(Some(0)));
    options.cf.compaction_limiter = Some(limiter.clone());
    let db = Db::open("/db", &options).unwrap();
    let inner = db.inner();
    inner.tree.lock().paused.compactions = 1;
    let wants = || {
        let state = inner.tree.lock();
        state.families[&ColumnFamilyId::DEFAULT].compacting.wants_permit
    };
    fill(&db, db.default_column_family());
    assert!(take(inner).is_none() && wants());
    db.put("key", "value").unwrap();
    db.flush_all().unwrap();
    assert!(!wants(), "what it wants may need none now");
    assert!(take(inner).is_none() && wants());
    limiter.set_limit(None);
    let job = take(inner).expect("there is a permit");
    assert_eq!(job.plan.inputs[0].files.len(), 3);
    inner.jobs.run_compaction(&job).unwrap();
}

/// A table that was set aside, be it for months, passed for one that is being merged.
#[test]
fn what_is_set_aside_is_not_in_work() {
    let (db, ..) = with_others();
    let inner = db.inner();
    let job = take(inner).unwrap();
    let in_work = [false, true].map(|is_aside| {
        job.plan.files().for_each(|(_, file)| file.set_aside.store(is_aside, Ordering::Relaxed));
        Tree::bytes_in_work(&inner.tree.lock())
    });
    job.plan.files().for_each(|(_, file)| file.set_aside.store(false, Ordering::Relaxed));
    inner.jobs.run_compaction(&job).unwrap();
    assert!(in_work[0] > 0 && in_work[1] == 0, "{in_work:?}");
}

/// A disk that tells how much of it is free.
struct Telling(Arc<dyn FileSystem>, Arc<AtomicU64>);

impl FileSystemAround for Telling {
    fn inner(&self) -> &dyn FileSystem {
        &*self.0
    }

    fn free_space(&self, _directory: &Path) -> Result<Option<u64>> {
        Ok(Some(self.1.load(Ordering::Relaxed)))
    }
}

/// One that finds out whether there is room may take hours, and all others waited for it where
/// there was plenty.
#[test]
fn nobody_waits_for_one_that_finds_out_where_there_is_room_for_both() {
    let (mut options, free) = (options(""), Arc::new(AtomicU64::new(0)));
    options.env =
        options.env.clone().with_fs(Arc::new(Telling(options.env.fs.clone(), free.clone())));
    let db = Db::open("/db", &options).unwrap();
    let inner = db.inner();
    inner.tree.lock().paused.compactions = 1;
    let other = db.create_column_family("other", &options.cf).unwrap();
    fill(&db, db.default_column_family());
    inner.context.poison.record_starved(Some(&full_disk()));
    let first = take(inner).unwrap();
    fill(&db, &other);
    for bytes in [0, options.cf.write_buffer_size] {
        free.store(bytes, Ordering::Relaxed);
        assert!(take(inner).is_none(), "one at a time");
    }
    free.store(options.cf.write_buffer_size + 1_000_000, Ordering::Relaxed);
    let second = take(inner).expect("there is room");
    for job in [second, first] {
        inner.jobs.run_compaction(&job).unwrap();
    }
    inner.context.poison.check_starved().unwrap();
}

/// A disk that takes note whether the state is locked while it is asked how much is free.
struct Asked {
    fs: Arc<dyn FileSystem>,
    by: OnceLock<Weak<DbInner>>,
    count: AtomicU64,
    under_lock: AtomicU64,
}

impl FileSystemAround for Arc<Asked> {
    fn inner(&self) -> &dyn FileSystem {
        &*self.fs
    }

    fn free_space(&self, _directory: &Path) -> Result<Option<u64>> {
        if let Some(inner) = self.by.get().and_then(Weak::upgrade) {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.under_lock.fetch_add(u64::from(inner.tree.is_locked()), Ordering::Relaxed);
        }
        Ok(Some(u64::MAX))
    }
}

/// A world without threads.
struct Alone;

impl Spawn for Alone {
    fn spawn(&self, name: &str, _: Box<dyn FnOnce() + Send>) -> Result<Box<dyn Join>> {
        Err(Error::not_supported(format!("no thread {name} here")))
    }

    fn choose_step(&self, _: usize) -> Option<usize> {
        Some(0)
    }
}

/// Whoever needed the state waited for a file system that was slow to tell.
#[test]
fn how_much_is_free_is_asked_without_the_lock() {
    let mut options = options("");
    let (fs, by) = (options.env.fs.clone(), OnceLock::new());
    let asked = Arc::new(Asked { fs, by, count: AtomicU64::new(0), under_lock: AtomicU64::new(0) });
    options.env = Env { spawner: Arc::new(Alone), ..options.env.with_fs(Arc::new(asked.clone())) };
    let db = Db::open("/db", &options).unwrap();
    let inner = db.inner();
    let other = db.create_column_family("other", &options.cf).unwrap();
    fill(&db, db.default_column_family());
    inner.context.poison.record_starved(Some(&full_disk()));
    let first = take(inner).unwrap();
    inner.tree.lock().paused.compactions = 0;
    fill(&db, &other);
    asked.by.set(Arc::downgrade(inner)).unwrap();
    assert!(inner.jobs.compact_one().unwrap(), "there is room");
    let counts = [&asked.count, &asked.under_lock].map(|count| count.load(Ordering::Relaxed));
    assert!(counts[0] > 0 && counts[1] == 0, "{counts:?}");
    inner.jobs.run_compaction(&first).unwrap();
}

/// Of several directories that of the tables alone was asked, and values in blob files go to the
/// first.
#[test]
fn there_is_room_where_tables_and_where_blob_files_go() {
    struct Full(Arc<dyn FileSystem>, &'static str);
    impl FileSystemAround for Full {
        fn inner(&self) -> &dyn FileSystem {
            &*self.0
        }

        fn free_space(&self, directory: &Path) -> Result<Option<u64>> {
            Ok(Some(if directory == Path::new(self.1) { 1000 } else { u64::MAX }))
        }
    }
    let (blobs, tables) = ("enable_blob_files=true", "enable_blob_files=false");
    for (full, path_id, changes, has_room) in [
        ("/none", 0, blobs, true),
        ("/blobs", 0, tables, false),
        ("/blobs", 1, tables, true),
        ("/blobs", 1, blobs, false),
        ("/tables", 1, blobs, false),
        // A path id that there is no directory for means the last one.
        ("/tables", 9, blobs, false),
    ] {
        let mut options = options(changes);
        options.env = options.env.clone().with_fs(Arc::new(Full(options.env.fs.clone(), full)));
        options.cf.cf_paths = DataPathList::of(&[("/blobs", 1), ("/tables", 1 << 30)]);
        let db = Db::open("/db", &options).unwrap();
        db.inner().tree.lock().paused.compactions = 1;
        fill(&db, db.default_column_family());
        let mut job = take(db.inner()).unwrap();
        let chosen = std::mem::replace(&mut job.plan.path_id, path_id);
        db.inner().context.poison.record_starved(Some(&full_disk()));
        let found = db.inner().tree.has_room_beside(&job, 0, &free_space(&db.inner().jobs));
        job.plan.path_id = chosen;
        db.inner().jobs.run_compaction(&job).unwrap();
        assert_eq!(found, has_room, "{full}, {path_id}, {changes}");
    }
}

/// One that was let in beside it took its place, and failed: then others began without a look at
/// the room.
#[test]
fn who_finds_out_whether_there_is_room_does_so_until_it_has_ended() {
    let (mut options, free) = (options(""), Arc::new(AtomicU64::new(0)));
    options.env =
        options.env.clone().with_fs(Arc::new(Telling(options.env.fs.clone(), free.clone())));
    let db = Db::open("/db", &options).unwrap();
    let inner = db.inner();
    inner.tree.lock().paused.compactions = 1;
    let families =
        ["second", "third"].map(|name| db.create_column_family(name, &options.cf).unwrap());
    fill(&db, db.default_column_family());
    inner.context.poison.record_starved(Some(&full_disk()));
    let first = take(inner).unwrap();
    fill(&db, &families[0]);
    free.store(u64::MAX, Ordering::Relaxed);
    let mut second = take(inner).expect("there is room");
    free.store(0, Ordering::Relaxed);
    let control = second.control.insert(Arc::default());
    control.cancel();
    inner.jobs.run_compaction(&second).unwrap_err();
    drop(second);
    fill(&db, &families[1]);
    let beside = take(inner);
    let began = beside.is_some();
    beside.iter().chain([&first]).for_each(|job| drop(inner.jobs.run_compaction(job).unwrap()));
    assert!(!began, "the first found out still");
    inner.context.poison.check_starved().unwrap();
    assert_eq!(run_next(inner), Some(CompactionReason::Level0Files));
}

/// The next waited for ever for one that had failed.
#[test]
fn another_finds_out_when_one_has_failed() {
    let (db, other, _) = with_others();
    let inner = db.inner();
    inner.context.poison.record_starved(Some(&full_disk()));
    let mut first = take(inner).unwrap();
    fill(&db, &other);
    assert!(take(inner).is_none());
    first.control = Some(Arc::new(CompactionControl::default()));
    first.control.as_ref().unwrap().cancel();
    inner.jobs.run_compaction(&first).unwrap_err();
    drop(first);
    assert!(inner.context.poison.check_starved().is_err());
    assert_eq!(run_next(inner), Some(CompactionReason::Level0Files));
}

/// That one had found no room was taken back by a look that passed over the families that somebody
/// held.
#[test]
fn who_passes_over_families_knows_nothing_of_space() {
    let (db, ..) = with_others();
    let inner = db.inner();
    let hold = |count| {
        let mut state = inner.tree.lock();
        state.families.get_mut(&ColumnFamilyId::DEFAULT).unwrap().compacting.manual = count;
        state.note(ColumnFamilyId::DEFAULT);
    };
    hold(1);
    inner.context.poison.record_starved(Some(&full_disk()));
    assert!(take(inner).is_none());
    let known = inner.context.poison.check_starved();
    hold(0);
    assert!(known.is_err(), "one that somebody asked for holds the family");
    assert_eq!(run_next(inner), Some(CompactionReason::Level0Files));
    inner.context.poison.check_starved().unwrap();
}

/// Whoever waited for compactions was told of a full disk for as long as somebody held those of one
/// family.
#[test]
fn a_family_that_is_held_wants_no_space() {
    let (db, ..) = with_others();
    let inner = db.inner();
    let held = db.hold_automatic_compactions(db.default_column_family()).unwrap();
    inner.context.poison.record_starved(Some(&full_disk()));
    assert!(take(inner).is_none());
    inner.context.poison.check_starved().expect("nobody wants space");
    drop(held);
    inner.context.poison.record_starved(Some(&full_disk()));
    assert_eq!(run_next(inner), Some(CompactionReason::Level0Files), "it is asked again");
    inner.context.poison.check_starved().unwrap();
}

/// The same, where one has its turn until its inputs are removed.
#[test]
fn who_passes_over_what_waits_for_its_turn_knows_nothing_of_space() {
    let db = in_pieces();
    let inner = db.inner();
    let piece = take(inner).unwrap();
    inner.jobs.run_compaction(&piece).unwrap();
    inner.context.poison.record_starved(Some(&full_disk()));
    assert!(take(inner).is_none());
    assert!(inner.context.poison.check_starved().is_err());
    inner.tree.end_turn(piece.family.id, true);
    drop(piece);
    assert_eq!(run_next(inner), Some(CompactionReason::SizeAmplification));
}

/// A look at which no compaction was to begin took back that one had found no room.
#[test]
fn who_may_not_look_knows_nothing_of_space() {
    let db = Db::open("/db", &options("")).unwrap();
    let inner = db.inner();
    inner.tree.lock().paused.compactions = 1;
    inner.context.poison.record_starved(Some(&full_disk()));
    assert!(!inner.jobs.run_one(Role::Compaction).unwrap());
    assert!(inner.context.poison.check_starved().is_err());
    assert!(take(inner).is_none());
    inner.context.poison.check_starved().expect("nobody wants space");
}

/// A piece of a merging that nobody had asked for and one of `compact_range` took the room that is
/// promised once.
#[test]
fn who_asks_for_a_merging_waits_until_the_inputs_of_another_are_removed() {
    let db = in_pieces();
    let inner = db.inner();
    let piece = take(inner).unwrap();
    assert!(piece.plan.rest.is_some());
    inner.jobs.run_compaction(&piece).unwrap();
    let (tell, ended) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let family = db.default_column_family();
            tell.send(db.compact_range(family, None, None, &CompactRangeOptions::default()))
                .unwrap();
        });
        while inner.tree.lock().families[&ColumnFamilyId::DEFAULT].compacting.manual == 0 {
            assert_eq!(ended.try_recv().map(drop), Err(TryRecvError::Empty), "it did not wait");
            yield_now();
        }
        let family = piece.family.id;
        drop(piece);
        inner.tree.end_turn(family, true);
    });
    ended.recv().unwrap().unwrap();
    assert_eq!(inner.tree.lock().families[&ColumnFamilyId::DEFAULT].compacting.in_turn, 0);
}

/// It took no turn: one of chosen tables and a piece of a merging, or two of them, took the room
/// that is promised once.
#[test]
fn a_compaction_of_chosen_tables_takes_its_turn() {
    let db = in_pieces();
    let (inner, family) = (db.inner(), db.default_column_family());
    let tables = |is_chosen: fn(usize) -> bool| -> Vec<_> {
        let live = db.live_files().into_iter();
        live.filter(|file| file.level.is_some_and(is_chosen)).map(|file| file.number).collect()
    };
    let last = family.0.current.load().version.levels.len() - 1;
    let options = CompactFilesOptions::default();
    let piece = take(inner).unwrap();
    inner.jobs.run_compaction(&piece).unwrap();
    let refused = db.compact_files(family, &tables(|_| true), last, &options).unwrap_err();
    assert_eq!(refused.code(), Code::Aborted);
    write(&db, 20);
    write(&db, 20);
    db.compact_files(family, &tables(|level| level == 0), 0, &options).expect("newer runs alone");
    let id = piece.family.id;
    drop(piece);
    inner.tree.end_turn(id, true);
    let chosen = tables(|level| level > 0);
    let job = {
        let mut state = inner.tree.lock();
        let job =
            db.job_for_files(&state, family, &chosen[chosen.len() - 1..], last, &options).unwrap();
        inner.tree.begin_compaction(&mut state, &job);
        job
    };
    let others = || {
        while let Some(other) = take(inner) {
            inner.jobs.run_compaction(&other).unwrap();
            assert!(!other.plan.takes_turn, "newer runs alone");
        }
    };
    others();
    inner.jobs.run_compaction(&job).unwrap();
    others();
    let had_turn = job.plan.takes_turn;
    drop(job);
    assert!(had_turn);
    inner.tree.end_turn(id, true);
    db.compact_files(family, &tables(|_| true), last, &options).unwrap();
    assert_eq!(inner.tree.lock().families[&id].compacting.in_turn, 0);
}

/// The last piece did not count: a merging of all began while its inputs took their room still.
#[test]
fn the_last_piece_has_its_turn_until_its_inputs_are_removed() {
    let db = in_pieces();
    let inner = db.inner();
    let last = loop {
        let piece = take(inner).unwrap();
        assert_eq!(piece.plan.reason, CompactionReason::SizeAmplification);
        if piece.plan.rest.is_none() {
            break piece;
        }
        inner.jobs.run_compaction(&piece).unwrap();
        inner.tree.end_turn(piece.family.id, true);
    };
    write(&db, 10);
    write(&db, 10);
    inner.jobs.run_compaction(&last).unwrap();
    let meanwhile = [run_next(inner), run_next(inner)];
    assert_eq!(meanwhile, [Some(CompactionReason::SizeRatio), None], "newer runs alone");
    inner.tree.end_turn(last.family.id, true);
    assert_eq!(run_next(inner), Some(CompactionReason::SizeAmplification));
}
