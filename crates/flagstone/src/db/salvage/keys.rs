//! Judging one key after the other, and writing what counts.

use super::blobs::Blobs;
use super::choose::{Version, choose};
use super::output::FamilyWriter;
use super::report::{LostValue, SalvageReport, SalvagedFamily};
use crate::base::{FileNumber, InternalKeyBuf, Result, ValueType};
use crate::blob::BlobIndex;
use crate::iter::entity;

/// Judges keys and writes what counts.
pub(super) struct KeyWriter<'a> {
    pub(super) writer: FamilyWriter<'a>,
    blobs: &'a mut Blobs,
    pub(super) counts: SalvagedFamily,
    /// Those that may have merge operands twice.
    pub(super) twice: Doubts,
    /// Those of lost values for which the report has no room.
    pub(super) unlisted: Doubts,
    /// Those of which a newer version may be there.
    pub(super) older: u64,
    report: &'a mut SalvageReport,
}

/// Keys of which nothing tells something.
#[derive(Default)]
pub(super) struct Doubts {
    pub(super) keys: u64,
    pub(super) range: Option<(Vec<u8>, Vec<u8>)>,
}

impl Doubts {
    /// Keys come in order.
    fn note(&mut self, key: &[u8]) {
        self.keys += 1;
        self.range.get_or_insert_with(|| (key.to_vec(), Vec::new())).1 = key.to_vec();
    }
}

impl<'a> KeyWriter<'a> {
    pub(super) fn new(
        writer: FamilyWriter<'a>,
        name: String,
        blobs: &'a mut Blobs,
        report: &'a mut SalvageReport,
    ) -> Self {
        let counts = SalvagedFamily { name, keys: 0, records: 0, large_values: 0 };
        let (twice, unlisted) = (Doubts::default(), Doubts::default());
        Self { writer, blobs, counts, twice, unlisted, older: 0, report }
    }

    pub(super) fn write(
        &mut self,
        key: &[u8],
        versions: Vec<Version>,
        is_covered: impl Fn(&Version) -> bool,
    ) -> Result<()> {
        // A large value is unfolded as it is judged; its index says how it was compressed.
        let mut compression = 0;
        let blobs = &mut *self.blobs;
        let choice = choose(versions, is_covered, |version| {
            match version.kind {
                ValueType::BlobIndex => {}
                ValueType::WideColumnEntity => {
                    let found = entity::default_column(&version.value);
                    return found.map(|_| version).map_err(|error| (FileNumber(0), error));
                }
                _ => return Ok(version),
            }
            let index = BlobIndex::decode(&version.value).map_err(|error| (FileNumber(0), error))?;
            let own = version.own_key.as_deref().unwrap_or(key);
            let value = blobs.get(own, &index).map_err(|error| (index.file, error))?;
            compression = index.compression;
            Ok(Version { value, ..version })
        });
        if choice.may_count_twice {
            self.twice.note(key);
        }
        if choice.may_be_older {
            self.older += 1;
        }
        for (file, error) in choice.lost {
            let is_listed = self.report.lose_value(LostValue {
                family: self.counts.name.clone(),
                key: key.to_vec(),
                file,
                error,
                has_other_version: !choice.kept.is_empty(),
            });
            if !is_listed {
                self.unlisted.note(key);
            }
        }
        if choice.kept.is_empty() {
            return Ok(());
        }
        self.counts.keys += 1;
        self.writer.begin_key()?;
        // Nothing lies below, so a value alone needs no place in history.
        let is_alone = choice.kept.len() == 1;
        for version in choice.kept {
            let kind = version.kind;
            let sequence = if is_alone && kind != ValueType::Merge { 0 } else { version.sequence };
            let own = version.own_key.as_deref().unwrap_or(key);
            let internal = InternalKeyBuf::new(own, sequence, kind);
            self.counts.records += 1;
            if kind == ValueType::BlobIndex {
                let index = self.writer.add_blob(own, &version.value, compression)?;
                let mut encoded = Vec::new();
                index.encode(&mut encoded);
                self.counts.large_values += 1;
                self.writer.add(internal.as_key(), &encoded, Some(index.file))?;
            } else {
                self.writer.add(internal.as_key(), &version.value, None)?;
            }
        }
        Ok(())
    }
}
