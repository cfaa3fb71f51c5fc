//! Random histories, from a seed and from nothing else.
//!
//! Each history has its own mixture: of every kind of operation there may be none, few, the usual
//! number, or many. So some histories are about one thing, and rare combinations get their turn.

mod transactions;

use flagstone::options::{
    BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactFilesOptions,
    CompactRangeOptions, FlushOptions, Temperature,
};

use flagstone::base::compression::CompressionType;

use super::case::{ALL, FAMILIES, PASSING};
use super::operation::{Durability, Move, Operation, Power};
use crate::choices::Scope;
use crate::generate::Generator;
use crate::model::{ENTITY, Edit, ONCE, SINGLE};
use crate::settings;

/// How often each kind comes, before the history's own mixture.
const WEIGHTS: [(Kind, u32); 31] = [
    (Kind::Write, 6000),
    (Kind::Get, 250),
    (Kind::PrefixScan, 60),
    (Kind::TakeSnapshot, 100),
    (Kind::DropSnapshot, 90),
    (Kind::OpenIterator, 100),
    (Kind::MoveIterator, 300),
    (Kind::DropIterator, 60),
    (Kind::Flush, 150),
    (Kind::FlushAll, 40),
    (Kind::CompactRange, 100),
    (Kind::CompactFiles, 60),
    (Kind::SetOptions, 80),
    (Kind::CreateFamilies, 60),
    (Kind::DropFamily, 40),
    (Kind::Checkpoint, 15),
    (Kind::Reopen, 60),
    (Kind::ReadOnly, 20),
    (Kind::Background, 300),
    (Kind::Idle, 20),
    (Kind::Pass, 40),
    (Kind::SyncWal, 50),
    (Kind::FlushWal, 50),
    (Kind::Crash, 50),
    (Kind::Check, 50),
    (Kind::PutStream, 80),
    (Kind::RefreshIterator, 80),
    (Kind::SuggestCompaction, 40),
    (Kind::DeleteFiles, 25),
    (Kind::OpenScan, 50),
    (Kind::NextBatch, 150),
];

#[derive(Debug, Clone, Copy)]
enum Kind {
    Write,
    Get,
    PrefixScan,
    TakeSnapshot,
    DropSnapshot,
    OpenIterator,
    MoveIterator,
    DropIterator,
    Flush,
    FlushAll,
    CompactRange,
    CompactFiles,
    SetOptions,
    CreateFamilies,
    DropFamily,
    Checkpoint,
    Reopen,
    ReadOnly,
    Background,
    Idle,
    Pass,
    SyncWal,
    FlushWal,
    Crash,
    Check,
    PutStream,
    RefreshIterator,
    SuggestCompaction,
    DeleteFiles,
    OpenScan,
    NextBatch,
    Begin,
    GoOn,
    Commit,
    Abandon,
    Prepare,
    Decide,
}

/// Whether the history of this seed prepares transactions, for which the database must be open with
/// `allow_2pc`.
pub fn prepares(seed: u64) -> bool {
    transactions::prepares(seed)
}

/// The history of this seed.
pub fn generate(seed: u64, operations: usize) -> Vec<Operation> {
    let mut history = History::new(seed);
    let begins = if history.is_by_hand { compactions_by_hand() } else { Vec::new() };
    begins
        .into_iter()
        .chain(std::iter::repeat_with(|| history.operation()))
        .take(operations)
        .collect()
}

/// Nothing is compacted but what is asked for: tables go to any level, and levels are moved between
/// others.
fn compactions_by_hand() -> Vec<Operation> {
    let change = ("disable_auto_compactions".to_string(), "true".to_string());
    let of = |family: &str| Operation::SetOptions {
        family: Some(family.to_string()),
        changes: vec![change.clone()],
    };
    FAMILIES.into_iter().map(of).collect()
}

struct History {
    generator: Generator,
    /// Whether compactions are by hand, in every eighth history.
    is_by_hand: bool,
    mixture: Vec<(Kind, u32)>,
    /// What comes next, whatever is drawn.
    then: Option<Operation>,
    /// Keys that transactions used last; none in histories without transactions.
    recent: Vec<(String, Vec<u8>)>,
    safety: Safety,
    /// Of a hundred edits, so many delete a range.
    ranges: u8,
    merges: u8,
    /// Of a hundred puts so many are of entities.
    entities: u8,
    deletes: u8,
    /// Of sixteen batches, so many hold more than one edit.
    batches: u8,
    /// Of a hundred keys, so many are in capital letters, and so many have zeros behind them:
    /// others than those without, or the same, as the family's order is.
    forms: Forms,
    /// Of a hundred compactions of ranges, so many are of one key, and so many move a level.
    of_one_key: u8,
    moving: u8,
    /// Of a hundred keys, so many are put once.
    once: u8,
}

