//! Lives in which several threads write at once.
//!
//! **Schedule.** The threads are actors of a [`Stage`]. A director draws, from the seed, which of
//! them begins a call and which goes on from a sync; then it waits until nobody can go on alone: a
//! writer whose sync another one leads waits for that one. A call begins only when the record of
//! the call before is in the log. So the order of the log is known before, and is the order of the
//! numbers in the batches.
//!
//! A sync makes durable what was there when it began. What others log during a sync is durable
//! after a later one.
//!
//! **What waits for what.** The director knows it from the order of the log alone: a write that
//! asked for a sync waits for one that began behind its record, and any other write for the one of
//! the last record before it that asked for one.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use flagstone::base::SequenceNumber;
use flagstone::db::Ticker;

use super::life::{How, Life};
use super::promises::{Batch, Moment, NEVER, Span};
use super::stage::{At, Call, Stage, Stops};
use crate::compare;
use crate::model::Edit;

/// What several threads do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Together {
    pub threads: usize,
    pub writes: usize,
    /// The family that one of them flushes, with writes before, beside and behind.
    pub flushed: Option<&'static str>,
    /// The threads go on as they come: a flush may begin during a sync. The life is never the same
    /// again.
    pub is_free: bool,
}

/// What a call has returned with.
struct Returned {
    acked: Moment,
    /// Of a write, the first sequence number.
    sequence: SequenceNumber,
}

/// A call that has not returned.
#[derive(Debug, Clone, Copy)]
enum Pending {
    Write {
        number: u64,
        how: How,
        /// The place in the log of the last record that the write waits to have synced.
        wanted: usize,
        /// How much of the log the sync covers that this call leads.
        covers: Option<usize>,
    },
    /// Of a family, in which this was the last batch before.
    Flush { family: usize, last: u64 },
}

impl Pending {
    fn is_write(&self) -> bool {
        matches!(self, Self::Write { .. })
    }
}

struct Actor {
    calls: Sender<Call<Returned>>,
    outcomes: Receiver<Result<Returned, String>>,
    pending: Option<Pending>,
}

/// What may be done next.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Write(usize),
    LetGo(usize),
}

struct Director<'a> {
    life: &'a mut Life,
    stage: &'a Stage,
    actors: Vec<Actor>,
    families: &'static [&'static str],
    is_free: bool,
    /// Writes whose place in the log is certain.
    placed: usize,
    /// The place of the last write that asked for a sync.
    wanted: usize,
    /// How much of the log a sync that has ended covers.
    covered: usize,
    /// Of each logged batch that was acknowledged, its number and sequence number.
    order: Vec<(u64, SequenceNumber)>,
}

impl Life {
    /// Batches by several threads at once, to these families; some are synced, some are not even
    /// logged.
    pub(super) fn side_by_side(&mut self, families: &'static [&'static str], together: Together) {
        let stage = Stage::new(together.threads);
        thread::scope(|scope| {
            let _ending = stage.ending();
            let actor = |place| {
                let (calls, inbox) = mpsc::channel();
                let (outbox, outcomes) = mpsc::channel();
                let stage = stage.clone();
                scope.spawn(move || stage.act(place, inbox, outbox));
                Actor { calls, outcomes, pending: None }
            };
            let actors = (0..together.threads).map(actor).collect();
            self.is_repeatable &= !together.is_free;
            let director = Director {
                life: self,
                stage: &stage,
                actors,
                families,
                is_free: together.is_free,
                placed: 0,
                wanted: 0,
                covered: 0,
                order: Vec::new(),
            };
            if together.is_free { director.watch(together) } else { director.direct(together) }
        });
    }
}

