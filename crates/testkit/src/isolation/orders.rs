//! The orders in which lists were written, and the anomalies that show without a cycle.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::anomaly::{Anomaly, Level};
use super::history::{History, Key, Outcome, Read, Step, Transaction, Value};

/// A list as others wrote it: without what the transaction that read it had appended itself.
pub(super) struct Seen {
    /// The transaction that read it.
    pub transaction: usize,
    /// The how manieth read of this transaction it was.
    pub read: usize,
    pub how: Read,
    pub key: Key,
    pub list: Vec<Value>,
    /// The transaction had appended to the list before.
    pub is_own: bool,
}

/// What the reads tell about the order of writes.
pub(super) struct Orders {
    /// The transaction that appended a value.
    pub writers: HashMap<(Key, Value), usize>,
    /// The longest list that was read of each key. A key whose lists contradict each other is left
    /// out.
    pub longest: BTreeMap<Key, Vec<Value>>,
    /// All reads.
    pub seen: Vec<Seen>,
    /// Whether a transaction took place: it is acknowledged, or something of it was read.
    pub took_place: Vec<bool>,
}

/// The orders, and what is wrong with them.
pub(super) fn infer(history: &History) -> (Orders, Vec<Anomaly>) {
    let mut search = Search { history, found: Vec::new(), told: HashSet::new() };
    let writers = writers(history);
    let seen: Vec<Seen> =
        (0..history.transactions.len()).flat_map(|at| search.reads_of(at)).collect();
    seen.iter().for_each(|seen| search.check_values(seen, &writers));
    let longest = search.longest(&seen);
    let is_read = |transaction: &Transaction| {
        transaction
            .appends()
            .any(|(key, value)| longest.get(&key).is_some_and(|list| list.contains(&value)))
    };
    let took_place = history.transactions.iter().map(|transaction| match transaction.outcome {
        Outcome::Committed => true,
        Outcome::Failed => false,
        Outcome::Unknown => is_read(transaction),
    });
    let orders = Orders { took_place: took_place.collect(), writers, longest, seen };
    search.check_losses(&orders);
    (orders, search.found)
}

fn writers(history: &History) -> HashMap<(Key, Value), usize> {
    let mut writers = HashMap::new();
    for (at, transaction) in history.transactions.iter().enumerate() {
        for (key, value) in transaction.appends() {
            let before = writers.insert((key, value), at);
            assert!(before.is_none(), "{value} is appended to key {key} twice");
        }
    }
    writers
}

struct Search<'a> {
    history: &'a History,
    found: Vec<Anomaly>,
    /// Of each value one complaint is enough.
    told: HashSet<(&'static str, Key, Value)>,
}

