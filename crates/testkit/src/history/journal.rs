//! What may be found after a crash.
//!
//! **The promise.** There is a point in history such that every family holds what was written up to it: at or after every
//! write that was acknowledged as durable, at or before the last that was begun; whole batches. Families exist if their
//! creation was acknowledged, and no longer if their drop was.
//!
//! **Without the WAL.** A write that skipped the WAL is there if the family was flushed since, else not. So for each family
//! there is a second point, the last flush that counts: of the writes from there up to the point in history, only the
//! logged ones are there. With `atomic_flush` this second point is one for all families, at or after the last flush of any.
//!
//! **Algorithm.** For each family, the contents are worked out for every point in history (and every flush); the points at
//! which they equal what was found are noted; one point must fit all families. With `atomic_flush`, one flush must, too.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::model::{Edit, Family, Model};

/// What happened since the disk was last known, and when: moments count changes of the disk.
pub struct Journal {
    base: Model,
    events: Vec<Event>,
    /// From this moment on, so many events were durable.
    durable: Vec<(usize, usize)>,
    /// From this moment on, so many events had reached the file system.
    written: Vec<(usize, usize)>,
    /// From this moment on, all writes to this family among the first so many events were in tables.
    flushed: Vec<(usize, String, usize)>,
    /// Whether every flush was of all families.
    flushes_together: bool,
}

