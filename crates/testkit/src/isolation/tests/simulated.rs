//! Histories of a simulated database: threads that overlap, snapshots, conflicts, processes that
//! die; sound, or with one fault.

use std::collections::BTreeMap;

use super::super::{History, Key, Outcome, Read, Step, Transaction, Value};

/// What the simulated database does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Commits do not ask whether others have written.
    ForgetConflicts,
    /// Locked reads are not validated.
    ForgetLockedReads,
    /// Snapshots see what is committed later in every second list.
    LeakIntoSnapshots,
    /// Plain reads show what a running transaction has written.
    ReadUncommitted,
    /// What a transaction that failed wrote stays in one of its lists.
    KeepHalfOfFailed,
    /// An acknowledged append is lost now and then.
    LoseAppends,
    /// An append is now and then applied twice.
    RepeatAppends,
    /// Snapshots are of a moment long ago.
    OldSnapshots,
}

impl Fault {
    /// Each with the beginnings of names of which the judge gives at least one.
    pub(super) const ALL: &[(Self, &[&str])] = &[
        (Self::ForgetConflicts, &["lost update"]),
        (Self::ForgetLockedReads, &["write skew"]),
        (Self::LeakIntoSnapshots, &["read skew", "non-repeatable read"]),
        (Self::ReadUncommitted, &["aborted read", "intermediate read"]),
        (Self::KeepHalfOfFailed, &["aborted read"]),
        (Self::LoseAppends, &["lost append"]),
        (Self::RepeatAppends, &["duplicate append"]),
        (Self::OldSnapshots, &["stale read"]),
    ];
}

const PROCESSES: usize = 5;
const KEYS: Key = 4;
/// After so many commits others lists are used, so that none grows long.
const STATES_PER_KEYS: usize = 40;

/// As the lists were after each commit.
type State = BTreeMap<Key, Vec<Value>>;

/// A transaction that runs.
struct Running {
    begun: u64,
    /// The number of the state that it saw when it began.
    snapshot: usize,
    steps: Vec<Step>,
    /// What it read for update, with the state as of which.
    locked: Vec<(Key, usize)>,
    is_in_snapshot: bool,
}

struct Simulation {
    random: fastrand::Rng,
    fault: Option<Fault>,
    states: Vec<State>,
    time: u64,
    last_value: Value,
}

/// A history of this seed.
pub(super) fn simulate(seed: u64, transactions: usize, fault: Option<Fault>) -> History {
    let mut simulation = Simulation {
        random: fastrand::Rng::with_seed(seed),
        fault,
        states: vec![State::new()],
        time: 0,
        last_value: 0,
    };
    let mut running: Vec<Option<Running>> = (0..PROCESSES).map(|_| None).collect();
    let mut history = History::default();
    while history.transactions.len() < transactions {
        let process = simulation.random.usize(..PROCESSES);
        let ends = simulation.random.u8(..4) == 0;
        match running[process].take() {
            None => running[process] = Some(simulation.begin()),
            Some(transaction) if ends => {
                let ended = simulation.end(process as u64, transaction);
                history.transactions.push(ended);
            }
            Some(mut transaction) => {
                let others = running.iter().flatten();
                let uncommitted: Vec<Step> = others.flat_map(|other| other.steps.clone()).collect();
                simulation.step(&mut transaction, &uncommitted);
                running[process] = Some(transaction);
            }
        }
    }
    // What runs still will never be heard of; then everything is read.
    for (process, transaction) in running.into_iter().enumerate() {
        if let Some(Running { begun, steps, .. }) = transaction {
            let (process, outcome) = (process as u64, Outcome::Unknown);
            history.transactions.push(Transaction { process, begun, ended: None, outcome, steps });
        }
    }
    let last = simulation.states.last().expect("there is the first").clone();
    let read = |(key, list)| Step::Read { how: Read::Plain, key, list };
    history.transactions.push(Transaction {
        process: PROCESSES as u64,
        begun: simulation.time + 1,
        ended: Some(simulation.time + 2),
        outcome: Outcome::Committed,
        steps: last.into_iter().map(read).collect(),
    });
    history
}

