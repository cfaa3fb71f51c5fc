//! Which versions of a key go into the new database: a pure function.
//!
//! 1. What a range deletion covers is deleted. So is what lies below a deletion, a value or an entity.
//! 2. Several copies of one write (the same sequence number) may be there: an input of a compaction beside its output, a WAL
//!    beside the table that was flushed from it. One of them is taken: a value rather than a merge operand, which may have
//!    been merged into it; of operands the one in the oldest file, where nothing has been merged into it yet.
//! 3. A reference to a large value that is lost does not count: an intact older version shows again. It is reported.
//! 4. Deletions themselves are not kept. Everything that they could hide is here, and is judged here.

use crate::base::{FileNumber, SequenceNumber, ValueType};

/// One version of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) sequence: SequenceNumber,
    pub(super) kind: ValueType,
    pub(super) value: Vec<u8>,
    /// The table that it comes from; 0 if it does not come straight from one.
    pub(super) table: FileNumber,
}

/// What became of a key.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Choice<L> {
    /// Newest first: merge operands, then at most one value.
    pub(super) kept: Vec<Version>,
    /// What is missing of it.
    pub(super) lost: Vec<L>,
}

/// Judges all versions of a key: newest first, copies of one write in the order of their sources, newest source first.
/// `is_covered` says which are under a range deletion; `usable` unfolds a version, or says why it is lost.
pub(super) fn choose<L>(
    versions: Vec<Version>,
    is_covered: impl Fn(&Version) -> bool,
    mut usable: impl FnMut(Version) -> Result<Version, L>,
) -> Choice<L> {
    let mut choice = Choice { kept: Vec::new(), lost: Vec::new() };
    let mut rest = versions.into_iter().filter(|version| !is_covered(version)).peekable();
    while let Some(first) = rest.next() {
        let sequence = first.sequence;
        let mut copies = vec![first];
        while let Some(copy) = rest.next_if(|next| next.sequence == sequence) {
            copies.push(copy);
        }
        let (mut operands, finals): (Vec<_>, Vec<_>) =
            copies.into_iter().partition(|copy| copy.kind == ValueType::Merge);
        operands.reverse();
        let mut why = None;
        let found = finals.into_iter().chain(operands).find_map(|copy| match usable(copy) {
            Ok(version) => Some(version),
            Err(lost) => {
                why.get_or_insert(lost);
                None
            }
        });
        match found {
            None => choice.lost.extend(why),
            Some(version) => match version.kind {
                ValueType::Merge => choice.kept.push(version),
                ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp => break,
                _ => {
                    choice.kept.push(version);
                    break;
                }
            },
        }
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;
    use ValueType::{BlobIndex, Deletion, Merge, Value};

    fn version(sequence: SequenceNumber, kind: ValueType, value: &str) -> Version {
        Version { sequence, kind, value: value.as_bytes().to_vec(), table: FileNumber(0) }
    }

    /// What is kept of `versions`, as text; large values whose name begins with '-' are lost.
    fn kept(covered: SequenceNumber, versions: &[(SequenceNumber, ValueType, &str)]) -> String {
        let versions =
            versions.iter().map(|&(sequence, kind, value)| version(sequence, kind, value)).collect();
        let choice = choose(
            versions,
            |version| version.sequence < covered,
            |version| match version.value.first() {
                Some(b'-') if version.kind == BlobIndex => Err(version.sequence),
                _ => Ok(version),
            },
        );
        let kept = choice
            .kept
            .iter()
            .map(|version| format!("{}@{}", String::from_utf8_lossy(&version.value), version.sequence));
        let lost = choice.lost.iter().map(|sequence| format!("lost@{sequence}"));
        kept.chain(lost).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_newest_wins_and_deletions_hide() {
        assert_eq!(kept(0, &[(9, Value, "new"), (5, Value, "old")]), "new@9");
        assert_eq!(kept(0, &[(9, Deletion, ""), (5, Value, "old")]), "");
        assert_eq!(kept(0, &[(9, Value, "new"), (5, Deletion, ""), (3, Value, "old")]), "new@9");
        assert_eq!(kept(6, &[(9, Value, "new"), (5, Value, "old")]), "new@9");
        assert_eq!(kept(6, &[(5, Value, "old"), (0, Value, "older")]), "");
        assert_eq!(kept(5, &[(5, Value, "with the deletion")]), "with the deletion@5");
    }

    #[test]
    fn operands_stay_down_to_what_they_lie_on() {
        assert_eq!(
            kept(0, &[(9, Merge, "c"), (8, Merge, "b"), (5, Value, "a"), (4, Value, "-")]),
            "c@9 b@8 a@5"
        );
        assert_eq!(kept(0, &[(9, Merge, "c"), (8, Deletion, ""), (5, Value, "a")]), "c@9");
        assert_eq!(kept(6, &[(9, Merge, "c"), (5, Merge, "b")]), "c@9");
    }

    #[test]
    fn of_copies_of_one_write_one_is_taken() {
        assert_eq!(kept(0, &[(9, Value, "a"), (9, Value, "a")]), "a@9");
        assert_eq!(kept(0, &[(9, Merge, "+c"), (9, Value, "abc"), (8, Merge, "+b")]), "abc@9");
        assert_eq!(kept(0, &[(9, Merge, "+b+c"), (9, Merge, "+c"), (8, Merge, "+b")]), "+c@9 +b@8");
        assert_eq!(
            kept(0, &[(0, Value, "from the newer file"), (0, Value, "older")]),
            "from the newer file@0"
        );
    }

    #[test]
    fn a_lost_large_value_uncovers_what_is_older() {
        assert_eq!(kept(0, &[(9, BlobIndex, "-"), (5, Value, "old")]), "old@5 lost@9");
        assert_eq!(kept(0, &[(9, BlobIndex, "-"), (9, BlobIndex, "moved"), (5, Value, "old")]), "moved@9");
        assert_eq!(kept(0, &[(9, Value, "new"), (5, BlobIndex, "-")]), "new@9");
        assert_eq!(kept(6, &[(5, BlobIndex, "-")]), "");
        assert_eq!(kept(0, &[(9, Deletion, ""), (5, BlobIndex, "-")]), "");
        assert_eq!(kept(0, &[(9, BlobIndex, "-"), (8, Deletion, ""), (5, Value, "old")]), "lost@9");
    }
}