/// Of a hundred writes, so many are synced, unlogged or ingested.
struct Safety {
    synced: u8,
    unlogged: u8,
    ingested: u8,
}

struct Forms {
    capitals: u8,
    padded: u8,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut generator = Generator::new(seed);
        let random = &mut generator.random;
        let is_by_hand = seed % 8 == 5;
        let mut mixture: Vec<_> = WEIGHTS
            .iter()
            .map(|(kind, weight)| {
                let weight = match (kind, random.u8(..8)) {
                    (Kind::Write, _) => *weight,
                    (Kind::Flush, _) if is_by_hand => weight * 4,
                    (Kind::CompactFiles | Kind::CompactRange, _) if is_by_hand => weight * 12,
                    (_, 0) => 0,
                    (_, 1..=2) => weight / 3,
                    (_, 7) => weight * 4,
                    _ => *weight,
                };
                (*kind, weight)
            })
            .collect();
        if transactions::are_in(seed) {
            transactions::add_to(&mut mixture);
        }
        Self {
            mixture,
            safety: Safety {
                synced: [0, 5, 10, 50][random.usize(..4)],
                unlogged: [0, 0, 0, 0, 10, 50, 100][random.usize(..7)],
                ingested: if seed % 4 == 2 { [2, 10, 40][(seed / 4 % 3) as usize] } else { 0 },
            },
            ranges: [0, 3, 5, 20][random.usize(..4)],
            merges: [0, 10, 20, 50][random.usize(..4)],
            entities: [0, 0, 10, 50][random.usize(..4)],
            deletes: [2, 20, 30][random.usize(..3)],
            batches: [0, 4, 12][random.usize(..3)],
            forms: Forms {
                capitals: [0, 10, 40][random.usize(..3)],
                padded: [0, 0, 10, 40][random.usize(..4)],
            },
            of_one_key: if is_by_hand { 80 } else { [0, 20, 80][random.usize(..3)] },
            moving: if is_by_hand { 80 } else { [10, 30, 90][random.usize(..3)] },
            is_by_hand,
            then: None,
            recent: Vec::new(),
            once: [0, 0, 5, 30][random.usize(..4)],
            generator,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.generator.random.usize(..limit)
    }

    fn percent(&mut self, percent: u8) -> bool {
        self.generator.random.u8(..100) < percent
    }

    fn family(&mut self) -> String {
        let passing = self.percent(15);
        let name = if passing { PASSING[self.below(3)] } else { FAMILIES[self.below(3)] };
        name.to_string()
    }

    fn snapshot(&mut self) -> Option<usize> {
        self.percent(40).then(|| self.below(100))
    }

    fn key(&mut self) -> Vec<u8> {
        let key = if self.percent(self.once) { self.key_put_once() } else { self.generator.key() };
        self.in_some_form(key)
    }

    fn key_put_once(&mut self) -> Vec<u8> {
        format!("{}{:04}", ONCE as char, self.below(60)).into_bytes()
    }

    fn in_some_form(&mut self, mut key: Vec<u8>) -> Vec<u8> {
        if self.percent(self.forms.capitals) {
            let letters = if self.percent(50) { 1 } else { key.len() };
            key.iter_mut().take(letters).for_each(u8::make_ascii_uppercase);
        }
        if self.percent(self.forms.padded) {
            key.extend(std::iter::repeat_n(0, 1 + self.below(3)));
        }
        key
    }

    fn maybe_key(&mut self, percent: u8) -> Option<Vec<u8>> {
        self.percent(percent).then(|| self.key())
    }

    fn edit(&mut self) -> Edit {
        let key = self.key();
        if key.first().is_some_and(|first| first.to_ascii_lowercase() == SINGLE) {
            return if self.percent(50) {
                Edit::SingleDelete { key }
            } else {
                Edit::Put { key, value: self.generator.value() }
            };
        }
        if key.first().is_some_and(|first| first.to_ascii_lowercase() == ONCE) {
            return if self.percent(15) {
                Edit::DeleteRange { begin: key, end: self.key_put_once() }
            } else {
                Edit::Put { key, value: self.generator.value() }
            };
        }
        if self.percent(self.ranges) {
            let Edit::DeleteRange { begin, end } = self.generator.range() else {
                unreachable!("a range")
            };
            return Edit::DeleteRange {
                begin: self.in_some_form(begin),
                end: self.in_some_form(end),
            };
        }
        if self.percent(self.merges) {
            return Edit::Merge { key, operand: self.generator.operand() };
        }
        if self.percent(self.deletes) {
            return Edit::Delete { key };
        }
        if self.percent(self.entities) {
            return Edit::PutEntity { key, value: [ENTITY, &self.generator.value()].concat() };
        }
        Edit::Put { key, value: self.generator.value() }
    }

