//! Dictionaries: bytes that the compressed blocks of one file refer back to.

#[cfg(feature = "zstd")]
use std::sync::OnceLock;

use super::{CompressionOptions, CompressionType, zstd};

/// Bytes that zstd's form of a dictionary has beside a copy of it: the tables of its entropy codes
/// (27 KiB in 1.5).
const ZSTD_TABLES: usize = 28 << 10;

/// A file's dictionary, prepared once for all its blocks.
pub struct DecompressionDictionary {
    bytes: Vec<u8>,
    #[cfg(feature = "zstd")]
    digested: OnceLock<Option<zstd::Digested>>,
}

impl DecompressionDictionary {
    /// Takes the content of the dictionary block.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            #[cfg(feature = "zstd")]
            digested: OnceLock::new(),
        }
    }

    /// The content of the dictionary block.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that it takes in memory, at most: what zstd makes of it at its first use counts from
    /// the beginning.
    pub fn memory_usage(&self) -> usize {
        2 * self.bytes.capacity() + ZSTD_TABLES
    }

    /// The dictionary as zstd wants it, digested at first use; `None` if zstd finds it malformed.
    #[cfg(feature = "zstd")]
    pub(super) fn digested(&self) -> Option<&zstd::Digested> {
        self.digested.get_or_init(|| zstd::Digested::new(&self.bytes)).as_ref()
    }
}

impl std::fmt::Debug for DecompressionDictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DecompressionDictionary({} bytes)", self.bytes.len())
    }
}

/// Makes a dictionary of at most `options.max_dict_bytes` out of sample blocks: trained for ZSTD if
/// `zstd_max_train_bytes` says so, the samples themselves otherwise. Empty if the codec ignores
/// dictionaries or the samples do not train.
pub fn build_dictionary(
    kind: CompressionType,
    options: &CompressionOptions,
    samples: &[&[u8]],
) -> Vec<u8> {
    let max_size = options.max_dict_bytes as usize;
    if max_size == 0 || !kind.uses_dictionary() {
        return Vec::new();
    }
    let trains = kind == CompressionType::Zstd && options.zstd_max_train_bytes > 0;
    let budget = if trains { options.zstd_max_train_bytes as usize } else { max_size };
    let (content, sizes) = sample(samples, budget);
    if trains {
        // Too few or too similar samples are no fault: the file goes without a dictionary.
        return zstd::train(&content, &sizes, max_size);
    }
    content
}

/// Blocks from all over the file, `budget` bytes together, and their sizes.
fn sample(blocks: &[&[u8]], budget: usize) -> (Vec<u8>, Vec<usize>) {
    let total: usize = blocks.iter().map(|block| block.len()).sum();
    let step = (total / budget.max(1)).max(1);
    let (mut content, mut sizes) = (Vec::with_capacity(total.min(budget)), Vec::new());
    for block in blocks.iter().step_by(step) {
        let taken = block.len().min(budget - content.len());
        if taken == 0 {
            break;
        }
        content.extend_from_slice(&block[..taken]);
        sizes.push(taken);
    }
    (content, sizes)
}
