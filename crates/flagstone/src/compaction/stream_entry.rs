//! What a compaction stream knows of the key and the entry that it judges, and what it may decide.

use crate::base::{InternalKeyBuf, SequenceNumber, ValueType};

/// What is known of the user key whose entries are being judged.
#[derive(Default)]
pub(super) struct JudgedKey {
    pub(super) user_key: Vec<u8>,
    /// False only before the first entry.
    pub(super) is_set: bool,
    /// The stripe of the newest entry of the key that hides those behind it in the same stripe.
    pub(super) hiding_stripe: Option<SequenceNumber>,
    /// Whether an entry of the key was put out in `hiding_stripe`.
    pub(super) was_output: bool,
    /// Whether the last entry put out got sequence number 0.
    pub(super) was_zeroed: bool,
    /// Whether the next entry is a value whose bytes are not needed any more.
    pub(super) clear_next: bool,
    /// Sequence number and type of the entry of the input that was looked at last.
    pub(super) last_packed: u64,
    /// Where keys have timestamps, the user key of that entry. `user_key` is the first of those
    /// that are judged together.
    pub(super) last_user_key: Vec<u8>,
    /// Whether what deletes the key may go with what it deletes: not while its timestamps are kept
    /// apart.
    pub(super) may_forget: bool,
}

/// The entry that is being judged. It is a copy: rules change its type and sequence number, and
/// look at the entries behind it.
pub(super) struct CurrentEntry {
    pub(super) key: InternalKeyBuf,
    pub(super) value: Value,
    pub(super) own_value: Vec<u8>,
    /// A buffer for what the separator makes of the value.
    pub(super) separated: Vec<u8>,
}

impl CurrentEntry {
    /// Changes type and value; the sequence number stays.
    pub(super) fn replace(&mut self, value_type: ValueType, value: Vec<u8>) {
        let sequence = self.key.as_key().sequence();
        self.key.set_version(sequence, value_type);
        self.own_value = value;
        self.value = Value::Own;
    }
}

/// Where the current entry's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// In the input, which stands on the entry.
    Input,
    /// In `own_value`.
    Own,
}

/// What a rule decides about the current entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is put out; the input still stands on it.
    Keep,
    /// It is put out; the input has moved on.
    KeepAndStay,
    /// It goes; the input still stands on it.
    Drop,
    /// It goes, or it was replaced by what is in the queue; the input has moved on.
    DropAndStay,
}

/// What comes after the current entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// An entry of the same key in the same stripe.
    SameStripe,
    /// An entry of the same key in an older stripe.
    OlderStripe,
    /// Another key, or the end.
    OtherKey,
}
