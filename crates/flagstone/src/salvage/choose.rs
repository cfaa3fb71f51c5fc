//! Which versions of a key go into the new database: a pure function.
//!
//! 1. Entries that a range deletion covers are deleted, and so are entries below a deletion, a
//!    value or an entity.
//! 2. One write (the same sequence number) may exist in several copies: in an input and the output
//!    of a compaction, or in a WAL and the table flushed from it. One copy is used. A value is
//!    preferred to a merge operand, which may have been merged into it. Of operands the one in the
//!    oldest file is used, because nothing has been merged into it yet. A WAL is older than any
//!    table.
//! 3. A value that lost its sequence number at the bottom of the tree may already contain operands
//!    that are in older tables: [`under_operands`]. If that is unknown, the value is used, with a
//!    report. Operands from a WAL that had been flushed yield to both: they are used if tables have
//!    neither an operand as new nor such a value. A value or deletion from such a WAL takes
//!    precedence over such a value, with a report that it may be older: the table it was flushed to
//!    is lost, or was merged into that value.
//! 4. A reference to a lost large value is not used, nor is an entity that cannot be decoded. An
//!    intact older version takes its place, with a report.
//! 5. Deletions themselves are not kept: everything that they could hide is judged here. Only
//!    where keys have timestamps they are, for what is under older ones.
//! 6. A newer table's value without a sequence number may have been written after a deletion in a
//!    table of unknown state, if a compaction has replaced the deletion's table. The value is
//!    deleted, with a report: sound databases have many such values that were below the deletion,
//!    and bringing them all back would be worse.

use crate::base::{FileNumber, SequenceNumber, ValueType};

/// One version of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) sequence: SequenceNumber,
    pub(super) kind: ValueType,
    pub(super) value: Vec<u8>,
    /// Its key, if that has other bytes than the newest version's: the order takes them for the
    /// same.
    pub(super) own_key: Option<Vec<u8>>,
    pub(super) origin: Origin,
    pub(super) body: Body,
}

/// What a version's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// What the version was found with.
    Found,
    /// A large value, unfolded, that was compressed so.
    Unfolded(u8),
    /// The header of a large value's record: the value, of this place among those found, is still
    /// to be read.
    Header(usize),
}

/// Where a version comes from, and what the MANIFEST says of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A WAL, and no table.
    Log,
    /// A WAL; whether a table has it, too, nothing tells.
    UnsureLog,
    /// A WAL that was flushed to tables of which some are damaged or gone.
    FlushedLog,
    /// A table that is named.
    Live(FileNumber),
    /// A table of which nothing is said; the MANIFEST is not whole.
    Unnamed(FileNumber),
    /// A table that a whole MANIFEST does not name: a job left it behind, and what it was made from
    /// is there.
    Leftover(FileNumber),
}

impl Origin {
    /// The table's number; 0 for a WAL, whose records are as they were written.
    pub(super) fn table(self) -> FileNumber {
        match self {
            Self::Log | Self::UnsureLog | Self::FlushedLog => FileNumber(0),
            Self::Live(number) | Self::Unnamed(number) | Self::Leftover(number) => number,
        }
    }
}

/// What became of a key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Choice<L> {
    /// Newest first: merge operands, then at most one value.
    pub(super) kept: Vec<Version>,
    /// The deletion that ended it, if one did.
    pub(super) deletion: Option<Version>,
    /// What is missing of it.
    pub(super) lost: Vec<L>,
    /// Whether the value may have some of the operands in it that lie above it.
    pub(super) may_count_twice: bool,
    /// Whether it is out of a WAL that had been flushed, and a table has a value that has lost its
    /// sequence number, and may be newer.
    pub(super) may_be_older: bool,
    /// Whether the deletion that was believed may be older than a value that is left.
    pub(super) may_be_missing: bool,
}

impl<L> Choice<L> {
    fn of_nothing() -> Self {
        Self {
            kept: Vec::new(),
            deletion: None,
            lost: Vec::new(),
            may_count_twice: false,
            may_be_older: false,
            may_be_missing: false,
        }
    }
}

