//! Snapshots and iterators that are kept while the world goes on, and must still show what they
//! showed.

use std::ops::Range;

use flagstone::base::Snapshot;
use flagstone::db::Iter;
use flagstone::options::ReadOptions;

use crate::fault::{Fault, read};
use crate::reads::{check_steps, own_range_options};
use crate::value::{Place, State};
use crate::verify::{check_value, name};
use crate::worker::{Outcome, Worker};

/// How many a thread keeps.
const HELD_MAX: usize = 4;

/// A view of a stretch of the thread's keys in one family, with what it must show.
pub struct Held {
    view: View,
    family: usize,
    stretch: Range<usize>,
    states: Vec<State>,
}

enum View {
    Snapshot(Snapshot),
    Iterator(Box<Iter>),
}

impl Worker<'_> {
    pub fn hold(&mut self) -> Outcome {
        if self.held.len() == HELD_MAX {
            self.held.remove(0);
        }
        let family = self.any_family();
        let stretch = self.own_stretch(None, 200);
        let view = if self.random.bool() {
            View::Snapshot(self.life.db.snapshot())
        } else {
            let options = own_range_options(self.space(), &stretch);
            View::Iterator(Box::new(read(
                "an iterator",
                self.life.db.iter_cf(&self.life.families[family], &options),
            )?))
        };
        let states = self.last_states(family, &stretch);
        self.held.push(Held { view, family, stretch, states });
        Ok(())
    }

    pub fn check_held(&mut self) -> Outcome {
        if self.held.is_empty() {
            return Ok(());
        }
        let at = self.random.usize(..self.held.len());
        let mut held = self.held.swap_remove(at);
        self.check_view(&mut held)?;
        if self.random.bool() {
            self.held.push(held);
        }
        Ok(())
    }

    fn check_view(&mut self, held: &mut Held) -> Result<(), Fault> {
        let Held { view, family, stretch, states } = held;
        let (space, handle) = (self.space(), &self.life.families[*family]);
        let steps = self.random.usize(5..60);
        let snapshot = match view {
            View::Iterator(iter) => {
                return check_steps(space, *family, stretch, states, iter, &mut self.random, steps);
            }
            View::Snapshot(snapshot) => snapshot.clone(),
        };
        let options = ReadOptions { snapshot: Some(snapshot), ..own_range_options(space, stretch) };
        if self.random.bool() {
            let mut iter = read("an iterator", self.life.db.iter_cf(handle, &options))?;
            return check_steps(
                space,
                *family,
                stretch,
                states,
                &mut iter,
                &mut self.random,
                steps,
            );
        }
        for _ in 0..10 {
            let place = Place { family: *family, index: self.random.usize(stretch.clone()) };
            let key = space.key(place.index);
            let value = read(name(space, place), self.life.db.get_with(&options, handle, key))?;
            let found = check_value(space, place, "get under a snapshot", value.as_deref())?;
            let expected = states[place.index - stretch.start];
            if !found.looks_like(expected) {
                let place = format!("get under a snapshot of {}", name(space, place));
                return Err(Fault::new(place, expected.to_string(), found.to_string()));
            }
        }
        Ok(())
    }
}
