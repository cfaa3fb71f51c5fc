//! Every policy against traces worked by hand, and against its definition written down naively on
//! vectors.

use std::collections::HashMap;

use super::*;

/// A cache of keys without values.
struct Keys {
    policy: Box<dyn Policy + Send>,
    slots: HashMap<u64, u32>,
    /// Freed ones first.
    free: Vec<u32>,
    keys: Vec<u64>,
}

/// What comes of a request.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Hit,
    Miss(Vec<u64>),
    Refused,
}

impl Keys {
    fn new(mut policy: Box<dyn Policy + Send>, capacity: u64) -> Self {
        policy.set_capacity(capacity);
        Self { policy, slots: HashMap::new(), free: Vec::new(), keys: Vec::new() }
    }

    fn make_room(&mut self, charge: u64) -> Vec<u64> {
        let mut left = Vec::new();
        while let Some(slot) = self.policy.evict(charge) {
            let key = self.keys[slot as usize];
            assert_eq!(self.slots.remove(&key), Some(slot), "what leaves was there");
            self.free.push(slot);
            left.push(key);
        }
        left
    }

    fn request(&mut self, key: u64, charge: u64) -> Outcome {
        if let Some(&slot) = self.slots.get(&key) {
            self.policy.hit(slot);
            return Outcome::Hit;
        }
        if charge > self.policy.largest() {
            return Outcome::Refused;
        }
        let left = self.make_room(charge);
        let slot = self.free.pop().unwrap_or(self.keys.len() as u32);
        *at_slot(&mut self.keys, slot, 0) = key;
        self.slots.insert(key, slot);
        self.policy.inserted(slot, Incoming::new(key, charge));
        Outcome::Miss(left)
    }

    fn erase(&mut self, key: u64) {
        if let Some(slot) = self.slots.remove(&key) {
            self.policy.removed(slot);
            self.free.push(slot);
        }
    }
}

fn build(name: &str) -> Box<dyn Policy + Send> {
    let (name, ratio) = name.split_once('+').unwrap_or((name, "0"));
    let (_, kind) =
        PolicyKind::NAMES.iter().find(|(known, _)| *known == name).expect("a policy's name");
    kind.build(ratio.parse().expect("a ratio"))
}

fn show(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Hit => "hit".to_string(),
        Outcome::Refused => "miss, refused".to_string(),
        Outcome::Miss(left) if left.is_empty() => "miss".to_string(),
        Outcome::Miss(left) => {
            let names: Vec<_> = left.iter().map(|key| char::from(*key as u8).to_string()).collect();
            format!(
                "miss, {} {}",
                names.join(" "),
                if left.len() == 1 { "leaves" } else { "leave" }
            )
        }
    }
}

#[test]
fn traces_worked_by_hand() {
    let mut keys = None;
    let mut requests = 0;
    for (number, line) in include_str!("testdata/traces.txt").lines().enumerate() {
        if let Some(head) = line.strip_prefix("== ") {
            let (name, capacity) = head.split_once(' ').expect("a policy and its capacity");
            keys = Some(Keys::new(build(name), capacity.parse().expect("a capacity")));
        } else if !line.is_empty() && !line.starts_with('#') {
            let (request, rest) = line.split_once("  ").expect("a request and what comes of it");
            let expected = rest.split('|').next().expect("something").trim();
            let (key, charge) = request.split_once(':').unwrap_or((request, "1"));
            let keys = keys.as_mut().expect("a policy first");
            let outcome =
                keys.request(u64::from(key.as_bytes()[0]), charge.parse().expect("a size"));
            assert_eq!(show(&outcome), expected, "line {}: {line}", number + 1);
            requests += 1;
        }
    }
    assert!(requests > 100, "only {requests} requests");
}

/// A definition, on plain vectors with the newest entry last: which keys leave before this one
/// comes in, if it is not there.
trait Definition {
    fn request(&mut self, key: u64, charge: u64) -> Outcome;
}

type Queue = Vec<(u64, u64)>;

fn charge_of(queue: &Queue) -> u64 {
    queue.iter().map(|(_, charge)| charge).sum()
}

fn place_of(queue: &Queue, key: u64) -> Option<usize> {
    queue.iter().position(|(held, _)| *held == key)
}

/// Segments from the bottom with their capacities, where the lowest one's is that of the whole if
/// it is not strict.
struct Segments {
    segments: Vec<Queue>,
    upper: u64,
    lowest: u64,
    strict: bool,
}

