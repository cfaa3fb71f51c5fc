//! A tree under random load: flushes, compactions that end in any order, snapshots' worth of old
//! versions. Whatever the picker decides, newer versions of a key must stay above older ones, and
//! what it says of the levels below must hold.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::*;
use crate::base::{
    ColumnFamilyId, Comparator, FileNumber, InternalKeyBuf, InternalKeyComparator, SequenceNumber,
    ValueType,
};
use crate::manifest::{
    FileMetadata, ObsoleteFiles, TableFile, Version, VersionBuilder, VersionEdit,
};
use crate::options::{CompactionPri, CompactionStopStyle, UniversalCompactionOptions};

/// Bytes that one entry counts for.
const ENTRY_BYTES: u64 = 10;

type Entries = Vec<(Vec<u8>, SequenceNumber)>;

/// The tree and what is in its tables. All versions of a key are kept, as if a snapshot needed
/// each.
struct Tree {
    random: fastrand::Rng,
    settings: LeveledSettings,
    universal: Option<UniversalCompactionOptions>,
    version: Version,
    contents: BTreeMap<FileNumber, Entries>,
    running: Vec<CompactionPlan>,
    next_number: u64,
    next_sequence: SequenceNumber,
    key_space: u32,
    /// How often a part of the oldest two runs was merged.
    parts: u32,
    /// How often a piece of all runs was merged.
    pieces: u32,
    /// The merging of all runs that goes on, that of the picker and that of somebody who asked.
    merging: Option<Merging>,
    asked: Option<Vec<u8>>,
    /// Seconds: each flush takes one.
    now: u64,
}

#[test]
fn versions_never_overtake_each_other_under_random_load() {
    (0..60).for_each(|seed| Tree::new(seed).live(seed));
}

/// Runs that are merged in parts as often as can be.
#[test]
fn parts_of_runs_do_not_overtake_each_other_either() {
    let mut parts = 0;
    for seed in 0..150 {
        let mut tree = Tree::new(2 * seed + 1);
        let universal = tree.universal.as_mut().expect("a tree with an odd seed is of that style");
        universal.incremental = true;
        universal.size_ratio = 0;
        universal.max_size_amplification_percent = tree.random.u32(5..80);
        tree.settings.level0_file_num_compaction_trigger = 2;
        tree.settings.max_compaction_bytes = tree.random.u64(50..300);
        let order = InternalKeyComparator::new(Comparator::Bytewise);
        tree.version = Version::empty(order, Arc::default(), 5);
        tree.live(seed);
        parts += tree.parts;
    }
    assert!(parts > 30, "only {parts} parts");
}

/// All runs, merged in pieces for their size, for their age and for somebody who asked, while other
/// merges go on.
#[test]
fn pieces_of_all_runs_do_not_overtake_each_other_either() {
    let mut pieces = 0;
    for seed in 0..300 {
        let mut tree = Tree::new(2 * seed + 1);
        tree.settings.max_compaction_bytes = tree.random.u64(50..800);
        tree.settings.periodic_compaction_seconds = tree.random.choice([0, 20, 40]).unwrap();
        tree.settings.level0_file_num_compaction_trigger = tree.random.usize(2..6);
        let order = InternalKeyComparator::new(Comparator::Bytewise);
        tree.version = Version::empty(order, Arc::default(), tree.random.usize(3..8));
        tree.live(seed);
        pieces += tree.pieces;
    }
    assert!(pieces > 300, "only {pieces} pieces");
}

