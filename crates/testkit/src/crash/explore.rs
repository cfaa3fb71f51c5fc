//! Going through the moments of a life, and through those of the lives after its crashes.
//!
//! 1. The life is lived once; its changes are then applied one by one to a [`Disk`], which at each
//!    moment says what may survive.
//! 2. Each state is told by its hash. One that was seen in this life is not opened again: what it
//!    was found to hold is judged by what is promised at the new moment.
//! 3. At some moments a state (or the disk as a dead process leaves it, with nothing more durable
//!    than before) is given to a life that goes on from there; its moments are gone through in the
//!    same way, and those of lives after it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::aftermath::{Aftermath, State, list};
use super::choices::aftermaths;
use super::disk::Disk;
use super::examine::Examiner;
use super::life::{Life, grain};
use super::promises::{Batch, Outcome, Promises};
use super::record::{Change, CrashFs};
use super::scenarios::Scenario;
use crate::caught::catch;

/// How closely one life is looked at.
#[derive(Debug, Clone, Copy)]
struct Level {
    /// Every so-many-eth moment.
    step: usize,
    /// At most so many states of each.
    states_max: usize,
    /// Lives that go on: from every so-many-eth moment.
    recovery_step: usize,
}

/// How closely a life, the lives after its crashes, and those after theirs are looked at.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    levels: &'static [Level],
}

impl Effort {
    /// Every state of every moment, but where there are thousands; some recoveries.
    pub const CAMPAIGN: Self = Self {
        levels: &[
            Level { step: 1, states_max: 3000, recovery_step: 10 },
            Level { step: 1, states_max: 40, recovery_step: 40 },
            Level { step: 2, states_max: 10, recovery_step: usize::MAX },
        ],
    };

    /// What a test has time for.
    pub const TEST: Self = Self {
        levels: &[
            Level { step: 3, states_max: 5, recovery_step: 80 },
            Level { step: 12, states_max: 3, recovery_step: 50 },
            Level { step: 20, states_max: 2, recovery_step: usize::MAX },
        ],
    };
}

/// One state at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    at: usize,
    /// The place in the list of what may survive; `None` if only the process dies.
    choice: Option<usize>,
}

/// The way to a state: through the lives that went on from crashes, to the last crash. As text:
/// `34:17/12:kill/3:0`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trail(Vec<Mark>);

impl Trail {
    fn with(&self, at: usize, choice: Option<usize>) -> Self {
        Self(self.0.iter().copied().chain([Mark { at, choice }]).collect())
    }
}

impl fmt::Display for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mark) in self.0.iter().enumerate() {
            let slash = if index == 0 { "" } else { "/" };
            match mark.choice {
                Some(choice) => write!(f, "{slash}{}:{choice}", mark.at)?,
                None => write!(f, "{slash}{}:kill", mark.at)?,
            }
        }
        Ok(())
    }
}

impl FromStr for Trail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mark = |text: &str| {
            let (at, choice) = text.split_once(':')?;
            let choice = if choice == "kill" { None } else { Some(choice.parse().ok()?) };
            Some(Mark { at: at.parse().ok()?, choice })
        };
        let marks: Option<Vec<_>> = text.split('/').map(mark).collect();
        marks.map(Self).ok_or_else(|| format!("{text}: not of the form 34:17/12:kill/3:0"))
    }
}

/// A state that is not as it was promised to be.
#[derive(Debug)]
pub struct Finding {
    scenario: &'static str,
    seed: u64,
    trail: Trail,
    change: String,
    aftermath: String,
    files: String,
    said: String,
    /// What has happened in a life that cannot be repeated.
    history: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scenario, seed, trail, .. } = self;
        let at = trail.0.last().map_or(0, |mark| mark.at);
        writeln!(f, "{}", self.said)?;
        writeln!(
            f,
            "scenario {scenario}, seed {seed}: after change {at}, {}; {}",
            self.change, self.aftermath
        )?;
        writeln!(f, "files:\n{}", self.files)?;
        if let Some(history) = &self.history {
            return write!(f, "this life is never the same again:\n{history}");
        }
        write!(
            f,
            "to repeat it alone: cargo run --release -p testkit --bin laboratory -- crashes --scenario {scenario} \
             --seed {seed} --at {trail}"
        )
    }
}

/// What has been explored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the text of Display says what each is")]
pub struct Figures {
    pub lives: u64,
    pub recoveries: u64,
    pub moments: u64,
    pub made: u64,
    pub distinct: u64,
    pub opened: u64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lives, recoveries, moments, made, distinct, opened } = self;
        write!(
            f,
            "{lives} lives and {recoveries} after crashes, {moments} moments, {made} states made, {distinct} distinct, \
             {opened} opened"
        )
    }
}

/// Explores lives; from any number of threads.
pub struct Explorer {
    states_max: u64,
    /// With the scenario in the hash.
    distinct: Mutex<HashSet<u128>>,
    lives: AtomicU64,
    recoveries: AtomicU64,
    moments: AtomicU64,
    made: AtomicU64,
    opened: AtomicU64,
}

