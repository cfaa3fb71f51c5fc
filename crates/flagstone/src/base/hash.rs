//! The hashes whose values are stored in files: of keys in filters, and of keys in data-block hash
//! indexes.
//!
//! `hash64` is RocksDB's `GetSliceHash64`: a preview of XXH3 (xxHash 0.7.2) that was frozen when
//! filters began to depend on it. The final XXH3 gives other values. By length of the input:
//!
//! ```text
//! 0         one multiplication of constants
//! 1-16      one or two words, mixed
//! 17-128    16-byte pairs from both ends towards the middle
//! 129-240   16-byte pieces in order, with an extra mix after the eighth
//! 241-      eight lanes over stripes of 64 bytes, scrambled after every 1024
//! ```

const P32_1: u64 = 0x9e37_79b1;
const P32_2: u64 = 0x85eb_ca77;
const P32_3: u64 = 0xc2b2_ae3d;
const P64_1: u64 = 0x9e37_79b1_85eb_ca87;
const P64_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const P64_3: u64 = 0x1656_67b1_9e37_79f9;
const P64_4: u64 = 0x85eb_ca77_c2b2_ae63;
const P64_5: u64 = 0x27d4_eb2f_1656_67c5;

const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

/// The word at `offset` of the secret; a constant once the offset is one.
#[inline(always)]
fn secret(offset: usize) -> u64 {
    word64(&SECRET, offset)
}

#[inline(always)]
fn word64(bytes: &[u8], offset: usize) -> u64 {
    let word: &[u8; 8] =
        bytes[offset..].first_chunk().expect("the caller's length class has the word");
    u64::from_le_bytes(*word)
}

#[inline(always)]
fn word32(bytes: &[u8], offset: usize) -> u64 {
    let word: &[u8; 4] =
        bytes[offset..].first_chunk().expect("the caller's length class has the word");
    u64::from(u32::from_le_bytes(*word))
}

/// The 128-bit product, its halves xored.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline(always)]
fn avalanche(mut hash: u64) -> u64 {
    hash ^= hash >> 37;
    hash = hash.wrapping_mul(P64_3);
    hash ^ (hash >> 32)
}

/// Sixteen bytes of the input against sixteen of the secret.
#[inline(always)]
fn mix(bytes: &[u8], offset: usize, secret_offset: usize) -> u64 {
    fold(
        word64(bytes, offset) ^ secret(secret_offset),
        word64(bytes, offset + 8) ^ secret(secret_offset + 8),
    )
}

/// The 64-bit hash of a user key (or prefix) in filters of format_version 5 and later.
#[inline]
pub fn hash64(bytes: &[u8]) -> u64 {
    let size = bytes.len();
    let n = size as u64;
    match size {
        9..=16 => {
            let a = word64(bytes, 0) ^ secret(0);
            let b = word64(bytes, size - 8) ^ secret(8);
            avalanche(n.wrapping_add(a).wrapping_add(b).wrapping_add(fold(a, b)))
        }
        17..=128 => hash64_of_17_to_128(bytes),
        4..=8 => {
            let key = (word32(bytes, 0) | (word32(bytes, size - 4) << 32)) ^ secret(0);
            let mixed = n.wrapping_add((key ^ (key >> 51)).wrapping_mul(P32_1));
            avalanche((mixed ^ (mixed >> 47)).wrapping_mul(P64_2))
        }
        1..=3 => {
            let (first, middle, last) = (bytes[0], bytes[size >> 1], bytes[size - 1]);
            let combined = u64::from(u32::from_le_bytes([first, middle, last, size as u8]));
            avalanche((combined ^ word32(&SECRET, 0)).wrapping_mul(P64_1))
        }
        0 => fold(secret(0), P64_2),
        129..=240 => hash64_of_129_to_240(bytes),
        _ => hash64_of_long(bytes),
    }
}