impl Definition for Segments {
    fn request(&mut self, key: u64, charge: u64) -> Outcome {
        let top = self.segments.len() - 1;
        let found = (0..=top).find_map(|at| Some((at, place_of(&self.segments[at], key)?)));
        if let Some((segment, place)) = found {
            let entry = self.segments[segment].remove(place);
            self.segments[(segment + 1).min(top)].push(entry);
            for segment in (1..=top).rev() {
                while charge_of(&self.segments[segment]) > self.upper {
                    let entry = self.segments[segment].remove(0);
                    self.segments[segment - 1].push(entry);
                }
            }
            return Outcome::Hit;
        }
        let mut left = Vec::new();
        let used = |segments: &[Queue], strict: bool| -> u64 {
            if strict { charge_of(&segments[0]) } else { segments.iter().map(charge_of).sum() }
        };
        if charge > self.lowest {
            return Outcome::Refused;
        }
        while used(&self.segments, self.strict) + charge > self.lowest {
            let from =
                self.segments.iter_mut().find(|segment| !segment.is_empty()).expect("an entry");
            left.push(from.remove(0).0);
        }
        self.segments[0].push((key, charge));
        Outcome::Miss(left)
    }
}

/// The listing of the paper, with a queue whose front is the end of the vector.
struct SieveListing {
    queue: Vec<(u64, u64, bool)>,
    hand: Option<u64>,
    capacity: u64,
}

impl Definition for SieveListing {
    fn request(&mut self, key: u64, charge: u64) -> Outcome {
        if let Some(entry) = self.queue.iter_mut().find(|entry| entry.0 == key) {
            entry.2 = true;
            return Outcome::Hit;
        }
        let mut left = Vec::new();
        while self.queue.iter().map(|entry| entry.1).sum::<u64>() + charge > self.capacity {
            let mut at = self.hand.map_or(0, |hand| {
                self.queue
                    .iter()
                    .position(|entry| entry.0 == hand)
                    .expect("the hand is on an entry")
            });
            while self.queue[at].2 {
                self.queue[at].2 = false;
                at = (at + 1) % self.queue.len();
            }
            self.hand = self.queue.get(at + 1).map(|entry| entry.0);
            left.push(self.queue.remove(at).0);
        }
        self.queue.push((key, charge, false));
        Outcome::Miss(left)
    }
}

/// The listing of the paper; a ghost that comes back leaves a gap.
#[derive(Default)]
struct S3FifoListing {
    small: Queue,
    main: Queue,
    ghost: Queue,
    frequency: HashMap<u64, u8>,
    capacity: u64,
}

impl S3FifoListing {
    fn evict_small(&mut self) -> Option<u64> {
        while !self.small.is_empty() {
            let (key, charge) = self.small.remove(0);
            if self.frequency[&key] > 1 {
                self.frequency.insert(key, 0);
                self.main.push((key, charge));
            } else {
                self.ghost.push((key, charge));
                while charge_of(&self.ghost) > self.capacity - self.capacity / 10 {
                    self.ghost.remove(0);
                }
                return Some(key);
            }
        }
        None
    }

    fn evict_main(&mut self) -> Option<u64> {
        while !self.main.is_empty() {
            let (key, charge) = self.main.remove(0);
            if self.frequency[&key] == 0 {
                return Some(key);
            }
            *self.frequency.entry(key).or_default() -= 1;
            self.main.push((key, charge));
        }
        None
    }
}

impl Definition for S3FifoListing {
    fn request(&mut self, key: u64, charge: u64) -> Outcome {
        if place_of(&self.small, key).or(place_of(&self.main, key)).is_some() {
            let frequency = self.frequency.entry(key).or_default();
            *frequency = (*frequency + 1).min(3);
            return Outcome::Hit;
        }
        let mut left = Vec::new();
        while charge_of(&self.small) + charge_of(&self.main) + charge > self.capacity {
            let small = charge_of(&self.small) >= self.capacity / 10;
            let victim = if small { self.evict_small() } else { self.evict_main() };
            left.extend(victim.or_else(|| self.evict_main()).or_else(|| self.evict_small()));
        }
        match place_of(&self.ghost, key) {
            Some(place) => {
                self.ghost[place].0 = u64::MAX;
                self.main.push((key, charge));
            }
            None => self.small.push((key, charge)),
        }
        self.frequency.insert(key, 0);
        Outcome::Miss(left)
    }
}

