//! Physical records, one after the other, out of blocks.

use std::ops::Range;
use std::sync::Arc;

use super::damage::DamageKind;
use super::format::*;
use crate::base::checksum;
use crate::base::{FileNumber, Result};
use crate::env::{RandomAccessFile, read_around_failures, read_until_end};

/// How much is read from the file at a time where nobody says how much: eight blocks, so that
/// reading a log costs few system calls.
const WINDOW_SIZE: usize = 8 * BLOCK_SIZE;

/// What stands at the position.
pub(super) enum Physical {
    /// An intact physical record of this file.
    Fragment(Fragment),
    /// An intact record of the file's earlier life.
    OldRecord { next: u64 },
    /// Zeros instead of a header; the rest of the block is taken for such.
    Zeros { next: u64 },
    /// No record; `next` is where to go on.
    Bad { kind: DamageKind, next: u64 },
    /// The file ends here.
    End,
}

/// One physical record.
pub(super) struct Fragment {
    pub record_type: u8,
    /// Where its payload is in the window; valid until the next [`Blocks::peek`].
    pub payload: Range<usize>,
    /// Where its header is in the file.
    pub offset: u64,
    /// Where it ends in the file.
    pub next: u64,
}

/// A log file as physical records.
pub(super) struct Blocks {
    pub file: Arc<dyn RandomAccessFile>,
    number: u32,
    /// Bytes that are read at a time, whole blocks.
    window_size: usize,
    /// A stretch of whole blocks, shorter only at the file's end.
    window: Vec<u8>,
    window_start: u64,
    position: u64,
    /// Whether a header with this file's number has been seen.
    pub is_recyclable: bool,
    /// Whether a data record without a number has been read.
    pub has_legacy_record: bool,
    /// Whether to look for intact records behind damage within its block.
    searches: bool,
    /// Where the file is taken to end, if it does not end before.
    limit: u64,
}

impl Blocks {
    /// Reads so many bytes at a time, rounded up to whole blocks; with 0 as many as seem good.
    pub fn new(
        file: Arc<dyn RandomAccessFile>,
        number: FileNumber,
        searches: bool,
        readahead_size: usize,
    ) -> Self {
        Self {
            file,
            number: number.0 as u32,
            window_size: match readahead_size {
                0 => WINDOW_SIZE,
                size => size.next_multiple_of(BLOCK_SIZE),
            },
            window: Vec::new(),
            window_start: 0,
            position: 0,
            is_recyclable: false,
            has_legacy_record: false,
            searches,
            limit: u64::MAX,
        }
    }

