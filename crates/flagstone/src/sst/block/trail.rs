//! The entries from a restart to the cursor, kept so that going back need not walk up from the
//! restart each time. Where their keys are too large together, there is no trail.

/// What room is made for at first.
const USUAL_ENTRIES: usize = 17;
const USUAL_KEY: usize = 40;
/// Bytes of keys that are too many: damaged blocks can make any number of few bytes.
const KEYS_MAX: usize = 16 << 20;

/// Where one entry lies, its key included.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrailEntry {
    pub offset: usize,
    pub next: usize,
    pub value: (u32, u32),
    /// Where the key ends in the trail's keys; it starts where the one before ends.
    key_end: usize,
}

/// Entries in order, the last one being where the cursor stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Trail {
    keys: Vec<u8>,
    entries: Vec<TrailEntry>,
}

impl Trail {
    pub fn clear(&mut self) {
        self.keys.clear();
        self.entries.clear();
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the last entry is the one at `offset`.
    #[inline]
    pub fn ends_at(&self, offset: usize) -> bool {
        self.entries.last().is_some_and(|last| last.offset == offset)
    }

    /// Whether a key of so many bytes is too much.
    #[inline]
    pub fn is_full_for(&self, size: usize) -> bool {
        self.keys.len() + size > KEYS_MAX
    }

    /// How many bytes the keys take.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.keys.capacity()
    }

    #[inline]
    pub fn push(&mut self, key: &[u8], offset: usize, next: usize, value: (u32, u32)) {
        if self.entries.capacity() == 0 {
            // For most intervals; growing step by step would take longer than to walk one.
            self.entries.reserve(USUAL_ENTRIES);
            self.keys.reserve(USUAL_ENTRIES * USUAL_KEY);
        }
        self.keys.extend_from_slice(key);
        self.entries.push(TrailEntry { offset, next, value, key_end: self.keys.len() });
    }

    /// Takes the last entry away; the one before it, if there is one.
    #[inline]
    pub fn back(&mut self) -> Option<TrailEntry> {
        self.entries.pop()?;
        self.entries.last().copied()
    }

    /// The key of the last entry.
    #[inline]
    pub fn key(&self) -> &[u8] {
        let (start, end) = match self.entries[..] {
            [.., before, last] => (before.key_end, last.key_end),
            [last] => (0, last.key_end),
            [] => (0, 0),
        };
        &self.keys[start..end]
    }
}
