//! The prefix of an encrypted file.
//!
//! ```text
//! file   := prefix contents
//! prefix := counter mark sum filler nonce secret     4,096 bytes
//! counter:  8 bytes, little-endian: the first counter of the keystream
//! mark:     "FSE1"
//! sum:      4 bytes, little-endian: CRC32C of counter, nonce and the secret's first 16 bytes
//! filler:   random, to the end of the first block of the cipher
//! nonce:    the cipher's second block
//! secret:   encrypted; CHECK, then random bytes
//! ```
//!
//! RocksDB fills the prefix with random bytes and uses only counter and nonce. It encrypts the
//! secret as if it lay at the offset 0 of the stream, and the contents at their offset in the file.
//!
//! The mark says that CHECK is there, by which a wrong key is told. A file without the mark, or
//! with a wrong sum, is RocksDB's, or the prefix is damaged, or a crash has left parts of it. It is
//! then decrypted for better or worse, and the checksums of its contents have their say, as with
//! any damaged file.

use std::sync::Arc;

use super::BlockCipher;
use super::keystream::{COUNTER_SIZE, Keystream};
use crate::base::checksum::crc32c;
use crate::base::{Error, Result};
use crate::env::Random;

/// Bytes in front of the contents.
pub(super) const PREFIX_SIZE: usize = 4096;

/// A shorter file is no encrypted one.
const HEAD_SIZE: usize = 64;

const MARK: [u8; 4] = *b"FSE1";
const MARK_AT: usize = COUNTER_SIZE;
const SUM_AT: usize = MARK_AT + MARK.len();
const SUM_END: usize = SUM_AT + 4;

/// The secret's first bytes.
const CHECK: [u8; 16] = *b"Flagstone's key.";

/// Bytes of the smallest piece of which a crash may leave nothing.
const TORN_PIECE: usize = 16;

const BLOCK_SIZES: std::ops::RangeInclusive<usize> = SUM_END..=1024;
const _: () = assert!(2 * *BLOCK_SIZES.end() + CHECK.len() <= PREFIX_SIZE);

/// Whether a cipher's blocks leave room for all parts of a prefix.
///
/// # Errors
/// `InvalidArgument`.
pub(super) fn check_block_size(size: usize) -> Result<()> {
    if BLOCK_SIZES.contains(&size) {
        return Ok(());
    }
    let (least, most) = (BLOCK_SIZES.start(), BLOCK_SIZES.end());
    let message = format!("a cipher with blocks of {size} bytes; they must have {least} to {most}");
    Err(Error::invalid_argument(message))
}

/// What a prefix says.
pub(super) enum Prefix {
    /// The key is that of the file.
    Fits(Keystream),
    /// The file was encrypted with another key.
    OtherKey,
    /// Nothing tells whether the key is that of the file.
    Unmarked(Keystream),
}

/// The prefix of a new file, and its keystream.
pub(super) fn new_prefix(
    cipher: &Arc<dyn BlockCipher>,
    random: &dyn Random,
) -> (Vec<u8>, Keystream) {
    let mut prefix = vec![0; PREFIX_SIZE];
    for bytes in prefix.chunks_exact_mut(8) {
        bytes.copy_from_slice(&random.next_u64().to_le_bytes());
    }
    let size = cipher.block_size();
    let keystream = keystream_of(&prefix, cipher);
    let secret = &mut prefix[2 * size..];
    secret[..CHECK.len()].copy_from_slice(&CHECK);
    keystream.apply(0, secret);
    prefix[MARK_AT..SUM_AT].copy_from_slice(&MARK);
    let sum = sum_of(&prefix, size);
    prefix[SUM_AT..SUM_END].copy_from_slice(&sum.to_le_bytes());
    (prefix, keystream)
}

/// Reads a whole prefix.
pub(super) fn parse(prefix: &[u8; PREFIX_SIZE], cipher: &Arc<dyn BlockCipher>) -> Prefix {
    let size = cipher.block_size();
    let keystream = keystream_of(prefix, cipher);
    let is_marked = prefix[MARK_AT..SUM_AT] == MARK
        && prefix[SUM_AT..SUM_END] == sum_of(prefix, size).to_le_bytes();
    if !is_marked {
        return Prefix::Unmarked(keystream);
    }
    let mut check = [0; CHECK.len()];
    check.copy_from_slice(&prefix[2 * size..][..CHECK.len()]);
    keystream.apply(0, &mut check);
    if check == CHECK { Prefix::Fits(keystream) } else { Prefix::OtherKey }
}

/// Whether a file of these bytes, fewer than a prefix has, is what a crash left of an encrypted
/// one, rather than a file that is not encrypted.
pub(super) fn is_torn(bytes: &[u8]) -> bool {
    let Some(head) = bytes.get(..HEAD_SIZE) else { return false };
    let mut pieces = head.chunks_exact(TORN_PIECE);
    head[MARK_AT..SUM_AT] == MARK || pieces.any(|piece| piece.iter().all(|byte| *byte == 0))
}

/// [`is_torn`], so that the bytes may go: they have the mark, or a crash has left nothing of its
/// piece. No file of the engine that has something in it begins with so many zeros.
pub(super) fn is_certainly_torn(bytes: &[u8]) -> bool {
    bytes.get(MARK_AT..SUM_AT) == Some(&MARK)
        || bytes.iter().take(TORN_PIECE).all(|byte| *byte == 0)
}

fn keystream_of(prefix: &[u8], cipher: &Arc<dyn BlockCipher>) -> Keystream {
    let size = cipher.block_size();
    let mut first = [0; COUNTER_SIZE];
    first.copy_from_slice(&prefix[..COUNTER_SIZE]);
    Keystream::new(cipher.clone(), u64::from_le_bytes(first), &prefix[size..2 * size])
}

fn sum_of(prefix: &[u8], size: usize) -> u32 {
    let nonce_and_check = &prefix[size..2 * size + CHECK.len()];
    crc32c(&[&prefix[..COUNTER_SIZE], nonce_and_check].concat())
}
