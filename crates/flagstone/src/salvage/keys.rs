//! Judges one key after the other, and writes the versions that are used.

use std::cell::Cell;

use super::blobs::{Blobs, FoundBlob, LargeBlob};
use super::choose::{Body, Version, choose};
use super::output::FamilyWriter;
use super::report::{LostValue, SalvageReport, SalvagedFamily};
use super::stamps::{StampedDeletion, Stamps};
use super::tombstones::Cover;
use crate::base::entity::{self, StoredColumn};
use crate::base::{
    Error, FileNumber, InternalKeyBuf, Result, SequenceNumber, ValueType, counted, form, timestamp,
};
use crate::batch::MAX_ENTRY_SIZE;
use crate::blob::BlobIndex;

/// Judges keys and writes what counts.
pub(super) struct KeyWriter<'a> {
    pub(super) writer: FamilyWriter<'a>,
    blobs: &'a mut Blobs,
    pub(super) counts: SalvagedFamily,
    pub(super) unclear: Unclear,
    report: &'a mut SalvageReport,
    stamps: Stamps,
    /// The key, with its timestamp, and the sequence number of what was written last.
    last: Option<(Vec<u8>, SequenceNumber)>,
}

/// What is to be said of keys of a family.
#[derive(Default)]
pub(super) struct Unclear {
    /// Those that may have merge operands twice.
    twice: Doubts,
    /// Those of lost values for which the report has no room.
    unlisted: Doubts,
    /// Those of which a newer version may be there.
    older: u64,
    /// Those that a range deletion may have deleted.
    deleted: u64,
    /// Those that may have been written after the deletion that was believed.
    missing: u64,
}

/// Keys of which nothing tells something.
#[derive(Default)]
struct Doubts {
    keys: u64,
    range: Option<(Vec<u8>, Vec<u8>)>,
}

impl Doubts {
    /// Keys come in order.
    fn note(&mut self, key: &[u8]) {
        self.keys += 1;
        self.range.get_or_insert_with(|| (key.to_vec(), Vec::new())).1 = key.to_vec();
    }
}

impl Unclear {
    pub(super) fn describe(self, family: &str, report: &mut SalvageReport) {
        let Self { twice, unlisted, older, deleted, missing } = self;
        if twice.keys > 0 {
            let what = format!(
                "without a complete MANIFEST it is unknown whether {} of family '{family}' {} merge operands twice: on top of \
                 a newer table's value, and already in it",
                counted(twice.keys, "key"),
                form(twice.keys, "has", "have")
            );
            report.lose_whole(Error::corruption(what), twice.range);
        }
        if unlisted.keys > 0 {
            let what = format!(
                "{} of family '{family}' {} lost than this report lists",
                counted(unlisted.keys, "more large value"),
                form(unlisted.keys, "is", "are")
            );
            report.lose_whole(Error::corruption(what), unlisted.range);
        }
        if older > 0 {
            report.note(format!(
                "{} of family '{family}' {} from a WAL that had been flushed, because a table that may have held them is \
                 damaged or missing; the tables that are left have other values for them, which may be newer.",
                counted(older, "key"),
                form(older, "comes", "come")
            ));
        }
        if deleted > 0 {
            report.note(format!(
                "{} of family '{family}' may have been deleted: a range deletion covers them, and because they have lost their \
                 sequence numbers it is unknown whether they were written before or after it.",
                counted(deleted, "key")
            ));
        }
        if missing > 0 {
            report.note(format!(
                "{} of family '{family}' {} treated as deleted although a newer table has values for them: because these have \
                 lost their sequence numbers it is unknown whether they were written later. This is possible only if a \
                 compaction had replaced a table that was not removed yet.",
                counted(missing, "key"),
                form(missing, "is", "are")
            ));
        }
    }
}

impl<'a> KeyWriter<'a> {
    pub(super) fn new(
        writer: FamilyWriter<'a>,
        (name, stamps): (String, Stamps),
        blobs: &'a mut Blobs,
        report: &'a mut SalvageReport,
    ) -> Self {
        let counts = SalvagedFamily { name, keys: 0, records: 0, large_values: 0 };
        let unclear = Unclear::default();
        Self { writer, blobs, counts, unclear, report, stamps, last: None }
    }

