"""User timestamps, wide columns and operands that wait."""

import pytest

import flagstone

STAMPED = "leveldb.BytewiseComparator.u64ts"


def test_reads_as_of_a_timestamp(db: flagstone.Database) -> None:
    days = db.create_column_family("days", comparator=STAMPED)
    days.put(b"weather", b"rain", timestamp=10)
    days.put(b"weather", b"sun", timestamp=20)
    days.delete(b"weather", timestamp=30)
    with db.batch() as batch:
        batch.put(b"wind", b"north", family=days, timestamp=20)
    assert days.as_of(15)[b"weather"] == b"rain"
    assert days.as_of(25).get_with_timestamp(b"weather") == (b"sun", 20)
    assert b"weather" not in days.as_of(30)
    assert list(days.as_of(25).items()) == [(b"weather", b"sun"), (b"wind", b"north")]
    days.delete_range(b"w", b"x", timestamp=40)
    assert list(days.as_of(40)) == []
    with pytest.raises(flagstone.InvalidArgument):
        days[b"weather"] = b"fog"
    with pytest.raises(OverflowError):
        days.as_of(-1)


def test_history_ends_at_its_low_mark(db: flagstone.Database) -> None:
    days = db.create_column_family("days", comparator=STAMPED)
    for day in range(1, 5):
        days.put(b"weather", b"%d" % day, timestamp=day)
    assert days.full_history_ts_low is None
    days.increase_full_history_ts_low(3)
    assert days.full_history_ts_low == 3
    days.compact()
    assert days.as_of(3)[b"weather"] == b"3"
    with pytest.raises(flagstone.InvalidArgument):
        days.as_of(2).get(b"weather")


def test_a_key_has_columns(db: flagstone.Database) -> None:
    db.put_entity(b"ada", {b"": b"countess", b"born": b"1815"}, synced=True)
    with db.batch() as batch:
        batch.put_entity(b"alan", [(b"born", b"1912")])
    db[b"stone"] = b"flag"
    assert db.get_entity(b"ada") == {b"": b"countess", b"born": b"1815"}
    assert db[b"ada"] == b"countess"
    assert db.get_entity(b"alan") == {b"born": b"1912"}
    assert db.get_entity(b"stone") == {b"": b"flag"}
    assert db.get_entity(b"pebble") is None


def test_operands_wait(path: str) -> None:
    with flagstone.open(path, merge_operator="stringappend") as db:
        db[b"list"] = b"a"
        db.merge(b"list", b"b")
        db.merge(b"list", b"c")
        assert db.get_merge_operands(b"list") == [b"a", b"b", b"c"]
        with pytest.raises(flagstone.Incomplete):
            db.get_merge_operands(b"list", at_most=2)
