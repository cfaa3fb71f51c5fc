//! Asking a filter.

use super::{LINE, METADATA_SIZE, NEW_BLOOM, RIBBON, bloom, ribbon};
use crate::base::hash::{hash32, hash64};
use crate::base::prefetch;

/// A key to ask filters for, hashed once for all of them.
#[derive(Debug, Clone, Copy)]
pub struct FilterKey<'a> {
    key: &'a [u8],
    hash: u64,
}

impl<'a> FilterKey<'a> {
    /// Hashes a user key or a prefix.
    #[inline]
    pub fn new(key: &'a [u8]) -> Self {
        Self { key, hash: hash64(key) }
    }
}

/// What the metadata says; every number in it has been checked against the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    AlwaysTrue,
    AlwaysFalse,
    Bloom { size: usize, probes: u32 },
    Legacy { lines: u32, probes: u32 },
    Ribbon { layout: ribbon::Layout, seed: u8 },
}

/// A filter (or filter partition) as read from a file, over any owner of its bytes.
#[derive(Debug, Clone)]
pub struct Filter<B = Vec<u8>> {
    bytes: B,
    kind: Kind,
}

impl<B: AsRef<[u8]>> Filter<B> {
    /// Takes the content of a filter block. What cannot be understood answers true to everything,
    /// as a filter from a later version must.
    pub fn new(bytes: B) -> Self {
        let kind = parse(bytes.as_ref());
        Self { bytes, kind }
    }

    /// Whether the file may hold the key; `false` is certain.
    #[inline]
    pub fn may_contain(&self, key: FilterKey<'_>) -> bool {
        let data = self.bytes.as_ref();
        match self.kind {
            Kind::Bloom { size, probes } => bloom::may_contain(&data[..size], probes, key.hash),
            Kind::Ribbon { layout, seed } => ribbon::may_contain(data, layout, seed, key.hash),
            Kind::Legacy { lines, probes } => {
                bloom::legacy_may_contain(data, lines, probes, hash32(key.key, bloom::LEGACY_SEED))
            }
            Kind::AlwaysTrue => true,
            Kind::AlwaysFalse => false,
        }
    }

    /// Asks for the line that [`Filter::may_contain`] looks at, if it looks at one only.
    #[inline]
    pub fn prefetch(&self, key: FilterKey<'_>) {
        if let Kind::Bloom { size, .. } = self.kind {
            prefetch(bloom::line_of(&self.bytes.as_ref()[..size], key.hash), 1);
        }
    }

    /// The content of the filter block.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }
}

fn parse(bytes: &[u8]) -> Kind {
    let Some((data, metadata)) = bytes.split_last_chunk::<METADATA_SIZE>() else {
        return Kind::AlwaysFalse;
    };
    if data.is_empty() {
        return Kind::AlwaysFalse;
    }
    let understood = match metadata[0] {
        NEW_BLOOM => parse_bloom(data, metadata),
        RIBBON => parse_ribbon(data, metadata),
        1..=127 => parse_legacy(data, metadata),
        _ => None,
    };
    understood.unwrap_or(Kind::AlwaysTrue)
}

fn parse_bloom(data: &[u8], metadata: &[u8; METADATA_SIZE]) -> Option<Kind> {
    let [_, 0, probes @ 1..=30, 0, 0] = *metadata else { return None };
    let lines = u32::try_from(data.len() / LINE).ok()?;
    (lines > 0 && data.len().is_multiple_of(LINE))
        .then_some(Kind::Bloom { size: data.len(), probes: u32::from(probes) })
}

fn parse_ribbon(data: &[u8], metadata: &[u8; METADATA_SIZE]) -> Option<Kind> {
    let blocks = u32::from_le_bytes([metadata[2], metadata[3], metadata[4], 0]);
    let layout = ribbon::Layout::new(data.len(), blocks)?;
    Some(Kind::Ribbon { layout, seed: metadata[1] })
}

fn parse_legacy(data: &[u8], metadata: &[u8; METADATA_SIZE]) -> Option<Kind> {
    let lines = u32::from_le_bytes([metadata[1], metadata[2], metadata[3], metadata[4]]);
    (lines > 0 && data.len() as u64 == u64::from(lines) * LINE as u64)
        .then_some(Kind::Legacy { lines, probes: u32::from(metadata[0]) })
}
