//! Random keys, values and batches.

use rand::RngExt;
use rand::rngs::SmallRng;

use super::model::{Edit, Family, MergeOperator, Model, Pair};

/// Keys that begin so are put where they do not exist, and only then removed by single deletions.
const SINGLE: u8 = b's';

/// Makes them. Keys come from a small space, so that they meet again.
pub struct Material {
    keys: u32,
    value_length_max: usize,
    /// Begins most keys: a long one moves what differs out of the first bytes.
    prefix: &'static str,
    pub has_entities: bool,
    /// Whether some puts of the default family say when their values were written.
    pub has_times: bool,
}

impl Material {
    pub fn new(random: &mut SmallRng, has_entities: bool, has_times: bool) -> Self {
        Self {
            keys: [8, 60, 400][random.random_range(0..3)],
            value_length_max: [20, 200, 1200][random.random_range(0..3)],
            prefix: ["k", "k", "k", "kkkkkkkkkkkkkkkkkkkkkkkk"][random.random_range(0..4)],
            has_entities,
            has_times,
        }
    }

    pub fn key(&mut self, random: &mut SmallRng) -> Vec<u8> {
        let (number, prefix) = (random.random_range(0..self.keys), self.prefix);
        match random.random_range(0..20) {
            0 if random.random_bool(0.5) => Vec::new(),
            0..=3 => format!("{}{number:04}", SINGLE as char).into_bytes(),
            4 => format!("{prefix}{number:04}\0").into_bytes(),
            5 if number.is_multiple_of(8) => {
                format!("{prefix}{number:04}{}", "y".repeat(3000)).into_bytes()
            }
            5 => format!("{prefix}{}", number / 100).into_bytes(),
            6 if random.random_bool(0.25) => vec![0xff; random.random_range(1..5)],
            _ => format!("{prefix}{number:04}").into_bytes(),
        }
    }

    /// One that plain deletions may remove: where these and single ones meet on a key, neither
    /// engine promises anything.
    pub fn plain_key(&mut self, random: &mut SmallRng) -> Vec<u8> {
        loop {
            let key = self.key(random);
            if key.first() != Some(&SINGLE) {
                return key;
            }
        }
    }

    /// Half of the values compress well; now and then one spans blocks of a WAL, or is larger than
    /// a memtable.
    fn value(&mut self, random: &mut SmallRng) -> Vec<u8> {
        let length = match random.random_range(0..4000) {
            0 => random.random_range(0..1_000_000),
            1..4 => random.random_range(0..70_000),
            _ => random.random_range(0..=self.value_length_max),
        };
        if random.random_bool(0.5) {
            vec![random.random_range(b'a'..=b'z'); length]
        } else {
            (0..length).map(|_| random.random()).collect()
        }
    }

    fn operand(&mut self, merge: MergeOperator, random: &mut SmallRng) -> Vec<u8> {
        match merge {
            MergeOperator::Uint64Add => random.random_range(0..1000u64).to_le_bytes().to_vec(),
            _ => vec![random.random_range(b'A'..=b'Z'); random.random_range(0..40)],
        }
    }

    /// A put in a family without merges.
    fn merge(&mut self, family: &Family, key: Vec<u8>, random: &mut SmallRng) -> Edit {
        let operand = self.operand(family.traits.merge, random);
        if family.traits.has_merges {
            Edit::Merge { key, operand }
        } else {
            Edit::Put { key, value: operand }
        }
    }

    fn entity(&mut self, key: Vec<u8>, random: &mut SmallRng) -> Edit {
        let names: [&[u8]; 3] = [b"", b"a", b"bb"];
        let names = names.into_iter().filter(|_| random.random_bool(0.7)).collect::<Vec<_>>();
        let column = |name: &[u8]| -> Pair {
            (name.to_vec(), vec![random.random_range(b'a'..=b'z'); random.random_range(0..30)])
        };
        Edit::PutEntity { key, columns: names.into_iter().map(column).collect() }
    }

