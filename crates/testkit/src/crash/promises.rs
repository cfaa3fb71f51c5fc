//! What was promised when, and what must hence be found after a crash.
//!
//! - Logged batches: those found are the first so many of history, whole, over all families. All
//!   that were synced before the crash are among them, and none that was not yet begun.
//! - Batches that skip the WAL are found from a flush of their family on; those found of a family
//!   are the first so many, and history up to them is there. With `atomic_flush` they are found
//!   from a flush of any family on, and up to one of them in all families.
//! - Families exist from the acknowledged creation to the drop; in between the beginning and the
//!   end of either call they may. Their number tells two of one name apart.
//! - OPTIONS say what was in force at the last acknowledged change or since.
//! - A checkpoint is there and complete from its acknowledgement on; before, it is complete or no
//!   database at all.

use std::collections::BTreeMap;

use super::followed::Followed;
use crate::compare::Entries;
use crate::model::{Edit, Family};

/// A count of changes of the disk.
pub(super) type Moment = usize;

/// Later than all.
pub(super) const NEVER: Moment = Moment::MAX;

/// In every family that a logged batch touches, and in every one that an unlogged batch touches:
/// its number.
pub(super) const LOGGED: &[u8] = b"!logged";
pub(super) const UNLOGGED: &[u8] = b"!unlogged";

/// From the first moment at which a call's effect may be found to that at which it was
/// acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub earliest: Moment,
    pub acked: Moment,
}

impl Span {
    pub(super) const PAST: Self = Self { earliest: 0, acked: 0 };
    /// Perhaps from the beginning.
    const OPEN: Self = Self { earliest: 0, acked: NEVER };
    pub(super) const NEVER: Self = Self { earliest: NEVER, acked: NEVER };

    /// Whether a crash at this moment may find its effect.
    fn may_be(self, at: Moment) -> bool {
        self.earliest <= at
    }

    /// Whether a crash at this moment must find its effect.
    fn must_be(self, at: Moment) -> bool {
        self.acked <= at
    }
}

/// A batch; its number is its place in history, from 1.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub number: u64,
    pub is_logged: bool,
    /// With the index of the family in [`Promises::families`].
    pub edits: Vec<(usize, Edit)>,
    pub span: Span,
    /// From when on it survives a power loss.
    pub durable: Moment,
}

impl Batch {
    pub fn touches(&self, family: usize) -> bool {
        self.edits.iter().any(|(touched, _)| *touched == family)
    }
}

#[derive(Debug, Clone)]
pub(super) struct FamilyLife {
    pub name: String,
    /// Its number in the database.
    pub id: u32,
    pub created: Span,
    pub dropped: Span,
}

/// A checkpoint, and what it holds.
#[derive(Debug, Clone)]
pub(super) struct CheckpointLife {
    pub path: String,
    pub span: Span,
    pub found: Found,
}

/// What is there: the number of the last logged batch, that of the last unlogged one by family, and
/// the families by their indexes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub logged: u64,
    pub unlogged: BTreeMap<usize, u64>,
    pub families: Vec<usize>,
}

impl Found {
    fn unlogged_in(&self, family: usize) -> u64 {
        self.unlogged.get(&family).copied().unwrap_or(0)
    }
}

/// What a directory turned out to hold.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// `None` if it is no database.
    pub found: Option<Found>,
    /// The option that is changed, as the newest OPTIONS file says it; `None` if there is none.
    pub option: Option<u64>,
    /// By checkpoint, in the order of [`Promises::checkpoints`].
    pub checkpoints: Vec<Option<Found>>,
}

/// All that was promised in one life.
#[derive(Debug, Clone)]
pub struct Promises {
    pub(super) batches: Vec<Batch>,
    pub(super) families: Vec<FamilyLife>,
    /// The option's value, in the order of the calls.
    pub(super) options: Vec<(u64, Span)>,
    pub(super) checkpoints: Vec<CheckpointLife>,
    /// What was handed out to who reads along.
    pub(super) followed: Vec<Followed>,
    /// When there was a database.
    pub(super) exists: Span,
    pub(super) next_number: u64,
    /// Whether all families are flushed together.
    pub(super) is_atomic: bool,
}

