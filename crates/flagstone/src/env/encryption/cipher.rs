//! Block ciphers: what turns a counter into bytes that no one without the key can foretell.

/// A block cipher with its key. Only its forward direction is used.
pub trait BlockCipher: Send + Sync {
    /// Bytes of a block: 16 to 1,024, always the same number.
    fn block_size(&self) -> usize;

    /// Encrypts each block of `blocks` in place, on its own.
    fn encrypt_blocks(&self, blocks: &mut [u8]);
}

#[cfg(feature = "encryption")]
pub use with_aes::AesCipher;

#[cfg(feature = "encryption")]
mod with_aes {
    use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
    use aes::{Aes128Enc, Aes192Enc, Aes256Enc};

    use super::BlockCipher;
    use crate::base::{Error, Result};

    /// AES with a key of 128, 192 or 256 bits: by the processor's instructions where it has them,
    /// otherwise by code that takes the same time for all keys.
    ///
    /// Dropping it erases the key.
    pub struct AesCipher(Schedule);

    enum Schedule {
        Aes128(Box<Aes128Enc>),
        Aes192(Box<Aes192Enc>),
        Aes256(Box<Aes256Enc>),
    }

    impl AesCipher {
        /// AES with this key of 16, 24 or 32 bytes, which ought to be random.
        ///
        /// # Errors
        /// `InvalidArgument` for a key of another length.
        pub fn new(key: &[u8]) -> Result<Self> {
            let schedule = match key.len() {
                16 => Aes128Enc::new_from_slice(key).map(|keyed| Schedule::Aes128(Box::new(keyed))),
                24 => Aes192Enc::new_from_slice(key).map(|keyed| Schedule::Aes192(Box::new(keyed))),
                _ => Aes256Enc::new_from_slice(key).map(|keyed| Schedule::Aes256(Box::new(keyed))),
            };
            let refusal = |_| {
                let length = key.len();
                Error::invalid_argument(format!("a key of {length} bytes; AES takes 16, 24 or 32"))
            };
            schedule.map(Self).map_err(refusal)
        }
    }

    impl BlockCipher for AesCipher {
        fn block_size(&self) -> usize {
            16
        }

        fn encrypt_blocks(&self, blocks: &mut [u8]) {
            let (blocks, rest) = blocks.as_chunks_mut::<16>();
            assert!(rest.is_empty(), "blocks of AES have 16 bytes");
            let blocks = Array::cast_slice_from_core_mut(blocks);
            match &self.0 {
                Schedule::Aes128(keyed) => keyed.encrypt_blocks(blocks),
                Schedule::Aes192(keyed) => keyed.encrypt_blocks(blocks),
                Schedule::Aes256(keyed) => keyed.encrypt_blocks(blocks),
            }
        }
    }

    impl std::fmt::Debug for AesCipher {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("AesCipher")
        }
    }
}
