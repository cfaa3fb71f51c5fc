//! What may be found after a crash.
//!
//! **The promise.** There is a point in history such that every family holds what was written up to
//! it: at or after every write that was acknowledged as durable, at or before the last that was
//! begun; whole batches. Families exist if their creation was acknowledged, and no longer if their
//! drop was.
//!
//! **Without the WAL.** A write that skipped the WAL is there if the family was flushed since, else
//! not. So for each family there is a second point, the last flush that counts: of the writes from
//! there up to the point in history, only the logged ones are there. With `atomic_flush` this
//! second point is one for all families, at or after the last flush of any.
//!
//! **Prepared.** A transaction is listed as prepared if its prepare lies before the point in
//! history, and its decision does not.
//!
//! **Algorithm.** For each family, the contents are worked out for every point in history (and
//! every flush); the points at which they equal what was found are noted; one point must fit all
//! families. With `atomic_flush`, one flush must, too.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::model::{Edit, Family, Model};

/// Transactions that are prepared and not decided, by name, with what they will write.
pub type Undecided = BTreeMap<Vec<u8>, Vec<(String, Edit)>>;

/// What happened since the disk was last known, and when: moments count changes of the disk.
pub struct Journal {
    base: Model,
    /// What was prepared then.
    prepared: Undecided,
    events: Vec<Event>,
    /// From this moment on, so many events were durable.
    durable: Vec<(usize, usize)>,
    /// From this moment on, so many events had reached the file system.
    written: Vec<(usize, usize)>,
    /// From this moment on, all writes to this family among the first so many events were in
    /// tables.
    flushed: Vec<(usize, String, usize)>,
    /// Whether every flush was of all families.
    flushes_together: bool,
}

/// What a family holds if it was flushed last at one of these points: what was found, at these
/// points in history.
struct Fit {
    flushes: Range<usize>,
    points: BTreeSet<usize>,
}

struct Event {
    /// The moments before and after.
    begun: usize,
    done: usize,
    what: What,
}

enum What {
    Write {
        edits: Vec<(String, Edit)>,
        logged: bool,
    },
    /// All of them, or none.
    Create(BTreeMap<String, Family>),
    Drop(String),
    Prepare {
        name: Vec<u8>,
        edits: Vec<(String, Edit)>,
    },
    /// Its edits, if it was committed.
    Decide {
        name: Vec<u8>,
        edits: Vec<(String, Edit)>,
    },
}

/// One crash, as it limits what may be found.
#[derive(Debug, Clone, Copy)]
pub struct Crash {
    /// The moment.
    pub at: usize,
    /// Whether all that had reached the file system by then is there.
    pub is_kept: bool,
}

