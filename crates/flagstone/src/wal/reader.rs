//! Reading records from a log file.
//!
//! 1. [`Blocks`] yields physical records, or says what is in their place.
//! 2. Data fragments are joined to logical records, and those of compressed WALs decompressed.
//! 3. Special records are noted. Whatever is no record is reported as [`Event::Damage`]; what that
//!    means is for the caller to judge ([`super::RecoveryMode::judge`]). Asking for the next event
//!    after damage goes on behind it.
//!
//! A recyclable header promises that nothing but zeros or older records follow the last record. So
//! in such files zeros are where the log ends, even if records stand behind them: a page between
//! was lost in a crash, and what follows must not be joined to what precedes. (Padding before a
//! timestamp-size record, the only kind that the format allows there, is no such end.) In files
//! without recyclable headers zeros at the end are nothing; between records they are reported, and
//! passed over as RocksDB does unless recovery is to a point in time.

use std::ops::Range;
use std::sync::Arc;

use super::compression::{Decompressor, FRAME_MAGIC};
use super::damage::{Damage, DamageKind};
use super::format::*;
use super::physical::{Blocks, Fragment, Physical};
use crate::base::coding::fixed32_at;
use crate::base::{ColumnFamilyId, FileNumber, Result};
use crate::env::RandomAccessFile;

/// The most that a compressed record is believed to hold, and is made of: one entry of the largest
/// size fits.
pub(super) const COMPRESSED_RECORD_MAX: usize = (4 << 30) + (16 << 20);

/// How a [`Reader`] reads.
#[derive(Debug, Clone, Copy)]
pub struct ReaderOptions {
    /// The most bytes that a compressed record may decompress to; a larger one is damage.
    pub decompressed_size_max: usize,
    /// Look for intact records right behind damage, not in the next block only: for a log that is
    /// to be salvaged, and whose damage the caller passes over.
    pub search_behind_damage: bool,
    /// Bytes that are read from the file at a time, rounded up to whole blocks; 0 leaves it to the
    /// reader.
    pub readahead_size: usize,
    /// Another process writes the log: where a block begins with zeros behind zeros, the log ends
    /// for now. What was reserved for it is not read.
    pub ends_at_zeros: bool,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self {
            decompressed_size_max: COMPRESSED_RECORD_MAX,
            search_behind_damage: false,
            readahead_size: 0,
            ends_at_zeros: false,
        }
    }
}

/// What comes next in a log.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A logical record.
    Record(&'a [u8]),
    /// The file ends where a record ended.
    End,
    /// Something that is no record.
    Damage(Damage),
}

/// Reads a log from its beginning.
pub struct Reader {
    blocks: Blocks,
    options: ReaderOptions,
    /// The fragments of the record being joined.
    partial: Vec<u8>,
    in_fragment: bool,
    decompressor: Option<Decompressor>,
    decompressed: Vec<u8>,
    /// Where the last record is.
    place: Place,
    /// Where zeros were passed over that no acceptable record has followed yet.
    zeros_at: Option<u64>,
    zeros_at_end: Option<u64>,
    seen_data: bool,
    finished: bool,
    record_offset: u64,
    good_until: u64,
    timestamp_sizes: TimestampSizes,
    predecessor: Option<PredecessorWal>,
}

/// Where the bytes of a logical record are.
enum Place {
    /// In the window that is being read.
    InBlock(Range<usize>),
    Joined,
    Decompressed,
}

/// An event, without the record's bytes.
enum Step {
    Record,
    End,
    Damage(Damage),
}

impl Reader {
    /// Starts at offset 0. `number` is the file's own, by which older records are told (0 for a
    /// MANIFEST, where there are none).
    pub fn new(file: Arc<dyn RandomAccessFile>, number: FileNumber) -> Self {
        Self::with_options(file, number, ReaderOptions::default())
    }