impl Search<'_> {
    fn add(
        &mut self,
        name: &'static str,
        level: Level,
        involved: &[usize],
        what: (Key, Value),
        words: String,
    ) {
        if self.told.insert((name, what.0, what.1)) {
            let involved = involved.to_vec();
            self.found.push(Anomaly { name, level, words: vec![words], involved });
        }
    }

    /// The lists that a transaction read, less its own appends. It must see these, and what it
    /// reads as of one moment must not change.
    fn reads_of(&mut self, at: usize) -> Vec<Seen> {
        let transaction = &self.history.transactions[at];
        let mut own: HashMap<Key, Vec<Value>> = HashMap::new();
        let mut before: HashMap<(Key, Read), Vec<Value>> = HashMap::new();
        let (mut reads, mut next_number) = (Vec::new(), 0);
        for step in &transaction.steps {
            let (how, key, list) = match step {
                Step::Append { key, value } => {
                    own.entry(*key).or_default().push(*value);
                    continue;
                }
                Step::Read { how, key, list } => (*how, *key, list),
            };
            let number = next_number;
            next_number += 1;
            let own = own.get(&key).map_or(&[][..], Vec::as_slice);
            let others = list
                .strip_suffix(own)
                .filter(|others| others.iter().all(|value| !own.contains(value)));
            let Some(others) = others else {
                let words = format!(
                    "T{} appended {own:?} to key {key}, and then read it as {list:?}",
                    at + 1
                );
                self.add("own write missing", Level::ReadCommitted, &[at], (key, at as u64), words);
                continue;
            };
            // What is locked in a transaction that fails need not have held.
            let is_of_one_moment = match how {
                Read::Snapshot => true,
                Read::Locked => transaction.outcome == Outcome::Committed,
                Read::Plain => false,
            };
            let first = before.entry((key, how)).or_insert_with(|| others.to_vec());
            if is_of_one_moment && first != others {
                let words =
                    format!("T{} read key {key} as {first:?}, and then as {others:?}", at + 1);
                let level = Level::SnapshotIsolation;
                self.add("non-repeatable read", level, &[at], (key, at as u64), words);
            }
            let (list, is_own) = (others.to_vec(), !own.is_empty());
            reads.push(Seen { transaction: at, read: number, how, key, list, is_own });
        }
        reads
    }

    /// Every value was appended once, by a transaction that did not fail, and all of what that
    /// appended to the list is there.
    fn check_values(&mut self, seen: &Seen, writers: &HashMap<(Key, Value), usize>) {
        let Seen { transaction: reader, key, list, .. } = seen;
        let (key, level) = (*key, Level::ReadCommitted);
        let mut values = HashSet::new();
        for value in list {
            let what = (key, *value);
            let read = format!("T{} read key {key} as {list:?}", reader + 1);
            if !values.insert(value) {
                let words = format!("{read}, with {value} twice");
                self.add("duplicate append", level, &[*reader], what, words);
            }
            match writers.get(&what) {
                None => {
                    let words = format!("{read}, but no transaction appended {value}");
                    self.add("garbage read", level, &[*reader], what, words);
                }
                Some(&writer) if self.history.transactions[writer].outcome == Outcome::Failed => {
                    let words =
                        format!("{read}, but T{}, which appended {value}, failed", writer + 1);
                    self.add("aborted read (G1a)", level, &[*reader, writer], what, words);
                }
                Some(_) => {}
            }
        }
        let Some(last) = list.last() else { return };
        let Some(&writer) = writers.get(&(key, *last)) else { return };
        let appends = self.history.transactions[writer].appends();
        let newest = appends.filter(|(other, _)| *other == key).last().map(|(_, value)| value);
        if let Some(newest) = newest.filter(|newest| newest != last) {
            let words = format!(
                "T{} read key {key} as {list:?}, but T{} appended {newest} behind {last}",
                reader + 1,
                writer + 1
            );
            self.add("intermediate read (G1b)", level, &[*reader, writer], (key, *last), words);
        }
    }

    /// The longest list of each key, which must continue all others.
    fn longest(&mut self, seen: &[Seen]) -> BTreeMap<Key, Vec<Value>> {
        let mut longest: BTreeMap<Key, &Seen> = BTreeMap::new();
        for one in seen {
            let known = longest.entry(one.key).or_insert(one);
            if one.list.len() > known.list.len() {
                *known = one;
            }
        }
        let mut contradicted = HashSet::new();
        for one in seen {
            let known = longest[&one.key];
            if known.list.starts_with(&one.list) {
                continue;
            }
            contradicted.insert(one.key);
            let words = format!(
                "T{} read key {} as {:?}, and T{} as {:?}: neither continues the other",
                one.transaction + 1,
                one.key,
                one.list,
                known.transaction + 1,
                known.list
            );
            let involved = [one.transaction, known.transaction];
            let what = (one.key, 0);
            self.add("incompatible orders", Level::ReadCommitted, &involved, what, words);
        }
        let agreed = longest.into_iter().filter(|(key, _)| !contradicted.contains(key));
        agreed.map(|(key, seen)| (key, seen.list.clone())).collect()
    }

    /// What was acknowledged is in the lists that are read afterwards. (That it is in those that
    /// are read at another time, the graph shows.)
    fn check_losses(&mut self, orders: &Orders) {
        let mut last_reads: HashMap<Key, &Seen> = HashMap::new();
        for seen in &orders.seen {
            let begun = |seen: &Seen| self.history.transactions[seen.transaction].begun;
            let known = last_reads.entry(seen.key).or_insert(seen);
            if begun(seen) > begun(known) {
                *known = seen;
            }
        }
        for (at, transaction) in self.history.transactions.iter().enumerate() {
            let Some(ended) = transaction.ended.filter(|_| orders.took_place[at]) else { continue };
            for (key, value) in transaction.appends() {
                let Some(list) = orders.longest.get(&key) else { continue };
                let Some(last) = last_reads.get(&key) else { continue };
                let is_later = self.history.transactions[last.transaction].begun > ended;
                if !is_later || list.contains(&value) {
                    continue;
                }
                let words = format!(
                    "T{} appended {value} to key {key} and had ended before T{} began, which read it as {:?}",
                    at + 1,
                    last.transaction + 1,
                    last.list
                );
                let involved = [at, last.transaction];
                self.add("lost append", Level::ReadCommitted, &involved, (key, value), words);
            }
        }
    }
}