#[inline]
fn hash64_of_17_to_128(bytes: &[u8]) -> u64 {
    let n = bytes.len();
    let mut acc = (n as u64).wrapping_mul(P64_1);
    let mut pair = |offset: usize, from_end: usize, secret_offset: usize| {
        acc = acc.wrapping_add(mix(bytes, offset, secret_offset)).wrapping_add(mix(
            bytes,
            n - from_end,
            secret_offset + 16,
        ));
    };
    if n > 32 {
        if n > 64 {
            if n > 96 {
                pair(48, 64, 96);
            }
            pair(32, 48, 64);
        }
        pair(16, 32, 32);
    }
    pair(0, 16, 0);
    avalanche(acc)
}

#[inline(never)]
fn hash64_of_129_to_240(bytes: &[u8]) -> u64 {
    let n = bytes.len();
    let mut acc = (n as u64).wrapping_mul(P64_1);
    for i in 0..8 {
        acc = acc.wrapping_add(mix(bytes, 16 * i, 16 * i));
    }
    acc = avalanche(acc);
    for i in 8..n / 16 {
        acc = acc.wrapping_add(mix(bytes, 16 * i, 16 * (i - 8) + 3));
    }
    avalanche(acc.wrapping_add(mix(bytes, n - 16, 119)))
}

const STRIPE: usize = 64;
const STRIPES_PER_BLOCK: usize = 16;
const BLOCK: usize = STRIPE * STRIPES_PER_BLOCK;

#[inline(never)]
fn hash64_of_long(bytes: &[u8]) -> u64 {
    let n = bytes.len();
    let mut lanes = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1];
    let mut blocks = bytes.chunks_exact(BLOCK);
    for block in &mut blocks {
        for (j, stripe) in block.chunks_exact(STRIPE).enumerate() {
            accumulate(&mut lanes, stripe, 8 * j);
        }
        for (i, lane) in lanes.iter_mut().enumerate() {
            *lane = (*lane ^ (*lane >> 47) ^ secret(128 + 8 * i)).wrapping_mul(P32_1);
        }
    }
    for (j, stripe) in blocks.remainder().chunks_exact(STRIPE).enumerate() {
        accumulate(&mut lanes, stripe, 8 * j);
    }
    if !n.is_multiple_of(STRIPE) {
        accumulate(&mut lanes, &bytes[n - STRIPE..], 121);
    }
    let mut acc = (n as u64).wrapping_mul(P64_1);
    for (i, pair) in lanes.chunks_exact(2).enumerate() {
        acc = acc.wrapping_add(fold(pair[0] ^ secret(11 + 16 * i), pair[1] ^ secret(19 + 16 * i)));
    }
    avalanche(acc)
}

/// One stripe of 64 bytes into the eight lanes.
#[inline(always)]
fn accumulate(lanes: &mut [u64; 8], stripe: &[u8], secret_offset: usize) {
    for (i, lane) in lanes.iter_mut().enumerate() {
        let data = word64(stripe, 8 * i);
        let key = data ^ secret(secret_offset + 8 * i);
        *lane = lane.wrapping_add(data).wrapping_add((key & 0xffff_ffff).wrapping_mul(key >> 32));
    }
}

/// RocksDB's old 32-bit hash: of keys in data-block hash indexes (seed 397) and filters before
/// format_version 5.
pub fn hash32(bytes: &[u8], seed: u32) -> u32 {
    const M: u32 = 0xc6a4_a793;
    let mut hash = seed ^ (bytes.len() as u32).wrapping_mul(M);
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        hash = hash.wrapping_add(word32(word, 0) as u32).wrapping_mul(M);
        hash ^= hash >> 16;
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        // The tail's bytes are signed: a fault of the first implementation that files now depend
        // on.
        for (i, &byte) in tail.iter().enumerate() {
            hash = hash.wrapping_add((i32::from(byte as i8) << (8 * i)) as u32);
        }
        hash = hash.wrapping_mul(M);
        hash ^= hash >> 24;
    }
    hash
}

#[cfg(test)]
mod tests;
