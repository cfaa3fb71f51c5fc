//! Operations that read and compare.

use std::ops::Range;

use flagstone::db::Iter;
use flagstone::options::ReadOptions;

use crate::fault::{Fault, read};
use crate::space::{Class, FAMILIES, Space};
use crate::value::{Place, State};
use crate::verify::{check_files, check_joint, check_value, name};
use crate::worker::{Outcome, Worker};

/// Options of an iterator over a stretch of keys and no others.
pub fn own_range_options(space: &Space, stretch: &Range<usize>) -> ReadOptions {
    ReadOptions {
        total_order_seek: true,
        iterate_lower_bound: Some(space.key(stretch.start)),
        iterate_upper_bound: Some(space.key(stretch.end)),
        ..ReadOptions::default()
    }
}

/// Moves an iterator over a stretch to and fro, and compares at every step. `states` are what the
/// stretch holds.
pub fn check_steps(
    space: &Space,
    family: usize,
    stretch: &Range<usize>,
    states: &[State],
    iter: &mut Iter,
    random: &mut fastrand::Rng,
    steps: usize,
) -> Result<(), Fault> {
    let present: Vec<usize> =
        stretch.clone().filter(|index| states[index - stretch.start].is_present()).collect();
    // Where the iterator must stand: an index into `present`; `None` is beyond either end.
    let mut at: Option<usize> = None;
    for step in 0..steps {
        let how;
        match (at, random.u8(..10)) {
            (Some(before), 0..=4) => {
                iter.next();
                at = Some(before + 1).filter(|next| *next < present.len());
                how = "next";
            }
            (Some(before), 5..=7) => {
                iter.prev();
                at = before.checked_sub(1);
                how = "prev";
            }
            (_, choice) => {
                let target = random.usize(stretch.clone());
                let key = space.key(target);
                let above = present.partition_point(|index| *index < target);
                match choice % 4 {
                    0 => {
                        iter.seek_to_first();
                        at = Some(0);
                        how = "seek_to_first";
                    }
                    1 => {
                        iter.seek_to_last();
                        at = present.len().checked_sub(1);
                        how = "seek_to_last";
                    }
                    2 => {
                        iter.seek(&key);
                        at = Some(above);
                        how = "seek";
                    }
                    _ => {
                        iter.seek_for_prev(&key);
                        let below = present.partition_point(|index| *index <= target);
                        at = below.checked_sub(1);
                        how = "seek_for_prev";
                    }
                }
                at = at.filter(|next| *next < present.len());
            }
        }
        check_position(space, family, at.map(|at| present[at]), stretch, states, iter).map_err(
            |fault| Fault { place: format!("step {step}, {how}: {}", fault.place), ..fault },
        )?;
    }
    Ok(())
}

fn check_position(
    space: &Space,
    family: usize,
    expected: Option<usize>,
    stretch: &Range<usize>,
    states: &[State],
    iter: &mut Iter,
) -> Result<(), Fault> {
    let range = format!("an iterator over family {}, keys {stretch:?}", FAMILIES[family]);
    read(&range, iter.status())?;
    let found = iter.valid().then(|| iter.key().to_vec());
    let index = found.as_deref().and_then(|key| space.index(key));
    if index != expected || found.is_some() && index.is_none() {
        let shown = |index: Option<usize>| {
            index.map_or("the end".to_string(), |index| format!("key {index}"))
        };
        let found =
            found.map_or("the end".to_string(), |key| format!("key {}", key.escape_ascii()));
        return Err(Fault::new(range, shown(expected), found));
    }
    let Some(index) = index else { return Ok(()) };
    let place = Place { family, index };
    let state =
        check_value(space, place, "an iterator's value", Some(read(&range, iter.value())?))?;
    let wanted = states[index - stretch.start];
    if state != wanted {
        let place = format!("an iterator's value of {}", name(space, place));
        return Err(Fault::new(place, wanted.to_string(), state.to_string()));
    }
    Ok(())
}

