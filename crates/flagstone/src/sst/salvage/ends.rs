//! Where a block ends that begins at a known place, by what it holds alone.
//!
//! Every block is followed by its compression type and its checksum, so that a right guess can be
//! told from a wrong one. To have few guesses:
//!
//! - entries as they are: walked up to the restart offsets, the first of which is 0, as no entry
//!   can begin; how many there are is the last number of the block
//! - LZ4, Snappy: the commands are followed until they have yielded as many bytes as the block
//!   says; of LZ4, whose commands nearly any bytes could be, only where the first byte is 0, as the
//!   first entry shares nothing
//! - ZSTD: a frame consists of parts that tell their sizes
//! - other codecs have no structure that could be followed from outside: each end with the right
//!   type byte behind it
//!
//! Bytes that somebody has chosen may begin a block at each place, and all of them go on for
//! megabytes: what is looked at beyond what a table of any kind needs has a bound ([`Effort`]).

use crate::base::coding::{Decoder, fixed32_at};
use crate::base::compression::CompressionType;

use super::super::block::{Block, entry_header};
use super::super::format::TRAILER_SIZE;

/// Blocks of a codec without structure are looked for up to this size.
const BLIND_SIZE_MAX: usize = 128 << 10;
/// The most buckets that the hash index of a block has.
const BUCKETS_MAX: usize = 1 << 16;

const ZSTD_MAGIC: u32 = 0xfd2f_b528;
const HASH_INDEX_BIT: u32 = 1 << 31;
/// From this one on buckets name no restart.
const BUCKET_COLLISION: u8 = 254;
const EVENLY_SPREAD_BIT: u32 = 1 << 29;

/// What may be done for blocks that turn out to be none: in steps, each about as long as to look at
/// one entry.
#[derive(Debug)]
pub(super) struct Effort {
    left: u64,
    /// Whether something was given up for it.
    pub(super) is_spent: bool,
}

impl Effort {
    /// For each byte that is passed. A block of ordinary size takes far less.
    const PER_BYTE: u64 = 1024;
    /// As much comes together, for large blocks.
    const MOST: u64 = 64 << 20;
    /// A checksum over so many bytes is a step.
    pub(super) const CHECKED_BYTES: usize = 64;

    pub(super) fn new() -> Self {
        Self { left: Self::MOST, is_spent: false }
    }

    /// What so many further bytes allow.
    pub(super) fn earn(&mut self, bytes: u64) {
        self.left = bytes.saturating_mul(Self::PER_BYTE).saturating_add(self.left).min(Self::MOST);
    }

    /// Takes one step, if there is one left.
    #[inline]
    fn step(&mut self) -> Option<()> {
        self.take(1).then_some(())
    }

    /// Whether the checksum of so many bytes may be computed.
    pub(super) fn check(&mut self, bytes: usize) -> bool {
        self.take((bytes / Self::CHECKED_BYTES) as u64 + 1)
    }

