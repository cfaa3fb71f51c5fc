//! Moments of transactions, and what must have come before what.

use std::collections::HashMap;

use super::history::{History, Key, Read, Value};
use super::orders::{Orders, Seen};

/// A point in time at which a part of a transaction happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Its appends and locked reads.
    Commit(usize),
    /// Its reads in a snapshot.
    Snapshot(usize),
    /// One of its plain reads.
    Plain(usize),
    /// No transaction: one of the ends, in the order of time. All that had ended come before it,
    /// all that begin later behind it. Without these there would be an edge for each pair.
    End,
}

impl Moment {
    pub(super) fn transaction(self) -> Option<usize> {
        match self {
            Self::Commit(at) | Self::Snapshot(at) | Self::Plain(at) => Some(at),
            Self::End => None,
        }
    }
}

/// Why one moment comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// ww: the second appended behind the first.
    Written { key: Key, value: Value, next: Value },
    /// wr: the second read what the first had appended.
    Read { key: Key, value: Value, how: Read },
    /// rw: the first read the list when the second had not appended yet.
    Overwritten { key: Key, how: Read, next: Value },
    /// Both append to the key, so the second must have begun after the first committed.
    FirstCommitter { key: Key, value: Value, next: Value },
    /// Moments of one transaction.
    Within,
    /// The first transaction had ended before the second began.
    Time,
}

pub(super) struct Edge {
    pub to: usize,
    pub why: Why,
}

/// Moments by number, and the edges from each.
pub(super) struct Graph {
    pub moments: Vec<Moment>,
    pub edges: Vec<Vec<Edge>>,
}

/// The moments of one transaction.
#[derive(Default)]
struct Own {
    commit: Option<usize>,
    snapshot: Option<usize>,
    /// Those of plain reads, by the read's number.
    plain: HashMap<usize, usize>,
    /// All of them, in their order.
    all: Vec<usize>,
}

impl Graph {
    pub(super) fn new(history: &History, orders: &Orders) -> Self {
        let mut graph = Self { moments: Vec::new(), edges: Vec::new() };
        let own: Vec<Own> = (0..history.transactions.len())
            .map(|at| graph.add_transaction(history, orders, at))
            .collect();
        graph.add_dependencies(orders, &own);
        graph.add_time(history, &own);
        graph
    }

    fn add_moment(&mut self, moment: Moment) -> usize {
        self.moments.push(moment);
        self.edges.push(Vec::new());
        self.moments.len() - 1
    }

    fn add_edge(&mut self, from: usize, to: usize, why: Why) {
        if from != to {
            self.edges[from].push(Edge { to, why });
        }
    }

    /// The moments of a transaction: its snapshot, its plain reads, its commit. In one that did not
    /// take place locked reads are as plain ones.
    fn add_transaction(&mut self, history: &History, orders: &Orders, at: usize) -> Own {
        let mut own = Own::default();
        let reads = history.transactions[at].reads();
        let hows: Vec<Read> = reads.map(|(how, ..)| how).collect();
        if hows.contains(&Read::Snapshot) {
            let moment = self.add_moment(Moment::Snapshot(at));
            own.snapshot = Some(moment);
            own.all.push(moment);
        }
        for (number, how) in hows.iter().enumerate() {
            if *how == Read::Plain || *how == Read::Locked && !orders.took_place[at] {
                let moment = self.add_moment(Moment::Plain(at));
                own.plain.insert(number, moment);
                own.all.push(moment);
            }
        }
        if orders.took_place[at] {
            let moment = self.add_moment(Moment::Commit(at));
            own.commit = Some(moment);
            own.all.push(moment);
        }
        for pair in own.all.windows(2) {
            self.add_edge(pair[0], pair[1], Why::Within);
        }
        own
    }

