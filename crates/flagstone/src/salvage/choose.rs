//! Which versions of a key go into the new database: a pure function.
//!
//! 1. What a range deletion covers is deleted. So is what lies below a deletion, a value or an entity.
//! 2. Several copies of one write (the same sequence number) may be there: an input of a compaction beside its output, a WAL
//!    beside the table that was flushed from it. One of them is taken: a value rather than a merge operand, which may have
//!    been merged into it; of operands the one in the oldest file, where nothing has been merged into it yet. A WAL is older
//!    than any table.
//! 3. A value that lost its sequence number at the bottom of a tree may have those operands in it that lie in older tables:
//!    [`under_operands`]. Where nothing tells, it is taken, and said. Operands out of a WAL that had been flushed give way to
//!    both: they count where tables have neither an operand as new nor such a value. A value or deletion out of one stands before
//!    such a value, and it is said that it may be older: what it was flushed to is lost, or was merged into that.
//! 4. A reference to a large value that is lost does not count, nor an entity that cannot be read: an intact older version
//!    shows again. It is reported.
//! 5. Deletions themselves are not kept. Everything that they could hide is here, and is judged here.
//! 6. Of a deletion in a table of which nothing is said a newer table's value without a sequence number may have been written
//!    since, if a compaction has replaced the deletion's table. It is deleted, and said: sound databases have many that lay
//!    below, and to bring all these back would be worse.

use crate::base::{FileNumber, SequenceNumber, ValueType};

/// One version of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) sequence: SequenceNumber,
    pub(super) kind: ValueType,
    pub(super) value: Vec<u8>,
    /// Its key, if that has other bytes than the newest version's: the order takes them for the same.
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
    /// The header of a large value's record: the value, of this place among those found, is still to be read.
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
    /// A table that a whole MANIFEST does not name: a job left it behind, and what it was made from is there.
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
    /// What is missing of it.
    pub(super) lost: Vec<L>,
    /// Whether the value may have some of the operands in it that lie above it.
    pub(super) may_count_twice: bool,
    /// Whether it is out of a WAL that had been flushed, and a table has a value that has lost its sequence number, and may be
    /// newer.
    pub(super) may_be_older: bool,
    /// Whether the deletion that was believed may be older than a value that is left.
    pub(super) may_be_missing: bool,
}

