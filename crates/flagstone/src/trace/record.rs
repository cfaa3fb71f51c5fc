//! Operations as records of a trace.

use crate::base::coding::{Decoder, put_fixed32, put_fixed64, put_lps};
use crate::base::{ColumnFamilyId, Error, Result};

use super::format::{
    RECORD_HEADER_SIZE, TraceHeader, TraceType, TraceVersion, begin_record, end_record, field,
};

/// A record as it stands in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRecord {
    /// When the operation began, in microseconds since 1970.
    pub time_us: u64,
    /// The number of its [`TraceType`].
    pub kind: u8,
    /// What it holds.
    pub payload: Vec<u8>,
}

impl RawRecord {
    /// Takes a whole record apart.
    ///
    /// # Errors
    /// `Corruption` if it is too short, or has another length than it says.
    pub fn parse(record: &[u8]) -> Result<Self> {
        let mut decoder = Decoder::new(record);
        let fields = (decoder.fixed64(), decoder.u8(), decoder.fixed32());
        let (Some(time_us), Some(kind), Some(length)) = fields else {
            return Err(Error::corruption(format!(
                "a record of a trace has {} bytes, fewer than {RECORD_HEADER_SIZE}",
                record.len()
            )));
        };
        let payload = decoder.rest();
        if payload.len() != length as usize {
            return Err(Error::corruption(format!(
                "a record of a trace says that it has {length} bytes, and has {}",
                payload.len()
            )));
        }
        Ok(Self { time_us, kind, payload: payload.to_vec() })
    }

    /// Takes it for the header of a trace.
    ///
    /// # Errors
    /// `Corruption` if it is none; `NotSupported` for a later version.
    pub fn header(&self) -> Result<TraceHeader> {
        TraceHeader::parse(self.time_us, self.kind, &self.payload)
    }

    /// Whether it ends the trace.
    pub fn is_end(&self) -> bool {
        self.kind == TraceType::End as u8
    }

    /// The operation that it is about.
    ///
    /// # Errors
    /// `NotSupported` if it is about something else, or has fields that are not known;
    /// `Corruption` if its bytes are no such record.
    pub fn operation(&self, version: TraceVersion) -> Result<TraceRecord> {
        TraceRecord::decode(self.kind, &self.payload, version)
    }
}

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceRecord {
    /// A batch was written.
    Write {
        /// Its bytes, as [`WriteBatch::data`](crate::WriteBatch::data) has them.
        batch: Vec<u8>,
    },
    /// A key was looked up.
    Get {
        /// The column family.
        family: ColumnFamilyId,
        /// The key.
        key: Vec<u8>,
    },
    /// An iterator sought a key.
    Seek {
        /// The column family.
        family: ColumnFamilyId,
        /// The key.
        key: Vec<u8>,
        /// Whether it sought the key or the one before, otherwise the key or the next.
        for_prev: bool,
        /// The iterator's lower bound; empty for none.
        lower: Vec<u8>,
        /// The iterator's upper bound; empty for none.
        upper: Vec<u8>,
    },
    /// Several keys were looked up.
    MultiGet {
        /// Each with its column family; never empty.
        keys: Vec<(ColumnFamilyId, Vec<u8>)>,
    },
}