impl Tree {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let order = InternalKeyComparator::new(Comparator::Bytewise);
        let settings = LeveledSettings {
            level0_file_num_compaction_trigger: random.usize(1..5),
            runs_without_delay: random.usize(1..10),
            write_buffer_size: random.u64(1..300),
            max_bytes_for_level_base: random.u64(100..1000),
            max_bytes_for_level_multiplier: random.u64(2..6) as f64,
            dynamic_level_bytes: random.bool(),
            target_file_size_base: random.u64(50..300),
            max_compaction_bytes: random.u64(300..3000),
            priority: random
                .choice([CompactionPri::MinOverlappingRatio, CompactionPri::OldestSmallestSeqFirst])
                .unwrap(),
            ttl_seconds: 0,
            ..LeveledSettings::default()
        };
        let universal = (seed % 2 == 1).then(|| UniversalCompactionOptions {
            size_ratio: random.u32(0..100),
            min_merge_width: random.u32(0..8),
            max_merge_width: random.u32(0..10),
            max_size_amplification_percent: random.u32(20..300),
            stop_style: random
                .choice([CompactionStopStyle::TotalSize, CompactionStopStyle::SimilarSize])
                .unwrap(),
            allow_trivial_move: random.bool(),
            incremental: random.bool(),
            max_read_amp: random.choice([-1, 0, 6]).unwrap(),
            ..UniversalCompactionOptions::default()
        });
        let several = seed % 4 >= 2;
        let settings = LeveledSettings {
            dynamic_level_bytes: settings.dynamic_level_bytes && universal.is_none() && !several,
            path_sizes: if several { vec![300, 1500, 0] } else { vec![u64::MAX] },
            ..settings
        };
        Self {
            universal,
            key_space: random.choice([20, 1000]).unwrap(),
            version: Version::empty(order, Arc::default(), random.usize(2..7)),
            random,
            settings,
            contents: BTreeMap::new(),
            running: Vec::new(),
            next_number: 1,
            next_sequence: 1,
            parts: 0,
            pieces: 0,
            merging: None,
            asked: None,
            now: 1,
        }
    }

    fn live(&mut self, seed: u64) {
        for step in 0..120 {
            match self.random.u32(0..12) {
                0..5 => self.flush(),
                5..9 => {
                    self.start();
                }
                9 => self.start_manual(),
                _ => self.finish_one(),
            }
            self.check(&format!("seed {seed} step {step}"));
        }
        self.settle();
        self.check(&format!("seed {seed} settled"));
    }

    fn flush(&mut self) {
        let start = self.random.u32(0..self.key_space);
        let widest = self.key_space >> self.random.u32(0..4);
        let span = self.random.u32(1..=widest);
        let mut entries: Entries = (0..self.random.usize(1..20))
            .map(|_| {
                let key = (start + self.random.u32(0..span)) % self.key_space;
                self.next_sequence += 1;
                (format!("{key:04}").into_bytes(), self.next_sequence)
            })
            .collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        self.now += 1;
        let mut edit = VersionEdit::new(ColumnFamilyId::DEFAULT);
        let epoch = self.next_sequence;
        edit.add_file(0, self.new_table(entries, epoch));
        self.apply(&edit);
    }

    fn new_table(&mut self, entries: Entries, epoch_number: u64) -> FileMetadata {
        let number = FileNumber(self.next_number);
        self.next_number += 1;
        let key = |at: usize| InternalKeyBuf::new(&entries[at].0, entries[at].1, ValueType::Value);
        let seqnos = || entries.iter().map(|entry| entry.1);
        let meta = FileMetadata {
            number,
            size: entries.len() as u64 * ENTRY_BYTES,
            smallest: key(0),
            largest: key(entries.len() - 1),
            smallest_seqno: seqnos().min().unwrap(),
            largest_seqno: seqnos().max().unwrap(),
            epoch_number,
            file_creation_time: self.now,
            ..FileMetadata::default()
        };
        self.contents.insert(number, entries);
        meta
    }

    fn apply(&mut self, edit: &VersionEdit) {
        let mut builder = VersionBuilder::new(&self.version, Arc::new(ObsoleteFiles::default()));
        builder.apply(edit).unwrap();
        self.version = builder.build().unwrap();
    }

    /// Starts what the picker wants; whether it wants anything.
    fn start(&mut self) -> bool {
        let running: Vec<_> = self.running.iter().map(CompactionPlan::running).collect();
        let merging = self.merging.clone();
        let context = PickContext {
            running: &running,
            merging: merging.as_ref(),
            now_unix_seconds: self.now,
            ..PickContext::default()
        };
        let plan = match &self.universal {
            None => pick(&self.version, &self.settings, &context),
            Some(universal) => pick_universal(&self.version, &self.settings, universal, &context),
        };
        let Some(plan) = plan else { return false };
        self.run(plan);
        true
    }

    /// Starts what somebody asks for, if nothing is in the way.
    fn start_manual(&mut self) {
        if let Some(universal) = &self.universal {
            let running: Vec<_> = self.running.iter().map(CompactionPlan::running).collect();
            let context = PickContext { running: &running, ..PickContext::default() };
            let output = (self.random.u32(0..3), self.random.bool());
            let begin = self.asked.take();
            match plan_full(
                &self.version,
                &self.settings,
                universal,
                &context,
                output,
                begin.as_deref(),
            ) {
                RangePlan::Ready { plan, rest } => {
                    self.asked = rest;
                    self.run(*plan);
                }
                RangePlan::Blocked => self.asked = begin,
                RangePlan::Nothing => {}
            }
            return;
        }
        let level = self.random.usize(0..self.version.levels.len() - 1);
        let targets = LevelTargets::new(&self.version, &self.settings);
        let output_level =
            if level == 0 { targets.base_level } else { level + self.random.usize(0..2) };
        let mut key = || format!("{:04}", self.random.u32(0..self.key_space)).into_bytes();
        let (begin, end) = (key(), key());
        let request = RangeRequest {
            level,
            spared_from: None,
            output_level,
            begin: Some(begin.as_slice().min(&end)),
            end: Some(begin.as_slice().max(&end)),
            path_id: self.random.u32(0..3),
            allow_trivial_move: self.random.bool(),
        };
        let running: Vec<_> = self.running.iter().map(CompactionPlan::running).collect();
        let context = PickContext { running: &running, ..PickContext::default() };
        if let RangePlan::Ready { plan, .. } =
            plan_range(&self.version, &self.settings, &context, &request)
        {
            self.run(*plan);
        }
    }

    fn run(&mut self, plan: CompactionPlan) {
        for (_, file) in plan.files() {
            assert!(!file.being_compacted.swap(true, Ordering::Relaxed), "picked twice");
        }
        self.check_plan(&plan);
        let is_part = plan.files().count() < self.version.files().count();
        self.parts += u32::from(is_part && plan.reason == CompactionReason::SizeAmplification);
        self.pieces += u32::from(plan.rest.is_some());
        self.running.push(plan);
    }

    /// What the plan says of the levels below its output must hold.
    fn check_plan(&self, plan: &CompactionPlan) {
        let inputs: Vec<_> = plan.files().map(|(_, file)| file.number()).collect();
        // For each key elsewhere, its oldest version and the level of that.
        let mut oldest: BTreeMap<&[u8], (SequenceNumber, usize)> = BTreeMap::new();
        for (level, file) in
            self.version.files().filter(|(_, file)| !inputs.contains(&file.number()))
        {
            for (key, sequence) in &self.contents[&file.number()] {
                let found = oldest.entry(key).or_insert((*sequence, level));
                *found = (*found).min((*sequence, level));
            }
        }
        let mut below = KeysBelow::new(&self.version, plan.output_level);
        for (key, sequence) in self.merged(plan) {
            let older = oldest.get(key.as_slice()).filter(|(other, _)| *other < sequence);
            let absent = below.surely_absent(&key);
            assert!(
                older.is_none() || !plan.bottommost,
                "{}: older {}",
                plan.reason,
                key.escape_ascii()
            );
            assert!(
                older
                    .is_none_or(|&(_, level)| level <= plan.output_level && plan.output_level == 0)
                    || !absent
            );
        }
    }

    fn merged(&self, plan: &CompactionPlan) -> Entries {
        let mut entries: Entries =
            plan.files().flat_map(|(_, file)| self.contents[&file.number()].clone()).collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        entries
    }

    fn finish_one(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let plan = self.running.swap_remove(self.random.usize(0..self.running.len()));
        let mut edit = VersionEdit::new(ColumnFamilyId::DEFAULT);
        for (level, file) in plan.files() {
            edit.delete_file(level, file.number());
        }
        if plan.trivial_move {
            plan.files().for_each(|(_, file)| edit.add_file(plan.output_level, file.meta.clone()));
        } else {
            let epoch = plan.files().map(|(_, file)| file.meta.epoch_number).min().unwrap();
            let mut splitter = OutputSplitter::new(SplitRule::from(&plan), Comparator::Bytewise);
            let mut open: Entries = Vec::new();
            for (key, sequence) in self.merged(&plan) {
                let internal = InternalKeyBuf::new(&key, sequence, ValueType::Value);
                let size = (!open.is_empty()).then_some(open.len() as u64 * ENTRY_BYTES);
                if splitter.should_stop_before(internal.as_key(), size) {
                    let table = self.new_table(std::mem::take(&mut open), epoch);
                    edit.add_file(plan.output_level, table);
                }
                open.push((key, sequence));
            }
            let table = self.new_table(open, epoch);
            edit.add_file(plan.output_level, table);
        }
        plan.files().for_each(|(_, file)| file.being_compacted.store(false, Ordering::Relaxed));
        self.apply(&edit);
        let next = FileNumber(self.next_number);
        let last = last_level(&self.version, &self.settings);
        self.merging = plan.merging_after(self.merging.take(), (&self.version, last), next);
    }

    /// Ends all compactions; there must be an end to them, at which no writer waits for more.
    fn settle(&mut self) {
        for _ in 0..2000 {
            if !self.start() && self.running.is_empty() {
                let trigger = self.settings.level0_file_num_compaction_trigger;
                match self.universal {
                    Some(UniversalCompactionOptions { max_read_amp, .. }) => {
                        let allowed = match max_read_amp {
                            -1 => trigger,
                            0 => self.settings.runs_without_delay.max(trigger),
                            most => most as usize,
                        };
                        assert!(sorted_runs(&self.version) <= allowed, "{:?}", self.version);
                    }
                    None => {
                        assert!(self.version.levels[0].len() < trigger, "{:?}", self.version);
                        let targets = LevelTargets::new(&self.version, &self.settings);
                        let pending =
                            pending_compaction_bytes(&self.version, &self.settings, &targets);
                        assert_eq!(pending, 0, "{:?}", self.version);
                    }
                }
                return;
            }
            self.finish_one();
        }
        panic!("compactions do not come to an end: {:?}", self.running);
    }

    /// Going through the tables as a reader does, each key's versions come newest first.
    fn check(&self, when: &str) {
        let mut newest_possible: BTreeMap<&[u8], SequenceNumber> = BTreeMap::new();
        for (level, file) in self.version.files() {
            let entries = &self.contents[&file.number()];
            for (key, sequence) in entries {
                let above = newest_possible.insert(key, *sequence);
                assert!(
                    above.is_none_or(|above| above > *sequence),
                    "{when}: L{level} {}",
                    key.escape_ascii()
                );
            }
        }
        let busy = |file: &Arc<TableFile>| file.is_being_compacted();
        let inputs: usize = self.running.iter().map(|plan| plan.files().count()).sum();
        assert_eq!(self.version.files().filter(|(_, file)| busy(file)).count(), inputs, "{when}");
    }
}
