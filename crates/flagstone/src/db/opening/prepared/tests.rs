use super::*;

/// A name as long as a record was copied as a whole before it was found to be too much.
#[test]
fn of_a_name_beyond_the_limit_only_what_is_shown_is_kept() {
    let (mut prepared, name) = (Prepared::default(), vec![b'x'; PREPARED_MAX / 2]);
    prepared.add(b"a", FileNumber(1), 7);
    prepared.add(&name, FileNumber(1), 8);
    prepared.add(&name, FileNumber(1), 9);
    assert!(prepared.bytes < PREPARED_MAX, "one name counts once");
    prepared.add(&vec![b'y'; PREPARED_MAX / 2], FileNumber(2), 10);
    assert!(prepared.bytes > PREPARED_MAX);
    let lengths = prepared.places.keys().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lengths, [1, PREPARED_MAX / 2, NAME_MAX]);
}

#[test]
fn what_is_decided_takes_nothing() {
    let mut prepared = Prepared::default();
    prepared.add(b"a", FileNumber(1), 7);
    prepared.decide(b"b");
    assert_eq!(prepared.bytes, Prepared::size_of(b"a"));
    prepared.decide(b"a");
    assert_eq!(prepared.bytes, 0);
}
