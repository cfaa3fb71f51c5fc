//! One life: the threads, the moments at which the disk is full, and what must hold in the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flagstone::base::SubCode;
use flagstone::db::Db;
use flagstone::options::{Options, ReadOptions};
use parking_lot::{Condvar, Mutex};

use super::options;
use super::room::Room;
use super::slots::{Slots, compare};
use super::writer::Writer;
use crate::compare::{check_files, scan, scan_back};

const THREADS: usize = 3;

/// Within so long writes must be accepted after space was given back.
const RESUMED: Duration = Duration::from_secs(30);

/// Nothing else takes longer, on a disk that others use, too.
const PATIENCE: Duration = Duration::from_secs(180);

/// What patience is counted in.
const MOMENT: Duration = Duration::from_millis(20);

/// If nobody was refused in so long, compactions make the space that writes take.
const LONG_FILLED: Duration = Duration::from_secs(5);

/// What lives have gone through.
#[derive(Debug, Default, Clone)]
pub struct Figures {
    /// Moments at which the disk was filled, and those after which writes were refused.
    pub filled: u64,
    /// See `filled`.
    pub met: u64,
    /// Writes.
    pub acknowledged: u64,
    /// Writes for which there was no space.
    pub refused: u64,
    /// The longest time from when there was space to when all threads had written, in milliseconds.
    pub resumed_ms_max: u64,
    /// Databases that were closed, and opened, while the disk was full.
    pub closed_full: u64,
    /// See `closed_full`.
    pub opened_full: u64,
}

impl Figures {
    /// Adds those of another life.
    pub fn add(&mut self, other: &Self) {
        self.filled += other.filled;
        self.met += other.met;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.resumed_ms_max = self.resumed_ms_max.max(other.resumed_ms_max);
        self.closed_full += other.closed_full;
        self.opened_full += other.opened_full;
    }
}

/// How the threads get on.
#[derive(Default)]
pub struct Progress {
    counts: Mutex<Counts>,
    changed: Condvar,
    is_stopping: AtomicBool,
}

#[derive(Default, Clone)]
struct Counts {
    acknowledged: [u64; THREADS],
    refused: [u64; THREADS],
    ended: usize,
}

impl Progress {
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub fn acknowledged(&self, thread: usize) {
        self.counts.lock().acknowledged[thread] += 1;
        self.changed.notify_all();
    }

    pub fn refused(&self, thread: usize) {
        self.counts.lock().refused[thread] += 1;
        self.changed.notify_all();
    }

    fn ended(&self) {
        self.counts.lock().ended += 1;
        self.changed.notify_all();
    }

    /// Waits until a condition holds, or a thread has ended; whether it holds. Patience is counted
    /// in moments: while the whole process stands still, as one does that is stopped for another's
    /// sake, none passes.
    fn wait(&self, patience: Duration, mut holds: impl FnMut(&Counts) -> bool) -> bool {
        let mut counts = self.counts.lock();
        for _ in 0..patience.as_millis() / MOMENT.as_millis() {
            let met = |counts: &mut Counts| !holds(counts) && counts.ended == 0;
            if !self.changed.wait_while_for(&mut counts, met, MOMENT).timed_out() {
                break;
            }
        }
        holds(&counts) && counts.ended == 0
    }

    fn counts(&self) -> Counts {
        self.counts.lock().clone()
    }
}

/// Lives through one life.
///
/// # Errors
/// What was lost, or did not go on.
pub fn live(room: &Room, seed: u64) -> Result<Figures, String> {
    let mut random = fastrand::Rng::with_seed(seed);
    room.clear().map_err(|error| format!("the disk: {error}"))?;
    let (options, said) = options::draw(room.env(), &mut random, room.is_in_memory());
    let mut life = Life { room, options, random, figures: Figures::default() };
    life.run(seed).map_err(|fault| format!("{fault}\nwith {said}"))?;
    Ok(life.figures)
}

struct Life<'a> {
    room: &'a Room,
    options: Options,
    random: fastrand::Rng,
    figures: Figures,
}

