//! Finding the blocks of a table without its index, by their checksums.
//!
//! 1. Blocks follow one another. Where one ends, the next is looked for at once; [`possible_sizes`]
//!    has the guesses.
//! 2. Where none is found, one is looked for at each byte that follows.
//! 3. If the footer is lost, so is the kind of checksum: the first block by which one of them is
//!    right decides. From format version 6 on, checksums also depend on a number that only the
//!    footer has. It follows from any one block, so two neighbours must agree on it. Then the
//!    search begins anew: blocks that have lost their neighbours were passed.

use std::ops::Range;

use crate::base::Result;
use crate::base::checksum::{ChecksumType, block_checksum, context_modifier};
use crate::base::coding::fixed32_at;
use crate::env::{RandomAccessFile, read_around_failures};

use super::super::format::{BlockHandle, DEFAULT_FORMAT_VERSION, Footer, TRAILER_SIZE};
use super::ends::{Effort, possible_sizes};

/// The largest block that is found.
const BLOCK_SIZE_MAX: u64 = 16 << 20;
/// What is read at once.
const WINDOW_SIZE: u64 = 2 * BLOCK_SIZE_MAX;
/// From this version on checksums depend on where a block lies.
const CONTEXT_VERSION: u32 = 6;

/// What is known of the checksums of a table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Checksums {
    /// As the footer says, or a block has shown.
    Known(Footer),
    /// The footer is lost, and no block has been found yet.
    Unknown,
}

/// A footer without places, for a table that has lost its own.
fn footer_of(checksum: ChecksumType, base_context_checksum: u32) -> Footer {
    let format_version =
        if base_context_checksum == 0 { DEFAULT_FORMAT_VERSION } else { CONTEXT_VERSION };
    Footer {
        checksum,
        format_version,
        metaindex: BlockHandle::default(),
        index: None,
        base_context_checksum,
    }
}

/// In the place of a footer that is lost.
pub(super) fn no_footer() -> Footer {
    footer_of(ChecksumType::default(), 0)
}

impl Checksums {
    /// Whether they are known to depend on where a block lies.
    fn have_context(&self) -> bool {
        matches!(self, Self::Known(footer) if footer.base_context_checksum != 0)
    }

    /// The size of the block at the front of `bytes`, which lie at `offset` in the file.
    fn block_at(
        &mut self,
        bytes: &[u8],
        offset: u64,
        blind: bool,
        effort: &mut Effort,
    ) -> Option<BlockHandle> {
        let sizes = possible_sizes(bytes, blind, effort);
        let handle = |size: usize| BlockHandle { offset, size: size as u64 };
        if let Self::Known(footer) = self {
            let mut sizes = sizes.into_iter();
            let found =
                sizes.find(|&size| effort.check(size) && is_intact(footer, bytes, offset, size));
            return found.map(handle);
        }
        for kind in
            [ChecksumType::Xxh3, ChecksumType::Crc32c, ChecksumType::XxHash64, ChecksumType::XxHash]
        {
            for &size in &sizes {
                if !effort.check(2 * size) {
                    continue;
                }
                let plain = footer_of(kind, 0);
                if is_intact(&plain, bytes, offset, size) {
                    *self = Self::Known(plain);
                    return Some(handle(size));
                }
                let Some(with_context) = context_of(kind, bytes, offset, size) else { continue };
                let end = size + TRAILER_SIZE;
                if is_followed(&with_context, &bytes[end..], offset + end as u64, effort) {
                    *self = Self::Known(with_context);
                    return Some(handle(size));
                }
            }
        }
        None
    }
}

fn stored_checksum(bytes: &[u8], size: usize) -> u32 {
    fixed32_at(bytes, size + 1).expect("the trailer was found to be there")
}

fn is_intact(footer: &Footer, bytes: &[u8], offset: u64, size: usize) -> bool {
    footer.checksum != ChecksumType::None
        && footer.checksum_of(&bytes[..size], bytes[size], offset) == stored_checksum(bytes, size)
}