impl Explorer {
    /// One that is done after so many distinct states.
    pub fn new(states_max: u64) -> Self {
        Self {
            states_max,
            distinct: Mutex::default(),
            lives: AtomicU64::new(0),
            recoveries: AtomicU64::new(0),
            moments: AtomicU64::new(0),
            made: AtomicU64::new(0),
            opened: AtomicU64::new(0),
        }
    }

    /// What has been explored so far.
    pub fn figures(&self) -> Figures {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            lives: get(&self.lives),
            recoveries: get(&self.recoveries),
            moments: get(&self.moments),
            made: get(&self.made),
            distinct: self.distinct.lock().len() as u64,
            opened: get(&self.opened),
        }
    }

    /// Whether there were enough distinct states.
    pub fn is_done(&self) -> bool {
        self.distinct.lock().len() as u64 >= self.states_max
    }

    /// Lives the scenario with this seed, and opens what crashes leave of it.
    ///
    /// # Errors
    /// The first state that is not as promised.
    pub fn explore(
        &self,
        scenario: &'static Scenario,
        seed: u64,
        effort: &Effort,
    ) -> Result<(), Box<Finding>> {
        count(&self.lives);
        let life = self.live(scenario, seed)?;
        Walk::new(self, &life, Trail::default()).go(effort.levels)
    }

    /// Opens one state again.
    ///
    /// # Errors
    /// The state, if it is still not as promised; or what is wrong with the trail.
    pub fn repeat(
        &self,
        scenario: &'static Scenario,
        seed: u64,
        trail: &Trail,
    ) -> Result<(), Box<Finding>> {
        let life = self.live(scenario, seed)?;
        Walk::new(self, &life, Trail::default()).follow(&trail.0)
    }

    fn live(&self, scenario: &'static Scenario, seed: u64) -> Result<Life, Box<Finding>> {
        catch(|| Life::live(scenario, seed)).map_err(|said| {
            Box::new(Finding {
                scenario: scenario.name,
                seed,
                trail: Trail::default(),
                change: "no crash yet".to_string(),
                aftermath: String::new(),
                files: String::new(),
                said,
                history: None,
            })
        })
    }

    fn note(&self, scenario: &Scenario, hash: u128) {
        count(&self.made);
        self.distinct.lock().insert(hash ^ u128::from(xxh3_64(scenario.name.as_bytes())));
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The way through one life.
struct Walk<'a> {
    explorer: &'a Explorer,
    life: &'a Life,
    examiner: Examiner<'a>,
    /// The way to this life.
    trail: Trail,
    disk: Disk,
    changes: Vec<Change>,
    outcomes: HashMap<u128, Outcome>,
}

impl<'a> Walk<'a> {
    fn new(explorer: &'a Explorer, life: &'a Life, trail: Trail) -> Self {
        let (disk, changes) = life.fs.recorded();
        let examiner = Examiner::new(life);
        Self { explorer, life, examiner, trail, disk, changes, outcomes: HashMap::new() }
    }

    /// Goes through all moments.
    fn go(mut self, levels: &[Level]) -> Result<(), Box<Finding>> {
        let (level, deeper) = levels.split_first().expect("the caller counts the levels");
        for at in 0..=self.changes.len() {
            self.advance(at);
            let recovers = !deeper.is_empty() && (at + 1).is_multiple_of(level.recovery_step);
            // The seed says where the steps fall; the end, when all is acknowledged, is always
            // looked at.
            let is_chosen = (at + self.life.seed as usize).is_multiple_of(level.step)
                || at == self.changes.len();
            if !(is_chosen || recovers) {
                continue;
            }
            if self.explorer.is_done() {
                return Ok(());
            }
            count(&self.explorer.moments);
            let list = self.aftermaths(at);
            for index in sample(list.len(), level.states_max, self.life.seed ^ at as u64) {
                self.visit(at, index, &list[index])?;
            }
            if recovers {
                self.recover(at, &list, deeper)?;
            }
        }
        Ok(())
    }

    fn advance(&mut self, at: usize) {
        if let Some(last) = at.checked_sub(1) {
            self.disk.apply(&self.changes[last]);
        }
    }

    fn aftermaths(&self, at: usize) -> Vec<Aftermath> {
        let last = at.checked_sub(1).map(|last| &self.changes[last]);
        aftermaths(&self.disk, last, grain(self.life.variant), self.life.seed ^ at as u64)
    }