impl Simulation {
    fn is(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn tick(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    fn begin(&mut self) -> Running {
        let newest = self.states.len() - 1;
        let age = if self.is(Fault::OldSnapshots) { 10 } else { 0 };
        Running {
            begun: self.tick(),
            snapshot: newest.saturating_sub(age),
            steps: Vec::new(),
            locked: Vec::new(),
            is_in_snapshot: false,
        }
    }

    fn list(&self, state: usize, key: Key) -> Vec<Value> {
        self.states[state].get(&key).cloned().unwrap_or_default()
    }

    fn step(&mut self, transaction: &mut Running, uncommitted: &[Step]) {
        let newest = self.states.len() - 1;
        let key = self.random.u64(..KEYS) + (newest / STATES_PER_KEYS) as Key * KEYS;
        if self.random.bool() {
            self.last_value += 1;
            transaction.steps.push(Step::Append { key, value: self.last_value });
            return;
        }
        let how = [Read::Locked, Read::Snapshot, Read::Plain][self.random.usize(..3)];
        let mut list = match how {
            Read::Snapshot if self.is(Fault::LeakIntoSnapshots) && key % 2 == 1 => {
                self.list(newest, key)
            }
            Read::Snapshot => self.list(transaction.snapshot, key),
            Read::Locked | Read::Plain => self.list(newest, key),
        };
        if how == Read::Plain && self.is(Fault::ReadUncommitted) {
            list.extend(appends(uncommitted, key));
        }
        match how {
            Read::Locked => {
                let state = transaction.locked.iter().find(|(locked, _)| *locked == key);
                let state = state.map_or(newest, |(_, state)| *state);
                transaction.locked.push((key, state));
            }
            Read::Snapshot => transaction.is_in_snapshot = true,
            Read::Plain => {}
        }
        list.extend(appends(&transaction.steps, key));
        transaction.steps.push(Step::Read { how, key, list });
    }

    /// Commits it if nothing stands against that, or lets its process die.
    fn end(&mut self, process: u64, transaction: Running) -> Transaction {
        let Running { begun, snapshot, steps, locked, is_in_snapshot } = transaction;
        let newest = self.states.len() - 1;
        let is_same = |key: Key, state: usize| self.list(state, key) == self.list(newest, key);
        let written = steps.iter().filter_map(|step| match step {
            Step::Append { key, .. } => Some(*key),
            Step::Read { .. } => None,
        });
        let has_first = !is_in_snapshot || written.clone().all(|key| is_same(key, snapshot));
        // What is read for update and written is lost if it has changed; so is what is only read.
        let (read_and_written, only_read): (Vec<(Key, usize)>, Vec<_>) =
            locked.iter().partition(|(key, _)| written.clone().any(|other| other == *key));
        let holds = |reads: &[(Key, usize)]| reads.iter().all(|(key, state)| is_same(*key, *state));
        let may_commit = self.is(Fault::ForgetConflicts)
            || has_first
                && holds(&read_and_written)
                && (self.is(Fault::ForgetLockedReads) || holds(&only_read));
        let dies = self.random.u8(..20) == 0;
        let takes_place = may_commit && (!dies || self.random.bool());
        if takes_place || self.is(Fault::KeepHalfOfFailed) {
            self.apply(&steps, takes_place);
        }
        let outcome = match (dies, may_commit) {
            (true, _) => Outcome::Unknown,
            (false, true) => Outcome::Committed,
            (false, false) => Outcome::Failed,
        };
        let ended = self.tick();
        Transaction { process, begun, ended: (!dies).then_some(ended), outcome, steps }
    }

    fn apply(&mut self, steps: &[Step], takes_place: bool) {
        let mut state = self.states.last().expect("there is the first").clone();
        for step in steps {
            let Step::Append { key, value } = *step else { continue };
            if self.is(Fault::LoseAppends) && self.random.u8(..20) == 0 {
                continue;
            }
            let list = state.entry(key).or_default();
            list.push(value);
            if self.is(Fault::RepeatAppends) && self.random.u8(..20) == 0 {
                list.push(value);
            }
            if !takes_place {
                break;
            }
        }
        self.states.push(state);
    }
}

fn appends(steps: &[Step], key: Key) -> impl Iterator<Item = Value> + '_ {
    steps.iter().filter_map(move |step| match step {
        Step::Append { key: to, value } if *to == key => Some(*value),
        _ => None,
    })
}