    /// From here on the file is taken to end at `limit`; what was read of it is read again.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.window.clear();
    }

    /// Moves back to where a record ends.
    pub fn go_back(&mut self, position: u64) {
        debug_assert!(position <= self.position);
        self.position = position;
    }

    /// The type of the record whose header is next, if the window has it; `None` where there are
    /// zeros instead, but for those that pad a block's end.
    pub fn next_type(&self) -> Option<u8> {
        let in_block = (self.position % BLOCK_SIZE as u64) as usize;
        let left = BLOCK_SIZE - in_block;
        let here = self.type_at(self.position).filter(|_| left >= LEGACY_HEADER_SIZE);
        let is_padding = left < RECYCLABLE_HEADER_SIZE;
        here.or_else(|| self.type_at(self.position + left as u64).filter(|_| is_padding))
    }

    fn type_at(&self, offset: u64) -> Option<u8> {
        let start = usize::try_from(offset.checked_sub(self.window_start)?).ok()?;
        self.window.get(start..)?.get(TYPE_OFFSET).copied().filter(|found| *found != ZERO)
    }

    /// The bytes at a range of the window.
    #[inline]
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.window[range]
    }

    /// Moves on to `next`, which came with what was peeked at.
    #[inline]
    pub fn consume(&mut self, next: u64) {
        debug_assert!(next >= self.position);
        self.position = next;
    }

    /// What stands at the position, and where that is: padding at the end of blocks is skipped.
    pub fn peek(&mut self) -> Result<(u64, Physical)> {
        loop {
            let rest = self.rest_of_block()?;
            let block_end = self.position - self.position % BLOCK_SIZE as u64 + BLOCK_SIZE as u64;
            let end = self.position + rest.len() as u64;
            let is_whole = end == block_end;
            if rest.is_empty() {
                return Ok((self.position, Physical::End));
            }
            let bytes = &self.window[rest.clone()];
            match self.parse(bytes, end, is_whole) {
                Found::Padding => self.position = end,
                Found::Record { record_type, header_size, size, is_numbered } => {
                    self.is_recyclable |= is_numbered;
                    let fragment = Fragment {
                        record_type,
                        payload: rest.start + header_size..rest.start + size,
                        offset: self.position,
                        next: self.position + size as u64,
                    };
                    return Ok((self.position, Physical::Fragment(fragment)));
                }
                Found::Bad { kind, is_numbered } => {
                    // In a damaged header nothing is certain.
                    self.is_recyclable |= is_numbered && !self.searches;
                    let next = self.position + self.resume_at(bytes) as u64;
                    return Ok((self.position, Physical::Bad { kind, next }));
                }
                Found::Other(Physical::Zeros { .. }) => {
                    let next = self.position + self.resume_at(bytes) as u64;
                    return Ok((self.position, Physical::Zeros { next }));
                }
                Found::Other(physical) => return Ok((self.position, physical)),
            }
        }
    }

    /// Where to go on behind damage at the front of `rest`: at its end, or the next intact record.
    fn resume_at(&self, rest: &[u8]) -> usize {
        // Most of what is searched is space that was reserved.
        if !self.searches || rest.iter().all(|byte| *byte == 0) {
            return rest.len();
        }
        // A value may hold what looks like a record, so the damaged one's own end comes first.
        let claimed = Header::parse(rest).map(|header| header.size() + header.length);
        let claimed = claimed.filter(|&size| size == rest.len() || Self::is_record(rest, size));
        claimed
            .or_else(|| (1..rest.len()).find(|&start| Self::is_record(rest, start)))
            .unwrap_or(rest.len())
    }

    /// Whether an intact record begins at `start`, be it of the file's earlier life: that tells it
    /// from a damaged one.
    fn is_record(rest: &[u8], start: usize) -> bool {
        let Some(rest) = rest.get(start..) else { return false };
        let Some(header) = Header::parse(rest) else { return false };
        let record_type = header.record_type;
        if !is_known(without_recyclable(record_type)) {
            return false;
        }
        let covered = rest.get(TYPE_OFFSET..header.size() + header.length);
        covered.is_some_and(|bytes| checksum::mask(checksum::crc32c(bytes)) == header.masked_crc)
    }

    /// Bytes of the window that starts where `window_start` is: a large one takes no more memory
    /// than the file has left.
    fn next_window_size(&self) -> Result<usize> {
        if self.window_size <= WINDOW_SIZE {
            return Ok(self.window_size);
        }
        let left =
            self.file.size()?.saturating_sub(self.window_start).next_multiple_of(BLOCK_SIZE as u64);
        Ok(self.window_size.min(usize::try_from(left).unwrap_or(usize::MAX).max(WINDOW_SIZE)))
    }

    /// Where the bytes from the position to its block's end, or the file's, are in the window.
    fn rest_of_block(&mut self) -> Result<Range<usize>> {
        let in_block = (self.position % BLOCK_SIZE as u64) as usize;
        let window_end = self.window_start + self.window.len() as u64;
        let is_short = self.window.len() < self.window_size && !self.window.is_empty();
        // A short window ends the file: what was read once is not read again.
        if self.position >= window_end && !(is_short && self.position > 0) {
            self.window_start = self.position - in_block as u64;
            let left =
                usize::try_from(self.limit.saturating_sub(self.window_start)).unwrap_or(usize::MAX);
            let size = self.next_window_size()?.min(left);
            match self.window.capacity() {
                // Fresh zeros from the system cost a short file nothing for the part that it does
                // not fill.
                0 => self.window = vec![0; size],
                _ => self.window.resize(size, 0),
            }
            let read = if self.searches { read_around_failures } else { read_until_end };
            let filled = read(&*self.file, self.window_start, &mut self.window)?;
            self.window.truncate(filled);
        }
        let start = (self.position - self.window_start) as usize;
        let block_end = start - in_block + BLOCK_SIZE;
        let end = block_end.min(self.window.len());
        Ok(start.min(end)..end)
    }
}

