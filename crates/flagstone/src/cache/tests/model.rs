//! Random steps, compared with a model.

use proptest::prelude::*;

use super::*;

/// The policy as its description has it, on plain vectors, newest last.
struct Model {
    capacity: usize,
    high_capacity: usize,
    ratio: f64,
    low: Vec<(u64, u64, usize)>,
    high: Vec<(u64, u64, usize)>,
    /// Hit since the last change.
    hit: Vec<u64>,
}

fn charge(entries: &[(u64, u64, usize)]) -> usize {
    entries.iter().map(|entry| entry.2).sum()
}

impl Model {
    fn new(capacity: usize, ratio: f64) -> Self {
        let high_capacity = (capacity as f64 * ratio) as usize;
        Self { capacity, high_capacity, ratio, low: Vec::new(), high: Vec::new(), hit: Vec::new() }
    }

    fn take(&mut self, offset: u64) -> Option<(u64, u64, usize)> {
        for pool in [&mut self.low, &mut self.high] {
            if let Some(at) = pool.iter().position(|entry| entry.0 == offset) {
                return Some(pool.remove(at));
            }
        }
        None
    }

    fn value(&self, offset: u64) -> Option<u64> {
        self.low.iter().chain(&self.high).find(|entry| entry.0 == offset).map(|entry| entry.1)
    }

    fn tell_hits(&mut self) {
        for offset in std::mem::take(&mut self.hit) {
            if let Some(entry) = self.take(offset) {
                self.put(entry, true);
            }
        }
    }

    fn put(&mut self, entry: (u64, u64, usize), high: bool) {
        if high && self.ratio > 0.0 {
            self.high.push(entry)
        } else {
            self.low.push(entry)
        }
        self.spill();
    }

    fn spill(&mut self) {
        while charge(&self.high) > self.high_capacity {
            self.low.push(self.high.remove(0));
        }
    }

    fn make_room(&mut self, size: usize) {
        while charge(&self.low) + charge(&self.high) + size > self.capacity {
            if self.low.is_empty() {
                self.high.remove(0)
            } else {
                self.low.remove(0)
            };
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Lookup(u64),
    Insert(u64, u64, usize, bool),
    Erase(u64),
    Resize(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..20u64).prop_map(Step::Lookup),
        5 => (0..20u64, any::<u64>(), 0..8usize, any::<bool>())
            .prop_map(|(offset, value, charge, high)| Step::Insert(offset, value, charge, high)),
        1 => (0..20u64).prop_map(Step::Erase),
        1 => (0..40usize).prop_map(Step::Resize),
    ]
}

/// Does a step to the cache and to the model.
fn play(cache: &Cache<u64>, model: &mut Model, step: Step) -> Result<(), TestCaseError> {
    match step {
        Step::Lookup(offset) => {
            let expected = model.value(offset);
            if expected.is_some() && !model.hit.contains(&offset) {
                model.hit.push(offset);
            }
            prop_assert_eq!(cache.lookup(key(offset)), expected);
        }
        Step::Insert(offset, value, size, high) => {
            model.tell_hits();
            model.take(offset);
            let fits = size <= model.capacity;
            if fits {
                model.make_room(size);
                model.put((offset, value, size), high);
            }
            let priority = if high { Priority::High } else { Priority::Low };
            let is_in = cache.insert_with_priority(key(offset), value, size, priority);
            prop_assert_eq!(is_in, fits);
        }
        Step::Erase(offset) => {
            if model.value(offset).is_some() {
                model.tell_hits();
            }
            let expected = model.take(offset).map(|entry| entry.1);
            prop_assert_eq!(cache.erase(key(offset)), expected);
        }
        Step::Resize(capacity) => {
            model.tell_hits();
            model.capacity = capacity;
            model.high_capacity = (capacity as f64 * model.ratio) as usize;
            model.spill();
            model.make_room(0);
            cache.set_capacity(capacity);
        }
    }
    Ok(())
}

fn settings() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() }
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn the_cache_does_what_the_model_does(
        ratio in prop_oneof![Just(0.0), Just(0.5), Just(1.0)],
        steps in proptest::collection::vec(step(), 0..200),
    ) {
        let cache = single(24, ratio);
        let mut model = Model::new(24, ratio);
        for step in steps {
            play(&cache, &mut model, step)?;
            let all = model.low.iter().chain(&model.high);
            let mut expected: Vec<u64> = all.map(|entry| entry.0).collect();
            expected.sort_unstable();
            prop_assert_eq!(present(&cache), expected);
            prop_assert_eq!(cache.usage(), charge(&model.low) + charge(&model.high));
        }
    }
}
