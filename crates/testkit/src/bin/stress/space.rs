//! Which keys there are, and who may write them.
//!
//! Each thread owns a stretch of the keys, the same in every family, so that it always knows what
//! they must hold. A stretch has three parts, by what its keys are for.

use std::ops::Range;

/// The families that hold the keys; each has every key.
pub const FAMILIES: [&str; 3] = ["default", "left", "right"];

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Always written to all families by one batch, so that they must agree.
    Joint,
    /// Put once, then removed by a single deletion, as its contract wants.
    Once,
    /// Anything else: puts, merges, deletions, range deletions, batches.
    Plain,
}

/// The keys of all threads.
#[derive(Debug, Clone, Copy)]
pub struct Space {
    /// How many threads write.
    pub threads: usize,
    /// Keys of each thread in each family.
    pub per_thread: usize,
}

impl Space {
    /// How many keys each family has.
    pub fn keys(&self) -> usize {
        self.threads * self.per_thread
    }

    /// A thread's keys.
    pub fn of_thread(&self, thread: usize) -> Range<usize> {
        thread * self.per_thread..(thread + 1) * self.per_thread
    }

    /// The thread that owns a key.
    pub fn owner(&self, index: usize) -> usize {
        index / self.per_thread
    }

    /// A thread's keys of one class.
    pub fn of_class(&self, thread: usize, class: Class) -> Range<usize> {
        let Range { start, end } = self.of_thread(thread);
        let quarter = self.per_thread / 4;
        match class {
            Class::Joint => start..start + quarter,
            Class::Once => start + quarter..start + 2 * quarter,
            Class::Plain => start + 2 * quarter..end,
        }
    }

    /// What a key is for.
    pub fn class(&self, index: usize) -> Class {
        match (index % self.per_thread) / (self.per_thread / 4).max(1) {
            0 => Class::Joint,
            1 => Class::Once,
            _ => Class::Plain,
        }
    }

    /// The key's bytes, in the order of the indexes; every fourth is longer. `keys()` gives the end
    /// of all.
    pub fn key(&self, index: usize) -> Vec<u8> {
        let mut key = format!("{index:0width$}", width = self.width()).into_bytes();
        if index.is_multiple_of(4) {
            key.extend((0..index % 23).map(|at| b'a' + ((index + at) % 26) as u8));
        }
        key
    }

    /// The index of a key.
    pub fn index(&self, key: &[u8]) -> Option<usize> {
        let digits = std::str::from_utf8(key.get(..self.width())?).ok()?;
        let index = digits.parse().ok()?;
        (index < self.keys() && self.key(index) == key).then_some(index)
    }

    fn width(&self) -> usize {
        self.keys().to_string().len()
    }
}

#[cfg(test)]
mod tests;
