//! What an application asked of its database, and what it was told.
//!
//! Every batch puts its number under a key of its own into two families that are never dropped.
//! From these marks one can tell of any database which batches it holds, and whether one is there
//! by half; the contents follow.

use std::collections::BTreeMap;
use std::fmt;

use crate::model::{Edit, Family};

/// The families that live as long as the database; every batch leaves its mark in both.
pub const LASTING: [&str; 2] = ["default", "other"];

/// A moment of the disk's history, as [`crate::CrashFs::changes`] counts it.
pub type Moment = usize;

/// What a call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It returned without an error.
    Acknowledged,
    /// An error was returned: it may have happened or not, but not by half.
    Unknown,
    /// It was not even tried, as the database had been poisoned: it has not happened.
    Refused,
}

/// Which batches go without the WAL, and then only to the first of [`LASTING`]: each family is
/// flushed for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unlogged {
    /// None.
    #[default]
    None,
    /// Some that are not synced.
    Some,
    /// All.
    All,
}

/// One batch.
#[derive(Clone)]
pub struct Batch {
    /// Its edits, marks included.
    pub edits: Vec<(String, Edit)>,
    /// Whether it went without the WAL.
    pub unlogged: bool,
    /// What became of it.
    pub fate: Fate,
    /// Of one that was acknowledged, in which process that was: nothing that came after it there is
    /// found without it, even if the end of the process took both.
    pub taken: Option<usize>,
    /// Whether the end of the process leaves it.
    pub logged: bool,
    /// When the call began.
    pub begun: Moment,
    /// From when on a power loss must leave it.
    pub durable: Option<Moment>,
    /// Of one whose fate was unknown: what the next process found, and when.
    pub settled: Option<(Moment, Fate)>,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { edits, unlogged, fate, taken: _, logged, begun, durable, settled } = self;
        write!(
            f,
            "{} edits, unlogged {unlogged}, {fate:?}, logged {logged}, begun {begun}, ",
            edits.len()
        )?;
        write!(f, "durable {durable:?}, settled {settled:?}")
    }
}

impl Batch {
    /// What was known of it when it came to this end.
    fn fate_at(&self, end: End) -> Fate {
        match (self.settled, end) {
            (Some((settled, fate)), End::Power(at)) if settled <= at => fate,
            (Some((_, fate)), End::Process) => fate,
            _ => self.fate,
        }
    }
}

/// A family that is created, and perhaps dropped, on the way. No name is used twice.
#[derive(Debug, Clone)]
pub struct Passing {
    /// When its creation began and ended, and what became of it.
    pub created: (Moment, Moment, Fate),
    /// The same of its end.
    pub dropped: Option<(Moment, Moment, Fate)>,
}

/// All that was asked for, in its order.
#[derive(Debug, Clone, Default)]
pub struct HistoryEpoch {
    /// The batches; the index is the number in their marks.
    pub batches: Vec<Batch>,
    /// The families other than [`LASTING`].
    pub passing: BTreeMap<String, Passing>,
    /// Which batches go without the WAL.
    pub unlogged: Unlogged,
    /// How many processes have ended.
    pub processes: usize,
}

/// How a database came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The process died; the system lived on.
    Process,
    /// The power failed.
    Power(Moment),
}

/// The key of a batch's marks; behind all keys that batches change otherwise.
pub fn mark(number: usize) -> Vec<u8> {
    format!("~{number:05}").into_bytes()
}

/// The number in a mark.
pub fn number_in(key: &[u8]) -> Option<usize> {
    std::str::from_utf8(key.strip_prefix(b"~")?).ok()?.parse().ok()
}

/// The families that get a mark of a batch.
pub fn marked(unlogged: bool) -> &'static [&'static str] {
    if unlogged { &LASTING[..1] } else { &LASTING }
}

impl HistoryEpoch {
    /// Everything acknowledged up to now is durable from this moment on.
    pub fn all_durable(&mut self, now: Moment) {
        self.keep(Some(now), |_| true);
    }

    /// Everything of that which went to the WAL is.
    pub fn all_synced(&mut self, now: Moment) {
        self.keep(Some(now), |batch| !batch.unlogged);
    }

    /// Everything acknowledged up to now that went to the WAL outlives the process.
    pub fn all_logged(&mut self) {
        self.keep(None, |batch| !batch.unlogged);
    }

    /// These outlive the process if they were acknowledged, and are `durable` from some moment on.
    fn keep(&mut self, durable: Option<Moment>, these: impl Fn(&Batch) -> bool) {
        for batch in self.batches.iter_mut().filter(|batch| these(batch)) {
            batch.logged |= batch.fate == Fate::Acknowledged;
            if batch.fate_at(End::Process) == Fate::Acknowledged {
                batch.durable = batch.durable.or(durable);
            }
        }
    }

    /// The process has ended, and with it what was neither logged nor flushed; or it was just being
    /// flushed.
    pub fn end_process(&mut self) {
        self.processes += 1;
        for batch in self.batches.iter_mut().filter(|batch| !batch.logged) {
            if batch.fate == Fate::Acknowledged {
                batch.fate = Fate::Unknown;
            }
        }
    }