/// What [`Blocks::parse`] makes of some bytes.
enum Found {
    Padding,
    Record { record_type: u8, header_size: usize, size: usize, is_numbered: bool },
    Bad { kind: DamageKind, is_numbered: bool },
    Other(Physical),
}

impl Blocks {
    /// `rest` reaches to `end`; `is_whole` says that this is a block's end, and not the file's
    /// before.
    fn parse(&self, rest: &[u8], end: u64, is_whole: bool) -> Found {
        let bad = |kind, is_numbered| Found::Bad { kind, is_numbered };
        let Some(header) = Header::parse(rest) else {
            return if is_whole {
                Found::Padding
            } else if self.is_recyclable && rest.iter().all(|byte| *byte == 0) {
                // No more was left of the space that was reserved.
                Found::Other(Physical::Zeros { next: end })
            } else {
                bad(DamageKind::TruncatedHeader, false)
            };
        };
        if header.record_type == ZERO && header.length == 0 {
            let is_padding = is_whole
                && self.is_recyclable
                && rest.len() < RECYCLABLE_HEADER_SIZE
                && rest.iter().all(|byte| *byte == 0);
            return if is_padding {
                Found::Padding
            } else {
                Found::Other(Physical::Zeros { next: end })
            };
        }
        let (header_size, size) = (header.size(), header.size() + header.length);
        let is_intact = || {
            let covered = rest.get(TYPE_OFFSET..size);
            covered
                .is_some_and(|bytes| checksum::mask(checksum::crc32c(bytes)) == header.masked_crc)
        };
        let old =
            || Found::Other(Physical::OldRecord { next: end.min(self.position + size as u64) });
        let is_numbered = is_recyclable(header.record_type);
        if is_numbered {
            if self.has_legacy_record && !self.searches {
                return bad(DamageKind::MixedHeaders, false);
            }
            match number_in_header(rest) {
                Some(number) if number == self.number => {}
                Some(_) => return self.parse_foreign(rest, &header, end, is_intact),
                None if is_whole => return Found::Padding,
                None => return bad(DamageKind::TruncatedHeader, false),
            }
        } else if self.is_recyclable && is_legacy_data(header.record_type) && is_intact() {
            // The writer of numbered records writes no others, so these are from before.
            return old();
        }
        if size > rest.len() {
            let is_length = is_whole || ends_earlier(rest, header_size, header.masked_crc);
            let kind = if is_length { DamageKind::Length } else { DamageKind::TruncatedBody };
            return bad(kind, is_numbered);
        }
        if is_intact() {
            Found::Record { record_type: header.record_type, header_size, size, is_numbered }
        } else {
            bad(DamageKind::Checksum, is_numbered)
        }
    }

    /// A record with another number than the log's.
    fn parse_foreign(
        &self,
        rest: &[u8],
        header: &Header,
        end: u64,
        is_intact: impl Fn() -> bool,
    ) -> Found {
        let size = header.size() + header.length;
        let next = self.position + size as u64;
        if has_damaged_number(rest, size, header.masked_crc, self.number) {
            return Found::Other(Physical::Bad { kind: DamageKind::Number, next });
        }
        // In a file that has shown no number yet, a damaged type byte could pass for an older
        // record.
        if self.is_recyclable && !self.searches || is_intact() {
            return Found::Other(Physical::OldRecord { next: end.min(next) });
        }
        Found::Bad { kind: DamageKind::Checksum, is_numbered: false }
    }
}