    /// Written before all times, long ago, or in a time to come.
    fn timed_put(&mut self, random: &mut SmallRng) -> Edit {
        let time = [0, 1_700_000_000, 4_000_000_000][random.random_range(0..3)];
        let key = loop {
            let key = self.key(random);
            if key.first() != Some(&SINGLE) {
                break key;
            }
        };
        Edit::TimedPut { key, value: self.value(random), time }
    }

    fn range(&mut self, family: &Family, random: &mut SmallRng) -> Edit {
        let (mut begin, mut end) = (self.key(random), self.key(random));
        if random.random_bool(0.5) {
            end = [&begin, &b"~"[..]].concat();
        }
        if family.is_before(&end, &begin) {
            (begin, end) = (end, begin);
        }
        Edit::DeleteRange { begin, end }
    }

    fn edit(&mut self, family: &Family, random: &mut SmallRng) -> Edit {
        let key = self.key(random);
        match random.random_range(0..40) {
            0..2 => self.range(family, random),
            _ if key.first() == Some(&SINGLE) => match family.get(&key) {
                Some(_) => Edit::SingleDelete { key },
                None => Edit::Put { key, value: self.value(random) },
            },
            2..10 => Edit::Delete { key },
            10..18 => self.merge(family, key, random),
            _ => Edit::Put { key, value: self.value(random) },
        }
    }

    /// A batch over the model's families, which it is applied to.
    pub fn batch(&mut self, model: &mut Model, random: &mut SmallRng) -> Vec<(String, Edit)> {
        let names: Vec<String> = model.families.keys().cloned().collect();
        if self.has_entities && random.random_bool(0.2) {
            let key = [b"e", &self.key(random)[..]].concat();
            let batch = vec![(super::DEFAULT.to_string(), self.entity(key, random))];
            model.apply(&batch);
            return batch;
        }
        if self.has_times && random.random_bool(0.1) {
            let batch = vec![(super::DEFAULT.to_string(), self.timed_put(random))];
            model.apply(&batch);
            return batch;
        }
        let count = if random.random_bool(0.25) { random.random_range(1..12) } else { 1 };
        let mut batch = Vec::new();
        for _ in 0..count {
            let name = names[random.random_range(0..names.len())].clone();
            let edit = match &model.families[&name] {
                // What deletes entities and merges onto them.
                family
                    if self.has_entities && name == super::DEFAULT && random.random_bool(0.1) =>
                {
                    match self.edit(family, random) {
                        Edit::Merge { key, operand } => {
                            Edit::Merge { key: [b"e", &key[..]].concat(), operand }
                        }
                        Edit::Delete { key } => Edit::Delete { key: [b"e", &key[..]].concat() },
                        other => other,
                    }
                }
                family => self.edit(family, random),
            };
            batch.push((name, edit));
            model.apply(&batch[batch.len() - 1..]);
        }
        batch
    }

    /// What one table takes in: a deletion of a range before all else, then keys in the family's
    /// order.
    pub fn table(&mut self, family: &Family, random: &mut SmallRng) -> Vec<Edit> {
        let mut keys: Vec<_> = (0..random.random_range(1..30)).map(|_| self.key(random)).collect();
        keys.retain(|key| key.first() != Some(&SINGLE));
        keys.sort();
        keys.dedup();
        if family.traits.reversed {
            keys.reverse();
        }
        let range = self.range(family, random);
        let mut edits = Vec::new();
        if let Edit::DeleteRange { begin, end } = &range
            && (keys.is_empty() || random.random_bool(0.3))
            && begin != end
        {
            edits.push(range);
        }
        for key in keys {
            edits.push(match random.random_range(0..10) {
                0..2 => Edit::Delete { key },
                2..4 => self.merge(family, key, random),
                _ => Edit::Put { key, value: self.value(random) },
            });
        }
        edits
    }
}
