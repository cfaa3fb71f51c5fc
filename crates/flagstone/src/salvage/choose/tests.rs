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
    let at =
        |&(sequence, kind, value, origin)| Version { origin, ..version(sequence, kind, value) };
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
        kept(&[
            (20, Merge, "+d", Origin::Log),
            (15, Merge, "+c", flushed),
            (0, Value, "V+c", table)
        ]),
        "+d V+c"
    );
    // A value as new as what it was flushed from is all there was.
    assert_eq!(kept(&[(15, Merge, "+c", flushed), (15, Value, "V+c", table)]), "V+c");
}

/// A table whose range holds the key is damaged; the one that is left may have been made from what
/// the WAL has, or not.
#[test]
fn where_nothing_tells_whether_a_flushed_log_or_a_table_is_newer_it_is_said() {
    let (table, flushed) = (Origin::Live(FileNumber(9)), Origin::FlushedLog);
    let kept = |versions: &[(SequenceNumber, ValueType, &str, Origin)]| {
        let at =
            |&(sequence, kind, value, origin)| Version { origin, ..version(sequence, kind, value) };
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
    assert_eq!(
        kept(&[(15, BlobIndex, "at 7", flushed), (0, BlobIndex, "at 7", table)]),
        (1, false)
    );
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
        let at =
            |&(sequence, kind, value, origin)| Version { origin, ..version(sequence, kind, value) };
        let choice = choose(versions.iter().map(at).collect(), |_| false, Ok::<_, ()>);
        assert!(choice.kept.iter().all(|version| version.kind == Merge));
        choice.may_be_missing
    };
    let deleted = (15, Deletion, "", unnamed(8));
    assert!(is_said(&[deleted, (0, Value, "V", unnamed(9))]));
    assert!(is_said(&[(16, Merge, "+c", unnamed(10)), deleted, (0, BlobIndex, "V", unnamed(9))]));
    assert!(is_said(&[
        (15, ValueType::SingleDeletion, "", unnamed(8)),
        (0, Value, "V", unnamed(9))
    ]));
    // What it was written above.
    assert!(!is_said(&[deleted, (0, Value, "V", unnamed(7))]));
    assert!(!is_said(&[deleted, (14, Value, "V", unnamed(9))]));
    // A whole MANIFEST tells that the deletion counts.
    assert!(!is_said(&[(15, Deletion, "", live(8)), (0, Value, "V", live(9))]));
}

#[test]
fn a_lost_large_value_uncovers_what_is_older() {
    assert_eq!(kept(0, &[(9, BlobIndex, "-"), (5, Value, "old")]), "old@5 lost@9");
    assert_eq!(
        kept(0, &[(9, BlobIndex, "-"), (9, BlobIndex, "moved"), (5, Value, "old")]),
        "moved@9"
    );
    assert_eq!(kept(0, &[(9, Value, "new"), (5, BlobIndex, "-")]), "new@9");
    assert_eq!(kept(6, &[(5, BlobIndex, "-")]), "");
    assert_eq!(kept(0, &[(9, Deletion, ""), (5, BlobIndex, "-")]), "");
    assert_eq!(kept(0, &[(9, BlobIndex, "-"), (8, Deletion, ""), (5, Value, "old")]), "lost@9");
}
