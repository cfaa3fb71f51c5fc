//! Encrypted worlds, without a real cipher: fast, and the same for the same seed.

use std::sync::Arc;

use flagstone::env::{BlockCipher, Env};
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Makes noise of a block. Nobody is kept from undoing it, but no plain text is to be seen.
pub struct ToyCipher {
    /// Its key.
    pub key: u64,
}

impl BlockCipher for ToyCipher {
    fn block_size(&self) -> usize {
        16
    }

    fn encrypt_blocks(&self, blocks: &mut [u8]) {
        for block in blocks.chunks_exact_mut(16) {
            let noise = xxh3_128_with_seed(block, self.key);
            block.copy_from_slice(&noise.to_le_bytes());
        }
    }
}

/// RocksDB's cipher for tests, with blocks of 32 bytes: of the provider `CTR://test`.
pub struct Rot13;

impl BlockCipher for Rot13 {
    fn block_size(&self) -> usize {
        32
    }

    fn encrypt_blocks(&self, blocks: &mut [u8]) {
        blocks.iter_mut().for_each(|byte| *byte = byte.wrapping_add(13));
    }
}

/// A world whose files are encrypted.
pub fn encrypted(env: Env) -> Env {
    env.encrypted(Arc::new(ToyCipher { key: 1 })).expect("blocks of 16 bytes")
}
