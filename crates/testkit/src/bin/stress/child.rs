//! The process of one round: opens the database, checks everything, lets threads loose on it, and
//! is killed or closes it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flagstone::base::{Result, SubCode};
use flagstone::db::{ColumnFamily, Db};
use flagstone::env::Env;

use crate::bank::Bank;
use crate::contents;
use crate::counts::Counts;
use crate::expected::{Expected, Slot};
use crate::failure::Failure;
use crate::fault::{Fault, read};
use crate::flags::Flags;
use crate::keeper::{Keeper, PATIENCE};
use crate::passing;
use crate::plan::{Config, Ending, Round};
use crate::room::Room;
use crate::settings::{self, Chosen};
use crate::space::FAMILIES;
use crate::value::Place;
use crate::verify;
use crate::worker::{Life, Worker};

/// Versions of one process; the next begins behind them.
const VERSIONS: u64 = 1 << 24;

/// What the process prints when the database is open and checked.
pub const READY: &str = "ready";

/// Exit code of a process that found a fault and wrote it down.
pub const FOUND: i32 = 3;

/// Is the process of a round; its exit code says how it went.
pub fn run(flags: &Flags, number: u64) -> std::result::Result<(), Failure> {
    let missing = || Failure::Usage("the process of a round needs --seed and --work".to_string());
    let work = flags.work.as_deref().ok_or_else(missing)?;
    let config = flags.config(flags.seed.ok_or_else(missing)?, work)?;
    let mut round = config.round(number, flags.with_referee);
    if flags.closing {
        round.close();
    }
    match live(&config, &round) {
        Ok(()) => Ok(()),
        Err(fault) => give_up(&config, &fault),
    }
}

/// Writes the fault down and ends the process, whatever its threads do.
pub fn give_up(config: &Config, fault: &Fault) -> ! {
    let temporary = config.fault().with_extension("new");
    let written = fs::write(&temporary, fault.to_json().to_string());
    if let Err(error) = written.and_then(|()| fs::rename(&temporary, config.fault())) {
        eprintln!("{fault}\n(this cannot be written down: {error})");
    }
    std::process::exit(FOUND)
}

/// Lives through the round; returns where the database was closed and is in order.
fn live(config: &Config, round: &Round) -> std::result::Result<(), Fault> {
    // Before any thread is started: what a panicking thread leaves behind is not worth looking at.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::exit(101);
    }));
    testkit::laboratory::begin();
    let system =
        |error: rustix::io::Errno| Fault::error("limits of the process", io::Error::from(error));
    // Without the supervisor nobody would end this process.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(system)?;
    if let Some(limit) = config.memory_limit {
        let limit = rustix::process::Rlimit { current: Some(limit), maximum: Some(limit) };
        rustix::process::setrlimit(rustix::process::Resource::As, limit).map_err(system)?;
    }
    for thread in 0..config.space.threads {
        // A kill may have left one half made.
        remove_directory(&Env::os(), &config.checkpoint(thread))
            .map_err(|error| Fault::error("the removal of a checkpoint", error))?;
    }
    let place = "the room on the disk";
    let (room, env) = read(place, Room::new(config, round))?;
    room.narrow().map_err(|error| Fault::error(place, error))?;
    let counts = Counts::default();
    let outcome = Process {
        config,
        round,
        room,
        counts: &counts,
        chosen: settings::choose(config, round, &env),
    }
    .run();
    counts.save(&config.counts()).map_err(notes)?;
    outcome
}

/// The test's own notes cannot be kept.
pub fn notes(error: io::Error) -> Fault {
    Fault::error("the stress test's own notes", error)
}

/// Removes a directory without subdirectories, if it is there.
pub fn remove_directory(env: &Env, directory: &Path) -> Result<()> {
    if env.fs.metadata(directory).is_err() {
        return Ok(());
    }
    for name in env.fs.list(directory)? {
        let path = directory.join(name);
        if env.fs.metadata(&path)?.is_directory {
            remove_directory(env, &path)?
        } else {
            env.fs.remove(&path)?
        }
    }
    env.fs.remove_directory(directory)
}