    pub(super) fn write(
        &mut self,
        key: &[u8],
        versions: Vec<Version>,
        cover: impl Fn(&Version) -> (Cover, Option<StampedDeletion>),
    ) -> Result<()> {
        // All without a sequence number that are not deleted are then in doubt.
        let is_unsure = Cell::new(false);
        let is_covered = |version: &Version| {
            let (cover, _) = cover(version);
            is_unsure.set(is_unsure.get() || cover == Cover::Unsure);
            cover == Cover::Deleted
        };
        // A large value is read as it is judged.
        let mut large = Vec::new();
        let (blobs, suffix) = (&mut *self.blobs, self.stamps.stripped_size());
        let mut choice = choose(versions, is_covered, |version| {
            match version.kind {
                ValueType::BlobIndex => {}
                ValueType::WideColumnEntity => {
                    let own = version.own_key.as_deref().unwrap_or(key);
                    let value = with_columns_inside(blobs, own, &version.value)?;
                    return Ok(Version { value: value.unwrap_or(version.value), ..version });
                }
                _ => return Ok(version),
            }
            let index =
                BlobIndex::decode(&version.value).map_err(|error| (FileNumber(0), error))?;
            let own = version.own_key.as_deref().unwrap_or(key);
            let (value, body) =
                match blobs.get((own, suffix), &index).map_err(|error| (index.file, error))? {
                    FoundBlob::Value(value) => (value, Body::Unfolded(index.compression)),
                    FoundBlob::Large(found) => {
                        let header = found.header.encode().to_vec();
                        large.push(found);
                        (header, Body::Header(large.len() - 1))
                    }
                };
            Ok(Version { value, body, ..version })
        });
        if choice.may_count_twice {
            self.unclear.twice.note(key);
        }
        self.unclear.older += u64::from(choice.may_be_older);
        self.unclear.missing += u64::from(choice.may_be_missing);
        let is_undated = choice.kept.iter().any(|version| version.sequence == 0);
        self.unclear.deleted += u64::from(is_unsure.get() && is_undated);
        for (file, error) in choice.lost {
            let is_listed = self.report.lose_value(LostValue {
                family: self.counts.name.clone(),
                key: key.to_vec(),
                file,
                error,
                has_other_version: !choice.kept.is_empty(),
            });
            if !is_listed {
                self.unclear.unlisted.note(key);
            }
        }
        if self.stamps.kept_size() > 0 {
            choice.kept.extend(choice.deletion);
        }
        let Some(newest) = choice.kept.first() else { return Ok(()) };
        if let (_, Some(deletion)) = cover(newest) {
            self.add_deletion(key, &deletion)?;
        }
        self.add(key, choice.kept, &mut large)
    }

    /// Writes a deletion of a key and its older timestamps, unless something is written already
    /// that comes after it.
    fn add_deletion(&mut self, key: &[u8], deletion: &StampedDeletion) -> Result<()> {
        let StampedDeletion { timestamp: stamp, sequence } = deletion;
        let deleted = timestamp::join(timestamp::strip(key, stamp.len()), stamp);
        let order = self.writer.comparator();
        let is_behind = |(last, last_sequence): &(Vec<u8>, SequenceNumber)| {
            let order = order.compare(last, &deleted);
            order.then_with(|| sequence.cmp(last_sequence)).is_ge()
        };
        if self.last.as_ref().is_some_and(is_behind) {
            return Ok(());
        }
        self.begin(&deleted)?;
        self.counts.records += 1;
        let kind = ValueType::DeletionWithTimestamp;
        let entry = InternalKeyBuf::new(&deleted, *sequence, kind);
        self.writer.add(entry.as_key(), b"", None)?;
        self.last = Some((deleted, *sequence));
        Ok(())
    }

    /// Before an entry of a key: the versions of one are in one table.
    fn begin(&mut self, key: &[u8]) -> Result<()> {
        let bare = |key| timestamp::strip(key, self.stamps.kept_size());
        if self.last.as_ref().is_some_and(|(last, _)| bare(last) == bare(key)) {
            return Ok(());
        }
        self.counts.keys += 1;
        self.writer.begin_key()
    }

    /// Writes what counts of a key; `large` has the values of which only headers were found so far.
    fn add(&mut self, key: &[u8], kept: Vec<Version>, large: &mut [LargeBlob]) -> Result<()> {
        self.begin(key)?;
        // Nothing lies below, so a value alone needs no place in history.
        let is_alone = kept.len() == 1 && self.stamps.kept_size() == 0;
        if let Some(oldest) = kept.last().filter(|_| self.stamps.kept_size() > 0) {
            self.last = Some((key.to_vec(), oldest.sequence));
        }
        for version in kept {
            let kind = version.kind;
            let sequence = if is_alone && kind != ValueType::Merge { 0 } else { version.sequence };
            let own = version.own_key.as_deref().unwrap_or(key);
            let internal = InternalKeyBuf::new(own, sequence, kind);
            self.counts.records += 1;
            // As a flush that removes timestamps names it there.
            let named = timestamp::last_of(own, self.stamps.stripped_size());
            let blob = match version.body {
                Body::Found => None,
                Body::Unfolded(compression) => {
                    Some(self.writer.add_blob(&named, &version.value, compression)?)
                }
                Body::Header(at) => Some(self.writer.add_large_blob(&named, &mut large[at])?),
            };
            if let Some(index) = blob {
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

/// The entity with those of its columns that lie in blob files inside; `None` if there are none.
fn with_columns_inside(
    blobs: &mut Blobs,
    key: &[u8],
    stored: &[u8],
) -> Result<Option<Vec<u8>>, (FileNumber, Error)> {
    let columns = entity::decode(stored).map_err(|error| (FileNumber(0), error))?;
    if columns.iter().all(|column| !column.is_blob) {
        return Ok(None);
    }
    let mut whole = Vec::with_capacity(columns.len());
    for StoredColumn { name, value, is_blob } in columns {
        if !is_blob {
            whole.push((name, value.to_vec()));
            continue;
        }
        let index = BlobIndex::decode(value).map_err(|error| (FileNumber(0), error))?;
        let found = blobs.get((key, 0), &index).and_then(FoundBlob::into_whole);
        whole.push((name, found.map_err(|error| (index.file, error))?));
    }
    let bytes: usize = whole.iter().map(|(name, value)| name.len() + value.len()).sum();
    if key.len().saturating_add(bytes) > MAX_ENTRY_SIZE {
        let message = "the columns of an entity are too large for one entry";
        return Err((FileNumber(0), Error::not_supported(message)));
    }
    let whole: Vec<_> = whole.iter().map(|(name, value)| (*name, value.as_slice())).collect();
    Ok(Some(entity::encode(&whole)))
}
