"""Entries in order: ranges, prefixes, both directions, the life of iterators."""

import threading

import pytest

import flagstone


@pytest.fixture
def days(db: flagstone.Database) -> flagstone.Database:
    for month in (1, 2, 3):
        for day in range(1, 29):
            db[f"2026-{month:02}-{day:02}".encode()] = f"{month}.{day}".encode()
    return db


def test_a_range_ends_before_its_stop(days: flagstone.Database) -> None:
    february = list(days.keys(b"2026-02", b"2026-03"))
    assert february[0] == b"2026-02-01"
    assert february[-1] == b"2026-02-28"
    assert len(february) == 28
    assert list(days.range(b"2026-02-01", b"2026-02-02")) == [(b"2026-02-01", b"2.1")]
    assert list(days.range(b"2026-02-01", b"2026-02-01")) == []


def test_open_ends(days: flagstone.Database) -> None:
    assert len(list(days.range())) == 84
    assert len(list(days.range(b"2026-03"))) == 28
    assert len(list(days.range(stop=b"2026-03"))) == 56


def test_reversed_ranges(days: flagstone.Database) -> None:
    forwards = list(days.range(b"2026-01-15", b"2026-03-15"))
    assert list(reversed(days.range(b"2026-01-15", b"2026-03-15"))) == forwards[::-1]
    assert next(reversed(days.values(prefix=b"2026-02"))) == b"2.28"
    assert next(reversed(days)) == b"2026-03-28"


def test_a_range_is_iterated_over_again_and_sees_what_came_meanwhile(
    days: flagstone.Database,
) -> None:
    march = days.keys(prefix=b"2026-03")
    assert len(list(march)) == 28
    days[b"2026-03-29"] = b"3.29"
    assert len(list(march)) == 29


def test_an_iterator_sees_the_moment_at_which_it_began(days: flagstone.Database) -> None:
    running = iter(days.keys(prefix=b"2026-03"))
    days[b"2026-03-29"] = b"3.29"
    del days[b"2026-03-01"]
    assert len(list(running)) == 28


def test_a_start_behind_its_stop_is_an_error_once(days: flagstone.Database) -> None:
    wrong = iter(days.range(b"b", b"a"))
    with pytest.raises(flagstone.InvalidArgument, match="start of the range is after its end"):
        next(wrong)
    assert list(wrong) == []


def test_prefixes_of_0xff_bytes(db: flagstone.Database) -> None:
    keys = [b"\xfe", b"\xfe\xff", b"\xff", b"\xff\0", b"\xff\xff", b"\xff\xff\xff"]
    db.update((key, b"") for key in keys)
    assert list(db.keys(prefix=b"\xff")) == keys[2:]
    assert list(db.keys(prefix=b"\xff\xff")) == keys[4:]
    assert list(db.keys(prefix=b"\xfe\xff")) == keys[1:2]
    assert list(reversed(db.keys(prefix=b"\xff"))) == keys[:1:-1]
    assert list(db.keys(prefix=b"")) == keys


def test_a_long_scan_gives_every_entry(db: flagstone.Database) -> None:
    entries = [(f"{number:06}".encode(), bytes(number % 300)) for number in range(5000)]
    db.update(entries)
    db.flush()
    assert list(db.items()) == entries
    assert list(reversed(db.items())) == entries[::-1]


def test_an_iterator_after_its_close(days: flagstone.Database) -> None:
    running = iter(days)
    assert next(running) == b"2026-01-01"
    running.close()
    running.close()
    with pytest.raises(flagstone.Closed, match="iterator is closed"):
        next(running)
    with iter(days.values()) as values:
        assert next(values) == b"1.1"
    with pytest.raises(flagstone.Closed):
        next(values)


def test_two_threads_never_share_a_step(days: flagstone.Database) -> None:
    running = iter(days)
    seen: list[bytes] = []

    def read() -> None:
        while True:
            try:
                seen.append(next(running))
            except StopIteration:
                return
            except flagstone.Busy:
                continue

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(days)