impl TraceRecord {
    fn decode(kind: u8, payload: &[u8], version: TraceVersion) -> Result<Self> {
        let kind = TraceType::from_byte(kind)
            .ok_or_else(|| Error::not_supported(format!("a trace record of type {kind}")))?;
        let mut fields = Fields { decoder: Decoder::new(payload), map: None };
        let is_known = match kind {
            TraceType::Write | TraceType::Get | TraceType::Seek | TraceType::SeekForPrev => true,
            TraceType::MultiGet => version.has_map(),
            _ => false,
        };
        if !is_known {
            return Err(Error::not_supported(format!("a trace record of type {}", kind as u8)));
        }
        if version.has_map() {
            fields.map = Some(fields.decoder.fixed64().ok_or_else(cut_off)?);
        } else if kind == TraceType::Write {
            return Ok(Self::Write { batch: payload.to_vec() });
        }
        let record = match kind {
            TraceType::Write => Self::Write { batch: fields.bytes(field::WRITE_BATCH)? },
            TraceType::Get => Self::Get {
                family: fields.family(field::GET_FAMILY)?,
                key: fields.bytes(field::GET_KEY)?,
            },
            TraceType::MultiGet => Self::MultiGet { keys: fields.keys()? },
            _ => Self::Seek {
                family: fields.family(field::SEEK_FAMILY)?,
                key: fields.bytes(field::SEEK_KEY)?,
                for_prev: kind == TraceType::SeekForPrev,
                lower: fields.optional(field::SEEK_LOWER)?,
                upper: fields.optional(field::SEEK_UPPER)?,
            },
        };
        fields.finish()?;
        Ok(record)
    }
}

fn cut_off() -> Error {
    Error::corruption("a record of a trace ends within a field")
}

/// The fields of a payload that are still to be read.
struct Fields<'a> {
    decoder: Decoder<'a>,
    /// Those that follow. `None` where there is no map: then all do but bounds.
    map: Option<u64>,
}

impl<'a> Fields<'a> {
    /// Whether a field follows; it is taken out of the map.
    fn takes(&mut self, field: u64) -> bool {
        match &mut self.map {
            None => !matches!(field, field::SEEK_LOWER | field::SEEK_UPPER),
            Some(map) => {
                let is_there = *map & field != 0;
                *map &= !field;
                is_there
            }
        }
    }

    fn need(&mut self, field: u64) -> Result<()> {
        if self.takes(field) {
            return Ok(());
        }
        let message = format!("a record of a trace lacks field {}", field.trailing_zeros());
        Err(Error::corruption(message))
    }

    fn slice(&mut self, field: u64) -> Result<&'a [u8]> {
        self.need(field)?;
        self.decoder.lps().ok_or_else(cut_off)
    }

    fn bytes(&mut self, field: u64) -> Result<Vec<u8>> {
        self.slice(field).map(<[u8]>::to_vec)
    }

    fn optional(&mut self, field: u64) -> Result<Vec<u8>> {
        if !self.takes(field) {
            return Ok(Vec::new());
        }
        self.decoder.lps().map(<[u8]>::to_vec).ok_or_else(cut_off)
    }

    fn number(&mut self, field: u64) -> Result<u32> {
        self.need(field)?;
        self.decoder.fixed32().ok_or_else(cut_off)
    }

    fn family(&mut self, field: u64) -> Result<ColumnFamilyId> {
        self.number(field).map(ColumnFamilyId)
    }

    /// Memory is taken for keys that are there, whatever their number is said to be.
    fn keys(&mut self) -> Result<Vec<(ColumnFamilyId, Vec<u8>)>> {
        let count = self.number(field::MULTI_SIZE)?;
        let mut families = Decoder::new(self.slice(field::MULTI_FAMILIES)?);
        let mut keys = Decoder::new(self.slice(field::MULTI_KEYS)?);
        let mut found = Vec::new();
        while let (false, Some(family)) = (families.is_empty(), families.fixed32()) {
            found.push((ColumnFamilyId(family), keys.lps().ok_or_else(cut_off)?.to_vec()));
        }
        if found.len() != count as usize || !families.is_empty() || !keys.is_empty() {
            return Err(Error::corruption(format!(
                "a record of a trace says that {count} keys were looked up, and has {}",
                found.len()
            )));
        }
        if found.is_empty() {
            return Err(Error::corruption("a record of a trace says that no keys were looked up"));
        }
        Ok(found)
    }

    fn finish(self) -> Result<()> {
        if let Some(map) = self.map.filter(|map| *map != 0) {
            let unknown = map.trailing_zeros();
            return Err(Error::not_supported(format!("field {unknown} of a trace record")));
        }
        if !self.decoder.is_empty() {
            return Err(Error::corruption("a record of a trace has bytes behind its last field"));
        }
        Ok(())
    }
}

