//! What is wrong with a history, in words.

use std::fmt;

use super::history::History;

/// The weakest isolation level that is violated; the stronger ones are, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Only what was committed is read (Adya's G0 and G1), and later reads see no less.
    ReadCommitted,
    /// Reads in a snapshot are of one moment, and of two transactions that write the same key one
    /// sees the other's write (Adya's G-SI; lost updates).
    SnapshotIsolation,
    /// Transactions with locked reads happened one after the other (Adya's G2).
    Serializable,
    /// They did so in an order that a clock agrees with.
    StrictSerializable,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadCommitted => "read committed",
            Self::SnapshotIsolation => "snapshot isolation",
            Self::Serializable => "serializable",
            Self::StrictSerializable => "strict serializable",
        })
    }
}

/// Something that a database of this level does not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// As it is called in the literature.
    pub name: &'static str,
    /// The level that it violates.
    pub level: Level,
    /// What was seen. A cycle is told step by step, each of which must have come before the next.
    pub words: Vec<String>,
    /// The transactions that it is about, by their places in the history.
    pub involved: Vec<usize>,
}

impl Anomaly {
    /// What is wrong, and the transactions that show it.
    pub fn tell(&self, history: &History) -> String {
        let mut involved = self.involved.clone();
        involved.sort_unstable();
        involved.dedup();
        let lines =
            involved.iter().map(|&at| format!("\n  T{} {}", at + 1, history.transactions[at]));
        format!("{self}{}", lines.collect::<String>())
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; not {}:", self.name, self.level)?;
        self.words.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}
