//! Putting the checksums of damaged files right, so that a fuzzer gets past them.

use flagstone::base::checksum::{crc32c, mask};
use flagstone::base::coding::{Decoder, fixed32_at};
use flagstone::blob;
use flagstone::sst::{Block, BlockHandle, Footer};
use flagstone::wal;

/// Checksums of the physical records of a WAL or a MANIFEST, as far as their lengths lead from one
/// to the next.
pub fn log(bytes: &mut [u8]) {
    const TYPE_AT: usize = 6;
    let mut at = 0;
    while at + TYPE_AT < bytes.len() {
        let left_in_block = wal::BLOCK_SIZE - at % wal::BLOCK_SIZE;
        if left_in_block <= TYPE_AT {
            at += left_in_block;
            continue;
        }
        let length = usize::from(u16::from_le_bytes([bytes[at + 4], bytes[at + 5]]));
        let header = if matches!(bytes[at + TYPE_AT], 5..=8 | 11 | 131) { 11 } else { 7 };
        let end = at + header + length;
        if header + length > left_in_block || end > bytes.len() {
            return;
        }
        if bytes[at + TYPE_AT] == 0 && length == 0 {
            at += left_in_block;
            continue;
        }
        let crc = mask(crc32c(&bytes[at + TYPE_AT..end]));
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
        at = end;
    }
}

/// Checksums of a blob file's records and its footer.
pub fn blob_file(bytes: &mut [u8]) {
    let mut at = blob::HEADER_SIZE;
    while let Some(header) = bytes.get(at..at + blob::RECORD_HEADER_SIZE) {
        let mut sizes = Decoder::new(header);
        let (key, value) =
            (sizes.fixed64().unwrap_or_default(), sizes.fixed64().unwrap_or_default());
        let start = at + blob::RECORD_HEADER_SIZE;
        let end = key.checked_add(value).and_then(|size| (start as u64).checked_add(size));
        let Some(end) = end.filter(|&end| end <= bytes.len() as u64).map(|end| end as usize) else {
            break;
        };
        let crcs = [mask(crc32c(&bytes[at..at + 24])), mask(crc32c(&bytes[start..end]))];
        for (index, crc) in crcs.iter().enumerate() {
            bytes[at + 24 + 4 * index..at + 28 + 4 * index].copy_from_slice(&crc.to_le_bytes());
        }
        at = end;
    }
    if let Some(start) = bytes.len().checked_sub(blob::FOOTER_SIZE) {
        let end = bytes.len() - 4;
        let crc = mask(crc32c(&bytes[start..end]));
        bytes[end..].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Checksums of a table's footer and of every block that can be found from it: meta blocks, index,
/// data blocks.
pub fn table(bytes: &mut [u8]) {
    footer(bytes);
    let size = bytes.len();
    let Ok(footer) = Footer::decode(&bytes[size.saturating_sub(Footer::SIZE_MAX)..], size as u64)
    else {
        return;
    };
    mend_block(bytes, &footer, footer.metaindex);
    let mut handles: Vec<_> = footer.index.into_iter().collect();
    for handle in handles_in(bytes, footer.metaindex) {
        mend_block(bytes, &footer, handle);
        handles.push(handle);
    }
    // Blocks of handles: an index, its partitions, the top of a partitioned filter. Two steps down
    // is all there is.
    for _ in 0..2 {
        let mut below = Vec::new();
        for handle in handles {
            mend_block(bytes, &footer, handle);
            below.extend(handles_in(bytes, handle));
        }
        handles = below;
    }
    for handle in handles {
        mend_block(bytes, &footer, handle);
    }
}

/// The checksum that a footer of version 6 or 7 has of its own.
pub fn footer(bytes: &mut [u8]) {
    let Some(start) = bytes.len().checked_sub(Footer::SIZE_MAX) else { return };
    let offset = start as u64;
    let tail = &mut bytes[start..];
    let version = fixed32_at(tail, 41).unwrap_or_default();
    let Some(kind) = flagstone::base::checksum::ChecksumType::from_byte(tail[0]) else { return };
    if version < 6 || tail[1..5] != [0x3e, 0, 0x7a, 0] {
        return;
    }
    tail[5..9].fill(0);
    let (body, last) = tail.split_at(Footer::SIZE_MAX - 1);
    let base = fixed32_at(tail, 9).unwrap_or_default();
    let checksum = flagstone::base::checksum::block_checksum(kind, body, last[0])
        .wrapping_add(flagstone::base::checksum::context_modifier(base, offset));
    tail[5..9].copy_from_slice(&checksum.to_le_bytes());
}

/// Blocks that one mended table may have; a hostile index must not make mending the slow part.
const HANDLES_MAX: usize = 64;

fn range_of(bytes: &[u8], handle: BlockHandle) -> Option<std::ops::Range<usize>> {
    (handle.end() <= bytes.len() as u64)
        .then(|| handle.offset as usize..(handle.offset + handle.size) as usize)
}

fn mend_block(bytes: &mut [u8], footer: &Footer, handle: BlockHandle) {
    let Some(range) = range_of(bytes, handle) else { return };
    let kind = bytes[range.end];
    let checksum = footer.checksum_of(&bytes[range.clone()], kind, handle.offset);
    bytes[range.end + 1..range.end + 5].copy_from_slice(&checksum.to_le_bytes());
}

/// What could be handles in an uncompressed block: values of entries, in an index with and without
/// value lengths.
fn handles_in(bytes: &[u8], handle: BlockHandle) -> Vec<BlockHandle> {
    let Some(range) = range_of(bytes, handle) else { return Vec::new() };
    if bytes[range.end] != 0 {
        return Vec::new();
    }
    let Ok(block) = Block::new(&bytes[range]) else { return Vec::new() };
    let mut found = Vec::new();
    for with_lengths in [true, false] {
        let (mut decoder, mut previous) = (Decoder::new(block.data()), None::<BlockHandle>);
        while found.len() < HANDLES_MAX {
            let Some(next) = handle_of_entry(&mut decoder, with_lengths, previous) else { break };
            found.push(next);
            previous = Some(next);
        }
    }
    found
}

fn handle_of_entry(
    decoder: &mut Decoder<'_>,
    with_length: bool,
    previous: Option<BlockHandle>,
) -> Option<BlockHandle> {
    let (shared, suffix) = (decoder.varint32()?, decoder.varint32()?);
    if with_length {
        let length = decoder.varint32()?;
        decoder.bytes(suffix as usize)?;
        let mut value = Decoder::new(decoder.bytes(length as usize)?);
        return BlockHandle::decode(&mut value);
    }
    decoder.bytes(suffix as usize)?;
    match previous.filter(|_| shared > 0) {
        None => BlockHandle::decode(decoder),
        Some(previous) => {
            let size = i64::try_from(previous.size).ok()?.checked_add(decoder.varsigned64()?)?;
            Some(BlockHandle { offset: previous.end(), size: u64::try_from(size).ok()? }).filter(
                |handle| {
                    handle.offset.checked_add(handle.size).is_some_and(|end| end < u64::MAX - 5)
                },
            )
        }
    }
}
