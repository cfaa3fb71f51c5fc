//! Random steps in the life of a database, from a seed.

use crate::model::{Edit, Family, Model, SINGLE};

/// One step.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "they are named as the engine's calls")]
pub enum Step {
    /// One batch; applied to the model already.
    Write {
        batch: Vec<(String, Edit)>,
        sync: bool,
    },
    TakeSnapshot,
    /// Drops the snapshot at this index, modulo their number.
    DropSnapshot(usize),
    OpenIterator,
    /// Moves the iterator at this index, modulo their number.
    MoveIterator(usize),
    DropIterator(usize),
    Flush(String),
    FlushAll,
    CompactRange {
        family: String,
        begin: Option<Vec<u8>>,
        end: Option<Vec<u8>>,
    },
    SetOptions(String),
    CreateFamily(String),
    DropFamily(String),
    Reopen,
    /// Compare everything.
    Check,
}

/// Makes steps. Keys come from a small space, so that they meet again.
pub struct Generator {
    /// The source of chance, for the test's own choices too.
    pub random: fastrand::Rng,
    keys: u32,
    value_length_max: usize,
}

impl Generator {
    /// One for this seed.
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let keys = [8, 60, 400][random.usize(..3)];
        let value_length_max = [20, 200, 1200][random.usize(..3)];
        Self { random, keys, value_length_max }
    }

    /// A key of the space, mostly not for single deletions; now and then the empty one.
    pub fn key(&mut self) -> Vec<u8> {
        let number = self.random.u32(..self.keys);
        match self.random.u8(..20) {
            0 if self.random.bool() => Vec::new(),
            0..=3 => format!("{}{number:04}", SINGLE as char).into_bytes(),
            4 => format!("k{number:04}\0").into_bytes(),
            5 => format!("k{}", number / 100).into_bytes(),
            _ => format!("k{number:04}").into_bytes(),
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let length = self.random.usize(..=self.value_length_max);
        if self.random.bool() {
            // Compresses well.
            return vec![self.random.u8(b'a'..=b'z'); length];
        }
        (0..length).map(|_| self.random.u8(..)).collect()
    }

    fn edit(&mut self, family: &Family) -> Edit {
        let key = self.key();
        let is_single = key.first() == Some(&SINGLE);
        if family.may_single_delete(&key) {
            return Edit::SingleDelete { key };
        }
        match self.random.u8(..40) {
            0 => {
                let other = self.key();
                let (begin, end) = if key <= other { (key, other) } else { (other, key) };
                Edit::DeleteRange { begin, end }
            }
            1 => {
                let mut end = key.clone();
                end.push(b'~');
                Edit::DeleteRange { begin: key, end }
            }
            2..=9 if !is_single => Edit::Delete { key },
            10..=17 if !is_single => {
                let length = self.random.usize(..=self.value_length_max.min(40));
                let operand = vec![self.random.u8(b'A'..=b'Z'); length];
                Edit::Merge { key, operand }
            }
            _ => Edit::Put { key, value: self.value() },
        }
    }

    /// A batch over the model's families, which it is applied to.
    pub fn batch(&mut self, model: &mut Model) -> Vec<(String, Edit)> {
        let names: Vec<String> = model.families.keys().cloned().collect();
        let count = if self.random.u8(..4) == 0 { self.random.usize(1..12) } else { 1 };
        (0..count)
            .map(|_| {
                let name = names[self.random.usize(..names.len())].clone();
                let family = model.families.get_mut(&name).expect("its own name");
                let edit = self.edit(family);
                family.apply(&edit);
                (name, edit)
            })
            .collect()
    }

    /// The next step; a batch is applied to the model.
    pub fn step(&mut self, model: &mut Model) -> Step {
        let names: Vec<String> = model.families.keys().cloned().collect();
        let family = names[self.random.usize(..names.len())].clone();
        match self.random.u32(..1000) {
            0..800 => {
                let batch = self.batch(model);
                Step::Write { batch, sync: self.random.u8(..10) == 0 }
            }
            800..820 => Step::TakeSnapshot,
            820..838 => Step::DropSnapshot(self.random.usize(..100)),
            838..853 => Step::OpenIterator,
            853..893 => Step::MoveIterator(self.random.usize(..100)),
            893..903 => Step::DropIterator(self.random.usize(..100)),
            903..925 => Step::Flush(family),
            925..930 => Step::FlushAll,
            930..945 => {
                let end = |generator: &mut Self| generator.random.bool().then(|| generator.key());
                let (begin, end) = (end(self), end(self));
                Step::CompactRange { family, begin, end }
            }
            945..955 => Step::SetOptions(family),
            955..962 => Step::CreateFamily(format!("extra{}", self.random.u8(..3))),
            962..967 => Step::DropFamily(format!("extra{}", self.random.u8(..3))),
            967..979 => Step::Reopen,
            _ => Step::Check,
        }
    }
}
