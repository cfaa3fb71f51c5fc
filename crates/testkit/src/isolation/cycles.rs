//! The search for cycles, and what they mean.
//!
//! In each stage more kinds of edges count, and the search ends with the first stage that has a
//! cycle. Strongly connected components are found by Tarjan's algorithm; of each the shortest cycle
//! is told.

use std::collections::{HashMap, VecDeque};

use super::anomaly::{Anomaly, Level};
use super::graph::{Edge, Graph, Moment, Why};
use super::history::{History, Read};

/// From so many moments of a component the shortest cycle is sought.
const STARTS_MAX: usize = 50;

/// So many cycles are told.
const CYCLES_MAX: usize = 5;

/// Which edges count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Writes,
    Reads,
    Overwrites,
    Time,
}

const STAGES: [Stage; 4] = [Stage::Writes, Stage::Reads, Stage::Overwrites, Stage::Time];

impl Stage {
    fn of(why: Why) -> Self {
        match why {
            Why::Written { .. } => Self::Writes,
            Why::Read { .. } | Why::Within => Self::Reads,
            Why::Overwritten { .. } | Why::FirstCommitter { .. } => Self::Overwrites,
            Why::Time => Self::Time,
        }
    }
}

/// A step of a cycle: from this moment along an edge.
#[derive(Clone, Copy)]
struct Hop {
    from: usize,
    to: usize,
    why: Why,
}

