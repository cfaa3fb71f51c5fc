//! Merging operands in a [`CompactionStream`].
//!
//! 1. Operands of the key are collected downwards, as long as they lie in the stripe of the first
//!    one. Those that a range tombstone covers go, and so do those that the filter removes.
//! 2. Over a value (or a deletion, which is no value) they are merged into a value.
//! 3. Likewise if nothing older can exist: at the bottom, when the key's entries end.
//! 4. Otherwise adjacent operands are combined into one if the operator can do it, and stay as they
//!    are if it cannot.
//! 5. What no table can hold is not made of them: they stay as they are, with what they lie on, and
//!    readers merge them. So it is where the operator refuses them, or there is none: whoever reads
//!    the key is told.

use bytes::Bytes;

use super::stream::CompactionStream;
use super::stream_entry::{Next, Verdict};
use super::stream_filter::OperandDecision;
use super::stream_settings::ValueSeparator;
use crate::base::entity::has_blobs;
use crate::base::{
    InternalIterator, InternalKeyBuf, MergeFailureScope, Result, SequenceNumber, Sometimes,
    SubCode, ValueType,
};
use crate::iter::ValueResolver;
use crate::iter::lookup::{columns_of, merge_whole, no_merge_operator};

/// Operands with their keys, newest first.
type Operands = Vec<(InternalKeyBuf, Vec<u8>)>;

/// What the operands lie on.
enum Ground {
    /// An entry in the same stripe, on which the input stands.
    Base,
    /// An entry of an older stripe.
    OlderStripe,
    /// An entry that a range deletion hides from some readers of the stripe.
    Parted,
    /// Nothing that this compaction knows of.
    EndOfKey,
    /// The filter dropped everything up to some later key.
    Skipped,
}

/// Finds the base's value by the base's key: that of the operands may have other bytes under an
/// order of the application's.
struct ByOwnKey<'a, R> {
    resolver: &'a R,
    user_key: &'a [u8],
}

impl<R: ValueResolver> ValueResolver for ByOwnKey<'_, R> {
    fn resolve_blob(&self, _: &[u8], blob_index: &[u8]) -> Result<Bytes> {
        self.resolver.resolve_blob(self.user_key, blob_index)
    }
}

