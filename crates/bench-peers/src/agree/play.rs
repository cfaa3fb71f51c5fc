//! Playing one turn of a life, in a process of its own, and looking at what it has left.

use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::choices::Settings;
use super::judge::{self, Prefixes};
use super::life::{Ending, Life, Step, Turn};
use super::model::{Edit, Model};
use super::party::{Access, Depth, How, Opening, Party, Place, View, Who};
use super::{flagstone, rocksdb};
use crate::engine::Result;

/// One turn in so many leaves what a salvage is tried with.
const SALVAGED: u64 = 4;

/// A database in a directory of its own, with what belongs to it beside it.
pub struct Stage {
    pub life: Life,
    seed: u64,
    directory: PathBuf,
}

/// What is looked at again and again while a turn goes on.
#[derive(Default)]
struct Beside<'a> {
    snapshots: Vec<(Box<dyn View + 'a>, Model)>,
    follower: Option<Follower>,
}

impl Beside<'_> {
    /// Neither sees into a family that comes later under the same name.
    fn forget(&mut self, family: &str) {
        self.snapshots.iter_mut().for_each(|(_, held)| drop(held.families.remove(family)));
        if let Some(follower) = &mut self.follower {
            follower.families.retain(|known| known != family);
        }
    }
}

/// A secondary instance of Flagstone. Those of RocksDB 11.8 do not find all that a primary of its
/// own has written either once they catch up.
struct Follower {
    party: Box<dyn Party>,
    /// The families that it has, and were not dropped since.
    families: Vec<String>,
}

fn open(who: Who, place: &Place, opening: &Opening) -> Result<Box<dyn Party>> {
    let opened = match who {
        Who::Flagstone => flagstone::open(place, opening),
        Who::RocksDb => rocksdb::open(place, opening),
    };
    opened.map_err(|error| format!("{who:?} does not open it: {error}").into())
}

impl Stage {
    pub fn new(seed: u64, without: &[String], directory: &Path) -> Self {
        Self { life: Life::draw(seed, without), seed, directory: directory.to_path_buf() }
    }

    fn place(&self) -> Place {
        let path = |name: &str, size| (self.directory.join(name), size);
        let paths = if self.life.has_paths {
            vec![path("fast", 20_000), path("slow", 1 << 40)]
        } else {
            vec![]
        };
        Place { directory: self.directory.join("db"), paths }
    }

    fn complete(&self, mut opening: Opening) -> Opening {
        if self.life.has_wal_dir {
            opening.database.set("wal_dir", &self.directory.join("wal").display().to_string());
        }
        opening
    }

    /// Plays a turn, and leaves the database open.
    pub fn act(&self, number: usize) -> Result<Box<dyn Party>> {
        let turn = &self.life.turns[number];
        let mut opening = self.complete(turn.opening.clone());
        if number == 0 {
            opening.database.set("create_if_missing", "true");
            opening.database.set("create_missing_column_families", "true");
        }
        let party = open(turn.who, &self.place(), &opening)?;
        let mut random = SmallRng::seed_from_u64(self.seed ^ number as u64);
        let prefixes = |name: &str| prefixes(turn, name);
        names_agree(party.as_ref(), &turn.before)?;
        judge::compare(as_view(party.as_ref()), &turn.before, prefixes, &mut random)
            .map_err(|error| format!("after opening: {error}"))?;
        let mut model = turn.before.clone();
        {
            let mut beside = Beside::default();
            for (index, step) in turn.steps.iter().enumerate() {
                let told = |error| format!("step {index}, {}: {error}", name_of(step));
                self.take(turn, party.as_ref(), step, &mut model, &mut beside).map_err(told)?;
            }
            self.compare_beside(turn, party.as_ref(), &mut beside, &model, &mut random)?;
        }
        judge::compare(as_view(party.as_ref()), &model, prefixes, &mut random)
            .map_err(|error| format!("at the end: {error}"))?;
        if self.life.keeps_logs {
            party.flush_wal()?;
            self.compare_logs(number, party.as_ref())?;
        }
        Ok(party)
    }

    fn compare_logs(&self, number: usize, party: &dyn Party) -> Result<()> {
        let (turns, who) = (&self.life.turns[..number], self.life.turns[number].who);
        let was_killed =
            turns.iter().any(|turn| turn.who == Who::RocksDb && turn.ending == Ending::Kill);
        let mut expected = self.life.logged(number);
        let found = match party.logged() {
            Err(error) if was_killed && error.to_string().contains("continues differently") => {
                return Ok(());
            }
            found => found?,
        };
        // RocksDB counts the deletion of an empty range, and not when it replays it; and it gives
        // out again the numbers of writes of which a flush left nothing. Its own reader does not go
        // on behind either.
        let ended_with_nothing = (0..number).any(|turn| self.life.ends_with_nothing(turn));
        if who == Who::RocksDb && (was_killed || ended_with_nothing) {
            expected.truncate(found.len());
        }
        judge::same("the log", &found, &expected)
    }

