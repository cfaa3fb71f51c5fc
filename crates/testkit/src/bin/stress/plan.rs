//! What happens in which round: everything that is drawn, from the seed.

use std::path::PathBuf;
use std::time::Duration;

use crate::space::Space;

/// What the command line says.
#[derive(Debug, Clone)]
pub struct Config {
    /// What everything random is drawn from.
    pub seed: u64,
    /// The keys and their owners.
    pub space: Space,
    /// Bytes of the largest value.
    pub value_size: usize,
    /// How long a round runs at most.
    pub round_time: Duration,
    /// Bytes that the database may take in most rounds.
    pub disk_limit: Option<u64>,
    /// The bytes of the disk, if it is a small one.
    pub small_disk: Option<u64>,
    /// Bytes of address space of each process.
    pub memory_limit: Option<u64>,
    /// Options that are the same in every round.
    pub settings: Vec<(String, String)>,
    /// Where the database is, and beside it checkpoints and WALs.
    pub root: PathBuf,
    /// Where the notes are.
    pub work: PathBuf,
}

impl Config {
    /// The database.
    pub fn db(&self) -> PathBuf {
        self.root.join("db")
    }

    /// WALs, if they lie apart.
    pub fn wal(&self) -> PathBuf {
        self.root.join("wal")
    }

    /// A thread's checkpoint.
    pub fn checkpoint(&self, thread: usize) -> PathBuf {
        self.root.join(format!("checkpoint-{thread}"))
    }

    /// A file that takes up a small disk until the space is needed.
    pub fn ballast(&self) -> PathBuf {
        self.root.join("ballast")
    }

    /// What must be found.
    pub fn expected(&self) -> PathBuf {
        self.work.join("expected")
    }

    /// What a round's process counted.
    pub fn counts(&self) -> PathBuf {
        self.work.join("counts.json")
    }

    /// What a round's process found wrong.
    pub fn fault(&self) -> PathBuf {
        self.work.join("fault.json")
    }

    /// What a round's process read before its end, for RocksDB to read alike.
    pub fn contents(&self) -> PathBuf {
        self.work.join("contents.json")
    }

    /// What a round's process wrote to standard error.
    pub fn log(&self) -> PathBuf {
        self.work.join("log")
    }

    /// Everything as the round's process found it.
    pub fn before(&self) -> PathBuf {
        self.work.join("before")
    }
}

/// How a round ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The process is killed so long after it began to work.
    Killed(Duration),
    /// The process is killed so long after it was started, most likely while it opens the database.
    KilledEarly(Duration),
    /// The process works so long, then closes the database, and checks it once more, opened for
    /// reading.
    Closed(Duration),
}

/// One process's life.
#[derive(Debug, Clone)]
pub struct Round {
    /// From 0.
    pub number: u64,
    /// What the round draws from.
    pub seed: u64,
    /// Whether the database is made anew.
    pub is_first: bool,
    /// How it ends.
    pub ending: Ending,
    /// Whether the database, where it is closed, is closed while threads still work on it.
    pub closes_under_threads: bool,
    /// Whether some writes skip the WAL.
    pub unlogged: bool,
    /// Bytes that the database may take.
    pub disk_limit: Option<u64>,
    /// Bytes that it finds free where space is limited.
    pub disk_free: u64,
    /// Whether RocksDB's tools can read everything in the database.
    pub readable_by_rocksdb: bool,
    /// Where WALs lie if not in the database's directory.
    pub wal_directory: Option<PathBuf>,
}

impl Round {
    /// Whether the process is meant to close the database.
    pub fn closes(&self) -> bool {
        matches!(self.ending, Ending::Closed(_))
    }

    /// Closes the database, whatever was drawn.
    pub fn close(&mut self) {
        if let Ending::Killed(time) | Ending::KilledEarly(time) = self.ending {
            self.ending = Ending::Closed(time);
        }
    }
}

impl Config {
    /// The round of that number. Rounds come in lives of one database; each life ends with a clean
    /// close, so that no kill goes unverified.
    pub fn round(&self, number: u64, with_referee: bool) -> Round {
        let mut lives = fastrand::Rng::with_seed(self.seed);
        let mut first = 0;
        loop {
            let length = lives.u64(3..=12);
            let (rocksdb, apart) = (lives.bool(), lives.u8(..5) == 0);
            if number < first + length {
                let readable = with_referee && rocksdb;
                let mut round = self.draw(number, number == first, number + 1 == first + length);
                round.readable_by_rocksdb = readable;
                round.wal_directory = (apart && !readable).then(|| self.wal());
                return round;
            }
            first += length;
        }
    }

    fn draw(&self, number: u64, is_first: bool, is_last: bool) -> Round {
        let mut random =
            fastrand::Rng::with_seed(self.seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // More short rounds than long ones.
        let time = self.round_time.mul_f64(random.f64().powi(2));
        let ending = match random.u8(..16) {
            0..=9 => Ending::Killed(time),
            10..=11 => Ending::KilledEarly(Duration::from_micros(random.u64(1_000..100_000))),
            _ => Ending::Closed(time),
        };
        let disk_limit = self.disk_limit.filter(|_| random.u8(..4) > 0);
        let space = self.disk_limit.or(self.small_disk).unwrap_or(0).max(1 << 18) as f64;
        let disk_free = (space / 2.0).powf(random.f64() / 2.0 + 0.5) as u64;
        // A full disk may make the flush of a close fail, with which such writes are lost.
        let unlogged =
            random.u8(..5) == 0 && self.disk_limit.is_none() && self.small_disk.is_none();
        let mut round = Round {
            number,
            seed: random.u64(..),
            is_first,
            ending,
            // An unlogged write that is cut short by the close may be found or not; the notes have
            // no place for that.
            closes_under_threads: random.bool() && !unlogged,
            unlogged,
            disk_limit,
            disk_free,
            readable_by_rocksdb: false,
            wal_directory: None,
        };
        if is_last {
            round.close();
        }
        round
    }
}