/// Whether the record at the front of `rest`, which has another number, is one of the log `number`:
/// its checksum says so.
fn has_damaged_number(rest: &[u8], size: usize, masked_crc: u32, number: u32) -> bool {
    let payload = rest.get(RECYCLABLE_HEADER_SIZE..size);
    payload.is_some_and(|payload| {
        let crc = checksum::crc32c_append(
            checksum::crc32c(&rest[TYPE_OFFSET..][..1]),
            &number.to_le_bytes(),
        );
        checksum::mask(checksum::crc32c_append(crc, payload)) == masked_crc
    })
}

/// The intact records that begin anywhere in `bytes`, a part of one block, and where; `None` for
/// one that goes on in the next block.
pub fn records_within(bytes: &[u8]) -> impl Iterator<Item = (usize, Option<&[u8]>)> {
    (0..bytes.len()).filter_map(|start| {
        let rest = &bytes[start..];
        let header = Header::parse(rest)?;
        let record_type = without_recyclable(header.record_type);
        let covered = rest.get(TYPE_OFFSET..header.size() + header.length)?;
        let begins = matches!(record_type, FULL | FIRST);
        let is_intact = begins && checksum::mask(checksum::crc32c(covered)) == header.masked_crc;
        let payload = &rest[header.size()..header.size() + header.length];
        is_intact.then(|| (start, (record_type == FULL).then_some(payload)))
    })
}

/// Whether these bytes begin with a header that nobody writes: a part of one that reached the disk
/// has its type, or a zero.
pub fn has_unknown_type(rest: &[u8]) -> bool {
    let is_strange = |record_type| {
        record_type != ZERO
            && record_type & IGNORABLE == 0
            && !is_known(without_recyclable(record_type))
    };
    Header::parse(rest).is_some_and(|header| is_strange(header.record_type))
}

/// The byte of which one bit is wrong, if the record at the front of `rest`, whose header has no
/// number, is intact but for it.
pub fn byte_with_wrong_bit(rest: &[u8]) -> Option<usize> {
    let header = Header::parse(rest)?;
    let wanted = checksum::unmask(header.masked_crc);
    let covered = |length: usize| rest.get(TYPE_OFFSET..LEGACY_HEADER_SIZE + length);
    let is_length = |bit: &usize| {
        covered(header.length ^ 1 << bit).is_some_and(|bytes| checksum::crc32c(bytes) == wanted)
    };
    if let Some(bit) = (0..16).find(is_length) {
        return Some(CRC_SIZE + bit / 8);
    }
    let covered = covered(header.length)?;
    let found = checksum::crc32c(covered);
    if let Some(bit) = (0..32).find(|bit| checksum::unmask(header.masked_crc ^ 1 << bit) == found) {
        return Some(bit / 8);
    }
    // By what each bit of a byte changes the checksum, whatever the others are: of the last byte,
    // of the one before, and so on.
    let mut changes: [u32; 8] =
        std::array::from_fn(|bit| !checksum::crc32c_append(!0, &[1 << bit]));
    for at in (0..covered.len()).rev() {
        if changes.contains(&(found ^ wanted)) {
            return Some(TYPE_OFFSET + at);
        }
        changes = changes.map(|change| !checksum::crc32c_append(!change, &[0]));
    }
    None
}

/// Whether the record at the front of `rest`, which claims to go on behind the end of the file, is
/// whole if it ends earlier: then its length is damaged, which the checksum does not cover. Of a
/// record that was cut off by a crash no beginning has the right checksum.
fn ends_earlier(rest: &[u8], header_size: usize, masked_crc: u32) -> bool {
    let Some(covered) = rest.get(TYPE_OFFSET..header_size) else { return false };
    let mut crc = checksum::crc32c(covered);
    let wanted = checksum::unmask(masked_crc);
    let payload = &rest[header_size..];
    crc == wanted
        || payload.iter().any(|byte| {
            crc = checksum::crc32c_append(crc, std::slice::from_ref(byte));
            crc == wanted
        })
}