    /// Of the batches that were found in one of [`LASTING`], those that are in the others, too.
    pub fn in_all(&self, found: &[bool]) -> Vec<usize> {
        let is_in_all = |number: &usize| {
            found[*number] && self.batches.get(*number).is_none_or(|batch| !batch.unlogged)
        };
        (0..found.len()).filter(is_in_all).collect()
    }

    /// The next process has found these batches of the first so many: what was unknown is known
    /// from now on.
    ///
    /// # Panics
    /// As [`HistoryEpoch::check_marks`].
    pub fn settle(&mut self, found: &[bool], inherited: usize, now: Moment) {
        let later = self.batches.split_off(inherited);
        self.check_marks(found, End::Process);
        for (number, batch) in self.batches.iter_mut().enumerate() {
            if batch.fate_at(End::Process) == Fate::Unknown {
                let is_found = found.get(number).copied().unwrap_or(false);
                batch.settled =
                    Some((now, if is_found { Fate::Acknowledged } else { Fate::Refused }));
            }
        }
        self.batches.extend(later);
    }

    /// What a family holds if the chosen batches took place.
    pub fn family(&self, name: &str, chosen: impl Fn(usize, &Batch) -> bool) -> Family {
        let mut family = Family::default();
        for (_, batch) in
            self.batches.iter().enumerate().filter(|(number, batch)| chosen(*number, batch))
        {
            batch
                .edits
                .iter()
                .filter(|(of, _)| of == name)
                .for_each(|(_, edit)| family.apply(edit));
        }
        family
    }

    /// What readers see of a family while the database is open.
    pub fn visible(&self, name: &str) -> Family {
        self.family(name, |_, batch| batch.fate_at(End::Process) == Fate::Acknowledged)
    }

    /// Compares what was found after an end with what was promised.
    ///
    /// # Panics
    /// When something acknowledged is missing, something refused is there, or a later batch without
    /// an earlier one; an unlogged one may be missing where later ones were logged.
    pub fn check_marks(&self, found: &[bool], end: End) {
        assert!(found.len() <= self.batches.len(), "marks of batches that never were");
        let is_found = |number: usize| found.get(number).copied().unwrap_or(false);
        for (number, batch) in self.batches.iter().enumerate() {
            let fate = batch.fate_at(end);
            let (must, may) = match end {
                End::Process => (fate == Fate::Acknowledged, true),
                End::Power(at) => {
                    (batch.durable.is_some_and(|durable| durable <= at), batch.begun < at)
                }
            };
            let may = may && fate != Fate::Refused;
            let story = || format!("batch {number} of {}, {batch:?}", self.batches.len());
            assert!(is_found(number) || !must, "lost: {}", story());
            assert!(!is_found(number) || may, "there, though it never took place: {}", story());
            let last = match fate {
                Fate::Acknowledged => self.last_behind(batch, found, |_| true),
                Fate::Unknown if batch.taken.is_some() => {
                    self.last_behind(batch, found, |later| later.taken == batch.taken)
                }
                Fate::Unknown | Fate::Refused => None,
            };
            let is_gap = last.is_some_and(|last| number < last);
            assert!(
                is_found(number) || !is_gap,
                "lost, though batch {last:?} is there: {}",
                story()
            );
        }
    }

    /// The last that was found of `these` batches, none of which can be there without an earlier
    /// `batch`.
    fn last_behind(
        &self,
        batch: &Batch,
        found: &[bool],
        these: impl Fn(&Batch) -> bool,
    ) -> Option<usize> {
        let follows = |later: &Batch| later.unlogged || !batch.unlogged;
        self.batches
            .iter()
            .zip(found)
            .rposition(|(later, found)| *found && follows(later) && these(later))
    }

    /// Compares the families that were found.
    ///
    /// # Panics
    /// When one is missing that was created, or there that was dropped, or never existed.
    pub fn check_families(&self, found: &[String], end: End) {
        let now = match end {
            End::Process => Moment::MAX,
            End::Power(at) => at,
        };
        for (name, passing) in &self.passing {
            let is_found = found.contains(name);
            let (begun, ended, fate) = passing.created;
            let created = fate == Fate::Acknowledged && ended <= now;
            let may_be_created = begun < now && fate != Fate::Refused;
            let (dropped, may_be_dropped) = match passing.dropped {
                None => (false, false),
                Some((begun, ended, fate)) => (
                    fate == Fate::Acknowledged && ended <= now,
                    begun < now && fate != Fate::Refused,
                ),
            };
            assert!(is_found || !created || may_be_dropped, "family {name} is lost: {passing:?}");
            assert!(!is_found || may_be_created && !dropped, "family {name} is there: {passing:?}");
        }
        for name in found {
            assert!(
                self.passing.contains_key(name) || LASTING.contains(&name.as_str()),
                "family {name}"
            );
        }
    }
}