impl Promises {
    /// Nothing, and no database.
    pub(super) fn new() -> Self {
        Self {
            is_atomic: false,
            batches: Vec::new(),
            families: Vec::new(),
            options: Vec::new(),
            checkpoints: Vec::new(),
            followed: Vec::new(),
            exists: Span::NEVER,
            next_number: 1,
        }
    }

    /// What holds for a process that finds `found` after this life ended at the moment `at`: by a
    /// power loss, or (if `killed`) by its own death, after which what was not durable still is
    /// not.
    pub(super) fn continued(
        &self,
        found: &Found,
        option: Option<u64>,
        at: Moment,
        killed: bool,
    ) -> Self {
        let mut next = self.clone();
        next.keep_found(found);
        for batch in &mut next.batches {
            let durable = if killed && batch.durable > at { NEVER } else { 0 };
            (batch.span, batch.durable) = (Span::PAST, durable);
        }
        for (index, family) in next.families.iter_mut().enumerate() {
            // Written by the dead process: until the next one has opened the database, it may still
            // be lost.
            let settled =
                |span: Span| if killed && !span.must_be(at) { Span::OPEN } else { Span::PAST };
            (family.created, family.dropped) = if found.families.contains(&index) {
                (settled(family.created), Span::NEVER)
            } else if killed && family.dropped.may_be(at) {
                (settled(family.created), settled(family.dropped))
            } else {
                (Span::NEVER, Span::NEVER)
            };
        }
        next.options = if !killed {
            option.map(|value| (value, Span::PAST)).into_iter().collect()
        } else {
            let past = |(value, span): &(u64, Span)| {
                let acked = if span.acked <= at { 0 } else { NEVER };
                span.may_be(at).then_some((*value, Span { earliest: 0, acked }))
            };
            self.options.iter().filter_map(past).collect()
        };
        // The life that goes on makes none, and what is in them was checked.
        next.checkpoints.clear();
        next.followed.retain(|followed| followed.at <= at);
        next.followed.iter_mut().for_each(|followed| followed.at = 0);
        next.exists = if killed && !self.exists.must_be(at) { Span::OPEN } else { Span::PAST };
        next
    }

    /// Forgets what was found to be lost. Of families that are gone nothing can be found.
    pub(super) fn keep_found(&mut self, found: &Found) {
        for batch in &mut self.batches {
            let (number, is_logged) = (batch.number, batch.is_logged);
            batch.edits.retain(|(family, _)| {
                let last = if is_logged { found.logged } else { found.unlogged_in(*family) };
                number <= last || !found.families.contains(family)
            });
        }
        self.batches.retain(|batch| !batch.edits.is_empty());
    }

    /// What a family holds if these are the last batches of either kind.
    pub(super) fn contents(&self, family: usize, logged: u64, unlogged: u64) -> Family {
        let mut contents = Family::default();
        for batch in &self.batches {
            if batch.number <= if batch.is_logged { logged } else { unlogged } {
                let own = batch.edits.iter().filter(|(touched, _)| *touched == family);
                own.for_each(|(_, edit)| contents.apply(edit));
            }
        }
        contents
    }

    /// Says what was found, after comparing every entry with history.
    ///
    /// # Panics
    /// If what is there is no moment of history.
    pub(super) fn recognise(&self, contents: &[(String, u32, Entries)]) -> Found {
        let mut found = Found::default();
        for (name, id, entries) in contents {
            let known =
                self.families.iter().position(|family| family.name == *name && family.id == *id);
            let index =
                known.unwrap_or_else(|| panic!("family {name} with number {id} never existed"));
            found.families.push(index);
            found.logged = found.logged.max(number_at(entries, LOGGED));
            match number_at(entries, UNLOGGED) {
                0 => {}
                number => drop(found.unlogged.insert(index, number)),
            }
        }
        for (index, (name, _, entries)) in found.families.iter().zip(contents) {
            let expected = self.contents(*index, found.logged, found.unlogged_in(*index));
            crate::compare::check_entries(name, entries, &expected);
        }
        found.families.sort_unstable();
        found
    }