    fn add_dependencies(&mut self, orders: &Orders, own: &[Own]) {
        // What took place and was not read yet comes behind all that was.
        let mut unread: HashMap<Key, Vec<(Value, usize)>> = HashMap::new();
        for (&(key, value), &writer) in &orders.writers {
            let Some(list) = orders.longest.get(&key) else { continue };
            if orders.took_place[writer] && !list.contains(&value) {
                unread.entry(key).or_default().push((value, writer));
            }
        }
        unread.values_mut().for_each(|values| values.sort_unstable());
        for (&key, list) in &orders.longest {
            for pair in list.windows(2) {
                self.add_write(orders, own, key, (pair[0], pair[1]));
            }
            for &(next, _) in unread.get(&key).into_iter().flatten() {
                if let Some(&last) = list.last() {
                    self.add_write(orders, own, key, (last, next));
                }
            }
        }
        for seen in &orders.seen {
            self.add_read(orders, own, seen, &unread);
        }
    }

    fn add_write(&mut self, orders: &Orders, own: &[Own], key: Key, values: (Value, Value)) {
        let (value, next) = values;
        let writer = |value| orders.writers.get(&(key, value)).copied();
        let (Some(first), Some(second)) = (writer(value), writer(next)) else { return };
        if first == second {
            return;
        }
        let (first, second) = (&own[first], &own[second]);
        let (Some(from), Some(to)) = (first.commit, second.commit) else { return };
        self.add_edge(from, to, Why::Written { key, value, next });
        if let Some(snapshot) = second.snapshot {
            self.add_edge(from, snapshot, Why::FirstCommitter { key, value, next });
        }
    }

    fn add_read(
        &mut self,
        orders: &Orders,
        own: &[Own],
        seen: &Seen,
        unread: &HashMap<Key, Vec<(Value, usize)>>,
    ) {
        let Seen { transaction, read, how, key, list, is_own } = seen;
        let (how, key) = (*how, *key);
        let Some(longest) = orders.longest.get(&key) else { return };
        let holds_at_commit = how == Read::Locked && orders.took_place[*transaction];
        // What the transaction wrote may hide what others have written since.
        if *is_own && how != Read::Snapshot && !holds_at_commit {
            return;
        }
        let moments = &own[*transaction];
        let moment = moments.plain.get(read).copied().or(match how {
            Read::Locked => moments.commit,
            Read::Snapshot => moments.snapshot,
            Read::Plain => None,
        });
        let Some(moment) = moment else { return };
        let commit_of = |value: Value| {
            let writer =
                orders.writers.get(&(key, value)).filter(|writer| **writer != *transaction);
            writer.and_then(|&writer| own[writer].commit)
        };
        if let Some(&value) = list.last()
            && let Some(from) = commit_of(value)
        {
            self.add_edge(from, moment, Why::Read { key, value, how });
        }
        if let Some(&next) = longest.get(list.len()) {
            if let Some(to) = commit_of(next) {
                self.add_edge(moment, to, Why::Overwritten { key, how, next });
            }
            return;
        }
        for &(next, _) in unread.get(&key).into_iter().flatten() {
            if let Some(to) = commit_of(next) {
                self.add_edge(moment, to, Why::Overwritten { key, how, next });
            }
        }
    }

    /// Joins transactions through the ends between them.
    fn add_time(&mut self, history: &History, own: &[Own]) {
        let mut ends: Vec<(u64, usize)> = Vec::new();
        for (at, transaction) in history.transactions.iter().enumerate() {
            if let (Some(ended), Some(_)) = (transaction.ended, own[at].all.last()) {
                ends.push((ended, at));
            }
        }
        ends.sort_unstable();
        let first = self.moments.len();
        for (number, (_, at)) in ends.iter().enumerate() {
            let end = self.add_moment(Moment::End);
            if number > 0 {
                self.add_edge(end - 1, end, Why::Time);
            }
            let last = *own[*at].all.last().expect("it has moments");
            self.add_edge(last, end, Why::Time);
        }
        for (at, transaction) in history.transactions.iter().enumerate() {
            let before = ends.partition_point(|(ended, _)| *ended < transaction.begun);
            if let (Some(&moment), true) = (own[at].all.first(), before > 0) {
                self.add_edge(first + before - 1, moment, Why::Time);
            }
        }
    }
}
