//! Watches over the threads of a round: makes room when the disk is full, sees that the database
//! resumes and that nobody hangs.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flagstone::base::{Error, SubCode};
use flagstone::db::Db;
use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactRangeOptions,
};

use crate::fault::{Fault, Trouble, read, written};
use crate::room::Room;
use crate::worker::Life;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How long a database may take to accept writes again after there is space.
const RESUME: Duration = Duration::from_secs(30);

const TICK: Duration = Duration::from_millis(10);
const SAVE_EVERY: u32 = 20;

/// What is going on with the disk.
enum Disk {
    /// Writes are accepted; so many were refused before.
    Fine { refused: u64 },
    /// Writes are refused; space is made at that time.
    Full { until: Instant },
    /// There is space again, since then, when so many writes had been acknowledged.
    Relieved { since: Instant, acknowledged: u64 },
}

/// Sees to it that there is space for what closing flushes, and that the database has noticed.
pub fn prepare_to_close(db: &Db, room: &Room) -> Result<(), Fault> {
    if matches!(room, Room::Ample) {
        return Ok(());
    }
    room.relieve().map_err(crate::child::notes)?;
    let since = Instant::now();
    loop {
        match written("a flush when there is space again", db.flush_all()) {
            Ok(()) | Err(Trouble::Closed) => return Ok(()),
            Err(Trouble::Fault(fault)) => return Err(fault),
            Err(Trouble::Full) if since.elapsed() > RESUME => {
                let found = format!("none in {} seconds", RESUME.as_secs());
                return Err(Fault::new(
                    "a disk that has space",
                    "a flush without reopening",
                    found,
                ));
            }
            Err(Trouble::Full) => std::thread::sleep(TICK),
        }
    }
}

/// The main thread of a round's process.
pub struct Keeper<'a> {
    life: &'a Life<'a>,
    room: &'a Room,
    random: fastrand::Rng,
    disk: Disk,
}

impl<'a> Keeper<'a> {
    pub fn new(life: &'a Life<'a>, room: &'a Room) -> Self {
        let random = fastrand::Rng::with_seed(life.round.seed ^ 0x5eed);
        Self { life, room, random, disk: Disk::Fine { refused: 0 } }
    }

    /// Keeps watch for so long, or until the process is killed; then stops the threads. In some
    /// rounds the database is closed first.
    pub fn keep(&mut self, time: Option<Duration>) -> Result<(), Fault> {
        let mut outcome = self.watch(Instant::now(), time);
        if outcome.is_ok() && self.life.round.closes_under_threads {
            let is_ready = prepare_to_close(self.life.db, self.room);
            outcome = is_ready.and_then(|()| self.close_under_threads());
        }
        self.life.stop.store(true, Ordering::Relaxed);
        // A thread that hangs would never be joined.
        match outcome {
            Err(fault) if self.is_anybody_hanging() => {
                crate::child::give_up(self.life.config, &fault)
            }
            outcome => outcome,
        }
    }

    /// The threads may have filled a small disk again since it was relieved. All that they wrote is
    /// in the WAL, so that a closing which says so has lost nothing.
    fn close_under_threads(&self) -> Result<(), Fault> {
        let closed = self.life.db.close();
        let is_full = |error: &Error| error.subcode() == SubCode::NoSpace;
        if !matches!(self.room, Room::Ample) && closed.as_ref().is_err_and(is_full) {
            return Ok(());
        }
        read("the closing of the database under its threads", closed)
    }

    fn watch(&mut self, begun: Instant, time: Option<Duration>) -> Result<(), Fault> {
        let mut ticks = 0u32;
        loop {
            std::thread::sleep(TICK);
            ticks += 1;
            if ticks.is_multiple_of(SAVE_EVERY) {
                self.life.counts.save(&self.life.config.counts()).map_err(crate::child::notes)?;
            }
            self.look_for_hanging()?;
            self.look_at_disk()?;
            if self.life.stop.load(Ordering::Relaxed)
                || time.is_some_and(|time| begun.elapsed() >= time)
            {
                return Ok(());
            }
        }
    }

    fn is_anybody_hanging(&self) -> bool {
        self.look_for_hanging().is_err()
    }

    fn look_for_hanging(&self) -> Result<(), Fault> {
        for (thread, doing) in self.life.doing.iter().enumerate() {
            let (what, since) = *doing.lock().expect("nobody panics with it");
            if since.elapsed() > PATIENCE {
                let place = format!("thread {thread}, {what}");
                return Err(Fault::new(
                    place,
                    "an end",
                    format!("none in {} seconds", PATIENCE.as_secs()),
                ));
            }
        }
        Ok(())
    }

    fn look_at_disk(&mut self) -> Result<(), Fault> {
        let life = self.life;
        match self.disk {
            Disk::Fine { refused } => {
                if life.refused.load(Ordering::Relaxed) > refused {
                    let pause = Duration::from_millis(self.random.u64(20..700));
                    self.disk = Disk::Full { until: Instant::now() + pause };
                }
            }
            Disk::Full { until } => {
                if Instant::now() >= until {
                    life.is_frugal.store(true, Ordering::Relaxed);
                    let acknowledged = life.acknowledged.load(Ordering::Relaxed);
                    self.room.relieve().map_err(crate::child::notes)?;
                    self.disk = Disk::Relieved { since: Instant::now(), acknowledged };
                }
            }
            Disk::Relieved { since, acknowledged } => {
                if life.acknowledged.load(Ordering::Relaxed) > acknowledged {
                    self.tidy_up()?;
                    life.counts.add("full disks resumed from", 1);
                    life.is_frugal.store(false, Ordering::Relaxed);
                    self.disk = Disk::Fine { refused: life.refused.load(Ordering::Relaxed) };
                } else if since.elapsed() > RESUME {
                    return Err(Fault::new(
                        "a disk that was full and has space again",
                        "writes accepted without reopening",
                        format!("none in {} seconds", RESUME.as_secs()),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Gives space back to the disk by compactions, then makes it as small as it was.
    fn tidy_up(&mut self) -> Result<(), Fault> {
        let options = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            blob_garbage_collection_policy: BlobGarbageCollectionPolicy::Force,
            blob_garbage_collection_age_cutoff: 1.0,
            ..CompactRangeOptions::default()
        };
        for family in self.life.families {
            let compacted = self.life.db.compact_range(family, None, None, &options);
            match written("a compaction after the disk was full", compacted) {
                // The rest of the disk is full as well; the next time there may be more to remove.
                Ok(()) | Err(Trouble::Full | Trouble::Closed) => {}
                Err(Trouble::Fault(fault)) => return Err(fault),
            }
        }
        self.room.narrow().map_err(crate::child::notes)
    }
}