    fn write(&mut self) -> Operation {
        let count = if self.generator.random.u8(..16) >= self.batches {
            1
        } else if self.percent(2) {
            self.below(100)
        } else {
            self.below(12)
        };
        let edit = |_| {
            let (family, edit) = (self.family(), self.edit());
            self.of_recent_key(family, edit)
        };
        let edits = (0..count).map(edit).collect();
        // Without such writes nothing is drawn for them.
        let is_ingested = self.safety.ingested > 0 && self.percent(self.safety.ingested);
        let durability = if is_ingested { Durability::Ingested } else { self.durability() };
        Operation::Write { durability, edits }
    }

    fn durability(&mut self) -> Durability {
        match () {
            () if self.percent(self.safety.synced) => Durability::Synced,
            () if self.percent(self.safety.unlogged) => Durability::Unlogged,
            () => Durability::Logged,
        }
    }

    fn put_stream(&mut self) -> Operation {
        let (durability, family, key) = (self.durability(), self.family(), self.key());
        let buffer = [0, 1, 1000, 1 << 20][self.below(4)];
        let random = &mut self.generator.random;
        // Few runs of one letter: long ones are short as text.
        let mut run = || {
            let length = match random.u8(..12) {
                0 => random.usize(..100_000),
                1 => 1 << 16,
                _ => random.usize(..2000),
            };
            vec![random.u8(b'a'..=b'z'); length]
        };
        let mut piece = || [run(), run()].concat();
        let pieces = [piece(), piece(), piece()].into_iter().take(self.below(4)).collect();
        Operation::PutStream { durability, family, key, buffer, pieces }
    }

    fn moves(&mut self) -> Vec<Move> {
        let count = 1 + self.below(12);
        (0..count)
            .map(|_| match self.generator.random.u8(..12) {
                0 => Move::First,
                1 => Move::Last,
                2..=3 => Move::Seek(self.key()),
                4..=5 => Move::Back(self.key()),
                6..=8 => Move::Next,
                _ => Move::Prev,
            })
            .collect()
    }

    fn next_batch(&mut self) -> Operation {
        let from = self.maybe_key(20);
        Operation::NextBatch {
            index: self.below(100),
            from,
            max_entries: [1, 3, 20, 1000][self.below(4)],
        }
    }

    fn compact_range(&mut self) -> Operation {
        use BlobGarbageCollectionPolicy as Collect;
        use BottommostLevelCompaction as Rewrite;
        let options = CompactRangeOptions {
            full_history_ts_low: None,
            trim: None,
            exclusive_manual_compaction: self.percent(30),
            allow_write_stall: self.percent(30),
            bottommost_level_compaction: match self.below(4) {
                0 => Rewrite::Skip,
                1 => Rewrite::Force,
                2 => Rewrite::ForceOptimized,
                _ => Rewrite::IfHaveCompactionFilter,
            },
            blob_garbage_collection_policy: match self.below(4) {
                0 => Collect::Force,
                1 => Collect::Disable,
                _ => Collect::UseDefault,
            },
            blob_garbage_collection_age_cutoff: [-1.0, 0.5, 1.0][self.below(3)],
            change_level: self.percent(self.moving),
            target_level: self.below(8) as i32 - 1,
            target_path_id: [0, 0, 0, 1][self.below(4)],
            max_subcompactions: [0, 0, 1, 4][self.below(4)],
            control: None,
        };
        let (begin, end) = if self.percent(self.of_one_key) {
            let key = Some(self.key());
            (key.clone(), key)
        } else {
            (self.maybe_key(40), self.maybe_key(40))
        };
        Operation::CompactRange { family: self.family(), begin, end, options }
    }

    fn compact_files(&mut self) -> Operation {
        use CompressionType as Compression;
        let (family, level) = (self.family(), self.below(8));
        let tables = (0..1 + self.below(4)).map(|_| self.below(100)).collect();
        let options = CompactFilesOptions {
            compression: [None, None, Some(Compression::None), Some(Compression::Zstd)]
                [self.below(4)],
            output_file_size_limit: [0, 0, 1, 3000][self.below(4)],
            output_path_id: [None, None, Some(0), Some(1)][self.below(4)],
            output_temperature_override: [Temperature::UNKNOWN, Temperature::WARM][self.below(2)],
            max_subcompactions: [0, 0, 1, 4][self.below(4)],
            control: None,
        };
        Operation::CompactFiles { family, level, tables, options }
    }

    fn delete_files(&mut self) -> Operation {
        let (family, include_end) = (self.family(), self.percent(50));
        Operation::DeleteFiles { family, begin: self.key(), end: self.key(), include_end }
    }