/// Judges all versions of a key: newest first, copies of one write in the order of their sources, newest source first.
/// `is_covered` says which are under a range deletion; `usable` unfolds a version, or says why it is lost.
pub(super) fn choose<L>(
    versions: Vec<Version>,
    is_covered: impl Fn(&Version) -> bool,
    mut usable: impl FnMut(Version) -> Result<Version, L>,
) -> Choice<L> {
    let mut choice = Choice {
        kept: Vec::new(),
        lost: Vec::new(),
        may_count_twice: false,
        may_be_older: false,
        may_be_missing: false,
    };
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
        if choice.kept.iter().chain(&operands).any(|operand| operand.origin.table() > FileNumber(0)) {
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
                other.sequence == 0 && other.kind != ValueType::Merge && other.origin.table() > FileNumber(0)
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
    matches!(kind, ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp)
}

/// Whether a version below a deletion may have been written after it: then a compaction to the bottom read the deletion, too,
/// before it wrote the version's table.
fn may_be_newer(version: &Version, deletion: Origin) -> bool {
    let (Origin::Unnamed(deleted), Origin::Unnamed(table)) = (deletion, version.origin) else { return false };
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
/// What a compaction reads is older than what it writes. So a value in a table that is older than all operands' has none of
/// them in it; the newest such is the best. Of others the oldest is: the newer ones may be what a compaction made of it and
/// of operands. What a job left behind above them is not taken even if it is alone: then operands were all there was.
fn under_operands(mut values: Vec<Version>, operands: &[Version]) -> Vec<Version> {
    let Some(oldest) = operands.iter().map(|operand| operand.origin.table()).min() else { return values };
    values.retain(|value| match value.origin {
        Origin::Leftover(number) => !operands.iter().any(|operand| is_table_before(operand, number)),
        _ => true,
    });
    let (mut sorted, mut rest): (Vec<_>, Vec<_>) =
        values.into_iter().partition(|value| value.origin.table() < oldest);
    rest.reverse();
    sorted.append(&mut rest);
    sorted
}

/// Whether nothing says that a value without a sequence number has none of `operands` in it. Of a table that is named it is
/// known for those in tables: the edit that named it removed what it was made from.
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
mod tests {
    use super::*;
    use ValueType::{BlobIndex, Deletion, Merge, Value};

    fn version(sequence: SequenceNumber, kind: ValueType, value: &str) -> Version {
        Version {
            sequence,
            kind,
            value: value.as_bytes().to_vec(),
            own_key: None,
            origin: Origin::Log,
            body: Body::Found,
        }
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

    /// What is kept of versions in tables, and whether operands may count twice.
    fn kept_of(versions: &[(SequenceNumber, ValueType, &str, Origin)]) -> (String, bool) {
        let at = |&(sequence, kind, value, origin)| Version { origin, ..version(sequence, kind, value) };
        let choice = choose(versions.iter().map(at).collect(), |_| false, Ok::<_, ()>);
        let text = choice.kept.iter().map(|version| String::from_utf8_lossy(&version.value));
        (text.collect::<Vec<_>>().join(" "), choice.may_count_twice)
    }

    #[test]
    fn operands_do_not_count_again_beside_what_a_job_left_behind() {
        let live = |number| Origin::Live(FileNumber(number));
        let leftover = Origin::Leftover(FileNumber(12));
        let kept = |versions: &[_]| {
            let (text, is_doubtful) = kept_of(versions);
            assert!(!is_doubtful);
            text
        };
        // A flush combines neighbours.
        let wal = Origin::Log;
        assert_eq!(
            kept(&[(11, Merge, "+c", wal), (11, Merge, "+b+c", leftover), (10, Merge, "+b", wal)]),
            "+c +b"
        );
        // A compaction to the bottom.
        assert_eq!(
            kept(&[(15, Merge, "+c", live(9)), (0, Value, "V+c", leftover), (0, Value, "V", live(7))]),
            "+c V"
        );
        assert_eq!(kept(&[(15, Merge, "+c", live(9)), (0, Value, "+c", leftover)]), "+c");
        // What was written since is above it.
        let newer = Origin::Leftover(FileNumber(13));
        assert_eq!(kept(&[(15, Merge, "+d", newer), (0, Value, "V+c", leftover)]), "+d V+c");
        // A table that is named has nothing twice, however old what lies above it.
        assert_eq!(kept(&[(15, Merge, "+c", live(5)), (0, Value, "V", live(7))]), "+c V");
    }

    #[test]
    fn operands_of_a_flushed_log_count_where_tables_cannot_have_them() {
        let table = Origin::Live(FileNumber(9));
        let flushed = Origin::FlushedLog;
        let kept = |versions: &[_]| kept_of(versions).0;
        assert_eq!(kept(&[(15, Merge, "+c", flushed), (10, Value, "V", table)]), "+c V");
        assert_eq!(kept(&[(15, Merge, "+c", flushed), (14, Merge, "+b", table)]), "+c +b");
        // What tables have may hold them.
        assert_eq!(kept(&[(15, Merge, "+c", flushed), (0, Value, "V+c", table)]), "V+c");
        assert_eq!(kept(&[(16, Merge, "+c+d", table), (15, Merge, "+c", flushed)]), "+c+d");
        assert_eq!(
            kept(&[(15, Merge, "+c", flushed), (15, Merge, "+b+c", table), (14, Merge, "+b", flushed)]),
            "+b+c"
        );
        assert_eq!(
            kept(&[(20, Merge, "+d", Origin::Log), (15, Merge, "+c", flushed), (0, Value, "V+c", table)]),
            "+d V+c"
        );
        // A value as new as what it was flushed from is all there was.
        assert_eq!(kept(&[(15, Merge, "+c", flushed), (15, Value, "V+c", table)]), "V+c");
    }

    /// A table whose range holds the key is damaged; the one that is left may have been made from what the WAL has, or not.
    #[test]
    fn where_nothing_tells_whether_a_flushed_log_or_a_table_is_newer_it_is_said() {
        let (table, flushed) = (Origin::Live(FileNumber(9)), Origin::FlushedLog);
        let kept = |versions: &[(SequenceNumber, ValueType, &str, Origin)]| {
            let at = |&(sequence, kind, value, origin)| Version { origin, ..version(sequence, kind, value) };
            // Large values lie where their names say.
            let usable = |version: Version| match version.kind {
                BlobIndex => Ok::<_, ()>(Version { value: b"large".to_vec(), ..version }),
                _ => Ok(version),
            };
            let choice = choose(versions.iter().map(at).collect(), |_| false, usable);
            (choice.kept.len(), choice.may_be_older)
        };
        assert_eq!(kept(&[(15, Value, "V", flushed), (0, Value, "U", table)]), (1, true));
        assert_eq!(kept(&[(15, Deletion, "", flushed), (0, Value, "U", table)]), (0, true));
        assert_eq!(kept(&[(15, Value, "V", flushed), (14, Value, "U", table)]), (1, false));
        assert_eq!(kept(&[(15, Value, "V", flushed)]), (1, false));
        assert_eq!(kept(&[(15, Value, "V", flushed), (0, Value, "V", table)]), (1, false));
        assert_eq!(kept(&[(15, Value, "V", Origin::Log), (0, Value, "U", table)]), (1, false));
        assert_eq!(kept(&[(15, Merge, "+c", flushed), (0, Value, "U", table)]), (1, false));
        // The same large value, in memory at first or moved since, was another.
        assert_eq!(kept(&[(15, BlobIndex, "at 7", flushed), (0, BlobIndex, "at 7", table)]), (1, false));
        assert_eq!(kept(&[(15, Value, "large", flushed), (0, BlobIndex, "at 9", table)]), (1, false));
        assert_eq!(kept(&[(15, BlobIndex, "at 7", flushed), (0, Value, "U", table)]), (1, true));
    }

    #[test]
    fn where_nothing_tells_that_operands_count_once_it_is_said() {
        let table = |number| Origin::Unnamed(FileNumber(number));
        let over = |values: &[(&'static str, u64)]| {
            let mut versions = vec![(15, Merge, "+c", table(9))];
            versions.extend(values.iter().map(|&(value, number)| (0, Value, value, table(number))));
            kept_of(&versions)
        };
        assert_eq!(over(&[("V+b", 8), ("V", 5)]), ("+c V+b".to_string(), false));
        assert_eq!(over(&[("V+c", 12), ("V", 8), ("U", 5)]), ("+c V".to_string(), false));
        assert_eq!(over(&[("V+b+c", 13), ("V+b", 12)]), ("+c V+b".to_string(), true));
        assert_eq!(over(&[("V", 12)]), ("+c V".to_string(), true));
    }

    #[test]
    fn where_nothing_tells_whether_a_deletion_or_a_value_is_newer_it_is_said() {
        let (live, unnamed) = (|at| Origin::Live(FileNumber(at)), |at| Origin::Unnamed(FileNumber(at)));
        let is_said = |versions: &[(SequenceNumber, ValueType, &str, Origin)]| {
            let at = |&(sequence, kind, value, origin)| Version { origin, ..version(sequence, kind, value) };
            let choice = choose(versions.iter().map(at).collect(), |_| false, Ok::<_, ()>);
            assert!(choice.kept.iter().all(|version| version.kind == Merge));
            choice.may_be_missing
        };
        let deleted = (15, Deletion, "", unnamed(8));
        assert!(is_said(&[deleted, (0, Value, "V", unnamed(9))]));
        assert!(is_said(&[(16, Merge, "+c", unnamed(10)), deleted, (0, BlobIndex, "V", unnamed(9))]));
        assert!(is_said(&[(15, ValueType::SingleDeletion, "", unnamed(8)), (0, Value, "V", unnamed(9))]));
        // What it was written above.
        assert!(!is_said(&[deleted, (0, Value, "V", unnamed(7))]));
        assert!(!is_said(&[deleted, (14, Value, "V", unnamed(9))]));
        // A whole MANIFEST tells that the deletion counts.
        assert!(!is_said(&[(15, Deletion, "", live(8)), (0, Value, "V", live(9))]));
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
