"""What a database tells of itself."""

from pathlib import Path

import pytest

import flagstone


def test_counters_and_files(db: flagstone.Database) -> None:
    db[b"a"] = b"1"
    db[b"b"] = b"2"
    assert db.get(b"a") == b"1"
    assert db.latest_sequence_number == 2
    assert db.statistics()["rocksdb.number.keys.written"] == 2
    assert "flagstone" in db.prometheus_text()
    assert db.live_files() == []
    db.flush()
    [table] = db.live_files()
    assert (table.smallest_key, table.largest_key, table.level) == (b"a", b"b", 0)
    assert table.path.stat().st_size == table.size
    assert db.verify() == []


def test_damage_is_told(path: Path) -> None:
    with flagstone.open(path) as db:
        db[b"a"] = b"1"
        db.flush()
        [table] = db.live_files()
    data = bytearray(table.path.read_bytes())
    data[3] ^= 1
    table.path.write_bytes(data)
    with flagstone.open(path, read_only=True) as db:
        [fault] = db.verify()
        assert table.path.name in fault


@pytest.mark.parametrize("kind", ["operations", "block_cache", "io"])
def test_traces(path: Path, tmp_path: Path, kind: str) -> None:
    with flagstone.open(path) as db:
        db[b"a"] = b"1"
        db.flush()
        assert db.end_trace(kind=kind) is None  # type: ignore[arg-type]
        db.start_trace(tmp_path / "trace", kind=kind)  # type: ignore[arg-type]
        with pytest.raises(flagstone.Busy):
            db.start_trace(tmp_path / "other", kind=kind)  # type: ignore[arg-type]
        db[b"b"] = b"2"
        assert db.get(b"a") == b"1"
        records = db.end_trace(kind=kind)  # type: ignore[arg-type]
        assert records is not None and records > 0
    assert (tmp_path / "trace").stat().st_size > 0


def test_another_kind_of_trace_is_refused(db: flagstone.Database, tmp_path: Path) -> None:
    with pytest.raises(flagstone.InvalidArgument, match="'operations', 'block_cache' or 'io'"):
        db.start_trace(tmp_path / "trace", kind="steps")  # type: ignore[arg-type]