/// Whether an intact block begins with these bytes, which lie at `offset`, or behind the zeros
/// there, which are padding.
fn is_followed(footer: &Footer, bytes: &[u8], offset: u64, effort: &mut Effort) -> bool {
    let zeros = zeros_in_front(bytes, effort);
    // The last of them may be what a block begins with.
    (zeros.saturating_sub(1)..=zeros).any(|padding| {
        let (bytes, offset) = (&bytes[padding..], offset + padding as u64);
        let mut sizes = possible_sizes(bytes, false, effort).into_iter();
        sizes.any(|size| effort.check(size) && is_intact(footer, bytes, offset, size))
    })
}

/// How many zeros these bytes begin with, as far as the effort goes.
fn zeros_in_front(bytes: &[u8], effort: &mut Effort) -> usize {
    let zeros_of = |chunk: &[u8]| chunk.iter().take_while(|&&byte| byte == 0).count();
    let mut zeros = 0;
    for chunk in bytes.chunks(Effort::CHECKED_BYTES) {
        let more = if effort.check(0) { zeros_of(chunk) } else { 0 };
        zeros += more;
        if more < chunk.len() {
            break;
        }
    }
    zeros
}

/// The footer by which the block's checksum is right, if checksums depend on the place.
fn context_of(kind: ChecksumType, bytes: &[u8], offset: u64, size: usize) -> Option<Footer> {
    let modifier = stored_checksum(bytes, size).wrapping_sub(block_checksum(
        kind,
        &bytes[..size],
        bytes[size],
    ));
    // The modifier is the base, changed by a number that follows from the offset: the change undoes
    // itself.
    let base = context_modifier(1, offset) ^ 1 ^ modifier;
    (base != 0).then(|| footer_of(kind, base))
}

/// Finds the intact blocks that begin in `range`, in the order of the file; none where the device
/// cannot read it, nor some that take more than `effort` allows.
///
/// # Errors
/// `IoError`.
pub(super) fn find_blocks(
    file: &dyn RandomAccessFile,
    file_size: u64,
    range: Range<u64>,
    checksums: &mut Checksums,
    effort: &mut Effort,
    found: &mut Vec<BlockHandle>,
) -> Result<()> {
    let mut window = Window { file, file_size, start: 0, bytes: Vec::new() };
    let mut offset = range.start;
    let mut follows_block = true;
    while offset + (TRAILER_SIZE as u64) < range.end {
        let was_unknown = matches!(checksums, Checksums::Unknown);
        let bytes = window.from(offset)?;
        // What ends where nothing tells begins with its size: zeros are padding, behind which such
        // a block may begin, too.
        let is_zero = bytes.first() == Some(&0);
        let block = checksums.block_at(bytes, offset, follows_block && !is_zero, effort);
        if was_unknown && checksums.have_context() && offset > range.start {
            // By now the blocks are known that were passed for want of a neighbour.
            (offset, follows_block) = (range.start, true);
            continue;
        }
        follows_block = block.is_some() || (follows_block && is_zero);
        let passed = match block {
            Some(handle) => {
                found.push(handle);
                handle.end() - offset
            }
            None => zeros_to_skip(bytes).max(1) as u64,
        };
        effort.earn(passed);
        offset += passed;
    }
    Ok(())
}

/// How many of these bytes no block can begin with: a run of zeros, but for the last of them.
/// Entries begin with what they share with those before, nothing, and how long their key is, which
/// is something; what is compressed begins with its size.
fn zeros_to_skip(bytes: &[u8]) -> usize {
    let zeros = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
    zeros.saturating_sub(1)
}

/// A stretch of the file.
struct Window<'a> {
    file: &'a dyn RandomAccessFile,
    file_size: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// What lies at `offset`, as far as a block can reach.
    fn from(&mut self, offset: u64) -> Result<&[u8]> {
        let wanted_end = (offset + BLOCK_SIZE_MAX).min(self.file_size);
        let window_end = self.start + self.bytes.len() as u64;
        if offset < self.start || wanted_end > window_end {
            let size = WINDOW_SIZE.min(self.file_size - offset.min(self.file_size));
            self.bytes.resize(size as usize, 0);
            self.start = offset;
            let filled = read_around_failures(self.file, offset, &mut self.bytes)?;
            self.bytes.truncate(filled);
        }
        let start = (offset - self.start) as usize;
        let end = (start + BLOCK_SIZE_MAX as usize).min(self.bytes.len());
        Ok(&self.bytes[start.min(end)..end])
    }
}

#[cfg(test)]
mod tests;