impl Worker<'_> {
    /// What some of the thread's keys hold.
    pub fn last_states(&self, family: usize, stretch: &Range<usize>) -> Vec<State> {
        stretch.clone().map(|index| self.slot(Place { family, index }).last()).collect()
    }

    fn check_own(&self, place: Place, how: &str, value: Option<&[u8]>) -> Result<(), Fault> {
        let found = check_value(self.space(), place, how, value)?;
        let expected = self.slot(place).last();
        self.life.counts.add("values checked", 1);
        self.life.counts.add("bytes read", value.map_or(0, <[u8]>::len) as u64);
        if found.looks_like(expected) {
            return Ok(());
        }
        let place = format!("{how} of {}", name(self.space(), place));
        Err(Fault::new(place, expected.to_string(), found.to_string()))
    }

    pub fn get(&mut self) -> Outcome {
        let place = Place {
            family: self.any_family(),
            index: self.random.usize(self.space().of_thread(self.thread)),
        };
        let key = self.space().key(place.index);
        let value = self.life.db.get_cf(&self.life.families[place.family], key);
        let value = read(name(self.space(), place), value)?;
        Ok(self.check_own(place, "get", value.as_deref())?)
    }

    /// Another thread writes the key at the same time: whatever is found must be a value of that
    /// key.
    pub fn get_foreign(&mut self) -> Outcome {
        let place =
            Place { family: self.any_family(), index: self.random.usize(..self.space().keys()) };
        let key = self.space().key(place.index);
        let value = self.life.db.get_cf(&self.life.families[place.family], key);
        let value = read(name(self.space(), place), value)?;
        check_value(self.space(), place, "get", value.as_deref())?;
        Ok(())
    }

    /// Under one snapshot, a key that is only written by batches over all families is the same in
    /// all.
    pub fn get_joint(&mut self) -> Outcome {
        let options =
            ReadOptions { snapshot: Some(self.life.db.snapshot()), ..ReadOptions::default() };
        let thread = self.random.usize(..self.space().threads);
        let index = self.random.usize(self.space().of_class(thread, Class::Joint));
        let key = self.space().key(index);
        let mut states = Vec::new();
        for (family, handle) in self.life.families.iter().enumerate() {
            let place = Place { family, index };
            let value =
                read(name(self.space(), place), self.life.db.get_with(&options, handle, &key))?;
            states.push(check_value(
                self.space(),
                place,
                "get under a snapshot",
                value.as_deref(),
            )?);
        }
        Ok(check_joint(self.space(), index, &states)?)
    }

    pub fn multi_get(&mut self) -> Outcome {
        let family = self.any_family();
        let count = self.random.usize(1..30);
        let indexes: Vec<usize> =
            (0..count).map(|_| self.random.usize(self.space().of_thread(self.thread))).collect();
        let keys: Vec<_> = indexes.iter().map(|&index| self.space().key(index)).collect();
        let handle = &self.life.families[family];
        let values = self.life.db.multi_get_with(&ReadOptions::default(), handle, &keys);
        for (index, value) in indexes.into_iter().zip(values) {
            let place = Place { family, index };
            let value = read(name(self.space(), place), value)?;
            self.check_own(place, "multi_get", value.as_deref())?;
        }
        Ok(())
    }

    /// A stretch from one end to the other.
    pub fn scan(&mut self) -> Outcome {
        let family = self.any_family();
        let stretch = self.own_stretch(None, 100);
        let forwards = self.random.bool();
        let options = own_range_options(self.space(), &stretch);
        let mut iter = read("a scan", self.life.db.iter_cf(&self.life.families[family], &options))?;
        let states = self.last_states(family, &stretch);
        if forwards {
            iter.seek_to_first()
        } else {
            iter.seek_to_last()
        }
        let mut expected: Vec<usize> =
            stretch.clone().filter(|index| states[index - stretch.start].is_present()).collect();
        if !forwards {
            expected.reverse();
        }
        self.life.counts.add("values checked", expected.len() as u64);
        for index in expected.into_iter().map(Some).chain([None]) {
            check_position(self.space(), family, index, &stretch, &states, &mut iter)?;
            if index.is_some() {
                if forwards { iter.next() } else { iter.prev() }
            }
        }
        Ok(())
    }

    /// All keys from one on that have its prefix, found with the help of prefix filters.
    pub fn prefix_scan(&mut self) -> Outcome {
        let family = self.any_family();
        let Some(extractor) = &self.life.chosen.families[family].1.prefix_extractor else {
            return self.scan();
        };
        let (space, stretch) = (*self.space(), self.space().of_thread(self.thread));
        let start = self.random.usize(stretch.clone());
        let target = space.key(start);
        if extractor.prefix(&target).is_none() {
            return self.scan();
        }
        let options = ReadOptions {
            total_order_seek: false,
            prefix_same_as_start: true,
            ..own_range_options(&space, &stretch)
        };
        let mut iter =
            read("a prefix scan", self.life.db.iter_cf(&self.life.families[family], &options))?;
        let states = self.last_states(family, &stretch);
        let is_expected = |index: &usize| {
            states[index - stretch.start].is_present()
                && extractor.prefix(&space.key(*index)) == extractor.prefix(&target)
        };
        iter.seek(&target);
        for index in (start..stretch.end).filter(is_expected).map(Some).chain([None]) {
            check_position(&space, family, index, &stretch, &states, &mut iter)?;
            if index.is_some() {
                iter.next();
            }
        }
        Ok(())
    }

    /// To and fro, with seeks.
    pub fn walk(&mut self) -> Outcome {
        let family = self.any_family();
        let stretch = self.own_stretch(None, 200);
        let options = own_range_options(self.space(), &stretch);
        let mut iter = read("a walk", self.life.db.iter_cf(&self.life.families[family], &options))?;
        let states = self.last_states(family, &stretch);
        let steps = self.random.usize(5..80);
        Ok(check_steps(
            self.space(),
            family,
            &stretch,
            &states,
            &mut iter,
            &mut self.random,
            steps,
        )?)
    }

    pub fn audit(&mut self) -> Outcome {
        Ok(self.life.bank.audit(self.life.db, &mut self.random, true)?)
    }

    pub fn verify_files(&mut self) -> Outcome {
        Ok(check_files(self.life.db)?)
    }
}