/// Uses since it came in, and when last; the smallest leaves.
#[derive(Default)]
struct LfuDefinition {
    entries: Vec<(u64, u64, u64, u64)>,
    clock: u64,
    capacity: u64,
}

impl Definition for LfuDefinition {
    fn request(&mut self, key: u64, charge: u64) -> Outcome {
        self.clock += 1;
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.2 == key) {
            (entry.0, entry.1) = (entry.0 + 1, self.clock);
            return Outcome::Hit;
        }
        let mut left = Vec::new();
        while self.entries.iter().map(|entry| entry.3).sum::<u64>() + charge > self.capacity {
            self.entries.sort_unstable();
            left.push(self.entries.remove(0).2);
        }
        self.entries.push((1, self.clock, key, charge));
        Outcome::Miss(left)
    }
}

fn definition(name: &str, capacity: u64) -> Box<dyn Definition> {
    let segments = |count, upper, lowest, strict| {
        Box::new(Segments { segments: vec![Vec::new(); count], upper, lowest, strict })
    };
    match name {
        "lru" => segments(1, 0, capacity, false),
        "lru+0.5" => segments(2, capacity / 2, capacity, false),
        "slru" => segments(2, capacity * 4 / 5, capacity, false),
        "s4lru" => segments(4, capacity / 4, capacity / 4, true),
        "sieve" => Box::new(SieveListing { queue: Vec::new(), hand: None, capacity }),
        "s3_fifo" => Box::new(S3FifoListing { capacity, ..Default::default() }),
        "lfu" => Box::new(LfuDefinition { capacity, ..Default::default() }),
        other => panic!("{other} has no definition here"),
    }
}

#[test]
fn long_random_traces_go_as_defined() {
    for name in ["lru", "lru+0.5", "slru", "s4lru", "sieve", "s3_fifo", "lfu"] {
        for (seed, largest) in [(1, 1), (2, 1), (3, 4), (4, 9)] {
            let mut random = fastrand::Rng::with_seed(seed);
            let capacity = 40 + seed * 17;
            let mut keys = Keys::new(build(name), capacity);
            let mut defined = definition(name, capacity);
            for step in 0..20_000 {
                // Half of the requests go to a tenth of the keys.
                let key = random.u64(..200) / if random.bool() { 10 } else { 1 };
                let charge = 1 + key * 7 % largest;
                let outcome = keys.request(key, charge);
                assert_eq!(
                    outcome,
                    defined.request(key, charge),
                    "{name}, seed {seed}, step {step}"
                );
            }
        }
    }
}

/// What a live cache does: entries are erased, the capacity changes, and some cost nothing.
#[test]
fn charges_stay_within_a_capacity_that_changes() {
    for (name, _) in PolicyKind::NAMES {
        for seed in 0..4 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut keys = Keys::new(build(name), 100);
            let mut capacity = 100;
            for _ in 0..20_000 {
                let key = random.u64(..200);
                match random.u8(..20) {
                    0 => {
                        capacity = random.u64(..300);
                        keys.policy.set_capacity(capacity);
                        keys.make_room(0);
                    }
                    1..4 => keys.erase(key),
                    _ => _ = keys.request(key, key % 10),
                }
                let used: u64 = keys.slots.keys().map(|key| key % 10).sum();
                assert!(used <= capacity, "{name}: {used} bytes in {capacity}");
            }
            keys.policy.set_capacity(0);
            keys.make_room(0);
            assert!(keys.slots.keys().all(|key| key % 10 == 0), "{name} keeps more than it may");
        }
    }
}

/// Why there are others than LRU: what is used again and again stays while a scan goes by.
#[test]
fn a_scan_flushes_lru_but_not_those_that_resist() {
    for (name, survives) in [
        ("lru", false),
        ("fifo", false),
        ("lru+0.5", true),
        ("lfu", true),
        ("slru", true),
        ("s4lru", true),
        ("s3_fifo", true),
        ("w_tiny_lfu", true),
    ] {
        let mut keys = Keys::new(build(name), 1000);
        (0..4).for_each(|_| (0..100).for_each(|key| _ = keys.request(key, 1)));
        (1000..6000).for_each(|key| _ = keys.request(key, 1));
        let kept = (0..100).filter(|key| keys.slots.contains_key(key)).count();
        let expected = if survives { 95..=100 } else { 0..=0 };
        assert!(expected.contains(&kept), "{name}: {kept} kept");
    }
}
