"""Large values, and values that are read where they lie."""

import gc
import sys
from pathlib import Path

import pytest

import flagstone


def test_a_large_value_is_read_where_it_lies(db: flagstone.Database) -> None:
    film = bytes(range(256)) * (64 << 10)
    db[b"film"] = film
    value = db.get_buffer(b"film")
    assert value is not None
    view = memoryview(value)
    assert len(value) == len(view) == 16 << 20
    assert view.readonly and view.format == "B" and view.contiguous
    assert view[1000:1004] == bytes([1000 % 256 + step for step in range(4)])
    assert view == film and value == film and bytes(value) == film
    assert value != b"film" and value != "film"
    assert sys.getsizeof(view) < 1000


def test_a_view_cannot_be_written_to(db: flagstone.Database) -> None:
    db[b"stone"] = b"flag"
    value = db.get_buffer(b"stone")
    assert value is not None
    with pytest.raises(TypeError):
        memoryview(value)[0] = 0
    with pytest.raises(TypeError):
        hash(value)


def test_a_view_outlives_value_and_database(path: Path) -> None:
    with flagstone.open(path) as db:
        db[b"stone"] = b"flag" * 1000
        db.flush()
        value = db.get_buffer(b"stone")
        assert value is not None
        view = memoryview(value)
        del db[b"stone"]
        db.compact()
        del value
    del db
    gc.collect()
    assert view == b"flag" * 1000


def test_empty_and_missing_values(db: flagstone.Database) -> None:
    db[b"empty"] = b""
    value = db.get_buffer(b"empty")
    assert value is not None and len(value) == 0 and bytes(value) == b""
    assert db.get_buffer(b"missing") is None


def test_parts_of_a_value(db: flagstone.Database) -> None:
    db[b"film"] = bytes(range(256)) * 4096
    assert db.get_part(b"film", 1 << 18, (1 << 18) + 4) == bytes([0, 1, 2, 3])
    assert db.get_part(b"film", (1 << 20) - 2, 1 << 30) == bytes([254, 255])
    assert db.get_part(b"film", 1 << 30, 1 << 31) == b""
    assert db.get_part(b"film", 10, 5) == b""
    assert db.get_part(b"missing", 0, 10) is None
    with pytest.raises(OverflowError):
        db.get_part(b"film", -1, 10)
