//! Room for one key: on the stack while keys are short, so that a point lookup allocates nothing.

const INLINE: usize = 96;

#[derive(Debug, Clone)]
pub(super) struct KeyBuffer {
    inline: [u8; INLINE],
    /// Holds the key once it has outgrown `inline`, and from then on.
    heap: Vec<u8>,
    length: usize,
    on_heap: bool,
}

impl KeyBuffer {
    pub fn new() -> Self {
        Self { inline: [0; INLINE], heap: Vec::new(), length: 0, on_heap: false }
    }

    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        if self.on_heap { &self.heap } else { &self.inline[..self.length] }
    }

    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        if self.on_heap { &mut self.heap } else { &mut self.inline[..self.length] }
    }

    #[inline]
    pub fn len(&self) -> usize {
        if self.on_heap { self.heap.len() } else { self.length }
    }

    /// Keeps the first `shared` bytes, which must be there, and appends `suffix`.
    #[inline]
    pub fn splice(&mut self, shared: usize, suffix: &[u8]) {
        if !self.on_heap {
            let length = shared + suffix.len();
            if length <= INLINE {
                self.inline[shared..length].copy_from_slice(suffix);
                self.length = length;
                return;
            }
            self.heap.clear();
            self.heap.extend_from_slice(&self.inline[..shared]);
            self.on_heap = true;
        }
        self.heap.truncate(shared);
        self.heap.extend_from_slice(suffix);
    }
}