impl Life<'_> {
    fn run(&mut self, seed: u64) -> Result<(), String> {
        let db = self.open()?.map_err(|error| format!("the first opening: {error}"))?;
        let progress = Progress::default();
        let families = || {
            ["default", "other"]
                .map(|name| db.column_family(name).expect("a family that was opened"))
        };
        let (slots, outcome) = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let writer = Writer {
                        db: &db,
                        env: self.room.env(),
                        progress: &progress,
                        families: families(),
                        thread,
                        random: fastrand::Rng::with_seed(seed ^ (thread as u64 + 1) << 32),
                        version: (thread as u64) << 40,
                        slots: Slots::new(),
                    };
                    let progress = &progress;
                    scope.spawn(move || {
                        let outcome = writer.work();
                        progress.ended();
                        outcome
                    })
                })
                .collect();
            let outcome = (0..self.random.usize(1..4))
                .try_for_each(|_| self.fill_and_relieve(&db, &progress));
            progress.is_stopping.store(true, Ordering::Relaxed);
            let mut slots = Ok(Slots::new());
            for thread in threads {
                let ended = thread.join().unwrap_or_else(|_| Err("a thread panicked".to_string()));
                slots =
                    slots.and_then(|mut all: Slots| ended.map(|own| all.extend(own)).map(|()| all));
            }
            (slots, outcome)
        });
        // What a thread met says more than that it did not go on.
        let slots = slots?;
        outcome?;
        let counts = progress.counts();
        self.figures.acknowledged = counts.acknowledged.iter().sum();
        self.figures.refused = counts.refused.iter().sum();
        check(&db, &slots, false)?;
        if self.random.bool() { self.reopen(db, &slots) } else { Ok(()) }
    }

    fn open(&self) -> Result<flagstone::base::Result<Db>, String> {
        let names = [("default", self.options.cf.clone()), ("other", self.options.cf.clone())];
        let opened = Db::open_with_families(self.room.database(), &self.options, &names);
        match opened {
            Err(error) if error.subcode() != SubCode::NoSpace => {
                Err(format!("an opening: {error}"))
            }
            opened => Ok(opened),
        }
    }

    /// Why nothing goes on, as far as the database knows.
    fn describe(&self, db: &Db) -> String {
        let free = self.room.env().fs.free_space(&self.room.database());
        let told = [
            "flagstone.background-error",
            "rocksdb.is-write-stopped",
            "rocksdb.actual-delayed-write-rate",
        ]
        .map(|name| db.property(db.default_column_family(), name));
        format!("{free:?} bytes free, {told:?}")
    }

    fn remainder(&mut self) -> u64 {
        match self.random.u8(..3) {
            0 => 0,
            1 => self.random.u64(..100_000),
            _ => self.random.u64(..3_000_000),
        }
    }

    fn fill_and_relieve(&mut self, db: &Db, progress: &Progress) -> Result<(), String> {
        let disk = |error| format!("the disk: {error}");
        let some = self.random.u64(1..1500);
        let begun = progress.counts();
        let wrote = progress
            .wait(PATIENCE, |counts| sum(&counts.acknowledged) >= sum(&begun.acknowledged) + some);
        if !wrote {
            let state = self.describe(db);
            return Err(format!(
                "{some} writes on a disk with space were not accepted in {PATIENCE:?}: {state}"
            ));
        }
        self.room.fill(self.remainder()).map_err(disk)?;
        self.figures.filled += 1;
        let (refused, more) = (progress.counts().refused, self.random.u64(1..200));
        if progress.wait(LONG_FILLED, |counts| each_more(&counts.refused, &refused, more)) {
            self.figures.met += 1;
        }
        self.room.relieve().map_err(disk)?;
        let clock = &self.room.env().clock;
        let (since, before) = (clock.now_us(), progress.counts());
        if !progress
            .wait(RESUMED, |counts| each_more(&counts.acknowledged, &before.acknowledged, 1))
        {
            let state = self.describe(db);
            return Err(format!(
                "there is space since {RESUMED:?}, and not every thread could write: {state}"
            ));
        }
        let took_ms = (clock.now_us() - since) / 1000;
        self.figures.resumed_ms_max = self.figures.resumed_ms_max.max(took_ms);
        Ok(())
    }

    /// Closes the database and opens it again, at times on a full disk.
    fn reopen(&mut self, db: Db, slots: &Slots) -> Result<(), String> {
        let disk = |error| format!("the disk: {error}");
        if self.random.bool() {
            self.room.fill(self.remainder()).map_err(disk)?;
            self.figures.closed_full += 1;
        }
        match db.close() {
            Err(error) if error.subcode() != SubCode::NoSpace => {
                return Err(format!("a close: {error}"));
            }
            _ => drop(db),
        }
        if self.random.bool() {
            self.room.fill(self.remainder()).map_err(disk)?;
            self.figures.opened_full += 1;
            if let Ok(db) = self.open()? {
                check(&db, slots, true)?;
            }
        }
        self.room.relieve().map_err(disk)?;
        let db =
            self.open()?.map_err(|error| format!("an opening on a disk with space: {error}"))?;
        check(&db, slots, true)
    }
}

fn sum(counts: &[u64]) -> u64 {
    counts.iter().sum()
}

fn each_more(now: &[u64], before: &[u64], more: u64) -> bool {
    now.iter().zip(before).all(|(now, before)| *now >= before + more)
}

/// Compares both families in both directions, and verifies every file.
fn check(db: &Db, slots: &Slots, is_reopened: bool) -> Result<(), String> {
    for family in db.column_families() {
        for scan in [scan, scan_back] {
            let found = scan(db, &family, &ReadOptions::default())
                .map_err(|error| format!("a scan: {error}"))?;
            compare(family.name(), slots, &found, is_reopened)?;
        }
    }
    crate::caught::catch(|| check_files(db))
}
