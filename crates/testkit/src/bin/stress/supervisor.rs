//! Starts a process for each round, kills it or waits for it, and tells what came of it.

use flagstone::base::counted;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use testkit::Referee;

use crate::child::{FOUND, READY};
use crate::contents;
use crate::counts::Totals;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::files::{copy_all, remove_all};
use crate::flags::Flags;
use crate::keeper::PATIENCE;
use crate::plan::{Config, Ending, Round};

/// A kill is a success only if this is what ended the process.
const SIGKILL: i32 = 9;

/// A process may open, check and close a large database before it answers.
const PATIENCE_WITH_PROCESSES: Duration = Duration::from_secs(3 * PATIENCE.as_secs());

/// Why a round failed.
pub type Failed = (Round, Fault);

/// The process that the user started.
pub struct Supervisor<'a> {
    pub flags: &'a Flags,
    pub config: Config,
    pub referee: Option<Referee>,
    pub totals: Totals,
    pub progress: ProgressBar,
}

fn own_files(error: io::Error) -> Failure {
    Failure::io("keep the notes of the stress test", error)
}

impl Supervisor<'_> {
    /// Plays rounds until the time is over, enough were played, or something is wrong.
    pub fn run(&mut self) -> Result<Option<Failed>, Failure> {
        let begun = Instant::now();
        for number in 0.. {
            let mut round = self.config.round(number, self.referee.is_some());
            // What a last kill leaves would not be looked at.
            let is_last = match self.flags.rounds {
                Some(rounds) => number + 1 >= rounds,
                None => begun.elapsed() >= self.flags.duration,
            };
            if is_last {
                round.close();
            }
            if let Err(fault) = self.play(&round, true)? {
                return Ok(Some((round, fault)));
            }
            if is_last {
                break;
            }
        }
        Ok(None)
    }

    /// Plays one round as it was, from the files that it had found, and one more that checks what
    /// is left.
    pub fn repeat(&mut self, number: u64) -> Result<Option<Failed>, Failure> {
        let config = &self.config;
        remove_all(config, true)
            .and_then(|()| copy_all(&config.before(), config, false))
            .map_err(own_files)?;
        for (number, closes) in [(number, false), (number + 1, true)] {
            let mut round = self.config.round(number, self.referee.is_some());
            round.is_first &= !closes;
            if closes {
                round.close();
            }
            if let Err(fault) = self.play(&round, false)? {
                return Ok(Some((round, fault)));
            }
        }
        Ok(None)
    }

    /// Plays one round.
    fn play(&mut self, round: &Round, is_new: bool) -> Result<Result<(), Fault>, Failure> {
        let config = &self.config;
        if round.is_first && is_new {
            remove_all(config, true).map_err(own_files)?;
            self.totals.count("databases", 1);
        }
        if is_new {
            copy_all(&config.before(), config, true).map_err(own_files)?;
        }
        for old in [config.counts(), config.fault(), config.contents()] {
            match fs::remove_file(old) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(own_files(error));
                }
                _ => {}
            }
        }
        self.totals.count("rounds", 1);
        self.progress.inc(1);
        let mut child = self.start(round).map_err(own_files)?;
        let outcome = self.attend(&mut child, round).map_err(own_files)?;
        self.totals.add_file(&self.config.counts()).map_err(own_files)?;
        let done = self.totals.operations.values().sum::<u64>();
        self.progress.set_message(format!(
            "{}, {}",
            counted(done, "operation"),
            counted(self.totals.other("kills"), "kill")
        ));
        Ok(outcome.and_then(|()| self.ask_referee(round)))
    }

    fn start(&self, round: &Round) -> io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(self.flags.again(&self.config));
        command.args(["--child", &round.number.to_string()]);
        command.args(round.closes().then_some("--closing"));
        command.args(self.referee.is_some().then_some("--with-referee"));
        if self.config.memory_limit.is_some() {
            // An arena of the C library takes 64 MiB of addresses for each thread.
            command.env("MALLOC_ARENA_MAX", "2");
        }
        command
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .stderr(fs::File::create(self.config.log())?)
            .spawn()
    }

    /// Kills the process when its time has come, or waits for its end; what is wrong with it.
    fn attend(&mut self, child: &mut Child, round: &Round) -> io::Result<Result<(), Fault>> {
        let said = listen(child);
        let is_ready = || match said.recv_timeout(PATIENCE_WITH_PROCESSES) {
            Ok(line) => line == READY,
            Err(_) => false,
        };
        let (kind, time) = match round.ending {
            Ending::KilledEarly(time) => ("kills soon after the start", Some(time)),
            Ending::Killed(time) => ("kills at work", is_ready().then_some(time)),
            Ending::Closed(_) => ("clean closes", None),
        };
        if let Some(time) = time {
            // Ends early if the process does.
            wait(&said, time);
            child.kill()?;
        } else {
            wait(&said, PATIENCE_WITH_PROCESSES);
            if child.try_wait()?.is_none() && !wait_for_end(child)? {
                child.kill()?;
                child.wait()?;
                let waited = PATIENCE_WITH_PROCESSES.as_secs();
                return Ok(Err(Fault::new(
                    "the process of the round",
                    "an end",
                    format!("none in {waited} seconds"),
                )));
            }
        }
        let status = child.wait()?;
        let was_killed = time.is_some() && status.signal() == Some(SIGKILL);
        if self.config.fault().exists() || !(was_killed || status.success() && round.closes()) {
            return Ok(Err(self.fault_of(status)));
        }
        self.totals.count(kind, 1);
        self.totals.count("kills", u64::from(was_killed));
        Ok(Ok(()))
    }

    /// What a process that ended badly says itself, or what it left on standard error.
    fn fault_of(&self, status: ExitStatus) -> Fault {
        let written = fs::read_to_string(self.config.fault())
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok());
        if let Some(fault) = written.as_ref().and_then(Fault::from_json) {
            return fault;
        }
        let log = fs::read_to_string(self.config.log()).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(12)..].join("\n            ");
        let expected =
            if status.code() == Some(FOUND) { "a fault written down" } else { "a good end" };
        Fault::new("the process of the round", expected, format!("{status}\n            {tail}"))
    }

    /// Has RocksDB's tools read what the round closed.
    fn ask_referee(&mut self, round: &Round) -> Result<(), Fault> {
        let Some(referee) =
            self.referee.as_ref().filter(|_| round.readable_by_rocksdb && round.closes())
        else {
            return Ok(());
        };
        let db = self.config.db();
        let no = |error: String| Fault::error("RocksDB's tools", error);
        referee.ldb(&db, &["checkconsistency"]).map_err(no)?;
        let tables = referee.verify_tables(&db).map_err(no)?;
        let ours = contents::load(&self.config.contents())
            .map_err(|error| Fault::error("the contents", error))?;
        for (family, ours) in ours {
            let scanned = referee.scan(&db, &family).map_err(no)?;
            let theirs = contents::of_dump(&scanned);
            if theirs != ours {
                let place = format!("family {family} as ldb scans it");
                return Err(Fault::new(place, ours.to_string(), theirs.to_string()));
            }
            self.totals.count("keys that RocksDB read alike", ours.count);
        }
        self.totals.count("databases that RocksDB checked", 1);
        self.totals.count("tables that RocksDB checked", tables as u64);
        Ok(())
    }
}

/// The lines that the process prints; the channel closes when it ends.
fn listen(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Waits so long, or until the process ends.
fn wait(said: &Receiver<String>, time: Duration) {
    let end = Instant::now() + time;
    while let Ok(_) | Err(RecvTimeoutError::Timeout) =
        said.recv_timeout(end.saturating_duration_since(Instant::now()))
        && Instant::now() < end
    {}
}

/// Its output is closed: it ends now, or never.
fn wait_for_end(child: &mut Child) -> io::Result<bool> {
    for _ in 0..500 {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}
