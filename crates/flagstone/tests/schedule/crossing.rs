//! Two jobs at once, and a power loss: threads work on a recording disk in an order that the
//! scheduler draws, the power fails at moments of it, and what is found then is held to what the
//! threads were told.
//!
//! 1. Each batch sets the key of its writer to its number, in some families ([`families_of`]).
//!    [`Told`] notes when a call began and when it was answered, by the disk's changes and by a
//!    count of all that was noted.
//! 2. At the end the disk is as it was at some moments, with all, none or some of what was not
//!    synced; the database is opened.
//! 3. Found is a prefix: no batch is missing that was answered before another one began that is
//!    there; and of each, all its families have it or none. What was answered as durable by that
//!    moment is there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use flagstone::base::Result;
use flagstone::batch::WriteBatch;
use flagstone::db::Db;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::env::{AnyFile, Env, FileAround, FileSystem, FileSystemAround, OpenMode};
use flagstone::options::{ColumnFamilyOptions, FlushOptions, Options, ReadOptions, WriteOptions};
use testkit::{CrashFs, Survival, compare, settings, steps};

use crate::explore::explore;
use crate::world::{Disk, PATH, decide, join, options, thread};

const COPY: &str = "/copy";
const WRITERS: usize = 2;
const BATCHES: u64 = 3;

/// Those that batches are about.
const FAMILIES: [&str; 3] = ["default", "one", "other"];

/// One that comes and goes.
const SHORT: &str = "short";

/// The families that a batch is about, by their place: those of two flushes need have none in
/// common.
fn families_of(number: u64) -> &'static [usize] {
    match number % 3 {
        1 => &[0, 1],
        2 => &[2],
        _ => &[0, 1, 2],
    }
}

/// The recording disk; another thread may come in between at every call.
struct Recorded(CrashFs);

impl FileSystemAround for Recorded {
    fn inner(&self) -> &dyn FileSystem {
        &self.0
    }

    fn open(&self, path: &Path, mode: OpenMode) -> Result<AnyFile> {
        decide();
        Ok(AnyFile::around(RecordedFile(mode.open(&self.0, path)?)))
    }

    fn rename(&self, source: &Path, target: &Path) -> Result<()> {
        decide();
        self.inner().rename(source, target)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        decide();
        self.inner().remove(path)
    }

    fn sync_directory(&self, directory: &Path) -> Result<()> {
        decide();
        self.inner().sync_directory(directory)
    }
}

struct RecordedFile(AnyFile);

impl FileAround for RecordedFile {
    fn inner(&self) -> &AnyFile {
        &self.0
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        decide();
        self.0.write_at(offset, data)
    }

    fn sync(&self) -> Result<()> {
        decide();
        self.0.sync()
    }
}

/// When a call began and when it was answered.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// Among all that was noted.
    ticks: (u64, u64),
    /// By the disk's changes.
    changes: (usize, usize),
}

#[derive(Debug, Default)]
struct Notes {
    tick: u64,
    batches: Vec<Batch>,
    /// Calls that make durable what was answered before they began.
    durable: Vec<Span>,
    copies: Vec<Span>,
    /// When the short family was made, and dropped.
    made: Option<Span>,
    dropped: Option<Span>,
}

#[derive(Debug, Clone, Copy)]
struct Batch {
    writer: usize,
    number: u64,
    is_synced: bool,
    span: Span,
}

/// What the threads were told.
#[derive(Clone)]
struct Told {
    fs: CrashFs,
    notes: Arc<Mutex<Notes>>,
}

impl Told {
    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().expect("no panic")
    }

    fn moment(&self) -> (u64, usize) {
        let mut notes = self.notes();
        notes.tick += 1;
        (notes.tick, self.fs.changes())
    }

    /// Does something, and notes when.
    fn during(&self, work: impl FnOnce()) -> Span {
        let begun = self.moment();
        work();
        let ended = self.moment();
        Span { ticks: (begun.0, ended.0), changes: (begun.1, ended.1) }
    }
}