    fn set_options(&mut self) -> Operation {
        let of_database = self.percent(20);
        let scope = if of_database { Scope::Database } else { Scope::Family };
        let changes = settings::random_changes(&mut self.generator.random, scope);
        let changes =
            changes.into_iter().map(|(name, value)| (name.to_string(), value.to_string()));
        Operation::SetOptions {
            changes: changes.collect(),
            family: (!of_database).then(|| self.family()),
        }
    }

    /// One as a rule; now and then several, of which some may be named twice. Then the power may
    /// have failed meanwhile: they are there together, or none is.
    fn create_families(&mut self) -> Operation {
        let count = [1, 1, 2, 3][self.below(4)];
        if count > 1 && self.percent(40) {
            self.then = Some(Operation::Crash { power: Power::Lost, back: 1 + self.below(24) });
        }
        Operation::CreateFamilies((0..count).map(|_| PASSING[self.below(3)].to_string()).collect())
    }

    fn crash(&mut self) -> Operation {
        let power = match self.below(6) {
            0 => Power::Kept,
            1 => Power::Lost,
            _ => Power::Random(self.generator.random.u64(..1 << 32)),
        };
        let back = match self.below(3) {
            0 => 0,
            1 => self.below(6),
            _ => self.below(60),
        };
        Operation::Crash { power, back }
    }

    fn get(&mut self) -> Operation {
        let count = 1 + self.below(8);
        let keys = (0..count).map(|_| self.key()).collect();
        let (family, snapshot) = (self.family(), self.snapshot());
        Operation::Get { family, snapshot, only_cached: self.percent(20), keys }
    }

    fn operation(&mut self) -> Operation {
        if let Some(next) = self.then.take() {
            return next;
        }
        let sum: u32 = self.mixture.iter().map(|(_, weight)| weight).sum();
        let mut at = self.generator.random.u32(..sum);
        let drawn = self.mixture.iter().find(|(_, weight)| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        });
        match drawn.expect("a number below the sum").0 {
            Kind::Write => self.write(),
            Kind::PutStream => self.put_stream(),
            Kind::Get => self.get(),
            Kind::PrefixScan => {
                let (family, snapshot) = (self.family(), self.snapshot());
                Operation::PrefixScan { family, snapshot, key: self.key() }
            }
            Kind::TakeSnapshot => Operation::TakeSnapshot,
            Kind::DropSnapshot => Operation::DropSnapshot(self.below(100)),
            Kind::OpenIterator => {
                let (lower, upper) = (self.maybe_key(30), self.maybe_key(30));
                let (family, snapshot) = (self.family(), self.snapshot());
                Operation::OpenIterator { family, snapshot, lower, upper }
            }
            Kind::OpenScan => {
                let (lower, upper) = (self.maybe_key(30), self.maybe_key(30));
                let (family, snapshot) = (self.family(), self.snapshot());
                Operation::OpenScan { family, snapshot, lower, upper }
            }
            Kind::NextBatch => self.next_batch(),
            Kind::MoveIterator => {
                Operation::MoveIterator { index: self.below(100), moves: self.moves() }
            }
            Kind::DropIterator => Operation::DropIterator(self.below(100)),
            Kind::RefreshIterator => Operation::RefreshIterator(self.below(100)),
            Kind::Flush => {
                let options =
                    FlushOptions { wait: !self.percent(30), allow_write_stall: self.percent(30) };
                Operation::Flush { family: self.family(), options }
            }
            Kind::FlushAll => Operation::FlushAll,
            Kind::CompactRange => self.compact_range(),
            Kind::CompactFiles => self.compact_files(),
            Kind::SuggestCompaction => {
                let (begin, end) = (self.maybe_key(60), self.maybe_key(60));
                Operation::SuggestCompaction { family: self.family(), begin, end }
            }
            Kind::DeleteFiles => self.delete_files(),
            Kind::SetOptions => self.set_options(),
            Kind::CreateFamilies => self.create_families(),
            Kind::DropFamily => Operation::DropFamily(PASSING[self.below(3)].to_string()),
            Kind::Checkpoint => Operation::Checkpoint,
            Kind::Reopen => {
                Operation::Reopen(settings::random_reopening(&mut self.generator.random, &ALL))
            }
            Kind::ReadOnly => Operation::ReadOnly,
            Kind::Background => Operation::Background(1 + self.below(4)),
            Kind::Idle => Operation::Idle,
            Kind::Pass => Operation::Pass(1 + self.generator.random.u64(..200)),
            Kind::SyncWal => Operation::SyncWal,
            Kind::FlushWal => Operation::FlushWal,
            Kind::Crash => self.crash(),
            Kind::Check => Operation::Check,
            of_transaction => self.of_transaction(of_transaction),
        }
    }
}
