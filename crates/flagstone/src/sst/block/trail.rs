//! The entries from a restart to the cursor, kept so that going back need not walk up from the restart each time.

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

    pub fn push(&mut self, key: &[u8], offset: usize, next: usize, value: (u32, u32)) {
        self.keys.extend_from_slice(key);
        self.entries.push(TrailEntry { offset, next, value, key_end: self.keys.len() });
    }

    /// Steps back from the entry at `offset`: the one before it, if the trail leads there.
    #[inline]
    pub fn back_from(&mut self, offset: usize) -> Option<TrailEntry> {
        if self.entries.last()?.offset != offset {
            return None;
        }
        self.entries.pop();
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