impl<I: InternalIterator, R: ValueResolver, S: ValueSeparator> CompactionStream<'_, I, R, S> {
    /// Replaces the operand on which the input stands, and those below it, by what they amount to.
    pub(super) fn merge(&mut self, stripe: SequenceNumber) -> Result<Verdict> {
        // The caller has counted the first one.
        self.counts.input_entries -= 1;
        let mut operands = Operands::new();
        let ground = self.collect_operands(stripe, &mut operands)?;
        if operands.is_empty() {
            // What lies below is judged as if there had been no operands.
            return Ok(Verdict::DropAndStay);
        }
        if self.settings.merge_operator.is_none() {
            self.note_fault(no_merge_operator(&self.judged.user_key));
            self.leave_unmerged(operands);
            return Ok(Verdict::DropAndStay);
        }
        let full = match ground {
            Ground::Base => true,
            Ground::EndOfKey => self.sees_whole_history(),
            Ground::OlderStripe | Ground::Parted | Ground::Skipped => false,
        };
        if matches!(ground, Ground::Parted) {
            // What lies below stays, for those who see it.
            self.queue_partial_merge(operands);
            return Ok(Verdict::DropAndStay);
        }
        self.hide_stripe(stripe);
        if !full {
            self.queue_partial_merge(operands);
            return Ok(Verdict::DropAndStay);
        }
        let on_base = matches!(ground, Ground::Base);
        match self.full_merge(stripe, &operands, on_base) {
            Ok(Some(merged)) => {
                self.queue.push_back(merged);
                if on_base {
                    Sometimes::OperandsMerged.reached();
                    self.counts.input_entries += 1;
                    return Ok(Verdict::Drop);
                }
            }
            Ok(None) => self.leave_unmerged(operands),
            Err(error) if error.subcode() == SubCode::MergeOperatorFailed => {
                if !self.is_refusal_expected() {
                    self.note_fault(error);
                }
                self.leave_unmerged(operands);
            }
            Err(error) => return Err(error),
        }
        Ok(Verdict::DropAndStay)
    }

    fn leave_unmerged(&mut self, operands: Operands) {
        self.queue.extend(operands);
        // The base stays too.
        self.judged.hiding_stripe = None;
    }

    /// Whether a merge that reaches the last entry of a key has seen all of it.
    pub(super) fn sees_whole_history(&self) -> bool {
        self.settings.at_bottom() && self.judged.may_forget
    }

    /// Where keys have timestamps, whether a reader may see the newer of two entries of the key
    /// that is judged and not the older one, because a range deletion lies between them.
    pub(super) fn are_parted(
        &self,
        user_key: &[u8],
        older: SequenceNumber,
        newer: SequenceNumber,
    ) -> bool {
        let are_forgotten = self.judged.may_forget;
        self.settings.history.as_ref().is_some_and(|history| {
            !history.is_stripped
                && self.cover.tombstones.part(user_key, (older, newer), are_forgotten)
        })
    }

    /// Whether a table can hold what was made of the key's operands.
    fn fits(&self, bytes: usize) -> bool {
        let fits = self.judged.user_key.len().saturating_add(bytes) <= self.settings.entry_size_max;
        if !fits {
            let key = self.judged.user_key.escape_ascii();
            tracing::warn!(%key, bytes, "the result of a merge is too large for a table; the operands stay unmerged");
        }
        fits
    }

    fn is_refusal_expected(&self) -> bool {
        let operator = self.settings.merge_operator.as_ref();
        operator.is_some_and(|operator| operator.failure_scope() == MergeFailureScope::MustMerge)
    }

    fn collect_operands(
        &mut self,
        stripe: SequenceNumber,
        operands: &mut Operands,
    ) -> Result<Ground> {
        let mut above = None;
        loop {
            match self.next_of_key(stripe)? {
                Next::SameStripe => {}
                Next::OlderStripe => {
                    Sometimes::OperandsUnderSnapshot.reached();
                    return Ok(Ground::OlderStripe);
                }
                Next::OtherKey => return Ok(Ground::EndOfKey),
            }
            let value_type = self.type_of_input()?;
            if value_type == ValueType::RangeDeletion {
                self.input.next();
                continue;
            }
            let sequence = self.input.key().sequence();
            let above = above.replace(sequence).filter(|_| !operands.is_empty());
            if above
                .is_some_and(|above| self.are_parted(self.input.key().user_key(), sequence, above))
            {
                return Ok(Ground::Parted);
            }
            if value_type != ValueType::Merge {
                return Ok(Ground::Base);
            }
            self.counts.input_entries += 1;
            if self.input_is_covered(stripe) {
                self.counts.dropped_range_deleted += 1;
            } else {
                match self.filter_operand() {
                    OperandDecision::Keep => {
                        operands.push((self.input.key().to_buf(), self.input.value().to_vec()));
                    }
                    OperandDecision::Change(operand) => {
                        operands.push((self.input.key().to_buf(), operand))
                    }
                    OperandDecision::Remove => {}
                    OperandDecision::SkipUntil(until) => {
                        operands.clear();
                        self.skip_until(&until);
                        return Ok(Ground::Skipped);
                    }
                }
            }
            self.input.next();
        }
    }

    /// Merges operands over the entry on which the input stands, or over nothing; `None` if the
    /// result is too large.
    fn full_merge(
        &mut self,
        stripe: SequenceNumber,
        operands: &Operands,
        on_base: bool,
    ) -> Result<Option<(InternalKeyBuf, Vec<u8>)>> {
        let mut base = None;
        if on_base {
            let value_type = self.type_of_input()?;
            let deletes = matches!(
                value_type,
                ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp
            );
            if !deletes && !self.input_is_covered(stripe) {
                base = Some((value_type, self.input.value()));
            }
        }
        let oldest_first: Vec<&[u8]> =
            operands.iter().rev().map(|(_, operand)| &operand[..]).collect();
        let operator = self.settings.merge_operator.as_deref();
        let base_key =
            if base.is_some() { self.input.key().user_key() } else { &self.judged.user_key };
        let resolver = ByOwnKey { resolver: &self.resolver, user_key: base_key };
        // Columns in blob files are found by the key that they were written with.
        let mut whole = None;
        if let Some((ValueType::WideColumnEntity, entity)) = base
            && base_key != self.judged.user_key
            && has_blobs(entity)?
        {
            let stored = Bytes::copy_from_slice(entity);
            let columns =
                columns_of(base_key, ValueType::WideColumnEntity, stored, &self.resolver)?;
            whole = Some(columns.encode());
        }
        if let Some(whole) = &whole {
            base = Some((ValueType::WideColumnEntity, whole));
        }
        let (value_type, merged) =
            merge_whole(self.bare_key(), base, &oldest_first, operator, &resolver)?;
        let key = self.key_of_merged(operands, value_type);
        Ok(self.fits(merged.len()).then_some((key, merged)))
    }

    /// The key of what operands come to: as of the newest of them.
    fn key_of_merged(&self, operands: &Operands, value_type: ValueType) -> InternalKeyBuf {
        let newest = operands[0].0.as_key();
        let user_key = match self.settings.history {
            None => &self.judged.user_key,
            Some(_) => newest.user_key(),
        };
        InternalKeyBuf::new(user_key, newest.sequence(), value_type)
    }

    fn queue_partial_merge(&mut self, operands: Operands) {
        if let Some(operator) = &self.settings.merge_operator
            && (operands.len() > 1 || operator.allows_single_operand())
        {
            let oldest_first: Vec<&[u8]> =
                operands.iter().rev().map(|(_, operand)| &operand[..]).collect();
            let combined = operator.partial_merge(self.bare_key(), &oldest_first);
            if let Some(combined) = combined.filter(|combined| self.fits(combined.len())) {
                let key = self.key_of_merged(&operands, ValueType::Merge);
                self.queue.push_back((key, combined));
                return;
            }
        }
        self.queue.extend(operands);
    }
}