    #[inline]
    fn take(&mut self, steps: u64) -> bool {
        let left = self.left.checked_sub(steps);
        self.is_spent |= left.is_none();
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

/// The sizes that a block at the front of `bytes` may have, its trailer not counted; behind each
/// the right type byte stands. `blind`: also those of codecs without structure, which takes long.
pub(super) fn possible_sizes(bytes: &[u8], blind: bool, effort: &mut Effort) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut offer = |size: usize, kinds: &[CompressionType]| {
        let is_there = size.checked_add(TRAILER_SIZE).is_some_and(|end| end <= bytes.len());
        if is_there
            && CompressionType::from_byte(bytes[size]).is_some_and(|kind| kinds.contains(&kind))
        {
            sizes.push(size);
        }
    };
    // Each ends with `None` where there is no block, or no effort left.
    let _ = plain(bytes, effort, &mut |size| offer(size, &[CompressionType::None]));
    let _ = snappy(bytes, effort, &mut |size| offer(size, &[CompressionType::Snappy]));
    let _ = lz4(bytes, effort, &mut |size| {
        offer(size, &[CompressionType::Lz4, CompressionType::Lz4hc])
    });
    let _ = zstd(bytes, effort, &mut |size| offer(size, &[CompressionType::Zstd]));
    let most = bytes.len().min(BLIND_SIZE_MAX);
    if blind && effort.take(most as u64) {
        for size in 1..most {
            offer(size, &[CompressionType::Zlib, CompressionType::Bzip2]);
        }
    }
    sizes
}

/// Entries as they are.
fn plain(bytes: &[u8], effort: &mut Effort, offer: &mut dyn FnMut(usize)) -> Option<()> {
    let (entries_end, restarts) = walk_entries(bytes, effort)?;
    // As many of the numbers that follow as are where an entry begins that shares nothing.
    let ascending = restarts
        .iter()
        .enumerate()
        .take_while(|(at, _)| {
            fixed32_at(bytes, entries_end + 4 * at)
                .is_some_and(|offset| restarts.binary_search(&offset).is_ok())
        })
        .count();
    for count in (1..=ascending).rev() {
        let end = entries_end + 4 * count;
        let footer = |at| fixed32_at(bytes, at).map(|footer| footer & !EVENLY_SPREAD_BIT);
        if footer(end) == Some(count as u32) {
            offer(end + 4);
        }
        if count + 2 < ascending {
            continue;
        }
        for buckets in 1..BUCKETS_MAX.min(bytes.len().saturating_sub(end)) {
            // A bucket names a restart, or says that there is none or that there are several.
            let is_bucket = |byte: u8| usize::from(byte) < count || byte >= BUCKET_COLLISION;
            if !is_bucket(bytes[end + buckets - 1]) {
                break;
            }
            effort.step()?;
            let at = end + buckets + 2;
            let is_hashed = footer(at) == Some(count as u32 | HASH_INDEX_BIT);
            let counted = || {
                bytes.get(at - 2..at).map(|two| usize::from(u16::from_le_bytes([two[0], two[1]])))
            };
            if is_hashed && counted() == Some(buckets) {
                offer(at + 4);
            }
        }
    }
    Some(())
}

/// Where entries end, and the offsets of those that share nothing; `None` if there are none.
fn walk_entries(bytes: &[u8], effort: &mut Effort) -> Option<(usize, Vec<u32>)> {
    let (mut offset, mut key_size) = (0, 0);
    let mut restarts = Vec::new();
    loop {
        effort.step()?;
        let header = entry_header(bytes, offset)?;
        let (shared, non_shared) = (header.shared as usize, header.non_shared as usize);
        if shared + non_shared == 0 {
            // The first restart offset.
            return (!restarts.is_empty()).then_some((offset, restarts));
        }
        if shared > key_size || (offset == 0 && shared != 0) {
            return None;
        }
        if shared == 0 {
            restarts.push(u32::try_from(offset).ok()?);
        }
        key_size = shared + non_shared;
        let end = (header.suffix as usize)
            .checked_add(non_shared)?
            .checked_add(header.value_length as usize)?;
        if end >= bytes.len() {
            return None;
        }
        offset = end;
    }
}

/// The size that a compressed block claims to hold, and where what is compressed begins.
fn raw_size(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut decoder = Decoder::new(bytes);
    let raw_size = decoder.varint32()? as usize;
    let is_credible = (1..=Block::SIZE_MAX).contains(&raw_size);
    is_credible.then_some((raw_size, bytes.len() - decoder.rest().len()))
}

fn snappy(bytes: &[u8], effort: &mut Effort, offer: &mut dyn FnMut(usize)) -> Option<()> {
    let (raw_size, mut at) = raw_size(bytes)?;
    let mut made = 0;
    while made < raw_size {
        effort.step()?;
        let &tag = bytes.get(at)?;
        let (length, offset, taken) = match tag & 3 {
            0 => {
                let short = usize::from(tag >> 2);
                let extra = short.saturating_sub(59);
                let more = bytes.get(at + 1..at + 1 + extra)?;
                let length = match extra {
                    0 => short,
                    _ => more.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte)),
                };
                (length + 1, None, 1 + extra + length + 1)
            }
            1 => {
                let &low = bytes.get(at + 1)?;
                let offset = usize::from(tag >> 5) << 8 | usize::from(low);
                (4 + usize::from(tag >> 2 & 7), Some(offset), 2)
            }
            wide => {
                let size = if wide == 2 { 2 } else { 4 };
                let number = bytes.get(at + 1..at + 1 + size)?;
                let offset =
                    number.iter().rev().fold(0, |offset, byte| offset << 8 | usize::from(*byte));
                (1 + usize::from(tag >> 2), Some(offset), 1 + size)
            }
        };
        if offset.is_some_and(|offset| offset == 0 || offset > made) {
            return None;
        }
        made += length;
        at += taken;
    }
    if made == raw_size {
        offer(at);
    }
    Some(())
}

fn lz4(bytes: &[u8], effort: &mut Effort, offer: &mut dyn FnMut(usize)) -> Option<()> {
    let (raw_size, mut at) = raw_size(bytes)?;
    let mut made = 0;
    loop {
        effort.step()?;
        let &token = bytes.get(at)?;
        at += 1;
        let literals = lz4_length(bytes, &mut at, usize::from(token >> 4), effort)?;
        // At most offsets nothing else tells for long that no block begins there.
        if made == 0 && literals > 0 && bytes.get(at) != Some(&0) {
            return None;
        }
        at += literals;
        made += literals;
        if made == raw_size {
            offer(at);
            return Some(());
        }
        // Offsets may reach into a dictionary, so they prove nothing; a length that exceeds the
        // claim does.
        let offset = bytes.get(at..at + 2)?;
        at += 2;
        let length = lz4_length(bytes, &mut at, usize::from(token & 15), effort)?;
        made += length + 4;
        if made > raw_size || offset == [0, 0] {
            return None;
        }
    }
}

/// A length that goes on in further bytes if it is 15.
fn lz4_length(bytes: &[u8], at: &mut usize, short: usize, effort: &mut Effort) -> Option<usize> {
    let mut length = short;
    if short == 15 {
        loop {
            effort.step()?;
            let byte = *bytes.get(*at)?;
            *at += 1;
            length += usize::from(byte);
            if byte != 255 {
                break;
            }
        }
    }
    (length <= Block::SIZE_MAX).then_some(length)
}

fn zstd(bytes: &[u8], effort: &mut Effort, offer: &mut dyn FnMut(usize)) -> Option<()> {
    let (_, start) = raw_size(bytes)?;
    if fixed32_at(bytes, start) != Some(ZSTD_MAGIC) {
        return None;
    }
    let &descriptor = bytes.get(start + 4)?;
    let is_single = descriptor & 0x20 != 0;
    let content_size = match descriptor >> 6 {
        0 => usize::from(is_single),
        power => 1 << power,
    };
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let mut at = start + 5 + usize::from(!is_single) + dictionary + content_size;
    loop {
        effort.step()?;
        let header = bytes.get(at..at + 3)?;
        let header = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        at += 3 + match header >> 1 & 3 {
            1 => 1,
            3 => return None,
            _ => (header >> 3) as usize,
        };
        if header & 1 != 0 {
            offer(at + if descriptor & 4 != 0 { 4 } else { 0 });
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests;