    /// Opens a state, unless it was seen before, and judges it.
    fn visit(
        &mut self,
        at: usize,
        index: usize,
        aftermath: &Aftermath,
    ) -> Result<Outcome, Box<Finding>> {
        let state = self.disk.after(aftermath);
        let hash = state.hash();
        self.explorer.note(self.life.scenario, hash);
        // Who reads along may have been given more since.
        let followed = self.life.promises.followed_at(at);
        let seen = hash ^ ((followed as u128) << 64);
        let outcome = match self.outcomes.get(&seen) {
            Some(known) => Ok(known.clone()),
            None => {
                count(&self.explorer.opened);
                catch(|| self.examiner.examine(&state, hash, at, aftermath.is_kept()))
            }
        };
        let judged = outcome.and_then(|outcome| {
            self.life.promises.judge(&outcome, at, aftermath.is_kept()).map(|()| outcome)
        });
        match judged {
            Ok(outcome) => {
                self.outcomes.insert(seen, outcome.clone());
                Ok(outcome)
            }
            Err(said) => Err(self.finding(at, Some(index), aftermath, &state, said)),
        }
    }

    fn finding(
        &self,
        at: usize,
        choice: Option<usize>,
        aftermath: &Aftermath,
        state: &State,
        said: String,
    ) -> Box<Finding> {
        Box::new(Finding {
            scenario: self.life.scenario.name,
            seed: self.life.variant,
            trail: self.trail.with(at, choice),
            change: self.life.fs.describe(at),
            aftermath: aftermath.to_string(),
            files: list(state),
            said,
            history: (!self.life.is_repeatable).then(|| history(self.life)),
        })
    }

    /// Lets lives go on from this moment: from what a power loss left, and from what a dead process
    /// did.
    fn recover(
        &mut self,
        at: usize,
        list: &[Aftermath],
        levels: &[Level],
    ) -> Result<(), Box<Finding>> {
        let mut random = fastrand::Rng::with_seed(self.life.seed ^ at as u64);
        for choice in [Some(random.usize(..list.len())), None] {
            let (life, trail) = self.next_life(at, choice, list)?;
            Walk::new(self.explorer, &life, trail).go(levels)?;
        }
        Ok(())
    }

    /// The life that goes on from a state.
    fn next_life(
        &mut self,
        at: usize,
        choice: Option<usize>,
        list: &[Aftermath],
    ) -> Result<(Life, Trail), Box<Finding>> {
        count(&self.explorer.recoveries);
        let index = choice.unwrap_or(0);
        let aftermath = &list[index];
        let outcome = self.visit(at, index, aftermath)?;
        let state = self.disk.after(aftermath);
        let disk = if choice.is_none() { self.disk.clone() } else { Disk::holding(&state) };
        let promises = match &outcome.found {
            Some(found) => {
                self.life.promises.continued(found, outcome.option, at, choice.is_none())
            }
            None => Promises::new(),
        };
        let seed = self.life.seed.wrapping_add(seed_of(&Mark { at, choice }));
        let mut life =
            Life::on(self.life.scenario, self.life.variant, seed, CrashFs::on(disk), promises);
        life.is_repeatable = self.life.is_repeatable;
        life.is_whole = choice.is_none() && self.life.is_whole;
        let lived = catch(|| {
            life.open();
            life.go_on();
        });
        match lived {
            Ok(()) => Ok((life, self.trail.with(at, choice))),
            Err(said) => {
                Err(self.finding(at, choice, aftermath, &state, format!("going on: {said}")))
            }
        }
    }

    /// Goes to one state.
    fn follow(mut self, marks: &[Mark]) -> Result<(), Box<Finding>> {
        let Some((mark, rest)) = marks.split_first() else { return Ok(()) };
        assert!(mark.at <= self.changes.len(), "there are only {} changes", self.changes.len());
        (0..=mark.at).for_each(|at| self.advance(at));
        let list = self.aftermaths(mark.at);
        let index = mark.choice.unwrap_or(0);
        assert!(index < list.len(), "only {} states are looked at here", list.len());
        if rest.is_empty() && mark.choice.is_some() {
            return self.visit(mark.at, index, &list[index]).map(drop);
        }
        let (life, trail) = self.next_life(mark.at, mark.choice, &list)?;
        Walk::new(self.explorer, &life, trail).follow(rest)
    }
}

/// All changes of the disk, and all batches in the order of the log.
fn history(life: &Life) -> String {
    let change = |at| format!("change {at}: {}\n", life.fs.describe(at));
    let changes: String = (1..=life.fs.changes()).map(change).collect();
    let batch = |batch: &Batch| {
        let Batch { number, is_logged, span, durable, .. } = batch;
        format!("batch {number}, logged: {is_logged}, {span:?}, durable: {durable}\n")
    };
    changes + &life.promises.batches.iter().map(batch).collect::<String>()
}

/// What a mark adds to the seed.
fn seed_of(mark: &Mark) -> u64 {
    mark.at as u64 * 1_000_003 + mark.choice.map_or(1, |choice| choice as u64 + 2)
}

/// The first two, which are all kept and all lost, and of the others so many.
fn sample(count: usize, most: usize, seed: u64) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut chosen: Vec<usize> = random.choose_multiple(2..count, most.saturating_sub(2));
    chosen.extend([0, 1]);
    chosen.sort_unstable();
    chosen
}
