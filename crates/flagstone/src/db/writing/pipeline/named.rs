//! The families that a batch names: found before the commit lock is taken, looked up under it.

use smallvec::SmallVec;

use crate::base::{ColumnFamilyId, Error, Result, ValueType, timestamp};
use crate::batch::{Operation, StampSize, WriteBatch};
use crate::db::family::Family;
use crate::db::settings::no_merge_operator;
use crate::db::writing::commit::Commit;
use crate::db::writing::direct_blob::{BlobsOfBatch, names_blobs};
use crate::iter::lookup::locate_value;

/// The families of a batch, by number, each once.
pub(super) struct NamedFamilies(SmallVec<[Named; 1]>);

/// What a batch does to one family, as far as the family may refuse it.
struct Named {
    id: ColumnFamilyId,
    merges: bool,
    deletes_ranges: bool,
    /// The timestamps that the keys end in.
    stamps: StampSize,
}

/// What would make replaying an operation of a batch fail, whatever the family.
#[inline]
fn check_alone(operation: &Operation<'_>) -> Result<()> {
    if operation.is_transaction_marker() {
        return Err(Error::not_supported("a batch with two-phase transactions cannot be written"));
    }
    match operation {
        Operation::PutEntity { key, entity, .. } => {
            locate_value(key, ValueType::WideColumnEntity, entity).map(drop).map_err(as_argument)
        }
        _ => Ok(()),
    }
}

/// What would make replaying an operation of a batch fail in its family.
#[inline]
fn check_in(operation: &Operation<'_>, family: &Family) -> Result<()> {
    match operation {
        Operation::Merge { .. } if family.options.load().merge_operator.is_none() => {
            Err(no_merge_operator(&family.name))
        }
        Operation::PutEntity { .. } if family.order.timestamp_size() > 0 => {
            Err(Error::invalid_argument(format!(
                "column family '{}' has timestamps, and takes no entities; write a value instead",
                family.name
            )))
        }
        Operation::DeleteRange { begin, end, .. }
            if family.comparator().compare_keys(begin, end).is_gt() =>
        {
            Err(Error::invalid_argument("the start of the range deletion is after its end"))
        }
        _ => Ok(()),
    }
}

/// What would make replaying an operation of a batch fail; `family` is what it names, if it is
/// there.
pub(in crate::db::writing) fn check_operation(
    operation: &Operation<'_>,
    family: Option<&Family>,
    ignore_missing_families: bool,
) -> Result<()> {
    check_alone(operation)?;
    match (family, operation.family()) {
        (Some(family), _) => check_in(operation, family),
        (None, Some(id)) if !ignore_missing_families => Err(is_missing(id)),
        _ => Ok(()),
    }
}

fn is_missing(id: ColumnFamilyId) -> Error {
    Error::invalid_argument(format!(
        "the batch names column family {id}, which does not exist or was dropped"
    ))
}

impl NamedFamilies {
    /// Of a batch whose large values lie in `blobs`.
    ///
    /// # Errors
    /// What would make replaying it fail in any family.
    pub(super) fn of(batch: &WriteBatch, blobs: &BlobsOfBatch<'_>) -> Result<Self> {
        let mut families = Self(SmallVec::new());
        for operation in batch.iter() {
            let operation = operation?;
            check_alone(&operation)?;
            if operation.names_blobs() && matches!(blobs, BlobsOfBatch::Nothing) {
                return Err(names_blobs());
            }
            if let Some(id) = operation.family() {
                let named = families.named(id, batch);
                named.merges |= matches!(operation, Operation::Merge { .. });
                named.deletes_ranges |= matches!(operation, Operation::DeleteRange { .. });
            }
        }
        Ok(families)
    }

    fn named(&mut self, id: ColumnFamilyId, batch: &WriteBatch) -> &mut Named {
        let at = match self.0.binary_search_by_key(&id, |named| named.id) {
            Ok(at) => at,
            Err(at) => {
                let stamps = batch.stamp_size(id);
                self.0.insert(at, Named { id, merges: false, deletes_ranges: false, stamps });
                at
            }
        };
        &mut self.0[at]
    }

    /// The numbers of the families, in order.
    pub(super) fn ids(&self) -> impl Iterator<Item = ColumnFamilyId> {
        self.0.iter().map(|named| named.id)
    }

    /// What would make replaying the batch fail must fail now, before anything is logged.
    #[inline]
    pub(super) fn check(
        &self,
        commit: &Commit,
        batch: &WriteBatch,
        ignore_missing: bool,
    ) -> Result<()> {
        for named in &self.0 {
            match commit.target(named.id) {
                Some(target) if !named.stamps.fits(target.to.family.order.timestamp_size()) => {
                    check_stamps(batch, named.stamps, &target.to.family)?;
                    check_all_in(batch, &target.to.family)?;
                }
                Some(target) if named.merges || named.deletes_ranges => {
                    check_all_in(batch, &target.to.family)?;
                }
                None if !ignore_missing => return Err(is_missing(named.id)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// What would make a key of the batch one of another family's kind.
#[cold]
fn check_stamps(batch: &WriteBatch, stamps: StampSize, family: &Family) -> Result<()> {
    let (size, name) = (family.order.timestamp_size(), &family.name);
    match stamps {
        StampSize::Known(0) => {
            return Err(Error::invalid_argument(format!(
                "column family '{name}' takes writes with timestamps of {size} bytes only, such as put_with_timestamp"
            )));
        }
        StampSize::Known(given) => return timestamp::check_size(name, size, given),
        StampSize::Unknown => {}
    }
    for operation in batch.iter() {
        let operation = operation?;
        let of_family = operation.entry().filter(|_| operation.family() == Some(family.id));
        let Some((kind, key, value)) = of_family else { continue };
        if kind == ValueType::ValuePreferredSeqno {
            return Err(Error::not_supported(format!(
                "column family '{name}' has user timestamps, and a timed value cannot have one; write a plain value"
            )));
        }
        let is_short = |key: &[u8]| key.len() < size;
        if is_short(key) || kind == ValueType::RangeDeletion && is_short(value) {
            let message = timestamp::is_too_short(key, size).message().to_string();
            return Err(Error::invalid_argument(message));
        }
    }
    Ok(())
}

#[cold]
fn check_all_in(batch: &WriteBatch, family: &Family) -> Result<()> {
    for operation in batch.iter() {
        let operation = operation?;
        if operation.family() == Some(family.id) {
            check_in(&operation, family)?;
        }
    }
    Ok(())
}

/// What is damage where it is read is a mistake of the caller where it is written.
fn as_argument(error: Error) -> Error {
    if error.is_corruption() { Error::invalid_argument(error.message()) } else { error }
}