impl Journal {
    /// Nothing has happened since the database held this. `flushes_together`: with `atomic_flush`.
    pub fn new(base: Model, flushes_together: bool) -> Self {
        let (events, durable, written, flushed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let prepared = Undecided::new();
        Self { base, prepared, events, durable, written, flushed, flushes_together }
    }

    /// The same with transactions that were prepared before.
    #[must_use]
    pub fn with_prepared(self, prepared: Undecided) -> Self {
        Self { prepared, ..self }
    }

    /// What is prepared and not decided.
    pub fn undecided(&self) -> Undecided {
        self.undecided_after(self.events.len())
    }

    /// What was ever prepared under these names.
    pub fn prepared_as(&self, names: &BTreeSet<Vec<u8>>) -> Undecided {
        let later = self.events.iter().filter_map(|event| match &event.what {
            What::Prepare { name, edits } => Some((name, edits)),
            _ => None,
        });
        let all = self.prepared.iter().chain(later);
        let named = all.filter(|(name, _)| names.contains(*name));
        named.map(|(name, edits)| (name.clone(), edits.clone())).collect()
    }

    fn undecided_after(&self, count: usize) -> Undecided {
        let mut undecided = self.prepared.clone();
        for event in &self.events[..count] {
            match &event.what {
                What::Prepare { name, edits } => {
                    undecided.insert(name.clone(), edits.clone());
                }
                What::Decide { name, .. } => drop(undecided.remove(name)),
                What::Write { .. } | What::Create(_) | What::Drop(_) => {}
            }
        }
        undecided
    }

    /// From now on `atomic_flush` is as it says; what was flushed one by one before stays so.
    pub fn goes_on(&mut self, flushes_together: bool) {
        self.flushes_together &= flushes_together;
    }

    /// A batch was written.
    pub fn wrote(&mut self, begun: usize, done: usize, edits: Vec<(String, Edit)>, logged: bool) {
        self.events.push(Event { begun, done, what: What::Write { edits, logged } });
    }

    /// Families were created together, which are empty yet.
    pub fn created(&mut self, begun: usize, done: usize, families: BTreeMap<String, Family>) {
        self.events.push(Event { begun, done, what: What::Create(families) });
    }

    /// A family was dropped.
    pub fn dropped(&mut self, begun: usize, done: usize, name: &str) {
        self.events.push(Event { begun, done, what: What::Drop(name.to_string()) });
    }

    /// A transaction was prepared.
    pub fn prepared(&mut self, begun: usize, done: usize, name: &[u8], edits: &[(String, Edit)]) {
        let what = What::Prepare { name: name.to_vec(), edits: edits.to_vec() };
        self.events.push(Event { begun, done, what });
    }

    /// A transaction was committed with these edits, or rolled back with none.
    pub fn decided(&mut self, begun: usize, done: usize, name: &[u8], edits: &[(String, Edit)]) {
        let what = What::Decide { name: name.to_vec(), edits: edits.to_vec() };
        self.events.push(Event { begun, done, what });
    }

    /// Everything logged is durable.
    pub fn synced(&mut self, moment: usize) {
        self.durable.push((moment, self.events.len()));
    }

    /// Everything logged has reached the file system.
    pub fn written(&mut self, moment: usize) {
        self.written.push((moment, self.events.len()));
    }

    /// Everything that was written to the family is durable, logged or not.
    pub fn flushed(&mut self, moment: usize, name: &str) {
        self.flushed.push((moment, name.to_string(), self.events.len()));
    }

    /// Whether something was written without the WAL.
    pub fn has_unlogged(&self) -> bool {
        self.events.iter().any(|event| matches!(event.what, What::Write { logged: false, .. }))
    }

    /// Whether `found` may be found after a crash, and `listed` as prepared.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(
        &self,
        crash: Crash,
        found: &Model,
        listed: &BTreeSet<Vec<u8>>,
    ) -> Result<(), String> {
        // What changed nothing on the disk began and ended at one moment.
        let has_begun = |event: &&Event| event.begun < crash.at || event.done <= crash.at;
        let begun = self.events.iter().take_while(has_begun).count();
        let done = self.events.iter().take_while(|event| event.done <= crash.at).count().min(begun);
        let names: Vec<_> = found.families.keys().cloned().collect();
        // Whatever was under way may have happened or not.
        let lived = [begun, done].into_iter().find(|count| self.names_after(*count) == names);
        let Some(lived) = lived else {
            return Err(format!("found families {names:?}, expected {:?}", self.names_after(done)));
        };
        let written = self.written.iter().filter(|_| crash.is_kept);
        let kept = self.durable.iter().chain(written).filter(|(moment, _)| *moment <= crash.at);
        let least = kept.map(|(_, count)| *count).max().unwrap_or(0);
        let mut common: BTreeSet<usize> = (least..=begun).collect();
        let mut by_family = Vec::new();
        let mut fits = Vec::new();
        for (name, family) in &found.families {
            let of_family = self.fits_of(crash, name, family, lived, least..begun + 1);
            let points: BTreeSet<_> =
                of_family.iter().flat_map(|fit| &fit.points).copied().collect();
            common.retain(|point| points.contains(point));
            by_family.push((name, points));
            fits.push(of_family);
        }
        let points = common.clone();
        common.retain(|point| self.undecided_after(*point).keys().eq(listed));
        if common.is_empty() && !points.is_empty() {
            let names: Vec<_> = listed.iter().map(|name| name.escape_ascii().to_string()).collect();
            return Err(format!(
                "{names:?} are listed as prepared, and are so at no point of {points:?}; at change {}",
                crash.at
            ));
        }
        if !common.is_empty()
            && (!self.flushes_together || self.is_one_flush(crash, &fits, &common))
        {
            return Ok(());
        }
        if !common.is_empty() {
            return Err(format!(
                "what was not logged is there up to another flush in one family than in another; at change {}",
                crash.at
            ));
        }
        let listed: Vec<_> =
            by_family.iter().map(|(name, points)| format!("{name} as after {points:?}")).collect();
        let lost = by_family.iter().find(|(_, points)| points.is_empty()).map(|(name, _)| *name);
        let detail = lost.map_or_else(String::new, |name| self.difference(name, begun, found));
        Err(format!(
            "no point in history from {least} to {begun}: {}{detail}; at change {}, {done} were acknowledged",
            listed.join(", "),
            crash.at
        ))
    }

    /// Whether one flush, with one of these points, fits all families.
    fn is_one_flush(&self, crash: Crash, fits: &[Vec<Fit>], points: &BTreeSet<usize>) -> bool {
        let acknowledged = self.flushed.iter().filter(|(moment, ..)| *moment <= crash.at);
        let last = acknowledged.map(|(_, _, count)| *count).max().unwrap_or(0);
        let begins =
            fits.iter().flatten().map(|fit| fit.flushes.start).filter(|begin| *begin > last);
        let mut flushes = std::iter::once(last).chain(begins);
        flushes.any(|flush| {
            let at_flush = |of_family: &Vec<Fit>, point: &usize| {
                let fit = of_family.iter().find(|fit| fit.flushes.contains(&flush));
                fit.is_some_and(|fit| fit.points.contains(point))
            };
            points
                .range(flush..)
                .any(|point| fits.iter().all(|of_family| at_flush(of_family, point)))
        })
    }