/// A database on a recording disk, with families that all batches are about.
struct Story {
    told: Told,
    options: Options,
    db: Db,
    /// Whether the batches are in the WAL.
    is_logged: bool,
}

impl Story {
    fn begin(changes: &[(&str, &str)], is_logged: bool) -> Self {
        let fs = CrashFs::new();
        let mut options = options(
            &Disk::default(),
            &[("write_buffer_size", "2048"), ("max_background_jobs", "4")],
        );
        settings::set(&mut options, changes);
        options.env = Env { fs: Arc::new(Recorded(fs.clone())), ..options.env };
        let db = open(PATH, &options, &FAMILIES);
        Self { told: Told { fs, notes: Arc::default() }, options, db, is_logged }
    }

    fn write(told: &Told, db: &Db, is_logged: bool, writer: usize, number: u64) {
        let is_synced = is_logged && number == 2;
        let options =
            WriteOptions { sync: is_synced, disable_wal: !is_logged, ..WriteOptions::default() };
        let mut batch = WriteBatch::new();
        let value = format!("{number:0400}");
        for at in families_of(number) {
            let family = db.column_family(FAMILIES[*at]).expect("it is there");
            batch.put_cf(&family, key(writer).as_bytes(), value.as_bytes()).expect("a small batch");
        }
        let span = told.during(|| db.write_with(&options, batch).expect("a write"));
        told.notes().batches.push(Batch { writer, number, is_synced, span });
    }

    /// Threads that write all batches.
    fn writers(&self) -> Vec<shuttle::thread::JoinHandle<()>> {
        (0..WRITERS).map(|writer| self.writer(writer)).collect()
    }

    fn writer(&self, writer: usize) -> shuttle::thread::JoinHandle<()> {
        let (told, db, is_logged) = (self.told.clone(), self.db.clone(), self.is_logged);
        thread(move || {
            (1..=BATCHES).for_each(|number| Self::write(&told, &db, is_logged, writer, number))
        })
    }

    /// A thread that makes durable what was answered before.
    fn flusher(&self, flush: fn(&Db)) -> shuttle::thread::JoinHandle<()> {
        let (told, db) = (self.told.clone(), self.db.clone());
        thread(move || {
            for _ in 0..2 {
                let span = told.during(|| flush(&db));
                told.notes().durable.push(span);
            }
        })
    }

    /// A thread that makes a checkpoint.
    fn copier(&self) -> shuttle::thread::JoinHandle<()> {
        let (told, db) = (self.told.clone(), self.db.clone());
        thread(move || {
            let span = told.during(|| db.checkpoint(COPY).expect("a checkpoint"));
            let mut notes = told.notes();
            notes.copies.push(span);
            notes.durable.push(span);
        })
    }

    /// A thread that makes a family, and drops it.
    fn maker(&self) -> shuttle::thread::JoinHandle<()> {
        let (told, db) = (self.told.clone(), self.db.clone());
        thread(move || {
            let options = ColumnFamilyOptions::default();
            let span = told
                .during(|| drop(db.create_column_family(SHORT, &options).expect("a new family")));
            told.notes().made = Some(span);
            let short = db.column_family(SHORT).expect("it was made");
            db.put_cf(&short, "key", "value").expect("a write");
            let span = told.during(|| db.drop_column_family(&short).expect("it may be dropped"));
            told.notes().dropped = Some(span);
        })
    }

    /// Closes, and looks at what the power would have left at some moments.
    fn end(self) {
        self.db.wait_for_compactions().expect("no failure");
        self.db.close().expect("a clean close");
        let Self { told, mut options, db, is_logged } = self;
        drop(db);
        let notes = told.notes();
        let last = told.fs.changes();
        // It follows from what the threads did, and from nothing else.
        let mut random = fastrand::Rng::with_seed(
            last as u64 ^ notes.batches[0].span.changes.1 as u64 ^ notes.tick << 20,
        );
        let created = notes.batches.iter().map(|batch| batch.span.changes.0).min().unwrap_or(last);
        for round in 0..8 {
            let at = if round == 0 { last } else { random.usize(created..=last) };
            let survival =
                [Survival::Lost, Survival::Kept, Survival::Random(random.u64(..))][round % 3];
            let disk = told.fs.after_crash(at, survival);
            options.env = steps::world(Arc::new(disk.clone()), 1);
            let what = format!("{survival:?} at {at} of {last}, is_logged: {is_logged}\n{notes:?}");
            let found = found(PATH, &options, &what);
            let keeps_all = is_logged && matches!(survival, Survival::Kept);
            judge(
                &notes,
                &found,
                &what,
                keeps_all,
                |span| span.changes.1 <= at,
                |span| span.changes.0 < at,
            );
            judge_copy(&notes, &options, &disk, at, &what);
        }
    }
}

