//! Random keys, values and batches, from a seed.

use crate::model::{Edit, Family, Model, SINGLE};

/// Makes them. Keys come from a small space, so that they meet again.
pub struct Generator {
    /// The source of chance, for the caller's own choices too.
    pub random: fastrand::Rng,
    keys: u32,
    value_length_max: usize,
    /// Begins most keys: a long one moves what differs out of the first bytes.
    prefix: &'static str,
}

impl Generator {
    /// One for this seed.
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let keys = [8, 60, 400][random.usize(..3)];
        let value_length_max = [20, 200, 1200][random.usize(..3)];
        let prefix = ["k", "k", "k", "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"][random.usize(..4)];
        Self { random, keys, value_length_max, prefix }
    }

    /// A key of the space, mostly not for single deletions; now and then the empty one.
    pub fn key(&mut self) -> Vec<u8> {
        let number = self.random.u32(..self.keys);
        let prefix = self.prefix;
        match self.random.u8(..20) {
            0 if self.random.bool() => Vec::new(),
            0..=3 => format!("{}{number:04}", SINGLE as char).into_bytes(),
            4 => format!("{prefix}{number:04}\0").into_bytes(),
            5 => format!("{prefix}{}", number / 100).into_bytes(),
            6 if self.random.u8(..4) == 0 => vec![0xff; self.random.usize(1..5)],
            _ => format!("{prefix}{number:04}").into_bytes(),
        }
    }

    /// A value: half of them compress well; now and then one that spans blocks of a WAL.
    pub fn value(&mut self) -> Vec<u8> {
        const GRAPHIC: std::ops::RangeInclusive<u8> = b'!'..=b'z';
        let length = match self.random.u16(..1000) {
            0 => self.random.usize(..70_000),
            _ => self.random.usize(..=self.value_length_max),
        };
        match self.random.u8(..8) {
            0..4 => vec![self.random.u8(b'a'..=b'z'); length],
            4 if length < 300 => (0..length).map(|_| self.random.u8(..)).collect(),
            _ => (0..length).map(|_| self.random.u8(GRAPHIC)).collect(),
        }
    }

    /// A merge operand.
    pub fn operand(&mut self) -> Vec<u8> {
        let length = self.random.usize(..=self.value_length_max.min(40));
        vec![self.random.u8(b'A'..=b'Z'); length]
    }

    /// A deletion of a range, small or large.
    pub fn range(&mut self) -> Edit {
        let begin = self.key();
        if self.random.bool() {
            let mut end = begin.clone();
            end.push(b'~');
            return Edit::DeleteRange { begin, end };
        }
        let other = self.key();
        let (begin, end) = if begin <= other { (begin, other) } else { (other, begin) };
        Edit::DeleteRange { begin, end }
    }

    fn edit(&mut self, family: &Family) -> Edit {
        let key = self.key();
        let is_single = key.first() == Some(&SINGLE);
        if family.may_single_delete(&key) {
            return Edit::SingleDelete { key };
        }
        match self.random.u8(..40) {
            0..=1 => self.range(),
            2..=9 if !is_single => Edit::Delete { key },
            10..=17 if !is_single => Edit::Merge { key, operand: self.operand() },
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
}