/// What a family holds if it was flushed last at one of these points: what was found, at these points in history.
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
        Self { base, events, durable, written, flushed, flushes_together }
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

    /// Whether `found` may be found after a crash.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, crash: Crash, found: &Model) -> Result<(), String> {
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
            let points: BTreeSet<_> = of_family.iter().flat_map(|fit| &fit.points).copied().collect();
            common.retain(|point| points.contains(point));
            by_family.push((name, points));
            fits.push(of_family);
        }
        if !common.is_empty() && (!self.flushes_together || self.is_one_flush(crash, &fits, &common)) {
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
        let begins = fits.iter().flatten().map(|fit| fit.flushes.start).filter(|begin| *begin > last);
        let mut flushes = std::iter::once(last).chain(begins);
        flushes.any(|flush| {
            let at_flush = |of_family: &Vec<Fit>, point: &usize| {
                let fit = of_family.iter().find(|fit| fit.flushes.contains(&flush));
                fit.is_some_and(|fit| fit.points.contains(point))
            };
            points.range(flush..).any(|point| fits.iter().all(|of_family| at_flush(of_family, point)))
        })
    }

    fn names_after(&self, count: usize) -> Vec<String> {
        let mut names: BTreeSet<&String> = self.base.families.keys().collect();
        for event in &self.events[..count] {
            match &event.what {
                What::Create(families) => names.extend(families.keys()),
                What::Drop(name) => drop(names.remove(name)),
                What::Write { .. } => {}
            }
        }
        names.into_iter().cloned().collect()
    }

    /// A family's life: the event that created it, if one did, and its contents then.
    fn origin(&self, name: &str, lived: usize) -> (usize, Family) {
        let created =
            self.events[..lived].iter().enumerate().rev().find_map(|(index, event)| match &event.what {
                What::Create(families) => families.get(name).map(|empty| (index + 1, empty)),
                _ => None,
            });
        match created {
            Some((index, empty)) => (index, empty.clone()),
            None => (0, self.base.families.get(name).cloned().unwrap_or_default()),
        }
    }

    fn apply(family: &mut Family, name: &str, event: &Event, only_logged: bool) {
        if let What::Write { edits, logged } = &event.what
            && (*logged || !only_logged)
        {
            edits.iter().filter(|(of, _)| of == name).for_each(|(_, edit)| family.apply(edit));
        }
    }

    fn touches(&self, index: usize, name: &str, only_unlogged: bool) -> bool {
        match &self.events[index].what {
            What::Write { edits, logged } => {
                !(only_unlogged && *logged) && edits.iter().any(|(of, _)| of == name)
            }
            _ => false,
        }
    }

    /// The points in history, of those asked about, at which the family may have held what was found, for each flush.
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
        let flushes = self.flushed.iter().filter(|(moment, of, _)| *moment <= crash.at && of == name);
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
                if point >= points.start && (point >= flush || flush == origin) && family.may_be(found) {
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
        let differs = |key: &Vec<u8>| !expected.accepts(key, found.entries.get(key).map(Vec::as_slice));
        let lost = expected.entries.iter().find(|(key, _)| differs(key));
        let back = found.entries.keys().find(|key| !expected.entries.contains_key(*key));
        let show = |key: &Vec<u8>| key.escape_ascii().to_string();
        match (lost, back) {
            (Some((key, _)), _) => format!("; of {name}, {} is the first to differ from the end", show(key)),
            (None, Some(key)) => format!("; of {name}, {} is too much", show(key)),
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(family: &str, key: &str) -> (String, Edit) {
        (family.to_string(), Edit::Put { key: key.into(), value: b"v".to_vec() })
    }

    /// Families with their keys.
    fn holding(families: &[(&str, &str)]) -> Model {
        let mut model = Model::default();
        for (name, keys) in families {
            let family = model.families.entry((*name).to_string()).or_default();
            family.entries.extend(keys.chars().map(|key| (vec![key as u8], b"v".to_vec())));
        }
        model
    }

    /// Two families; `a` to both at moments 1-2, `b` to one at 3-4, `c` to two at 5-6, synced; `d` to one at 7-8.
    fn journal(logged: bool) -> Journal {
        let mut journal = Journal::new(holding(&[("one", ""), ("two", "")]), false);
        journal.wrote(1, 2, vec![put("one", "a"), put("two", "a")], logged);
        journal.wrote(3, 4, vec![put("one", "b")], logged);
        journal.wrote(5, 6, vec![put("two", "c")], true);
        journal.synced(6);
        journal.wrote(7, 8, vec![put("one", "d")], logged);
        journal.written(8);
        journal
    }

    fn may_be(journal: &Journal, at: usize, one: &str, two: &str) -> bool {
        journal.check(Crash { at, is_kept: false }, &holding(&[("one", one), ("two", two)])).is_ok()
    }

    #[test]
    fn what_is_found_is_a_point_in_history() {
        let mut journal = journal(true);
        assert!(may_be(&journal, 1, "", ""));
        assert!(!may_be(&journal, 1, "a", "a"), "not yet begun");
        assert!(may_be(&journal, 2, "a", "a"), "kept by chance");
        assert!(!may_be(&journal, 2, "a", ""), "half a batch");
        assert!(may_be(&journal, 5, "", ""), "nothing was synced yet");
        assert!(may_be(&journal, 5, "ab", "a"));
        assert!(!may_be(&journal, 5, "b", ""), "a hole");
        assert!(!may_be(&journal, 6, "a", "a"), "the synced write and those before it");
        assert!(may_be(&journal, 6, "ab", "ac"));
        assert!(may_be(&journal, 8, "ab", "ac") && may_be(&journal, 8, "abd", "ac"));
        let killed = Crash { at: 8, is_kept: true };
        let after_kill =
            |journal: &Journal, one| journal.check(killed, &holding(&[("one", one), ("two", "ac")])).is_ok();
        assert!(!after_kill(&journal, "ab") && after_kill(&journal, "abd"));
        journal.wrote(8, 8, vec![put("one", "e")], true);
        assert!(after_kill(&journal, "abd"), "it waited in memory");
        assert!(after_kill(&journal, "abde") && !after_kill(&journal, "ab"));
    }

    #[test]
    fn unlogged_writes_are_there_as_far_as_their_family_was_flushed() {
        let mut journal = journal(false);
        assert!(may_be(&journal, 8, "", "c"), "none was flushed");
        assert!(may_be(&journal, 8, "a", "c"), "one was, at once");
        assert!(may_be(&journal, 8, "abd", "ac"), "both were, in the end");
        assert!(!may_be(&journal, 8, "b", "c"), "a hole within a family");
        assert!(!may_be(&journal, 8, "ab", "a"), "the logged one was synced");
        journal.flushed(8, "one");
        assert!(!may_be(&journal, 9, "ab", "ac"), "the flush was acknowledged");
        assert!(may_be(&journal, 9, "abd", "c"));
    }

    /// It took what one family had of a batch without the other's part of it.
    #[test]
    fn with_atomic_flush_all_families_were_flushed_at_once() {
        let mut journal = journal(false);
        journal.flushes_together = true;
        assert!(
            may_be(&journal, 8, "", "c") && may_be(&journal, 8, "a", "ac") && may_be(&journal, 8, "ab", "ac")
        );
        assert!(!may_be(&journal, 8, "a", "c"), "half of an unlogged batch");
        assert!(!may_be(&journal, 8, "", "ac"), "the other half");
        journal.flushed(8, "two");
        assert!(!may_be(&journal, 9, "ab", "ac"), "who flushed one flushed all");
        assert!(may_be(&journal, 9, "abd", "ac"));
        journal.goes_on(false);
        assert!(may_be(&journal, 9, "ab", "ac"));
    }

    #[test]
    fn families_come_and_go_when_that_is_acknowledged() {
        let mut journal = Journal::new(holding(&[("one", "")]), false);
        journal.wrote(1, 2, vec![put("one", "a")], true);
        journal.created(3, 5, BTreeMap::from([("new".to_string(), Family::default())]));
        journal.wrote(6, 7, vec![put("new", "b")], true);
        journal.dropped(8, 10, "new");
        let check =
            |at, found: &[(&str, &str)]| journal.check(Crash { at, is_kept: false }, &holding(found)).is_ok();
        assert!(check(4, &[("one", "")]) && check(4, &[("one", ""), ("new", "")]));
        assert!(!check(5, &[("one", "a")]) && check(5, &[("one", ""), ("new", "")]));
        assert!(check(7, &[("one", "a"), ("new", "b")]) && !check(7, &[("one", ""), ("new", "b")]));
        assert!(check(9, &[("one", ""), ("new", "")]) && check(9, &[("one", "a")]));
        assert!(!check(10, &[("one", "a"), ("new", "b")]));
    }
}
