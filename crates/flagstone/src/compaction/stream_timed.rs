//! Timed values (RocksDB's `TimedPut`) in a [`CompactionStream`].
//!
//! In a memtable one has its time behind it. A flush puts the newest sequence number of that time
//! there, which the value prefers to its own. It gets it where nothing older lies below.

use super::stream::CompactionStream;
use super::stream_entry::Value;
use super::stream_settings::ValueSeparator;
use crate::base::{InternalIterator, InternalKey, MAX_SEQUENCE_NUMBER, SequenceNumber, ValueType};
use crate::iter::ValueResolver;

impl<I: InternalIterator, R: ValueResolver, S: ValueSeparator> CompactionStream<'_, I, R, S> {
    /// Puts the sequence number that a timed value of a memtable prefers in the place of its time;
    /// without one it is a plain value. Returns which it is.
    pub(super) fn replace_time(&mut self, sequence: SequenceNumber) -> ValueType {
        let stored = self.input.value();
        let Some((value, time)) = stored.split_last_chunk() else {
            return ValueType::ValuePreferredSeqno;
        };
        let times = self.settings.times.as_ref();
        let preferred =
            times.and_then(|times| times.preferred(u64::from_le_bytes(*time), sequence));
        let (kind, value) = match preferred {
            None => (ValueType::Value, value.to_vec()),
            Some(preferred) => {
                (ValueType::ValuePreferredSeqno, [value, &preferred.to_le_bytes()].concat())
            }
        };
        self.replace(kind, value);
        kind
    }

    /// Turns a timed value into a plain one as of its preferred sequence number, and says so,
    /// unless a tombstone lies over it, or would then: one may begin with an older entry of the
    /// key, where its table does.
    pub(super) fn take_preferred_sequence(&mut self) -> bool {
        let Some((value, preferred)) = self.input.value().split_last_chunk() else { return false };
        let preferred = u64::from_le_bytes(*preferred);
        let sequence = self.entry.key.as_key().sequence();
        if preferred > sequence {
            return false;
        }
        // Older entries of the key come before that place, and are still to be looked at.
        let mut hint = self.cover.hint;
        let mut covering = |key: InternalKey<'_>| {
            self.cover.tombstones.covering(key, MAX_SEQUENCE_NUMBER, &mut hint)
        };
        let before = covering(self.entry.key.as_key());
        self.entry.key.set_version(preferred, ValueType::Value);
        if before.max(covering(self.entry.key.as_key())) > preferred {
            self.entry.key.set_version(sequence, ValueType::ValuePreferredSeqno);
            return false;
        }
        self.entry.own_value.clear();
        self.entry.own_value.extend_from_slice(value);
        self.entry.value = Value::Own;
        true
    }
}
