//! A judge of transaction histories: it finds what no database of a given isolation level shows.
//!
//! Histories are list-append: transactions append values to lists, each value once, and read whole
//! lists. A list that was read tells in which order all its values were written, so dependencies
//! between transactions are known and not guessed. The reasoning is that of Kingsbury and Alvaro,
//! "Elle: Inferring Isolation Anomalies from Experimental Observations" (VLDB 2021); the anomalies
//! have the names of Adya, "Weak Consistency" (1999).
//!
//! **Algorithm**
//! 1. `orders` finds the order of each key's versions: the longest list that was read. On the way
//!    it finds anomalies that need no cycle, such as the read of a value that was rolled back.
//! 2. `graph` gives each transaction one or more *moments* ([`Read`]): its commit, at which it
//!    appends and at which its locked reads hold; its snapshot; and each plain read. Moments are
//!    joined by what must have come before what: writes before later writes of the same key (ww),
//!    writes before their reads (wr), reads before the next write (rw), the earlier moments of a
//!    transaction before the later ones, and a transaction that had ended before one that began
//!    then. Of two transactions that append to a key, the second takes its snapshot after the
//!    first commits (first committer wins).
//! 3. A cycle means that there is no order in which everything could have happened. `cycles`
//!    searches for cycles of few kinds of edges first, so that the weakest level that is violated
//!    is reported, and `anomaly` puts the shortest cycle into words.
//!
//! Write skew between reads in snapshots is no cycle: the snapshot and the commit of a transaction
//! are different moments. Between locked reads it is one.

mod anomaly;
mod cycles;
mod graph;
mod history;
mod orders;
mod text;

pub use anomaly::{Anomaly, Level};
pub use history::{History, Key, Outcome, Read, Step, Transaction, Value};

use self::graph::Graph;

/// The anomalies of a history: none, if a database whose locked reads are strictly serializable
/// and whose snapshots are strongly isolated may show it.
///
/// Cost: linear in the number of steps and the lengths of lists, as long as there is no cycle.
///
/// # Panics
/// If a value is appended to the same key twice: then nothing can be inferred.
pub fn judge(history: &History) -> Vec<Anomaly> {
    let (orders, mut found) = orders::infer(history);
    let graph = Graph::new(history, &orders);
    found.extend(cycles::search(history, &graph));
    found
}

#[cfg(test)]
mod tests;
