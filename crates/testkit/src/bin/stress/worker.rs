//! One thread of a round: random operations on its own keys, each checked at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flagstone::db::{ColumnFamily, Db};

use crate::bank::Bank;
use crate::counts::Counts;
use crate::expected::{Expected, Slot};
use crate::fault::{Fault, Trouble};
use crate::held::Held;
use crate::passing;
use crate::plan::{Config, Round};
use crate::settings::Chosen;
use crate::space::{Class, FAMILIES, Space};
use crate::value::Place;

/// What the threads of a round share.
pub struct Life<'a> {
    pub config: &'a Config,
    pub round: &'a Round,
    pub chosen: &'a Chosen,
    pub db: &'a Db,
    pub families: &'a [ColumnFamily],
    pub bank: &'a Bank,
    pub expected: &'a Expected,
    pub counts: &'a Counts,
    /// Versions of this process begin here.
    pub first_version: u64,
    /// The threads are to come to an end.
    pub stop: AtomicBool,
    /// Space is scarce: rather remove than add.
    pub is_frugal: AtomicBool,
    /// Writes that were refused for lack of space.
    pub refused: AtomicU64,
    /// Logged writes that were acknowledged.
    pub acknowledged: AtomicU64,
    /// What each thread is doing, and since when.
    pub doing: Vec<Mutex<(&'static str, Instant)>>,
}

/// One thread.
pub struct Worker<'a> {
    pub life: &'a Life<'a>,
    pub thread: usize,
    pub random: fastrand::Rng,
    /// What its keys hold, by family.
    slots: Vec<Vec<Slot>>,
    version: u64,
    pub held: Vec<Held>,
}

/// What an operation comes to.
pub type Outcome = Result<(), Trouble>;

/// How often (of all together), its name, and what to do.
type Choice<'a> = (u32, &'static str, Operation<'a>);

type Operation<'a> = fn(&mut Worker<'a>) -> Outcome;

impl<'a> Worker<'a> {
    /// What there is to do.
    const OPERATIONS: [Choice<'a>; 26] = [
        (2000, "put", Self::put),
        (500, "delete", Self::delete),
        (1000, "merge", Self::merge),
        (1000, "put or single-delete", Self::put_or_single_delete),
        (600, "batch", Self::batch),
        (800, "batch over families", Self::joint_batch),
        (120, "delete range", Self::delete_range),
        (2000, "get", Self::get),
        (400, "get of another's key", Self::get_foreign),
        (300, "joint key under a snapshot", Self::get_joint),
        (500, "multi_get", Self::multi_get),
        (300, "scan", Self::scan),
        (200, "prefix scan", Self::prefix_scan),
        (300, "walk of an iterator", Self::walk),
        (200, "snapshot or iterator held", Self::hold),
        (200, "snapshot or iterator checked", Self::check_held),
        (1000, "transfer", Self::transfer),
        (150, "audit", Self::audit),
        (30, "flush", Self::flush),
        (8, "compact range", Self::compact_range),
        (20, "set options", Self::set_options),
        (20, "sync WAL", Self::sync_wal),
        (10, "family created and dropped", passing::come_and_go),
        (5, "checkpoint", Self::checkpoint),
        (5, "reading beside a writer", Self::read_beside),
        (3, "verify files", Self::verify_files),
    ];

    /// What a thread does while space is scarce.
    const FRUGAL: [Choice<'a>; 6] = [
        (20, "delete range", Self::delete_range),
        (5, "batch over families", Self::joint_batch),
        (5, "delete", Self::delete),
        (10, "get", Self::get),
        (3, "scan", Self::scan),
        (1, "audit", Self::audit),
    ];

    /// A thread, with what its keys hold.
    pub fn new(life: &'a Life<'a>, thread: usize) -> std::io::Result<Self> {
        let range = life.config.space.of_thread(thread);
        let slots = (0..FAMILIES.len()).map(|family| {
            range.clone().map(|index| life.expected.slot(Place { family, index })).collect()
        });
        Ok(Self {
            life,
            thread,
            random: fastrand::Rng::with_seed(life.round.seed ^ (thread as u64 + 1) << 32),
            slots: slots.collect::<Result<_, _>>()?,
            version: life.first_version,
            held: Vec::new(),
        })
    }

    /// Works until told to stop.
    pub fn work(&mut self) -> Result<(), Fault> {
        while !self.life.stop.load(Ordering::Relaxed) {
            let is_frugal = self.life.is_frugal.load(Ordering::Relaxed);
            let choices = if is_frugal { &Self::FRUGAL[..] } else { &Self::OPERATIONS };
            let (name, operation) = draw(choices, &mut self.random);
            *self.life.doing[self.thread].lock().expect("nobody panics with it") =
                (name, Instant::now());
            match operation(self) {
                Ok(()) => self.life.counts.operation(name),
                // The round ends with a close under the threads.
                Err(Trouble::Closed) => return Ok(()),
                Err(Trouble::Full) => {
                    self.life.counts.add("operations that found the disk full", 1);
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(Trouble::Fault(fault)) => {
                    let place = format!("thread {}, {name}: {}", self.thread, fault.place);
                    return Err(Fault { place, ..fault });
                }
            }
        }
        Ok(())
    }

    pub fn space(&self) -> &'a Space {
        &self.life.config.space
    }

    pub fn chance(&mut self, one_in: u32) -> bool {
        self.random.u32(..one_in) == 0
    }

    pub fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    pub fn any_family(&mut self) -> usize {
        self.random.usize(..FAMILIES.len())
    }

    /// One of the thread's keys.
    pub fn own_key(&mut self, class: Class) -> usize {
        self.random.usize(self.space().of_class(self.thread, class))
    }

    /// Some neighbours among the thread's keys.
    pub fn own_stretch(&mut self, class: Option<Class>, longest: usize) -> std::ops::Range<usize> {
        let all = match class {
            Some(class) => self.space().of_class(self.thread, class),
            None => self.space().of_thread(self.thread),
        };
        let start = self.random.usize(all.clone());
        let end = (start + self.random.usize(1..=longest)).min(all.end);
        start..end
    }

    /// What one of its keys may be found to hold after a kill.
    pub fn slot(&self, place: Place) -> &Slot {
        &self.slots[place.family][place.index - self.space().of_thread(self.thread).start]
    }

    pub fn slot_mut(&mut self, place: Place) -> &mut Slot {
        let start = self.space().of_thread(self.thread).start;
        &mut self.slots[place.family][place.index - start]
    }

    /// Everything the thread wrote to a family is in tables now: it can only be found as it is.
    pub fn settle(&mut self, family: usize) -> Outcome {
        for index in self.space().of_thread(self.thread) {
            let place = Place { family, index };
            let last = Slot::certain(self.slot(place).last());
            if *self.slot(place) != last {
                self.life.expected.set_slot(place, &last)?;
                *self.slot_mut(place) = last;
            }
        }
        Ok(())
    }

    /// The length of a value: as many short as long ones.
    pub fn value_length(&mut self) -> usize {
        let longest = self.life.config.value_size as f64;
        longest.powf(self.random.f64()) as usize
    }
}

fn draw<'a>(choices: &[Choice<'a>], random: &mut fastrand::Rng) -> (&'static str, Operation<'a>) {
    let total: u32 = choices.iter().map(|(weight, ..)| weight).sum();
    let mut at = random.u32(..total);
    for (weight, name, operation) in choices {
        if at < *weight {
            return (name, *operation);
        }
        at -= weight;
    }
    unreachable!("the weights add up to the total")
}