struct Process<'a> {
    config: &'a Config,
    round: &'a Round,
    room: Room,
    counts: &'a Counts,
    chosen: Chosen,
}

impl Process<'_> {
    fn run(&self) -> std::result::Result<(), Fault> {
        let expected = Expected::open(&self.config.expected(), self.config.space).map_err(notes)?;
        let epoch = expected.next_epoch().map_err(notes)?;
        let db = self.open(expected.is_funded().map_err(notes)?)?;
        self.check_and_settle(&db, &expected)?;
        self.remove_passing_families(&db)?;
        let bank = Bank::of(&db)
            .ok_or_else(|| Fault::new("the bank's families", "that they exist", "nothing"))?;
        self.found_bank(&db, &bank, &expected)?;
        self.counts.save(&self.config.counts()).map_err(notes)?;
        let mut out = io::stdout();
        writeln!(out, "{READY}").and_then(|()| out.flush()).map_err(notes)?;

        // It may have been needed already.
        self.room.narrow().map_err(notes)?;
        self.work(&db, &bank, &expected, epoch * VERSIONS)?;
        crate::keeper::prepare_to_close(&db, &self.room)?;
        read("the closing of the database", db.close())?;
        drop((bank, db));
        self.settle_unlogged(&expected)?;
        self.check_closed(&expected)
    }

    /// Opens the database; if the disk is too full for that, space is made.
    fn open(&self, was_opened: bool) -> std::result::Result<Db, Fault> {
        let (config, mut options) = (self.config, self.chosen.options.clone());
        options.db.create_if_missing = !was_opened;
        let mut families = self.chosen.listed();
        let is_there = options.env.fs.metadata(&config.db().join("CURRENT")).is_ok();
        let existing = if is_there || was_opened {
            read("the list of families", Db::list_column_families(config.db(), &options))?
        } else {
            Vec::new()
        };
        for name in &existing {
            if !families.iter().any(|(known, _)| known == name) {
                families.push((name, options.cf.clone()));
            }
        }
        let mut opened = Db::open_with_families(config.db(), &options, &families);
        if opened.as_ref().is_err_and(|error| error.subcode() == SubCode::NoSpace) {
            self.room.relieve().map_err(notes)?;
            opened = Db::open_with_families(config.db(), &options, &families);
            self.counts.add("openings that found the disk full", 1);
        }
        read("the opening of the database", opened)
    }

    /// Compares everything; from here on, each key holds what was found.
    fn check_and_settle(&self, db: &Db, expected: &Expected) -> std::result::Result<(), Fault> {
        let space = &self.config.space;
        let found = verify::read_all(db, space, 0..space.keys())?;
        for (place, slot) in verify::judge(expected, space, &found)? {
            expected.set_slot(place, &slot).map_err(notes)?;
        }
        for thread in 0..space.threads {
            expected.clear(thread).map_err(notes)?;
        }
        verify::check_files(db)?;
        self.counts.add("keys verified after opening", (FAMILIES.len() * space.keys()) as u64);
        Ok(())
    }

    fn remove_passing_families(&self, db: &Db) -> std::result::Result<(), Fault> {
        for family in db.column_families() {
            if !self.chosen.families.iter().any(|(name, _)| name == family.name()) {
                passing::check(db, &family)?;
                self.with_room("the drop of a family", || db.drop_column_family(&family))?;
            }
        }
        Ok(())
    }

    fn found_bank(
        &self,
        db: &Db,
        bank: &Bank,
        expected: &Expected,
    ) -> std::result::Result<(), Fault> {
        let is_funded = expected.is_funded().map_err(notes)?;
        bank.audit(db, &mut fastrand::Rng::with_seed(self.round.seed), is_funded)?;
        if is_funded {
            return Ok(());
        }
        self.with_room("the founding of the bank", || bank.found(db))?;
        expected.set_funded().map_err(notes)
    }

    /// Does something that must be done; makes space for it if there is none.
    fn with_room(
        &self,
        place: &str,
        mut work: impl FnMut() -> Result<()>,
    ) -> std::result::Result<(), Fault> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match work() {
                Err(error) if error.subcode() == SubCode::NoSpace && Instant::now() < deadline => {
                    self.room.relieve().map_err(notes)?;
                    std::thread::sleep(Duration::from_millis(20));
                }
                outcome => return read(place, outcome),
            }
        }
    }

    /// The threads' part.
    fn work(
        &self,
        db: &Db,
        bank: &Bank,
        expected: &Expected,
        first_version: u64,
    ) -> std::result::Result<(), Fault> {
        let families = verify::families(db)?;
        let threads = self.config.space.threads;
        let life = Life {
            config: self.config,
            round: self.round,
            chosen: &self.chosen,
            db,
            families: &families,
            bank,
            expected,
            counts: self.counts,
            first_version,
            stop: AtomicBool::new(false),
            is_frugal: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            doing: (0..threads).map(|_| Mutex::new(("beginning", Instant::now()))).collect(),
        };
        let time = match self.round.ending {
            Ending::Closed(time) => Some(time),
            Ending::Killed(_) | Ending::KilledEarly(_) => None,
        };
        let found: Mutex<Option<Fault>> = Mutex::default();
        let kept = std::thread::scope(|scope| {
            for thread in 0..threads {
                let (life, found) = (&life, &found);
                scope.spawn(move || {
                    let worker = Worker::new(life, thread).map_err(notes);
                    if let Err(fault) = worker.and_then(|mut worker| worker.work()) {
                        found.lock().expect("nobody panics with it").get_or_insert(fault);
                        life.stop.store(true, Ordering::Relaxed);
                    }
                });
            }
            Keeper::new(&life, &self.room).keep(time)
        });
        match found.into_inner().expect("nobody panics with it") {
            Some(fault) => Err(fault),
            None => kept,
        }
    }

    /// A clean close has flushed what was written without the WAL.
    fn settle_unlogged(&self, expected: &Expected) -> std::result::Result<(), Fault> {
        for family in 0..FAMILIES.len() {
            for index in 0..self.config.space.keys() {
                let place = Place { family, index };
                let slot = expected.slot(place).map_err(notes)?;
                if !slot.is_certain() {
                    expected.set_slot(place, &Slot::certain(slot.last())).map_err(notes)?;
                }
            }
        }
        Ok(())
    }

    /// The closed database, opened for reading, holds exactly what it should, and its directory
    /// nothing else.
    fn check_closed(&self, expected: &Expected) -> std::result::Result<(), Fault> {
        let place = "the opening for reading";
        let (config, options) = (self.config, &self.chosen.options);
        let opened = Db::open_read_only_with_families(config.db(), options, &self.chosen.listed());
        let db = read(place, opened)?;
        let found = verify::read_all(&db, &config.space, 0..config.space.keys())?;
        verify::judge(expected, &config.space, &found)?;
        verify::check_files(&db)?;
        let checked = read(place, db.check())?;
        // After a full disk it may be unknown whether the MANIFEST names a file; it is kept then.
        // And what iterators use when the database is closed stays, too.
        let is_tidy = matches!(self.room, Room::Ample) && !self.round.closes_under_threads;
        if let Some(stray) = checked.strays.first().filter(|_| is_tidy) {
            let found = format!("{}, and {} others", stray.display(), checked.strays.len() - 1);
            return Err(Fault::new(
                "the directory after a clean close",
                "no file that nothing names",
                found,
            ));
        }
        if self.round.readable_by_rocksdb {
            let of_family = |family: &ColumnFamily| {
                Ok((family.name().to_string(), contents::of_family(&db, family)?))
            };
            let listed =
                read("a scan for RocksDB", db.column_families().iter().map(of_family).collect())?;
            contents::save(&config.contents(), &listed).map_err(notes)?;
        }
        self.counts
            .add("keys verified after closing", (FAMILIES.len() * config.space.keys()) as u64);
        read("the closing of a database opened for reading", db.close())
    }
}