    /// Whether a crash at the moment `at` may leave this; `kept` if nothing was lost but the
    /// process.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn judge(&self, outcome: &Outcome, at: Moment, kept: bool) -> Result<(), String> {
        self.judge_option(outcome.option, at)?;
        for (checkpoint, found) in self.checkpoints.iter().zip(&outcome.checkpoints) {
            match found {
                Some(found) if *found == checkpoint.found => {}
                Some(found) => {
                    return Err(format!(
                        "{} holds {found:?}, not {:?}",
                        checkpoint.path, checkpoint.found
                    ));
                }
                None if checkpoint.span.must_be(at) => {
                    return Err(format!("{} is lost", checkpoint.path));
                }
                None => {}
            }
        }
        match &outcome.found {
            Some(found) => self.judge_found(found, at, kept),
            None if self.exists.must_be(at) => Err("the database is lost".to_string()),
            None => Ok(()),
        }
    }

    fn judge_option(&self, found: Option<u64>, at: Moment) -> Result<(), String> {
        let last = self.options.iter().rposition(|(_, span)| span.must_be(at));
        let allowed = self.options[last.unwrap_or(0)..].iter().filter(|(_, span)| span.may_be(at));
        let allowed: Vec<u64> = allowed.map(|(value, _)| *value).collect();
        match found {
            Some(value) if allowed.contains(&value) => Ok(()),
            None if last.is_none() => Ok(()),
            _ => Err(format!("OPTIONS say {found:?}, in force was one of {allowed:?}")),
        }
    }

    fn judge_found(&self, found: &Found, at: Moment, kept: bool) -> Result<(), String> {
        for (index, family) in self.families.iter().enumerate() {
            let (name, exists) = (&family.name, found.families.contains(&index));
            if exists && (!family.created.may_be(at) || family.dropped.must_be(at)) {
                return Err(format!("family {name} (number {}) is back", family.id));
            }
            if !exists && family.created.must_be(at) && !family.dropped.may_be(at) {
                return Err(format!("family {name} (number {}) is lost", family.id));
            }
        }
        let is_seen = |batch: &Batch| found.families.iter().any(|family| batch.touches(*family));
        for batch in self.batches.iter().filter(|batch| is_seen(batch)) {
            self.judge_batch(batch, found, at, kept)?;
        }
        if self.is_atomic { self.judge_together(found) } else { Ok(()) }
    }

    /// Unlogged batches, up to the last one that is anywhere, are in every family that they touch.
    fn judge_together(&self, found: &Found) -> Result<(), String> {
        let last = found.unlogged.values().copied().max().unwrap_or(0);
        for batch in self.batches.iter().filter(|batch| !batch.is_logged && batch.number <= last) {
            let is_missing = |family: &&usize| {
                batch.touches(**family) && found.unlogged_in(**family) < batch.number
            };
            if let Some(family) = found.families.iter().find(is_missing) {
                let (number, name) = (batch.number, &self.families[*family].name);
                return Err(format!(
                    "batch {last} is there, and not batch {number} in family {name}: {found:?}"
                ));
            }
        }
        Ok(())
    }

    fn judge_batch(
        &self,
        batch: &Batch,
        found: &Found,
        at: Moment,
        kept: bool,
    ) -> Result<(), String> {
        let number = batch.number;
        let is_there = if batch.is_logged {
            number <= found.logged
        } else {
            batch.edits.iter().any(|(family, _)| number <= found.unlogged_in(*family))
        };
        if is_there && !batch.span.may_be(at) {
            return Err(format!("batch {number} is there and was not begun"));
        }
        if is_there {
            return Ok(());
        }
        if batch.durable <= at {
            return Err(format!("batch {number} is lost and was durable; found is {found:?}"));
        }
        if batch.is_logged && kept && batch.span.must_be(at) {
            return Err(format!("batch {number} is lost and was written; found is {found:?}"));
        }
        let later = found.unlogged.values().find(|later| batch.is_logged && **later > number);
        match later {
            Some(later) => {
                Err(format!("batch {number} is lost, the unlogged batch {later} is there"))
            }
            None => Ok(()),
        }
    }
}

fn number_at(entries: &Entries, key: &[u8]) -> u64 {
    let found = entries.binary_search_by(|(other, _)| other.as_slice().cmp(key));
    found.map_or(0, |at| {
        std::str::from_utf8(&entries[at].1).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    })
}
