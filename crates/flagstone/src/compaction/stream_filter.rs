//! The filter's part in a [`CompactionStream`].

use bytes::Bytes;

use super::stream::CompactionStream;
use super::stream_entry::Verdict;
use super::stream_settings::ValueSeparator;
use crate::base::entity::has_blobs;
use crate::base::{
    CompactionFilter, Error, FilterDecision, FilteredKind, InternalIterator, InternalKeyBuf,
    MAX_SEQUENCE_NUMBER, Result, ValueType, WideColumns,
};
use crate::iter::ValueResolver;
use crate::iter::lookup::columns_of;

/// What becomes of a merge operand.
pub(super) enum OperandDecision {
    /// It stays as it is.
    Keep,
    /// It goes.
    Remove,
    /// It becomes this.
    Change(Vec<u8>),
    /// It and all entries before this key go.
    SkipUntil(Vec<u8>),
}

impl<I: InternalIterator, R: ValueResolver, S: ValueSeparator> CompactionStream<'_, I, R, S> {
    /// Shows the current entry, the newest of its key, to the filter if it is a value. Returns a
    /// verdict if nothing is left to be judged. Whether something was merged onto it in newer
    /// sources is for the filter to know: here it may have been.
    pub(super) fn apply_filter(&mut self, value_type: ValueType) -> Result<Option<Verdict>> {
        let Some(filter) = self.filter else { return Ok(None) };
        let (level, key) = (self.settings.level, &self.judged.user_key[..]);
        let decision = match value_type {
            ValueType::Value => filter.filter(level, key, FilteredKind::Value, self.input.value()),
            ValueType::WideColumnEntity => {
                let whole = self.columns_inside(key)?;
                let entity = whole.as_deref().unwrap_or(self.input.value());
                filter.filter(level, key, FilteredKind::WideColumnEntity, entity)
            }
            ValueType::BlobIndex => match filter.filter_by_key(level, key) {
                Some(decision) => decision,
                None => {
                    let value = self.resolver.resolve_blob(key, self.input.value())?;
                    filter.filter(level, key, FilteredKind::Value, &value)
                }
            },
            _ => FilterDecision::Keep,
        };
        match decision {
            FilterDecision::Keep | FilterDecision::RemoveUnlessMerged => {}
            FilterDecision::Remove => {
                self.counts.dropped_by_filter += 1;
                self.replace(ValueType::Deletion, Vec::new());
            }
            FilterDecision::Purge => {
                self.counts.dropped_by_filter += 1;
                self.replace(ValueType::SingleDeletion, Vec::new());
            }
            FilterDecision::ChangeValue(value) => {
                if self.is_storable(filter, "value", value.len()) {
                    self.replace(ValueType::Value, value);
                }
            }
            FilterDecision::ChangeEntity(entity) => {
                let is_readable = match WideColumns::decode(&entity) {
                    Ok(_) => true,
                    Err(error) => self.refuse_change(filter, &error),
                };
                if is_readable && self.is_storable(filter, "entity", entity.len()) {
                    self.replace(ValueType::WideColumnEntity, entity);
                }
            }
            FilterDecision::RemoveAndSkipUntil(until) if self.is_ahead(&until) => {
                self.skip_until(&until);
                return Ok(Some(Verdict::DropAndStay));
            }
            // It would skip nothing.
            FilterDecision::RemoveAndSkipUntil(_) => {}
        }
        Ok(None)
    }

    /// The entity on which the input stands with all its columns inside, if some lie in blob files.
    fn columns_inside(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if !has_blobs(self.input.value())? {
            return Ok(None);
        }
        let stored = Bytes::copy_from_slice(self.input.value());
        let columns = columns_of(key, ValueType::WideColumnEntity, stored, &self.resolver)?;
        Ok(Some(columns.encode()))
    }

    /// Shows the operand on which the input stands to the filter, unless a snapshot sees it.
    pub(super) fn filter_operand(&mut self) -> OperandDecision {
        let seen =
            self.settings.snapshots.last().is_some_and(|&last| self.input.key().sequence() <= last);
        let Some(filter) = self.filter.filter(|_| !seen) else { return OperandDecision::Keep };
        let kind = FilteredKind::MergeOperand;
        match filter.filter(self.settings.level, &self.judged.user_key, kind, self.input.value()) {
            FilterDecision::Keep
            | FilterDecision::RemoveUnlessMerged
            | FilterDecision::ChangeEntity(_) => OperandDecision::Keep,
            FilterDecision::Remove | FilterDecision::Purge => {
                self.counts.dropped_by_filter += 1;
                OperandDecision::Remove
            }
            FilterDecision::ChangeValue(operand) => {
                if self.is_storable(filter, "operand", operand.len()) {
                    OperandDecision::Change(operand)
                } else {
                    OperandDecision::Keep
                }
            }
            FilterDecision::RemoveAndSkipUntil(until) if self.is_ahead(&until) => {
                OperandDecision::SkipUntil(until)
            }
            FilterDecision::RemoveAndSkipUntil(_) => OperandDecision::Keep,
        }
    }

    /// Whether a table can hold what the filter made of the key's value.
    fn is_storable(&mut self, filter: &dyn CompactionFilter, what: &str, bytes: usize) -> bool {
        let most = self.settings.entry_size_max;
        if self.judged.user_key.len().saturating_add(bytes) <= most {
            return true;
        }
        let message =
            format!("its {what} has {bytes} bytes, but at most {most} can be stored with it");
        self.refuse_change(filter, &Error::invalid_argument(message))
    }

    /// The entry stays as it is. The compaction goes on: one that failed would be tried again and
    /// fail again, and in the end nothing could be written any more, for a key that nothing is
    /// wrong with.
    #[cold]
    fn refuse_change(&mut self, filter: &dyn CompactionFilter, error: &Error) -> bool {
        self.counts.unstorable_by_filter += 1;
        let (filter, key) = (filter.name(), self.judged.user_key.escape_ascii());
        tracing::error!(filter, %key, %error, "a compaction filter's new value cannot be stored; the entry stays unchanged");
        false
    }

    fn is_ahead(&self, until: &[u8]) -> bool {
        self.settings.comparator.compare(until, &self.judged.user_key).is_gt()
    }

    /// Moves the input to the first entry of `until` or behind.
    pub(super) fn skip_until(&mut self, until: &[u8]) {
        self.counts.dropped_by_filter += 1;
        self.input.seek(InternalKeyBuf::for_seek(until, MAX_SEQUENCE_NUMBER).as_key());
    }
}