/// The copy is a database only if it is complete, and is one once the call was answered.
fn judge_copy(notes: &Notes, options: &Options, disk: &MemoryFileSystem, at: usize, what: &str) {
    let Some(span) = notes.copies.first() else { return };
    let is_there = disk.metadata(&Path::new(COPY).join("CURRENT")).is_ok();
    assert!(is_there || span.changes.1 > at, "the copy is lost: {what}");
    if is_there {
        let what = format!("in the copy: {what}");
        let found = found(COPY, options, &what);
        let begun = |other: &Span| other.ticks.0 < span.ticks.1;
        let past = |other: &Span| other.ticks.1 < span.ticks.0;
        judge(notes, &found, &what, true, past, begun);
    }
}

fn key(writer: usize) -> String {
    format!("writer {writer}")
}

fn open(path: &str, options: &Options, names: &[&str]) -> Db {
    let listed: Vec<_> = names.iter().map(|name| (*name, options.cf.clone())).collect();
    Db::open_with_families(path, options, &listed)
        .unwrap_or_else(|error| panic!("opening {path}: {error}"))
}

/// What a database has.
#[derive(Debug)]
struct Found {
    /// By writer, the last batch.
    batches: [u64; WRITERS],
    has_short: bool,
}

fn found(path: &str, options: &Options, what: &str) -> Found {
    let names = Db::list_column_families(path, options).expect("a database");
    let db = open(path, options, &names.iter().map(String::as_str).collect::<Vec<_>>());
    compare::check_files(&db);
    let values: [[u64; WRITERS]; FAMILIES.len()] = FAMILIES.map(|name| {
        let family = db.column_family(name).expect("it is there");
        let entries = compare::scan(&db, &family, &ReadOptions::default()).expect("a scan");
        let entries: BTreeMap<_, _> = entries.into_iter().collect();
        let number = |value: &Vec<u8>| {
            std::str::from_utf8(value).expect("digits").parse().expect("a number")
        };
        std::array::from_fn(|writer| entries.get(key(writer).as_bytes()).map_or(0, number))
    });
    db.close().expect("a clean close");
    let batches =
        std::array::from_fn(|writer| last_whole(writer, values.map(|of| of[writer]), what));
    Found { batches, has_short: names.iter().any(|name| name == SHORT) }
}

/// The last batch of a writer that is there; `values` are what its key has in each family.
fn last_whole(writer: usize, values: [u64; FAMILIES.len()], what: &str) -> u64 {
    let last = values.into_iter().max().unwrap_or(0);
    for number in 1..=last {
        let is_there = families_of(number).iter().all(|at| values[*at] >= number);
        assert!(
            is_there,
            "batch {number} of writer {writer} is lost, {last} is there, {values:?}: {what}"
        );
    }
    last
}