    /// Compares snapshots, and what follows. Families that are gone by now have nothing to be asked
    /// for.
    fn compare_beside(
        &self,
        turn: &Turn,
        party: &dyn Party,
        beside: &mut Beside<'_>,
        now: &Model,
        random: &mut SmallRng,
    ) -> Result<()> {
        for (snapshot, held) in &beside.snapshots {
            let mut held = held.clone();
            held.families.retain(|name, _| now.families.contains_key(name));
            judge::compare(snapshot.as_ref(), &held, |name| prefixes(turn, name), random)
                .map_err(|error| format!("a snapshot: {error}"))?;
        }
        match &mut beside.follower {
            Some(follower) => {
                let told = |error| format!("Flagstone follows: {error}").into();
                follower.compare(party, now, random).map_err(told)
            }
            None => Ok(()),
        }
    }

    fn take<'a>(
        &self,
        turn: &Turn,
        party: &'a dyn Party,
        step: &Step,
        model: &mut Model,
        beside: &mut Beside<'a>,
    ) -> Result<()> {
        match step {
            Step::Write { batch, how } => {
                party.write(batch, *how)?;
                model.apply(batch);
            }
            Step::Flush { family } => party.flush(family.as_deref())?,
            Step::FlushWal => party.flush_wal()?,
            Step::Compact { family, begin, end, depth } => {
                party.compact(family, [begin.as_deref(), end.as_deref()], *depth)?;
            }
            Step::DeleteFiles { family, begin, end, rest } => {
                beside.snapshots.clear();
                party.delete_files(family, begin, end)?;
                party.write(rest, How::default())?;
                model.apply(rest);
            }
            Step::CreateFamily { name, settings } => {
                party.create_family(name, settings)?;
                model.families.insert(name.clone(), self.life.new_family(name));
            }
            Step::DropFamily { name } => {
                party.drop_family(name)?;
                model.families.remove(name);
                beside.forget(name);
            }
            Step::SetOptions { family, settings } => party.set_options(family, settings)?,
            Step::CompactFiles { family, seed } => drop(party.compact_files(family, *seed)?),
            Step::Ingest { family, tables, settings } => {
                self.ingest(party, family, tables, settings)?;
                tables
                    .iter()
                    .flatten()
                    .for_each(|edit| model.apply(&[(family.clone(), edit.clone())]));
            }
            Step::Checkpoint { flushed, who } => {
                let copy = self.directory.join("checkpoint");
                party.checkpoint(*flushed, &copy)?;
                self.look_at_copy(turn.who, &copy, model, *who)?;
            }
            Step::BackUp { flushed, who } => {
                let copy = self.directory.join("restored");
                self.back_up(party, *flushed, who.unwrap_or(turn.who.other()), &copy)?;
                self.look_at_copy(turn.who, &copy, model, *who)?;
            }
            Step::Visit => self.visit(turn.who.other(), party, model)?,
            Step::Follow => beside.follower = Some(self.follow(party, model)?),
            Step::TakeSnapshot => beside.snapshots.push((party.snapshot(), model.clone())),
            Step::DropSnapshot { index } if !beside.snapshots.is_empty() => {
                let index = index % beside.snapshots.len();
                drop(beside.snapshots.swap_remove(index));
            }
            Step::DropSnapshot { .. } => {}
            Step::Check { seed } => {
                let mut random = SmallRng::seed_from_u64(*seed);
                judge::compare(as_view(party), model, |name| prefixes(turn, name), &mut random)?;
                self.compare_beside(turn, party, beside, model, &mut random)?;
            }
        }
        Ok(())
    }

    fn ingest(
        &self,
        party: &dyn Party,
        family: &str,
        tables: &[Vec<Edit>],
        settings: &Settings,
    ) -> Result<()> {
        let scratch = self.directory.join("ingested");
        std::fs::create_dir(&scratch)?;
        party.ingest(family, tables, settings, &scratch)?;
        Ok(std::fs::remove_dir_all(scratch)?)
    }

    /// Makes a backup, which may be restored by the other engine.
    fn back_up(&self, party: &dyn Party, flushed: bool, restored_by: Who, to: &Path) -> Result<()> {
        let backup = self.directory.join("backup");
        party.back_up(flushed, &backup)?;
        match restored_by {
            Who::Flagstone => flagstone::restore(&backup, to)?,
            Who::RocksDb => rocksdb::restore(&backup, to)?,
        }
        Ok(std::fs::remove_dir_all(backup)?)
    }

    /// Both engines look at a copy, which stands on its own, and one of them goes on with it if it
    /// is `led_by` somebody.
    fn look_at_copy(
        &self,
        made_by: Who,
        copy: &Path,
        model: &Model,
        led_by: Option<Who>,
    ) -> Result<()> {
        let told = |who: Who| move |error| format!("{who:?} in the copy: {error}");
        let mut opening = self.life.plain_opening(model);
        for who in [made_by.other(), made_by] {
            let looking = open(who, &Place::of(copy), &opening)?;
            self.compare_all(looking.as_ref(), model).map_err(told(who))?;
            looking.close()?;
        }
        if let Some(who) = led_by {
            opening.access = Access::Lead;
            let leading = open(who, &Place::of(copy), &opening)?;
            self.lead_copy(leading, model)
                .map_err(|error| format!("{who:?} leads the copy: {error}"))?;
        }
        Ok(std::fs::remove_dir_all(copy)?)
    }

    /// Compacts all that there is, with a write that is new.
    fn lead_copy(&self, party: Box<dyn Party>, model: &Model) -> Result<()> {
        let mut model = model.clone();
        let batch = [(
            super::DEFAULT.to_string(),
            Edit::Put { key: b"k".to_vec(), value: b"new".to_vec() },
        )];
        party.write(&batch, How::default())?;
        model.apply(&batch);
        for family in model.families.keys() {
            party.compact(family, [None, None], Depth { to_the_bottom: true, then_to: None })?;
        }
        self.compare_all(party.as_ref(), &model)?;
        party.close()
    }

    /// Has both engines look at what a turn has left.
    pub fn look(&self, number: usize) -> Result<()> {
        let model = self.life.turns.get(number + 1).map_or(&self.life.after, |turn| &turn.before);
        let opening = self.complete(self.life.plain_opening(model));
        let mut seen = Vec::new();
        let both = [Who::Flagstone, Who::RocksDb];
        let who_can = if self.life.turns[number].is_for_itself() { &both[..1] } else { &both };
        for &who in who_can {
            let looking = open(who, &self.place(), &opening)?;
            self.compare_all(looking.as_ref(), model)
                .map_err(|error| format!("{who:?}, opened for reading: {error}"))?;
            // Deletions of empty ranges RocksDB does not count when it replays them, as it does
            // when it writes them.
            let counted = looking.last_sequence();
            let last = if self.life.ends_with_nothing(number) { 0 } else { counted };
            seen.push((looking.tables()?, last));
            looking.close()?;
        }
        if seen.first() != seen.last() {
            return Err(format!("tables and last sequence number differ: {seen:?}").into());
        }
        if (self.seed + number as u64).is_multiple_of(SALVAGED) {
            let salvaged = self.directory.join("salvaged");
            flagstone::salvage(&self.place(), &opening, &salvaged)?;
            self.look_at_copy(Who::Flagstone, &salvaged, model, Some(Who::RocksDb))
                .map_err(|error| format!("what a salvage has made: {error}"))?;
        }
        Ok(())
    }

    /// Reads what somebody else leads.
    fn visit(&self, who: Who, host: &dyn Party, model: &Model) -> Result<()> {
        let mut opening = self.complete(self.life.plain_opening(model));
        host.flush_wal()?;
        host.settle()?;
        for access in [Access::Read, Access::Follow] {
            if access == Access::Follow && !self.life.can_be_followed(who) {
                continue;
            }
            opening.access = access;
            let visiting = open(who, &self.place(), &opening)?;
            self.compare_all(visiting.as_ref(), model)
                .map_err(|error| format!("{who:?}, on a visit ({access:?}): {error}"))?;
            visiting.close()?;
        }
        Ok(())
    }

    /// Opens a secondary instance, which stays.
    fn follow(&self, host: &dyn Party, model: &Model) -> Result<Follower> {
        let mut opening = self.complete(self.life.plain_opening(model));
        opening.access = Access::Follow;
        let families = model.families.keys().cloned().collect();
        host.flush_wal()?;
        let party = open(Who::Flagstone, &self.place(), &opening)?;
        Ok(Follower { party, families })
    }

    fn compare_all(&self, party: &dyn Party, model: &Model) -> Result<()> {
        names_agree(party, model)?;
        let mut random = SmallRng::seed_from_u64(self.seed);
        judge::compare(as_view(party), model, |_| Prefixes::None, &mut random)?;
        party.verify()
    }
}

