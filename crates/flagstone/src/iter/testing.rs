//! Entries as text, and cursors over them, for tests.
//!
//! ```text
//! entry     = key "@" sequence ":" kind "(" value ")"     kind: PUT DEL SD MERGE BLOB ENTITY TIMED
//! tombstone = "[" start "," end ")@" sequence
//! ```
//!
//! A value in an `ENTITY` is its default column; a `TIMED` value ends with `/` and its preferred
//! sequence number.

use crate::base::entity;
use crate::base::range_tombstone::RangeTombstone;
use crate::base::{
    Comparator, Error, InternalIterator, InternalKey, InternalKeyBuf, InternalKeyComparator,
    Result, SequenceNumber, ValueType,
};

pub(crate) type Entry = (InternalKeyBuf, Vec<u8>);

pub(crate) fn entry_key(user_key: &[u8], sequence: SequenceNumber) -> InternalKeyBuf {
    InternalKeyBuf::new(user_key, sequence, ValueType::Value)
}

const KINDS: [(&str, ValueType); 7] = [
    ("PUT", ValueType::Value),
    ("DEL", ValueType::Deletion),
    ("SD", ValueType::SingleDeletion),
    ("MERGE", ValueType::Merge),
    ("BLOB", ValueType::BlobIndex),
    ("ENTITY", ValueType::WideColumnEntity),
    ("TIMED", ValueType::ValuePreferredSeqno),
];

pub(crate) fn parse_entry(text: &str) -> Entry {
    let (key, rest) = text.split_once('@').expect(text);
    let (sequence, rest) = rest.split_once(':').expect(text);
    let (kind, value) =
        rest.strip_suffix(')').and_then(|rest| rest.split_once('(')).unwrap_or((rest, ""));
    let (_, kind) = *KINDS.iter().find(|(name, _)| *name == kind).expect(text);
    let value = match kind {
        ValueType::WideColumnEntity => entity::encode(&[(b"", value.as_bytes()), (b"col", b"1")]),
        ValueType::ValuePreferredSeqno => {
            let (value, preferred) = value.split_once('/').expect(text);
            [value.as_bytes(), &preferred.parse::<u64>().unwrap().to_le_bytes()].concat()
        }
        _ => value.as_bytes().to_vec(),
    };
    (InternalKeyBuf::new(key.as_bytes(), sequence.parse().expect(text), kind), value)
}

pub(crate) fn parse_entries(text: &str) -> Vec<Entry> {
    text.split_whitespace().map(parse_entry).collect()
}

pub(crate) fn show_entry(key: InternalKey<'_>, value: &[u8]) -> String {
    let kind = key.value_type().expect("a known type");
    let (name, _) = KINDS.iter().find(|(_, known)| *known == kind).expect("a kind with a name");
    let shown = match kind {
        ValueType::Deletion | ValueType::SingleDeletion => String::new(),
        ValueType::WideColumnEntity => {
            format!("({})", value[entity::default_column(value).unwrap().range].escape_ascii())
        }
        ValueType::ValuePreferredSeqno => {
            let (value, preferred) = value.split_last_chunk().unwrap();
            format!("({}/{})", value.escape_ascii(), u64::from_le_bytes(*preferred))
        }
        _ => format!("({})", value.escape_ascii()),
    };
    format!("{}@{}:{name}{shown}", key.user_key().escape_ascii(), key.sequence())
}

pub(crate) fn parse_tombstones(text: &str) -> Vec<RangeTombstone> {
    let parse = |text: &str| {
        let (range, sequence) =
            text.strip_prefix('[').and_then(|text| text.split_once(")@")).expect(text);
        let (start, end) = range.split_once(',').expect(text);
        RangeTombstone {
            start: start.into(),
            end: end.into(),
            sequence: sequence.parse().expect(text),
        }
    };
    text.split_whitespace().map(parse).collect()
}

pub(crate) fn show_tombstone(tombstone: &RangeTombstone) -> String {
    let (start, end) = (tombstone.start.escape_ascii(), tombstone.end.escape_ascii());
    format!("[{start},{end})@{}", tombstone.sequence)
}

/// A cursor over sorted entries in memory.
#[derive(Clone)]
pub(crate) struct VecIterator {
    comparator: InternalKeyComparator,
    entries: Vec<Entry>,
    /// Where it stands; `None` is before the first.
    at: Option<usize>,
    fails_at: Option<usize>,
    failed: bool,
    /// How often it was moved, by seeks and by steps.
    pub(crate) seeks: usize,
    pub(crate) steps: usize,
}

impl VecIterator {
    pub(crate) fn new(comparator: InternalKeyComparator, entries: Vec<Entry>) -> Self {
        let sorted =
            entries.is_sorted_by(|a, b| comparator.compare(a.0.as_key(), b.0.as_key()).is_lt());
        assert!(sorted, "entries are in order");
        Self { comparator, entries, at: None, fails_at: None, failed: false, seeks: 0, steps: 0 }
    }

    pub(crate) fn parse(text: &str) -> Self {
        Self::new(InternalKeyComparator::new(Comparator::Bytewise), parse_entries(text))
    }

    /// Fails when it reaches the entry of this index, until the next seek.
    pub(crate) fn failing_after(mut self, index: usize) -> Self {
        self.fails_at = Some(index);
        self
    }

    fn settle(&mut self, at: Option<usize>) {
        self.at = at.filter(|&at| at < self.entries.len());
        self.failed = self.at.is_some() && self.at == self.fails_at;
    }
}

impl InternalIterator for VecIterator {
    fn valid(&self) -> bool {
        self.at.is_some() && !self.failed
    }

    fn seek_to_first(&mut self) {
        self.seeks += 1;
        self.settle(Some(0));
    }

    fn seek_to_last(&mut self) {
        self.seeks += 1;
        self.settle(self.entries.len().checked_sub(1));
    }

    fn seek(&mut self, target: InternalKey<'_>) {
        self.seeks += 1;
        let before = |entry: &Entry| self.comparator.compare(entry.0.as_key(), target).is_lt();
        self.settle(Some(self.entries.partition_point(before)));
    }

    fn seek_for_prev(&mut self, target: InternalKey<'_>) {
        self.seeks += 1;
        let not_after = |entry: &Entry| self.comparator.compare(entry.0.as_key(), target).is_le();
        self.settle(self.entries.partition_point(not_after).checked_sub(1));
    }

    fn next(&mut self) {
        self.steps += 1;
        let at = self.at.expect("a valid cursor");
        self.settle(Some(at + 1));
    }

    fn prev(&mut self) {
        self.steps += 1;
        let at = self.at.expect("a valid cursor");
        self.settle(at.checked_sub(1));
    }

    fn key(&self) -> InternalKey<'_> {
        self.entries[self.at.expect("a valid cursor")].0.as_key()
    }

    fn value(&self) -> &[u8] {
        &self.entries[self.at.expect("a valid cursor")].1
    }

    fn status(&self) -> Result<()> {
        if self.failed { Err(Error::corruption("a bad block")) } else { Ok(()) }
    }
}
