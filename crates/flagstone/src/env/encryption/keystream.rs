//! The keystream of a file: counter mode.
//!
//! Block `i` of the stream is the encryption of a block that begins with the counter `first + i`,
//! modulo 2^64, as 8 bytes in little-endian order, and goes on with the nonce. Block `i` belongs to
//! the bytes of the file, its prefix included, from `i * block_size` on.

use std::sync::Arc;

use super::BlockCipher;

/// Bytes of the stream that are made at a time.
const PIECE: usize = 4096;

/// Bytes of a counter.
pub(super) const COUNTER_SIZE: usize = 8;

/// What the bytes of one file are combined with.
pub(super) struct Keystream {
    cipher: Arc<dyn BlockCipher>,
    block_size: usize,
    first: u64,
    /// A block; the counter takes the place of its first bytes.
    nonce: Vec<u8>,
}

impl Keystream {
    /// The stream that begins with the counter `first`; `nonce` has the length of a block.
    pub fn new(cipher: Arc<dyn BlockCipher>, first: u64, nonce: &[u8]) -> Self {
        let block_size = cipher.block_size();
        assert_eq!(nonce.len(), block_size, "the nonce fills a block");
        Self { cipher, block_size, first, nonce: nonce.to_vec() }
    }

    /// Encrypts or decrypts bytes that begin at `offset` of the stream.
    pub fn apply(&self, offset: u64, data: &mut [u8]) {
        let size = self.block_size;
        let mut block = offset / size as u64;
        let mut skipped = (offset % size as u64) as usize;
        let mut stream = [0; PIECE];
        let mut rest = data;
        while !rest.is_empty() {
            let blocks = (skipped + rest.len()).div_ceil(size).min(PIECE / size);
            let made = &mut stream[..blocks * size];
            self.make(block, made);
            let (piece, behind) = rest.split_at_mut(rest.len().min(made.len() - skipped));
            for (byte, key) in piece.iter_mut().zip(&made[skipped..]) {
                *byte ^= key;
            }
            (rest, skipped) = (behind, 0);
            block = block.wrapping_add(blocks as u64);
        }
    }

    /// Fills `made` with whole blocks of the stream.
    fn make(&self, block: u64, made: &mut [u8]) {
        let mut counter = self.first.wrapping_add(block);
        for block in made.chunks_exact_mut(self.block_size) {
            block[..COUNTER_SIZE].copy_from_slice(&counter.to_le_bytes());
            block[COUNTER_SIZE..].copy_from_slice(&self.nonce[COUNTER_SIZE..]);
            counter = counter.wrapping_add(1);
        }
        self.cipher.encrypt_blocks(made);
    }
}