impl Director<'_> {
    fn direct(mut self, Together { mut writes, mut flushed, .. }: Together) {
        let half = writes / 2;
        loop {
            // It begins alone: where writers wait for a sync, it would wait for them.
            let waits_for_flush = flushed.is_some() && writes <= half;
            if waits_for_flush && self.actors.iter().all(|actor| actor.pending.is_none()) {
                self.flush(0, flushed.take().expect("it was looked at"));
                continue;
            }
            let deeds = self.deeds(writes > 0 && !waits_for_flush);
            if deeds.is_empty() {
                break;
            }
            // Mostly a write, so that many are in flight.
            let writes_count = deeds.iter().filter(|deed| matches!(deed, Deed::Write(_))).count();
            let is_write = writes_count > 0 && self.life.random.u8(..3) > 0;
            let count = if is_write { writes_count } else { deeds.len() };
            match deeds[self.life.random.usize(..count)] {
                Deed::Write(place) => {
                    writes -= 1;
                    self.write(place);
                }
                Deed::LetGo(place) => self.let_go(place),
            }
        }
        self.check_order();
    }

    /// Gives each actor its next call when it is at rest.
    fn watch(mut self, Together { mut writes, mut flushed, .. }: Together) {
        let half = writes / 2;
        loop {
            let is_at_rest = |place: &usize| self.stage.at(*place) == At::Rest;
            let resting: Vec<_> = (0..self.actors.len()).filter(is_at_rest).collect();
            for place in &resting {
                if self.actors[*place].pending.is_some() {
                    self.returned(*place);
                }
            }
            if resting.is_empty() {
                self.stage.wait_until(|at| at.contains(&At::Rest));
                continue;
            }
            let place = resting[self.life.random.usize(..resting.len())];
            if let Some(name) = flushed.take_if(|_| writes <= half) {
                self.flush(place, name);
            } else if writes > 0 {
                writes -= 1;
                self.write(place);
            } else if resting.len() == self.actors.len() {
                break;
            } else {
                let count = |at: &[At]| at.iter().filter(|at| **at == At::Rest).count();
                self.stage.wait_until(|at| count(at) > resting.len());
            }
        }
        self.check_order();
    }

    fn check_order(&mut self) {
        self.order.sort_unstable();
        let is_that_of_the_log = self.order.is_sorted_by_key(|(_, sequence)| *sequence);
        assert!(is_that_of_the_log, "numbers and sequence numbers: {:?}", self.order);
    }

    /// What may be done: writes first. Which one of several writers leads their sync differs from
    /// run to run, but it comes last, and so what is drawn means the same in each.
    fn deeds(&self, may_write: bool) -> Vec<Deed> {
        let is_alone = self.actors.iter().filter(|actor| actor.pending.is_some()).count() == 1;
        let deed = |(place, actor): (usize, &Actor)| match actor.pending {
            None => may_write.then_some(Deed::Write(place)),
            // Behind its own sync a flush may sync the log.
            Some(pending) if self.stage.at(place) == At::Stop => {
                (pending.is_write() || is_alone).then_some(Deed::LetGo(place))
            }
            Some(_) => None,
        };
        let mut deeds: Vec<_> = self.actors.iter().enumerate().filter_map(deed).collect();
        deeds.sort_by_key(|deed| matches!(deed, Deed::LetGo(_)));
        deeds
    }

    /// Gives an actor a call.
    fn begin(
        &mut self,
        place: usize,
        stops: Stops,
        pending: Pending,
        work: Box<dyn FnOnce() -> Returned + Send>,
    ) {
        self.stage.let_go(place);
        let stops = if self.is_free { Stops::Nowhere } else { stops };
        let actor = &mut self.actors[place];
        actor.pending = Some(pending);
        actor.calls.send(Call { stops, work }).expect("the actor is there");
    }

    fn write(&mut self, place: usize) {
        let (how, edits) = self.draw();
        let (number, batch) = self.life.numbered(how, &edits);
        let earliest = self.life.earliest();
        let edits = batch.iter().map(|(name, edit)| (self.life.family(name), edit.clone()));
        self.life.promises.batches.push(Batch {
            number,
            is_logged: how != How::Unlogged,
            edits: edits.collect(),
            span: Span { earliest, acked: NEVER },
            durable: NEVER,
        });
        self.placed += 1;
        if how == How::Synced {
            self.wanted = self.placed;
        }
        let (db, fs) = (self.life.db().clone(), self.life.fs.clone());
        let before = db.statistics().get(Ticker::Writes);
        let mut batch = compare::to_batch(&db, &batch);
        let asked = db.clone();
        let work = Box::new(move || {
            asked.write_ref(&how.options(), &mut batch).expect("a write");
            Returned { acked: fs.changes(), sequence: batch.sequence() }
        });
        let pending = Pending::Write { number, how, wanted: self.wanted, covers: None };
        self.begin(place, Stops::Logs, pending, work);
        // Behind the count it still has the lock: whatever begins from now on comes later.
        while db.statistics().get(Ticker::Writes) == before && self.stage.at(place) == At::Call {
            thread::yield_now();
        }
        self.settle();
    }

    fn draw(&mut self) -> (How, Vec<(&'static str, Edit)>) {
        let life = &mut *self.life;
        let how = match life.random.u8(..10) {
            0 => How::Unlogged,
            1..=4 => How::Synced,
            _ => How::Logged,
        };
        let one = self.families[life.random.usize(..self.families.len())];
        let mut edits = Vec::new();
        for _ in 0..life.random.usize(1..4) {
            let name = match how {
                How::Unlogged => one,
                _ => self.families[life.random.usize(..self.families.len())],
            };
            let edit = match life.random.u8(..6) {
                0 => Edit::Delete { key: format!("k{:02}", life.random.u8(..20)).into_bytes() },
                _ => life.put_edit(),
            };
            edits.push((name, edit));
        }
        (how, edits)
    }

    fn flush(&mut self, place: usize, name: &str) {
        let family = self.life.family(name);
        let touching = self.life.promises.batches.iter().filter(|batch| batch.touches(family));
        let last = touching.map(|batch| batch.number).max().unwrap_or(0);
        let (db, fs) = (self.life.db().clone(), self.life.fs.clone());
        let handle = db.column_family(name).expect("it exists");
        let work = Box::new(move || {
            db.flush(&handle, &Default::default()).expect("a flush");
            Returned { acked: fs.changes(), sequence: 0 }
        });
        self.begin(place, Stops::Outputs, Pending::Flush { family, last }, work);
        self.settle();
    }

    fn let_go(&mut self, place: usize) {
        self.stage.let_go(place);
        self.stage.wait_until(|at| at[place] != At::Call);
        if let (At::Rest, Some(Pending::Write { covers: Some(covers), .. })) =
            (self.stage.at(place), self.actors[place].pending)
        {
            self.covered = self.covered.max(covers);
        }
        self.settle();
    }

    /// Waits until no actor goes on alone, and takes down what has returned.
    fn settle(&mut self) {
        if self.is_free {
            return;
        }
        let pending: Vec<_> = self.actors.iter().map(|actor| actor.pending).collect();
        let covered = self.covered;
        self.stage.wait_until(|at| {
            let mut all = at.iter().zip(&pending);
            let leads = |(at, pending): (&At, &Option<Pending>)| {
                *at == At::Stop && pending.is_some_and(|pending| pending.is_write())
            };
            let is_led = at.iter().zip(&pending).any(leads);
            all.all(|(at, pending)| match pending {
                Some(Pending::Write { wanted, .. }) if *at == At::Call => {
                    is_led && *wanted > covered
                }
                _ => *at != At::Call,
            })
        });
        for place in 0..self.actors.len() {
            match (self.stage.at(place), &mut self.actors[place].pending) {
                (At::Rest, Some(_)) => self.returned(place),
                (At::Stop, Some(Pending::Write { covers, .. })) => {
                    covers.get_or_insert(self.placed);
                }
                _ => {}
            }
        }
    }

    /// Notes what is promised from now on.
    fn returned(&mut self, place: usize) {
        let actor = &mut self.actors[place];
        let outcome = actor.outcomes.recv().expect("the actor is there");
        let Returned { acked, sequence } = outcome.unwrap_or_else(|said| panic!("{said}"));
        let is_durable: Box<dyn Fn(&Batch) -> bool> = match actor.pending.take() {
            Some(Pending::Write { number, how, .. }) => {
                if how != How::Unlogged {
                    self.order.push((number, sequence));
                }
                let is_in_memory = self.life.options.manual_wal_flush;
                let own = self.life.promises.batches.iter_mut().find(|own| own.number == number);
                own.expect("it was noted").span.acked = if is_in_memory { NEVER } else { acked };
                Box::new(move |batch| {
                    how == How::Synced && batch.is_logged && batch.number <= number
                })
            }
            Some(Pending::Flush { family, last }) => Box::new(move |batch| {
                batch.number <= last && (batch.is_logged || batch.touches(family))
            }),
            None => unreachable!("only what was begun returns"),
        };
        let chosen = self.life.promises.batches.iter_mut().filter(|batch| is_durable(batch));
        chosen.for_each(|batch| batch.durable = batch.durable.min(acked));
    }
}

#[cfg(test)]
mod tests;
