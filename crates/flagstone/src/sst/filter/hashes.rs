//! The hashes of a file's keys until its filter is made, the most that building a table holds in
//! memory.

/// How many hashes a piece has.
const PIECE: usize = 8192;

/// Hashes in pieces. A million keys are not unusual: one vector would have room for twice as many,
/// and leave behind holes of the sizes that it had before.
#[derive(Debug, Default)]
pub(super) struct Hashes {
    full: Vec<Vec<u64>>,
    last: Vec<u64>,
}

impl Hashes {
    #[inline]
    pub fn push(&mut self, hash: u64) {
        if self.last.len() == PIECE {
            let next = Vec::with_capacity(PIECE);
            self.full.push(std::mem::replace(&mut self.last, next));
        }
        self.last.push(hash);
    }

    pub fn len(&self) -> usize {
        self.full.len() * PIECE + self.last.len()
    }

    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// In the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.full.iter().flatten().chain(&self.last).copied()
    }

    pub fn clear(&mut self) {
        self.full.clear();
        self.last.clear();
    }
}

#[cfg(test)]
mod tests;
