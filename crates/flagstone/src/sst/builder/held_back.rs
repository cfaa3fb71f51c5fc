//! Data blocks held back until there are enough to make a compression dictionary of.

/// A finished block that is not in the file yet.
pub(super) struct HeldBlock {
    pub bytes: Vec<u8>,
    pub first_key: Vec<u8>,
    pub last_key: Vec<u8>,
}

pub(super) struct HeldBack {
    pub blocks: Vec<HeldBlock>,
    size: usize,
    limit: usize,
}

/// Hold back no more than this unless told otherwise.
const DEFAULT_LIMIT: usize = 64 << 20;
/// The trainer wants about this many times the dictionary's size in samples when no number is
/// given.
const SAMPLES_PER_DICTIONARY_BYTE: usize = 100;

impl HeldBack {
    /// Holds back up to `limit` bytes; 0 for a default.
    pub fn new(limit: u64) -> Self {
        let limit = match usize::try_from(limit) {
            Ok(0) | Err(_) => DEFAULT_LIMIT,
            Ok(limit) => limit,
        };
        Self { blocks: Vec::new(), size: 0, limit }
    }

    pub fn push(&mut self, bytes: &[u8], first_key: &[u8], last_key: &[u8]) {
        self.size += bytes.len();
        self.blocks.push(HeldBlock {
            bytes: bytes.to_vec(),
            first_key: first_key.to_vec(),
            last_key: last_key.to_vec(),
        });
    }

    /// Bytes held back.
    pub fn size(&self) -> usize {
        self.size
    }

    pub fn is_full(&self) -> bool {
        self.size >= self.limit
    }

    /// Blocks evenly spread over all, of about `wanted` bytes together (0: enough for a dictionary
    /// of `dictionary_size`).
    pub fn samples(&self, wanted: usize, dictionary_size: usize) -> Vec<&[u8]> {
        let wanted = if wanted > 0 {
            wanted
        } else {
            dictionary_size.saturating_mul(SAMPLES_PER_DICTIONARY_BYTE)
        };
        let step = (self.size / wanted.max(1)).max(1);
        self.blocks.iter().step_by(step).map(|block| block.bytes.as_slice()).collect()
    }
}