/// Writes records of the current version into a buffer that is used again.
#[derive(Default)]
pub(super) struct Encoder {
    record: Vec<u8>,
    families: Vec<u8>,
    keys: Vec<u8>,
}

/// A longer buffer is not kept for the next record.
const KEPT_MAX: usize = 1 << 20;

impl Encoder {
    /// The header, or the end.
    pub(super) fn frame(&mut self, time_us: u64, kind: TraceType) -> Result<&[u8]> {
        begin_record(&mut self.record, time_us, kind);
        if kind == TraceType::Begin {
            self.record.extend_from_slice(TraceHeader::payload().as_bytes());
        }
        self.done()
    }

    /// `batch` without the sequence number that it begins with, which says nothing to a reader.
    pub(super) fn write(&mut self, time_us: u64, batch: &[u8]) -> Result<&[u8]> {
        self.begin(time_us, TraceType::Write, field::WRITE_BATCH);
        let record = &mut self.record;
        put_lps(record, batch);
        let sequence = record.len() - batch.len();
        if let Some(sequence) = record.get_mut(sequence..sequence + 8) {
            sequence.fill(0);
        }
        self.done()
    }

    pub(super) fn get(
        &mut self,
        time_us: u64,
        family: ColumnFamilyId,
        key: &[u8],
    ) -> Result<&[u8]> {
        self.begin(time_us, TraceType::Get, field::GET_FAMILY | field::GET_KEY);
        put_fixed32(&mut self.record, family.0);
        put_lps(&mut self.record, key);
        self.done()
    }

    pub(super) fn seek(
        &mut self,
        time_us: u64,
        kind: TraceType,
        (family, key): (ColumnFamilyId, &[u8]),
        (lower, upper): (&[u8], &[u8]),
    ) -> Result<&[u8]> {
        let bounds = [(lower, field::SEEK_LOWER), (upper, field::SEEK_UPPER)];
        let bounds = bounds.into_iter().filter(|(bound, _)| !bound.is_empty());
        let map: u64 = bounds.clone().map(|(_, field)| field).sum();
        self.begin(time_us, kind, field::SEEK_FAMILY | field::SEEK_KEY | map);
        put_fixed32(&mut self.record, family.0);
        put_lps(&mut self.record, key);
        bounds.for_each(|(bound, _)| put_lps(&mut self.record, bound));
        self.done()
    }

    pub(super) fn multi_get(
        &mut self,
        time_us: u64,
        keys: &[(ColumnFamilyId, &[u8])],
    ) -> Result<&[u8]> {
        let map = field::MULTI_SIZE | field::MULTI_FAMILIES | field::MULTI_KEYS;
        self.begin(time_us, TraceType::MultiGet, map);
        self.families.clear();
        self.keys.clear();
        for (family, key) in keys {
            put_fixed32(&mut self.families, family.0);
            put_lps(&mut self.keys, key);
        }
        let count = u32::try_from(keys.len())
            .map_err(|_| Error::invalid_argument("too many keys for a record of a trace"))?;
        put_fixed32(&mut self.record, count);
        put_lps(&mut self.record, &self.families);
        put_lps(&mut self.record, &self.keys);
        self.families.shrink_to(KEPT_MAX);
        self.keys.shrink_to(KEPT_MAX);
        self.done()
    }

    fn begin(&mut self, time_us: u64, kind: TraceType, map: u64) {
        self.record.shrink_to(KEPT_MAX);
        begin_record(&mut self.record, time_us, kind);
        put_fixed64(&mut self.record, map);
    }

    fn done(&mut self) -> Result<&[u8]> {
        end_record(&mut self.record)?;
        Ok(&self.record)
    }
}
