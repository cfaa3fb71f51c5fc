//! Logs of families whose keys had other timestamps than they have now.
//!
//! A log says for each family how many bytes of timestamp its keys end in. Where the family was
//! given timestamps since, its keys get the least one; where it has none any more, they lose
//! theirs.

use super::reader::Reader;
use crate::base::{ColumnFamilyId, Error, FileNumber, Result};
use crate::batch::{BatchView, StampChange, change_stamps};

/// A family whose keys end in timestamps.
#[derive(Debug, Clone, Copy)]
pub struct StampedFamily {
    /// Its number.
    pub family: ColumnFamilyId,
    /// The bytes of a timestamp.
    pub size: usize,
    /// Whether it has them in logs that do not say so: before RocksDB 8.3 none did. Timestamps that
    /// are in no table may be new.
    pub are_always_there: bool,
}

/// What a log's keys lack or have too much.
#[derive(Default)]
pub struct Stamps {
    /// How many families the log had told of when it was last looked at.
    looked_at: Option<usize>,
    changes: Vec<(ColumnFamilyId, StampChange<'static>)>,
    refused: Option<Error>,
}

impl Stamps {
    /// The batch with the timestamps that its families have now, if it has others; `families` are
    /// those that have some.
    ///
    /// # Errors
    /// `NotSupported`: a family that wants the log has timestamps of another size; `Corruption`: a
    /// key is too short for its timestamp.
    #[inline]
    pub fn adapt(
        &mut self,
        reader: &Reader,
        wal: FileNumber,
        batch: &[u8],
        families: &[StampedFamily],
        wanted: impl Fn(ColumnFamilyId, FileNumber) -> bool,
    ) -> Result<Option<Vec<u8>>> {
        let told = reader.timestamp_sizes().len();
        if self.looked_at != Some(told) {
            self.looked_at = Some(told);
            self.compare(reader, families, |family| wanted(family, wal));
        }
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        if self.changes.is_empty() {
            return Ok(None);
        }
        let change =
            |family| self.changes.iter().find(|(changed, _)| *changed == family).map(|(_, to)| *to);
        change_stamps(BatchView::parse(batch)?, change)
    }

    #[cold]
    fn compare(
        &mut self,
        reader: &Reader,
        families: &[StampedFamily],
        wanted: impl Fn(ColumnFamilyId) -> bool,
    ) {
        self.changes.clear();
        for (family, size) in reader.timestamp_sizes() {
            let now = families.iter().find(|now| now.family == *family).map_or(0, |now| now.size);
            match (usize::from(*size), now) {
                (before, now) if before == now || !wanted(*family) => {}
                (before, 0) => self.changes.push((*family, StampChange::Strip(before))),
                (0, now) => self.changes.push((*family, StampChange::Pad(now))),
                (before, now) => {
                    self.refused = Some(Error::not_supported(format!(
                        "the keys of column family {family} end in user timestamps of {before} bytes in the log, and of {now} \
                         by the comparator; open it with the comparator that it was written with"
                    )));
                }
            }
        }
        for known in families.iter().filter(|known| !known.are_always_there) {
            let is_told =
                reader.timestamp_sizes().iter().any(|(family, _)| *family == known.family);
            if !is_told && wanted(known.family) {
                self.changes.push((known.family, StampChange::Pad(known.size)));
            }
        }
    }
}