    /// [`Reader::new`] with other limits.
    pub fn with_options(
        file: Arc<dyn RandomAccessFile>,
        number: FileNumber,
        options: ReaderOptions,
    ) -> Self {
        Self {
            blocks: Blocks::new(file, number, options.search_behind_damage, options.readahead_size),
            options,
            partial: Vec::new(),
            in_fragment: false,
            decompressor: None,
            decompressed: Vec::new(),
            place: Place::InBlock(0..0),
            zeros_at: None,
            zeros_at_end: None,
            seen_data: false,
            finished: false,
            record_offset: 0,
            good_until: 0,
            timestamp_sizes: TimestampSizes::default(),
            predecessor: None,
        }
    }

    /// The next record, or what is in its place. After [`Event::End`] there is no more.
    ///
    /// # Errors
    /// `IoError`, if the file cannot be read.
    pub fn next_event(&mut self) -> Result<Event<'_>> {
        Ok(match self.advance()? {
            Step::Record => Event::Record(self.record()),
            Step::End => Event::End,
            Step::Damage(damage) => Event::Damage(damage),
        })
    }

    /// Reads on in a log that grows: up to `limit`, where a record ends. For one that was read to
    /// such a place before, or from its beginning.
    pub fn read_until(&mut self, limit: u64) {
        self.place = Place::InBlock(0..0);
        self.blocks.set_limit(limit);
        self.finished = false;
    }

    /// Reads on in a log that another process writes, from behind the last intact record: what
    /// stood there was perhaps not all written.
    pub fn resume(&mut self) {
        self.abandon();
        (self.zeros_at, self.zeros_at_end) = (None, None);
        self.blocks.go_back(self.good_until);
        self.read_until(u64::MAX);
    }

    /// Whether behind the last record there is another one, or its beginning, in what was read with
    /// it. Otherwise a log that grows is to be read on with [`Reader::resume`]: zeros that were
    /// read before are no proof that nothing stands there by now.
    pub fn has_next_at_hand(&self) -> bool {
        let next = self.blocks.next_type().map(without_recyclable);
        !self.in_fragment && matches!(next, Some(FULL | FIRST))
    }

    /// The last record once more; empty if the last event was another.
    #[inline]
    pub fn record(&self) -> &[u8] {
        match &self.place {
            Place::InBlock(range) => self.blocks.bytes(range.clone()),
            Place::Joined => &self.partial,
            Place::Decompressed => &self.decompressed,
        }
    }

    /// Where the last record begins.
    pub fn record_offset(&self) -> u64 {
        self.record_offset
    }

    /// Where the last record ends: what precedes is good, but for reported damage.
    pub fn good_until(&self) -> u64 {
        self.good_until
    }

    /// Where the zeros begin that stand in the place of headers up to the end, once that is
    /// reached. They are taken for space that was reserved, to the end of each one's block.
    pub fn zeros_at_end(&self) -> Option<u64> {
        self.zeros_at_end
    }

    /// Whether headers with the file's number have been seen.
    pub fn is_recyclable(&self) -> bool {
        self.blocks.is_recyclable
    }

    /// The families whose keys end in user timestamps, and their sizes in bytes, as far as read.
    pub fn timestamp_sizes(&self) -> &[(ColumnFamilyId, u16)] {
        self.timestamp_sizes.as_slice()
    }

    /// The size in bytes of the timestamps that a family's keys end in, as far as read; 0 if they
    /// have none.
    pub fn timestamp_size(&self, family: ColumnFamilyId) -> u16 {
        self.timestamp_sizes.of(family)
    }

    /// What the log says first of the one before it, in RocksDB's record for that.
    pub fn predecessor(&self) -> Option<PredecessorWal> {
        self.predecessor
    }

    /// The file read from.
    pub fn file(&self) -> &Arc<dyn RandomAccessFile> {
        &self.blocks.file
    }

    fn advance(&mut self) -> Result<Step> {
        self.place = Place::InBlock(0..0);
        if !self.in_fragment {
            self.partial.clear();
        }
        while !self.finished {
            let (offset, physical) = self.blocks.peek()?;
            let is_second = self.zeros_at.is_some() && matches!(physical, Physical::Zeros { .. });
            if is_second && self.options.ends_at_zeros {
                self.finished = true;
                return Ok(Step::End);
            }
            if let Some(damage) = self.end_at_zeros(offset, &physical) {
                return Ok(Step::Damage(damage));
            }
            let step = match physical {
                Physical::Fragment(fragment) => self.fragment(fragment)?,
                Physical::Zeros { next } => self.zeros(offset, next),
                Physical::End => self.end(offset),
                Physical::Bad { kind, next } => {
                    self.finished = kind == DamageKind::MixedHeaders;
                    Some(self.damage(kind, offset, next))
                }
                Physical::OldRecord { next } => {
                    let kind = DamageKind::OldRecord { in_fragment: self.in_fragment };
                    Some(self.damage(kind, offset, next))
                }
            };
            if let Some(step) = step {
                return Ok(step);
            }
        }
        Ok(Step::End)
    }

    /// Zeros were passed over: do they end the log, by what follows? What follows is not consumed.
    fn end_at_zeros(&mut self, offset: u64, physical: &Physical) -> Option<Damage> {
        let start = self.zeros_at?;
        match physical {
            Physical::Zeros { .. } => return None,
            Physical::Fragment(fragment)
                if matches!(fragment.record_type, TIMESTAMP_SIZES | RECYCLABLE_TIMESTAMP_SIZES) =>
            {
                self.zeros_at = None;
                return None;
            }
            _ => self.zeros_at = None,
        }
        let is_tail = matches!(physical, Physical::End);
        self.zeros_at_end = Some(start).filter(|_| is_tail);
        (self.is_recyclable() || !is_tail).then(|| Damage {
            kind: DamageKind::Zeros { in_fragment: false },
            offset: start,
            dropped: offset - start,
        })
    }

    fn zeros(&mut self, offset: u64, next: u64) -> Option<Step> {
        if self.in_fragment {
            let kind = if self.is_recyclable() {
                DamageKind::Zeros { in_fragment: true }
            } else {
                DamageKind::MiddleOfRecord
            };
            return Some(self.damage(kind, offset, next));
        }
        self.zeros_at.get_or_insert(offset);
        self.blocks.consume(next);
        None
    }

    fn end(&mut self, offset: u64) -> Option<Step> {
        self.finished = true;
        if self.in_fragment {
            Some(self.damage(DamageKind::TruncatedRecord, offset, offset))
        } else {
            Some(Step::End)
        }
    }

    /// Drops the bytes up to `next`, and a record that was being joined.
    fn damage(&mut self, kind: DamageKind, offset: u64, next: u64) -> Step {
        self.blocks.consume(next);
        let dropped = next - offset + self.abandon();
        Step::Damage(Damage { kind, offset, dropped })
    }

    /// Gives up the record being joined; the bytes it had.
    fn abandon(&mut self) -> u64 {
        let dropped = self.partial.len() as u64;
        self.partial.clear();
        self.in_fragment = false;
        dropped
    }

    fn fragment(&mut self, fragment: Fragment) -> Result<Option<Step>> {
        let Fragment { offset, next, .. } = fragment;
        let kind = without_recyclable(fragment.record_type);
        if matches!(kind, MIDDLE | LAST) {
            if !self.in_fragment {
                return Ok(Some(self.damage(DamageKind::MissingStart, offset, next)));
            }
            return self.joined(kind == LAST, fragment);
        }
        if self.in_fragment {
            // Something else begins before the record's end. It is kept for the next call, but for
            // what may be skipped. An old writer left empty First fragments behind; they are no
            // loss.
            let is_loss = !self.partial.is_empty() && is_known(kind);
            let dropped = self.abandon();
            if is_loss {
                return Ok(Some(Step::Damage(Damage {
                    kind: DamageKind::PartialRecord,
                    offset,
                    dropped,
                })));
            }
        }
        if matches!(kind, FULL | FIRST) {
            self.recognise_compression(&fragment)?;
        }
        match kind {
            FULL => self.full(fragment),
            FIRST => {
                (self.in_fragment, self.record_offset) = (true, offset);
                self.joined(false, fragment)
            }
            _ if is_known(kind) => self.special(kind, &fragment),
            _ if kind & IGNORABLE != 0 => {
                self.blocks.consume(next);
                Ok(None)
            }
            _ => Ok(Some(self.damage(DamageKind::UnknownType(kind), offset, next))),
        }
    }

    /// Where the record is damaged that says that the others are compressed, each of these tells,
    /// by what it begins with.
    fn recognise_compression(&mut self, first: &Fragment) -> Result<()> {
        let may_be_unknown = !self.seen_data && self.decompressor.is_none() && first.offset > 0;
        if self.options.search_behind_damage && may_be_unknown {
            let is_frame = self.blocks.bytes(first.payload.clone()).starts_with(&FRAME_MAGIC);
            self.decompressor = is_frame.then(Decompressor::new).transpose()?;
        }
        Ok(())
    }

    /// A record in one piece: it need not be copied, unless it is compressed.
    fn full(&mut self, fragment: Fragment) -> Result<Option<Step>> {
        self.record_offset = fragment.offset;
        if self.decompressor.is_some() {
            return self.joined(true, fragment);
        }
        Ok(Some(self.complete(Place::InBlock(fragment.payload), fragment.next)))
    }

    /// Adds a fragment to the record; its last one completes it.
    fn joined(&mut self, is_last: bool, fragment: Fragment) -> Result<Option<Step>> {
        self.partial.extend_from_slice(self.blocks.bytes(fragment.payload));
        if !is_last {
            self.blocks.consume(fragment.next);
            return Ok(None);
        }
        self.in_fragment = false;
        let Some(decompressor) = &mut self.decompressor else {
            return Ok(Some(self.complete(Place::Joined, fragment.next)));
        };
        let limit = self.options.decompressed_size_max;
        if decompressor.decompress(&self.partial, &mut self.decompressed, limit) {
            return Ok(Some(self.complete(Place::Decompressed, fragment.next)));
        }
        self.partial.clear();
        Ok(Some(self.damage(DamageKind::Decompression, self.record_offset, fragment.next)))
    }

    fn complete(&mut self, place: Place, next: u64) -> Step {
        self.place = place;
        self.seen_data = true;
        self.blocks.has_legacy_record |= !self.is_recyclable();
        self.blocks.consume(next);
        self.good_until = next;
        Step::Record
    }

    fn special(&mut self, kind: u8, fragment: &Fragment) -> Result<Option<Step>> {
        let payload = self.blocks.bytes(fragment.payload.clone());
        let problem = match kind {
            SET_COMPRESSION_TYPE if self.seen_data || self.decompressor.is_some() => {
                Some("a compression type that is not the first record")
            }
            SET_COMPRESSION_TYPE if payload.len() != 4 || fixed32_at(payload, 0) != Some(ZSTD) => {
                // Nothing behind it can be understood.
                self.finished = true;
                Some("WAL compression type not supported")
            }
            SET_COMPRESSION_TYPE => {
                self.decompressor = Some(Decompressor::new()?);
                None
            }
            TIMESTAMP_SIZES | RECYCLABLE_TIMESTAMP_SIZES => {
                let is_good = self.timestamp_sizes.add(payload);
                (!is_good).then_some("malformed or repeated user timestamp sizes")
            }
            _ => {
                let predecessor = PredecessorWal::parse(payload);
                self.predecessor = self.predecessor.or(predecessor);
                predecessor.is_none().then_some("malformed predecessor of the WAL")
            }
        };
        if let Some(why) = problem {
            let kind = DamageKind::BadSpecialRecord(why);
            return Ok(Some(self.damage(kind, fragment.offset, fragment.next)));
        }
        self.blocks.consume(fragment.next);
        self.good_until = fragment.next;
        Ok(None)
    }
}