/// The cycles of the first stage that has any.
pub(super) fn search(history: &History, graph: &Graph) -> Vec<Anomaly> {
    for stage in STAGES {
        let components = components(graph, stage);
        let cycles = components.iter().take(CYCLES_MAX);
        let found: Vec<Anomaly> = cycles
            .map(|component| anomaly(history, graph, stage, &shortest(graph, stage, component)))
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

fn edges(graph: &Graph, stage: Stage, from: usize) -> impl Iterator<Item = &Edge> {
    graph.edges[from].iter().filter(move |edge| Stage::of(edge.why) <= stage)
}

/// Where the visit of a moment stands.
struct Visit {
    moment: usize,
    next_edge: usize,
}

/// The strongly connected components of several moments (Tarjan), without recursion.
fn components(graph: &Graph, stage: Stage) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let count = graph.moments.len();
    let (mut index, mut low) = (vec![NEW; count], vec![NEW; count]);
    let (mut is_open, mut open) = (vec![false; count], Vec::new());
    let (mut next, mut found) = (0, Vec::new());
    for root in 0..count {
        if index[root] != NEW {
            continue;
        }
        let mut visits = vec![Visit { moment: root, next_edge: 0 }];
        while let Some(Visit { moment, next_edge }) = visits.last_mut() {
            let moment = *moment;
            if *next_edge == 0 && index[moment] == NEW {
                (index[moment], low[moment]) = (next, next);
                next += 1;
                open.push(moment);
                is_open[moment] = true;
            }
            if let Some(edge) = graph.edges[moment].get(*next_edge) {
                *next_edge += 1;
                if Stage::of(edge.why) > stage {
                } else if index[edge.to] == NEW {
                    visits.push(Visit { moment: edge.to, next_edge: 0 });
                } else if is_open[edge.to] {
                    low[moment] = low[moment].min(index[edge.to]);
                }
                continue;
            }
            visits.pop();
            if let Some(Visit { moment: parent, .. }) = visits.last() {
                low[*parent] = low[*parent].min(low[moment]);
            }
            if low[moment] == index[moment] {
                let at = open.iter().rposition(|other| *other == moment).expect("it is open");
                let component = open.split_off(at);
                component.iter().for_each(|member| is_open[*member] = false);
                if component.len() > 1 {
                    found.push(component);
                }
            }
        }
    }
    found
}

/// The cycle of fewest steps through any of the first moments of a component.
fn shortest(graph: &Graph, stage: Stage, component: &[usize]) -> Vec<Hop> {
    let transactions = component.iter().filter(|&&at| graph.moments[at] != Moment::End);
    let cycles = transactions.take(STARTS_MAX).map(|&start| cycle(graph, stage, component, start));
    cycles.min_by_key(Vec::len).expect("a component has moments of transactions")
}

/// The cycle of fewest steps through this moment; from end to end costs nothing.
fn cycle(graph: &Graph, stage: Stage, component: &[usize], start: usize) -> Vec<Hop> {
    let mut costs: HashMap<usize, usize> =
        component.iter().map(|member| (*member, usize::MAX)).collect();
    let mut came: HashMap<usize, Hop> = HashMap::new();
    let mut queue = VecDeque::from([(start, 0)]);
    while let Some((from, cost)) = queue.pop_front() {
        if from == start && cost > 0 {
            break;
        }
        for Edge { to, why } in edges(graph, stage, from) {
            let is_free = [from, *to].iter().all(|&at| graph.moments[at] == Moment::End);
            let cost = cost + usize::from(!is_free);
            if costs.get(to).is_none_or(|known| *known <= cost) {
                continue;
            }
            costs.insert(*to, cost);
            came.insert(*to, Hop { from, to: *to, why: *why });
            if is_free { queue.push_front((*to, cost)) } else { queue.push_back((*to, cost)) }
        }
    }
    let mut hops = vec![came[&start]];
    while hops[hops.len() - 1].from != start {
        let last = hops[hops.len() - 1].from;
        hops.push(came[&last]);
    }
    hops.reverse();
    // It is told from the first transaction on.
    let first = |at: &usize| graph.moments[hops[*at].from].transaction().unwrap_or(usize::MAX);
    let first = (0..hops.len()).min_by_key(first).expect("a cycle has hops");
    hops.rotate_left(first);
    hops
}

fn anomaly(history: &History, graph: &Graph, stage: Stage, hops: &[Hop]) -> Anomaly {
    let moments: Vec<Moment> = hops.iter().map(|hop| graph.moments[hop.from]).collect();
    let overwrites = hops.iter().filter(|hop| matches!(hop.why, Why::Overwritten { .. })).count();
    let plain = moments.iter().filter(|moment| matches!(moment, Moment::Plain(_))).count();
    let in_snapshots = moments.iter().any(|moment| matches!(moment, Moment::Snapshot(_)));
    let (name, level) = match stage {
        Stage::Writes => ("write cycle (G0)", Level::ReadCommitted),
        Stage::Reads => ("circular information flow (G1c)", Level::ReadCommitted),
        Stage::Overwrites if is_lost_update(hops) => ("lost update", Level::SnapshotIsolation),
        Stage::Overwrites if in_snapshots => ("read skew (G-SI)", Level::SnapshotIsolation),
        Stage::Overwrites if plain > 1 => ("non-monotonic reads", Level::ReadCommitted),
        Stage::Overwrites if plain == 1 => ("fractured read", Level::ReadCommitted),
        Stage::Overwrites if overwrites == 1 => {
            ("single anti-dependency cycle (G-single)", Level::SnapshotIsolation)
        }
        Stage::Overwrites => ("write skew (G2)", Level::Serializable),
        Stage::Time => ("stale read or write, against time", Level::StrictSerializable),
    };
    let involved = moments.iter().filter_map(|moment| moment.transaction()).collect();
    Anomaly { name, level, words: words(history, graph, hops), involved }
}

/// Two transactions read a list and append to it, and neither saw the other's.
fn is_lost_update(hops: &[Hop]) -> bool {
    let without_within: Vec<&Hop> = hops.iter().filter(|hop| hop.why != Why::Within).collect();
    let [first, second] = without_within[..] else { return false };
    let read = |hop: &Hop| match hop.why {
        Why::Overwritten { key, .. } => Some(key),
        _ => None,
    };
    let written = |hop: &Hop| match hop.why {
        Why::Written { key, .. } | Why::FirstCommitter { key, .. } => Some(key),
        _ => None,
    };
    [(first, second), (second, first)]
        .iter()
        .any(|(one, other)| read(one).is_some() && read(one) == written(other))
}

fn words(history: &History, graph: &Graph, hops: &[Hop]) -> Vec<String> {
    let name = |at: usize| graph.moments[at].transaction().map(|at| format!("T{}", at + 1));
    // A walk from one transaction's end to the next's beginning is told in one line.
    let mut left: Option<String> = None;
    let mut lines = Vec::new();
    for hop in hops {
        match (name(hop.from), name(hop.to)) {
            (Some(from), Some(to)) => lines.push(line(history, graph, hop, &from, &to)),
            (Some(from), None) => left = Some(from),
            (None, None) => {}
            (None, Some(to)) => {
                let from = left.take().expect("a cycle is told from a transaction on");
                lines.push(format!("{from} had ended before {to} began"));
            }
        }
    }
    lines
}

fn line(history: &History, graph: &Graph, hop: &Hop, from: &str, to: &str) -> String {
    let as_read = |how: Read| match how {
        Read::Locked => "",
        Read::Snapshot => " in its snapshot",
        Read::Plain => " plainly",
    };
    match hop.why {
        Why::Written { key, value, next } => {
            format!("{from} appended {value} to key {key}, and {to} appended {next} behind it")
        }
        Why::Read { key, value, how } => {
            format!("{from} appended {value} to key {key}, and {to} read it{}", as_read(how))
        }
        Why::Overwritten { key, how, next } => {
            let reader = graph.moments[hop.from].transaction().expect("a read is a transaction's");
            let reads = history.transactions[reader].reads();
            let list = reads.filter(|read| (read.0, read.1) == (how, key)).map(|read| read.2);
            let list = list.last().unwrap_or_default();
            let how = as_read(how);
            format!("{from} read key {key} as {list:?}{how}, before {to} appended {next}")
        }
        Why::FirstCommitter { key, value, next } => format!(
            "{from} appended {value} to key {key}, and {to}, which appended {next} behind it, must have \
             taken its snapshot later"
        ),
        Why::Within => match (graph.moments[hop.from], graph.moments[hop.to]) {
            (Moment::Snapshot(_), Moment::Commit(_)) => {
                format!("{from} took its snapshot before it committed")
            }
            (Moment::Snapshot(_), _) => format!("{from} took its snapshot before it read plainly"),
            (_, Moment::Commit(_)) => format!("{from} read plainly before it committed"),
            _ => format!("{from} read plainly twice"),
        },
        Why::Time => format!("{from} had ended before {to} began"),
    }
}