/// Judges all versions of a key: newest first, copies of one write in the order of their sources,
/// newest source first. `is_covered` says which are under a range deletion; `usable` unfolds a
/// version, or says why it is lost.
pub(super) fn choose<L>(
    versions: Vec<Version>,
    is_covered: impl Fn(&Version) -> bool,
    mut usable: impl FnMut(Version) -> Result<Version, L>,
) -> Choice<L> {
    let mut choice = Choice::of_nothing();
    let mut rest = versions.into_iter().filter(|version| !is_covered(version)).peekable();
    while let Some(first) = rest.next() {
        let sequence = first.sequence;
        let mut copies = vec![first];
        while let Some(copy) = rest.next_if(|next| next.sequence == sequence) {
            copies.push(copy);
        }
        let (mut operands, mut finals): (Vec<_>, Vec<_>) =
            copies.into_iter().partition(|copy| copy.kind == ValueType::Merge);
        operands.reverse();
        operands.sort_by_key(|copy| copy.origin.table());
        if choice.kept.iter().chain(&operands).any(|operand| operand.origin.table() > FileNumber(0))
        {
            operands.retain(|operand| operand.origin != Origin::FlushedLog);
        }
        if sequence == 0 && !finals.is_empty() {
            choice.kept.retain(|operand| operand.origin != Origin::FlushedLog);
            finals = under_operands(finals, &choice.kept);
        }
        let mut why = None;
        let found = finals.into_iter().chain(operands).find_map(|copy| match usable(copy) {
            Ok(version) => Some(version),
            Err(lost) => {
                why.get_or_insert(lost);
                None
            }
        });
        let of_flushed_log = found.as_ref().filter(|version| version.origin == Origin::FlushedLog);
        if let Some(version) = of_flushed_log.filter(|version| version.kind != ValueType::Merge) {
            let is_undated = |other: &Version| {
                other.sequence == 0
                    && other.kind != ValueType::Merge
                    && other.origin.table() > FileNumber(0)
            };
            // Values are compared, and not where they lie.
            let mut undated = rest.by_ref().filter(is_undated);
            choice.may_be_older =
                undated.any(|other| usable(other).map_or(true, |other| !is_same(&other, version)));
        }
        match found {
            None => choice.lost.extend(why),
            Some(version) => match version.kind {
                ValueType::Merge => choice.kept.push(version),
                kind if is_deletion(kind) => {
                    choice.may_be_missing = rest.any(|other| may_be_newer(&other, version.origin));
                    choice.deletion = Some(version);
                    break;
                }
                _ => {
                    choice.may_count_twice = sequence == 0 && may_hold(&version, &choice.kept);
                    choice.kept.push(version);
                    break;
                }
            },
        }
    }
    choice
}

fn is_deletion(kind: ValueType) -> bool {
    matches!(
        kind,
        ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp
    )
}

/// Whether a version below a deletion may have been written after it: then a compaction to the
/// bottom read the deletion, too, before it wrote the version's table.
fn may_be_newer(version: &Version, deletion: Origin) -> bool {
    let (Origin::Unnamed(deleted), Origin::Unnamed(table)) = (deletion, version.origin) else {
        return false;
    };
    version.sequence == 0 && !is_deletion(version.kind) && table > deleted
}

/// Whether two versions, unfolded, come to the same.
fn is_same(one: &Version, other: &Version) -> bool {
    let kind = |version: &Version| match version.kind {
        ValueType::BlobIndex => ValueType::Value,
        kind => kind,
    };
    kind(one) == kind(other) && one.value == other.value
}

/// Of values without a sequence number those that `operands` may lie on, the best first.
///
/// What a compaction reads is older than what it writes. So a value in a table that is older than
/// all operands' has none of them in it; the newest such is the best. Of others the oldest is: the
/// newer ones may be what a compaction made of it and of operands. What a job left behind above
/// them is not taken even if it is alone: then operands were all there was.
fn under_operands(mut values: Vec<Version>, operands: &[Version]) -> Vec<Version> {
    let Some(oldest) = operands.iter().map(|operand| operand.origin.table()).min() else {
        return values;
    };
    values.retain(|value| match value.origin {
        Origin::Leftover(number) => {
            !operands.iter().any(|operand| is_table_before(operand, number))
        }
        _ => true,
    });
    let (mut sorted, mut rest): (Vec<_>, Vec<_>) =
        values.into_iter().partition(|value| value.origin.table() < oldest);
    rest.reverse();
    sorted.append(&mut rest);
    sorted
}

/// Whether nothing says that a value without a sequence number has none of `operands` in it. Of a
/// table that is named it is known for those in tables: the edit that named it removed what it was
/// made from.
fn may_hold(value: &Version, operands: &[Version]) -> bool {
    operands.iter().any(|operand| match (operand.origin, value.origin) {
        (Origin::UnsureLog, _) => true,
        (_, Origin::Unnamed(number)) => is_table_before(operand, number),
        _ => false,
    })
}

fn is_table_before(version: &Version, number: FileNumber) -> bool {
    (FileNumber(1)..number).contains(&version.origin.table())
}

#[cfg(test)]
mod tests;