impl Follower {
    /// Flushes and compactions of the host may go on meanwhile.
    fn compare(&mut self, host: &dyn Party, now: &Model, random: &mut SmallRng) -> Result<()> {
        host.flush_wal()?;
        self.party.catch_up()?;
        let mut held = now.clone();
        held.families.retain(|name, _| self.families.contains(name));
        judge::compare(as_view(self.party.as_ref()), &held, |_| Prefixes::None, random)
    }
}

fn as_view(party: &dyn Party) -> &dyn View {
    party
}

fn names_agree(party: &dyn Party, model: &Model) -> Result<()> {
    let mut names = party.families()?;
    names.sort();
    let expected: Vec<_> = model.families.keys().cloned().collect();
    if names == expected {
        Ok(())
    } else {
        Err(format!("families {names:?}, expected {expected:?}").into())
    }
}

/// Of a family as it was opened, or created.
fn prefixes(turn: &Turn, name: &str) -> Prefixes {
    let opened = turn.opening.families.iter().find(|(family, _)| family == name);
    match opened {
        Some((_, settings)) if !turn.opening.from_file => {
            Prefixes::parse(settings.get("prefix_extractor"))
        }
        _ => Prefixes::None,
    }
}

fn name_of(step: &Step) -> String {
    let text = format!("{step:?}");
    text.chars().take(300).collect()
}