/// Whether that may be found where the calls of which `is_past` is true had been answered, and
/// those had begun of which `is_begun` is; with `keeps_all` each batch that was answered is there.
fn judge(
    notes: &Notes,
    found: &Found,
    what: &str,
    keeps_all: bool,
    is_past: impl Fn(&Span) -> bool,
    is_begun: impl Fn(&Span) -> bool,
) {
    let is_found = |batch: &&Batch| batch.number <= found.batches[batch.writer];
    for batch in &notes.batches {
        if is_found(&batch) {
            assert!(is_begun(&batch.span), "{batch:?} was not begun, of {found:?}: {what}");
            continue;
        }
        let lasts = (keeps_all || batch.is_synced) && is_past(&batch.span);
        let made_durable = |call: &Span| is_past(call) && batch.span.ticks.1 < call.ticks.0;
        let is_durable = lasts || notes.durable.iter().any(made_durable);
        assert!(!is_durable, "{batch:?} is lost, of {found:?}: {what}");
        let is_later = |other: &&Batch| batch.span.ticks.1 < other.span.ticks.0;
        let later = notes.batches.iter().filter(is_found).find(is_later);
        assert!(later.is_none(), "{batch:?} is lost, {later:?} is there, of {found:?}: {what}");
    }
    let holds = |span: &Option<Span>, test: &dyn Fn(&Span) -> bool| span.as_ref().is_some_and(test);
    if found.has_short {
        assert!(
            holds(&notes.made, &is_begun) && !holds(&notes.dropped, &is_past),
            "the family that comes and goes is there: {what}"
        );
    } else {
        assert!(
            !holds(&notes.made, &is_past) || holds(&notes.dropped, &is_begun),
            "the family that was made is lost: {what}"
        );
    }
}

/// Flushes of all families and of one overlap; the power fails between what they bring into the
/// tree.
#[test]
fn flushes_of_families_together_overlap() {
    explore("crossing::flushes_of_families_together_overlap", 200, || {
        flushes_overlap(&[("atomic_flush", "true")], false);
    });
}

/// The same with batches that are in the WAL.
#[test]
fn flushes_of_logged_families_together_overlap() {
    explore("crossing::flushes_of_logged_families_together_overlap", 100, || {
        flushes_overlap(&[("atomic_flush", "true")], true);
    });
}

/// The same without `atomic_flush`: what is in the WAL is there.
#[test]
fn flushes_of_families_overlap() {
    explore("crossing::flushes_of_families_overlap", 100, || flushes_overlap(&[], true));
}

/// Flushes overlap that have no family in common: what was written first does not come into the
/// tree last.
#[test]
fn flushes_of_other_families_overlap() {
    explore("crossing::flushes_of_other_families_overlap", 200, || {
        let story =
            Story::begin(&[("atomic_flush", "true"), ("max_write_buffer_number", "6")], false);
        let at_once = FlushOptions { wait: false, ..FlushOptions::default() };
        for number in 1..=2 * BATCHES {
            Story::write(&story.told, &story.db, false, 0, number);
            story.db.flush(story.db.default_column_family(), &at_once).expect("a request");
        }
        story.end();
    });
}

fn flushes_overlap(changes: &[(&str, &str)], is_logged: bool) {
    let story = Story::begin(changes, is_logged);
    let flushers = [story.flusher(flush_all), story.flusher(flush_one)];
    join(story.writers().into_iter().chain(flushers).collect());
    story.end();
}

fn flush_all(db: &Db) {
    db.flush_all().expect("a flush");
}

/// What the WAL has of other families is kept with it; with `atomic_flush` all families are
/// flushed.
fn flush_one(db: &Db) {
    let family = db.column_family("one").expect("it is there");
    db.flush(&family, &FlushOptions::default()).expect("a flush");
}

/// Memtables of all families wait, as two are merged at a time, while a checkpoint is made.
#[test]
fn a_checkpoint_is_made_while_memtables_wait() {
    explore("crossing::a_checkpoint_is_made_while_memtables_wait", 100, || {
        for atomic in ["true", "false"] {
            let changes = [
                ("min_write_buffer_number_to_merge", "3"),
                ("max_write_buffer_number", "6"),
                ("atomic_flush", atomic),
            ];
            let story = Story::begin(&changes, true);
            join(story.writers().into_iter().chain([story.copier()]).collect());
            story.end();
        }
    });
}

/// A family is made and dropped while the others are flushed.
#[test]
fn families_come_and_go_beside_flushes() {
    explore("crossing::families_come_and_go_beside_flushes", 100, || {
        let story = Story::begin(&[("atomic_flush", "true")], true);
        join(vec![story.writer(0), story.maker(), story.flusher(flush_all)]);
        story.end();
    });
}
