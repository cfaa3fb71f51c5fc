//! Operations that change the thread's keys.

use std::sync::atomic::Ordering;

use flagstone::base::{Code, SubCode};
use flagstone::batch::WriteBatch;
use flagstone::options::WriteOptions;

use crate::expected::{CHANGES_MAX, Change, Slot};
use crate::fault::{Fault, Trouble, read, written};
use crate::space::{Class, FAMILIES};
use crate::value::{self, MERGES_MAX, Place, State};
use crate::worker::{Outcome, Worker};

/// The most keys that one range deletion removes.
const RANGE_MAX: usize = CHANGES_MAX;

/// What to do with one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Put,
    Delete,
    Merge,
    SingleDelete,
}

/// One operation on its way to the database.
struct Draft {
    batch: WriteBatch,
    changes: Vec<Change>,
    /// Skips the WAL.
    unlogged: bool,
}

impl Worker<'_> {
    pub fn put(&mut self) -> Outcome {
        self.edit_one(Edit::Put)
    }

    pub fn delete(&mut self) -> Outcome {
        self.edit_one(Edit::Delete)
    }

    pub fn merge(&mut self) -> Outcome {
        self.edit_one(Edit::Merge)
    }

    fn edit_one(&mut self, edit: Edit) -> Outcome {
        let place = Place { family: self.any_family(), index: self.own_key(Class::Plain) };
        let mut draft = self.draft();
        self.add(&mut draft, place, edit)?;
        self.write(draft)
    }

    /// A key that is put at most once before it is removed, and never otherwise than by a single
    /// deletion.
    pub fn put_or_single_delete(&mut self) -> Outcome {
        let place = Place { family: self.any_family(), index: self.own_key(Class::Once) };
        let edit =
            if self.slot(place).last().is_present() { Edit::SingleDelete } else { Edit::Put };
        let mut draft = self.logged_draft();
        self.add(&mut draft, place, edit)?;
        self.write(draft)
    }

    /// Several keys of one family, or of all.
    pub fn batch(&mut self) -> Outcome {
        let mut draft = self.draft();
        let one_family = self.any_family();
        // The order in which unlogged writes survive is that of one family.
        let over_families = !draft.unlogged && self.random.bool();
        for _ in 0..self.random.usize(2..20) {
            let family = if over_families { self.any_family() } else { one_family };
            let place = Place { family, index: self.own_key(Class::Plain) };
            if draft.changes.iter().any(|change| change.place == place) {
                continue;
            }
            let edit = [Edit::Put, Edit::Put, Edit::Delete, Edit::Merge][self.random.usize(..4)];
            self.add(&mut draft, place, edit)?;
        }
        self.write(draft)
    }

    /// The same to the same keys in all families.
    pub fn joint_batch(&mut self) -> Outcome {
        let mut draft = self.logged_draft();
        let version = self.next_version();
        for index in self.own_stretch(Some(Class::Joint), 5) {
            let frugal = self.life.is_frugal.load(Ordering::Relaxed);
            let choices: &[Edit] =
                if frugal { &[Edit::Delete] } else { &[Edit::Put, Edit::Delete, Edit::Merge] };
            let edit = choices[self.random.usize(..choices.len())];
            let length = self.value_length();
            for family in 0..FAMILIES.len() {
                self.add_version(&mut draft, Place { family, index }, edit, version, length)?;
            }
        }
        self.write(draft)
    }

    pub fn delete_range(&mut self) -> Outcome {
        let family = self.any_family();
        let longest = if self.chance(10) { RANGE_MAX } else { RANGE_MAX / 8 };
        let stretch = self.own_stretch(Some(Class::Plain), longest);
        let mut draft = self.draft();
        let version = self.next_version();
        let places: Vec<_> = stretch.clone().map(|index| Place { family, index }).collect();
        draft.unlogged &= places.iter().all(|place| self.slot(*place).has_room());
        let (begin, end) = (self.space().key(stretch.start), self.space().key(stretch.end));
        read("a batch", draft.batch.delete_range_cf(&self.life.families[family], &begin, &end))?;
        draft
            .changes
            .extend(places.iter().map(|&place| Change { place, state: State::removed(version) }));
        if !draft.unlogged && self.random.bool() {
            // A batch in which a key lives again behind its range deletion.
            let place = Place { family, index: self.random.usize(stretch) };
            let (version, length) = (self.next_version(), self.value_length());
            let value = value::base(place, version, length);
            let put = draft.batch.put_cf(
                &self.life.families[family],
                self.space().key(place.index),
                &value,
            );
            read("a batch", put)?;
            let changed = draft.changes.iter_mut().find(|change| change.place == place);
            changed.expect("it lies in the range").state = State::put(version);
        }
        self.write(draft)
    }

    /// Money moves. No notes are taken: whether the transfer survives or not, the sum is the same.
    pub fn transfer(&mut self) -> Outcome {
        let batch = self.life.bank.transfer(&mut self.random)?;
        let draft = Draft { batch, changes: Vec::new(), unlogged: false };
        self.write(draft)
    }

    fn logged_draft(&mut self) -> Draft {
        Draft { batch: WriteBatch::new(), changes: Vec::new(), unlogged: false }
    }

    /// A draft that skips the WAL, sometimes, in a round of that kind.
    fn draft(&mut self) -> Draft {
        let unlogged = self.life.round.unlogged && self.chance(3);
        Draft { unlogged, ..self.logged_draft() }
    }

    fn add(&mut self, draft: &mut Draft, place: Place, edit: Edit) -> Result<(), Fault> {
        let (version, length) = (self.next_version(), self.value_length());
        // More uncertain states cannot be noted down.
        draft.unlogged &= self.slot(place).has_room();
        self.add_version(draft, place, edit, version, length)
    }

    fn add_version(
        &mut self,
        draft: &mut Draft,
        place: Place,
        mut edit: Edit,
        version: u64,
        length: usize,
    ) -> Result<(), Fault> {
        let before = self.slot(place).last();
        // A logged operand on top of an unlogged value might be found without it.
        let on_sand = !self.slot(place).is_certain() && !draft.unlogged;
        if edit == Edit::Merge && (on_sand || before.merges() == MERGES_MAX) {
            edit = Edit::Put;
        }
        let (key, family) = (self.space().key(place.index), &self.life.families[place.family]);
        let batch = &mut draft.batch;
        let (added, state) = match edit {
            Edit::Put => {
                let value = value::base(place, version, length);
                self.life.counts.add("bytes written", value.len() as u64);
                (batch.put_cf(family, &key, &value), State::put(version))
            }
            Edit::Merge => (
                batch.merge_cf(family, &key, value::operand(place, version)),
                before.merged(version),
            ),
            Edit::Delete => (batch.delete_cf(family, &key), State::removed(version)),
            Edit::SingleDelete => (batch.single_delete_cf(family, &key), State::removed(version)),
        };
        draft.changes.push(Change { place, state });
        read("a batch", added)
    }

    fn write(&mut self, draft: Draft) -> Outcome {
        let Draft { batch, changes, unlogged } = draft;
        let options = WriteOptions {
            sync: !unlogged && self.chance(50),
            disable_wal: unlogged,
            no_slowdown: self.chance(30),
            low_pri: self.chance(30),
            ..WriteOptions::default()
        };
        let expected = self.life.expected;
        if unlogged {
            for change in &changes {
                self.slot_mut(change.place).push(change.state);
                expected.set_slot(change.place, self.slot(change.place))?;
            }
        } else {
            expected.begin(self.thread, &changes)?;
        }
        let mut outcome = self.life.db.write_with(&options, batch);
        if outcome.is_ok() && !unlogged && self.life.chosen.options.manual_wal_flush {
            // Before it a kill may take the write back.
            outcome = self.life.db.flush_wal(false);
        }
        if outcome.is_ok() && unlogged {
            self.life.counts.add("writes without the WAL", 1);
        } else if outcome.is_ok() {
            self.life.acknowledged.fetch_add(1, Ordering::Relaxed);
            expected.acknowledge(self.thread, &changes)?;
            changes
                .iter()
                .for_each(|change| *self.slot_mut(change.place) = Slot::certain(change.state));
        } else if unlogged {
            for change in &changes {
                self.slot_mut(change.place).pop();
                expected.set_slot(change.place, self.slot(change.place))?;
            }
        } else if !outcome.as_ref().is_err_and(|error| error.code() == Code::ShutdownInProgress) {
            // A write that was refused must not be found later; one that a close cut short may be.
            expected.clear(self.thread)?;
        }
        match outcome {
            Err(error) if options.no_slowdown && error.code() == Code::Incomplete => Ok(()),
            Err(error) if error.subcode() == SubCode::NoSpace => {
                self.life.refused.fetch_add(1, Ordering::Relaxed);
                Err(Trouble::Full)
            }
            outcome => written("a write", outcome),
        }
    }
}