    fn names_after(&self, count: usize) -> Vec<String> {
        let mut names: BTreeSet<&String> = self.base.families.keys().collect();
        for event in &self.events[..count] {
            match &event.what {
                What::Create(families) => names.extend(families.keys()),
                What::Drop(name) => drop(names.remove(name)),
                What::Write { .. } | What::Prepare { .. } | What::Decide { .. } => {}
            }
        }
        names.into_iter().cloned().collect()
    }

    /// A family's life: the event that created it, if one did, and its contents then.
    fn origin(&self, name: &str, lived: usize) -> (usize, Family) {
        let created = self.events[..lived].iter().enumerate().rev().find_map(|(index, event)| {
            match &event.what {
                What::Create(families) => families.get(name).map(|empty| (index + 1, empty)),
                _ => None,
            }
        });
        match created {
            Some((index, empty)) => (index, empty.clone()),
            None => (0, self.base.families.get(name).cloned().unwrap_or_default()),
        }
    }

    fn apply(family: &mut Family, name: &str, event: &Event, only_logged: bool) {
        let edits = match &event.what {
            What::Write { edits, logged } if *logged || !only_logged => edits,
            What::Decide { edits, .. } => edits,
            _ => return,
        };
        edits.iter().filter(|(of, _)| of == name).for_each(|(_, edit)| family.apply(edit));
    }

    fn touches(&self, index: usize, name: &str, only_unlogged: bool) -> bool {
        match &self.events[index].what {
            What::Write { edits, logged } => {
                !(only_unlogged && *logged) && edits.iter().any(|(of, _)| of == name)
            }
            What::Decide { edits, .. } => !only_unlogged && edits.iter().any(|(of, _)| of == name),
            _ => false,
        }
    }

    /// The points in history, of those asked about, at which the family may have held what was
    /// found, for each flush.
    fn fits_of(
        &self,
        crash: Crash,
        name: &str,
        found: &Family,
        lived: usize,
        points: Range<usize>,
    ) -> Vec<Fit> {
        let (origin, mut first) = self.origin(name, lived);
        first.losses = found.losses;
        let flushes =
            self.flushed.iter().filter(|(moment, of, _)| *moment <= crash.at && of == name);
        let flushed = flushes.map(|(_, _, count)| *count).max().unwrap_or(0).max(origin);
        // After the last write that the flush covers.
        let flushed = (origin..flushed).rev().find(|index| self.touches(*index, name, false));
        let flushed = flushed.map_or(origin, |last| last + 1);
        let later = (flushed + 1..points.end).filter(|point| self.touches(*point - 1, name, true));
        let mut fits: Vec<Fit> = Vec::new();
        let mut in_tables = first;
        let mut applied = origin;
        for flush in std::iter::once(flushed).chain(later) {
            while applied < flush {
                Self::apply(&mut in_tables, name, &self.events[applied], false);
                applied += 1;
            }
            let mut family = in_tables.clone();
            let mut fitting = BTreeSet::new();
            for point in flush.min(points.start)..points.end {
                if point > flush {
                    Self::apply(&mut family, name, &self.events[point - 1], true);
                }
                // Before its creation, a family is empty at every point.
                if point >= points.start
                    && (point >= flush || flush == origin)
                    && family.may_be(found)
                {
                    fitting.insert(point);
                }
            }
            let begin = if let Some(before) = fits.last_mut() {
                before.flushes.end = flush;
                flush
            } else {
                0
            };
            fits.push(Fit { flushes: begin..usize::MAX, points: fitting });
        }
        fits
    }

    fn difference(&self, name: &str, count: usize, found: &Model) -> String {
        let (origin, mut expected) = self.origin(name, count);
        for event in &self.events[origin..count] {
            Self::apply(&mut expected, name, event, false);
        }
        let found = &found.families[name];
        expected.losses = found.losses;
        let differs =
            |key: &Vec<u8>| !expected.accepts(key, found.entries.get(key).map(Vec::as_slice));
        let lost = expected.entries.iter().find(|(key, _)| differs(key));
        let back = found.entries.keys().find(|key| !expected.entries.contains_key(*key));
        let show = |key: &Vec<u8>| key.escape_ascii().to_string();
        match (lost, back) {
            (Some((key, _)), _) => {
                format!("; of {name}, {} is the first to differ from the end", show(key))
            }
            (None, Some(key)) => format!("; of {name}, {} is too much", show(key)),
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
