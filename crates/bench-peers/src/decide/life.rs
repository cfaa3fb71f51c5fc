//! What a life consists of, drawn from its seed, and what must be there after each step.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Keys and their values; none for a deletion.
pub type Edits = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// When RocksDB writes what is prepared to its memtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    WriteCommitted,
    WritePrepared,
    WriteUnprepared,
}

/// What a turn does.
#[derive(Debug, Clone)]
pub enum Step {
    Write(Edits),
    Prepare(Vec<u8>, Edits),
    Commit(Vec<u8>),
    Rollback(Vec<u8>),
    /// Changes of a transaction that is not prepared when the process is killed.
    Abandon(Edits),
    Flush,
    Compact,
}

#[derive(Debug, Clone)]
pub struct Turn {
    /// RocksDB's policy; none where Flagstone leads.
    pub policy: Option<Policy>,
    pub steps: Vec<Step>,
    pub is_killed: bool,
}

/// What must be there.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub committed: Edits,
    pub prepared: BTreeMap<Vec<u8>, Edits>,
}

#[derive(Debug)]
pub struct Life {
    pub turns: Vec<Turn>,
}

impl Model {
    pub fn apply(&mut self, step: &Step) {
        match step {
            Step::Write(edits) => self.write(edits),
            Step::Prepare(name, edits) => drop(self.prepared.insert(name.clone(), edits.clone())),
            Step::Commit(name) => {
                let edits = self.prepared.remove(name).expect("it is prepared");
                self.write(&edits);
            }
            Step::Rollback(name) => drop(self.prepared.remove(name)),
            Step::Abandon(_) | Step::Flush | Step::Compact => {}
        }
    }

    fn write(&mut self, edits: &Edits) {
        for (key, value) in edits {
            match value {
                Some(_) => drop(self.committed.insert(key.clone(), value.clone())),
                None => drop(self.committed.remove(key)),
            }
        }
    }

    /// What was there when a turn began.
    pub fn before(life: &Life, turn: usize) -> Self {
        let mut model = Self::default();
        life.turns[..turn].iter().flat_map(|turn| &turn.steps).for_each(|step| model.apply(step));
        model
    }
}

impl Life {
    pub fn draw(seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut turns, mut model) = (Vec::<Turn>::new(), Model::default());
        let count = random.random_range(3..9);
        let begins = random.random_bool(0.5);
        let mut is_empty = true;
        for number in 0..count {
            let is_flagstone = begins == (number % 2 == 0);
            let policy = (!is_flagstone).then(|| match random.random_range(0..3) {
                _ if !is_empty => Policy::WriteCommitted,
                0 => Policy::WriteCommitted,
                1 => Policy::WritePrepared,
                _ => Policy::WriteUnprepared,
            });
            // After a turn that leaves nothing in WALs RocksDB may change its policy.
            let leaves_nothing = is_flagstone && random.random_bool(0.5);
            let turn = draw_turn(&mut random, &mut model, number, policy, leaves_nothing);
            is_empty = leaves_nothing;
            turns.push(turn);
        }
        Self { turns }
    }
}

fn draw_turn(
    random: &mut Xoshiro256PlusPlus,
    model: &mut Model,
    number: usize,
    policy: Option<Policy>,
    leaves_nothing: bool,
) -> Turn {
    let mut steps = Vec::new();
    // Keys locked by transactions that stay unprepared.
    let mut abandoned = BTreeSet::new();
    for step in 0..random.random_range(1..25) {
        let drawn = draw_step(random, model, &abandoned, format!("{number}-{step}").into_bytes());
        let Some(drawn) = drawn.filter(|drawn| !(leaves_nothing && is_abandon(drawn))) else {
            continue;
        };
        if let Step::Abandon(edits) = &drawn {
            abandoned.extend(edits.keys().cloned());
        }
        model.apply(&drawn);
        steps.push(drawn);
    }
    if leaves_nothing {
        let names: Vec<_> = model.prepared.keys().cloned().collect();
        for name in names {
            let decision =
                if random.random_bool(0.5) { Step::Commit(name) } else { Step::Rollback(name) };
            model.apply(&decision);
            steps.push(decision);
        }
        // A flush of nothing would leave the WAL as it is.
        let write = Step::Write(Edits::from([(b"last".to_vec(), Some(b"1".to_vec()))]));
        model.apply(&write);
        steps.extend([write, Step::Flush]);
    }
    let is_killed = !leaves_nothing && (!abandoned.is_empty() || random.random_bool(0.8));
    Turn { policy, steps, is_killed }
}

fn is_abandon(step: &Step) -> bool {
    matches!(step, Step::Abandon(_))
}

fn draw_step(
    random: &mut Xoshiro256PlusPlus,
    model: &Model,
    abandoned: &BTreeSet<Vec<u8>>,
    name: Vec<u8>,
) -> Option<Step> {
    let some_prepared = |random: &mut Xoshiro256PlusPlus| {
        let at = random.random_range(0..model.prepared.len().max(1));
        model.prepared.keys().nth(at).cloned()
    };
    let step = match random.random_range(0..20) {
        0..5 => Step::Write(draw_edits(random, model, abandoned)),
        5..10 => Step::Prepare(name, draw_edits(random, model, abandoned)),
        10..13 => Step::Commit(some_prepared(random)?),
        13..15 => Step::Rollback(some_prepared(random)?),
        15 => Step::Abandon(draw_edits(random, model, abandoned)),
        16..19 => Step::Flush,
        _ => Step::Compact,
    };
    match &step {
        Step::Write(edits) | Step::Prepare(_, edits) | Step::Abandon(edits) if edits.is_empty() => {
            None
        }
        _ => Some(step),
    }
}

/// Draws edits of keys that no transaction has locked.
fn draw_edits(
    random: &mut Xoshiro256PlusPlus,
    model: &Model,
    abandoned: &BTreeSet<Vec<u8>>,
) -> Edits {
    let mut edits = Edits::new();
    for _ in 0..random.random_range(1..6) {
        let key = format!("key{:02}", random.random_range(0..40)).into_bytes();
        let is_locked = model.prepared.values().any(|edits| edits.contains_key(&key));
        if is_locked || abandoned.contains(&key) {
            continue;
        }
        let size = if random.random_bool(0.05) { 20_000 } else { 20 };
        let value = vec![random.random_range(b'a'..=b'z'); size];
        edits.insert(key, Some(value).filter(|_| random.random_bool(0.75)));
    }
    edits
}
