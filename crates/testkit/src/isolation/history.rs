//! What was asked for, and what was answered.

/// The name of a list.
pub type Key = u64;

/// An element of a list, appended to it once.
pub type Value = u64;

/// How a list is read, and so as of which moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Read {
    /// For update: what was read holds until the transaction commits.
    Locked,
    /// In the transaction's snapshot, which is taken once, when the transaction begins.
    Snapshot,
    /// As it is at this moment.
    Plain,
}

/// One step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Appends a value.
    Append {
        /// To which list.
        key: Key,
        /// What.
        value: Value,
    },
    /// Reads a whole list, with the transaction's own appends so far.
    Read {
        /// How.
        how: Read,
        /// Which list.
        key: Key,
        /// What it was.
        list: Vec<Value>,
    },
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Its commit was acknowledged.
    Committed,
    /// It was rolled back, or its commit was refused: nothing of it may be seen.
    Failed,
    /// Its process died: all of it may be seen, or nothing.
    Unknown,
}

/// One transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Which thread it was of.
    pub process: u64,
    /// When it began. Times are numbers of one order of all events.
    pub begun: u64,
    /// When its end was known; `None` if the process died first.
    pub ended: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// What it did. Appends that were taken back are left out.
    pub steps: Vec<Step>,
}

impl Transaction {
    /// What it appended.
    pub fn appends(&self) -> impl Iterator<Item = (Key, Value)> + '_ {
        self.steps.iter().filter_map(|step| match step {
            Step::Append { key, value } => Some((*key, *value)),
            Step::Read { .. } => None,
        })
    }

    /// What it read: how, which list, what that was.
    pub fn reads(&self) -> impl Iterator<Item = (Read, Key, &[Value])> + '_ {
        self.steps.iter().filter_map(|step| match step {
            Step::Append { .. } => None,
            Step::Read { how, key, list } => Some((*how, *key, list.as_slice())),
        })
    }
}

/// Transactions in any order. Texts call the first T1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// All of them.
    pub transactions: Vec<Transaction>,
}
