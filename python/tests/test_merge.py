"""Merge operators, built in and written in Python."""

import struct
import sys
from pathlib import Path
from typing import Any

import pytest

import flagstone


def add_up(_key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes:
    numbers = [existing or bytes(8), *operands]
    return struct.pack("<Q", sum(struct.unpack("<Q", number)[0] for number in numbers))


def one(number: int = 1) -> bytes:
    return struct.pack("<Q", number)


def test_a_built_in_operator_by_name(path: Path) -> None:
    with flagstone.open(path, merge_operator="uint64add") as db:
        db.merge(b"/", one())
        db.merge(b"/", one(2), synced=True)
        assert db[b"/"] == one(3)
    words = {"id": "StringAppendOperator", "delimiter": "-"}
    with flagstone.open(path.with_name("words"), merge_operator=words) as db:
        db.merge(b"cats", b"tom")
        db.merge(b"cats", b"kit")
        assert db[b"cats"] == b"tom-kit"


def test_an_operator_written_in_python(path: Path) -> None:
    asked: list[tuple[bytes, list[bytes]]] = []

    def partial(key: bytes, operands: list[bytes]) -> bytes:
        asked.append((key, operands))
        return add_up(key, None, operands)

    operator = flagstone.MergeOperator("test.sum", add_up, partial)
    assert operator.name == "test.sum"
    with flagstone.open(path, column_families={"visits": {"merge_operator": operator}}) as db:
        visits = db.column_family("visits")
        for _ in range(10):
            visits.merge(b"/", one())
        with db.batch() as batch:
            batch.merge(b"/", one(5), family=visits)
        assert visits[b"/"] == one(15)
        # A flush and a compaction run on threads of the engine, which call the operator.
        visits.flush()
        visits.merge(b"/", one())
        visits.flush()
        visits.compact()
        assert visits[b"/"] == one(16)
    with flagstone.open(path, column_families={"visits": {"merge_operator": operator}}) as db:
        assert dict(db.column_family("visits").items()) == {b"/": one(16)}


def test_an_exception_in_an_operator_is_the_cause_of_the_error(path: Path) -> None:
    def fail(key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes:
        raise ZeroDivisionError(f"{len(operands)} operands")

    operator = flagstone.MergeOperator("test.fail", fail)
    with flagstone.open(path, merge_operator=operator) as db:
        db[b"fine"] = b"1"
        db.merge(b"stone", b"flag")
        for read in (
            lambda: db[b"stone"],
            lambda: db.get_many([b"fine", b"stone"]),
            lambda: list(db.items()),
        ):
            with pytest.raises(flagstone.Corruption, match="test.fail.*1 operands") as caught:
                read()
            assert isinstance(caught.value.__cause__, ZeroDivisionError)
            assert caught.value.subcode == "MergeOperatorFailed"
        assert db[b"fine"] == b"1"
        # What came before the failing entry is given first.
        running = iter(db.items())
        assert next(running) == (b"fine", b"1")
        with pytest.raises(flagstone.Corruption):
            next(running)
        assert list(running) == []


def test_an_interrupt_in_an_operator_stays_an_interrupt(path: Path) -> None:
    def interrupt(key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes:
        raise KeyboardInterrupt

    operator = flagstone.MergeOperator("test.interrupt", interrupt)
    with flagstone.open(path, merge_operator=operator) as db:
        db.merge(b"stone", b"flag")
        with pytest.raises(KeyboardInterrupt):
            db[b"stone"]


@pytest.mark.parametrize("result", ["text", 7, None])
def test_a_wrong_result_is_an_error_and_loses_nothing(path: Path, result: Any) -> None:
    results: list[Any] = [result]
    operator = flagstone.MergeOperator("test.wrong", lambda key, existing, operands: results[0])
    with flagstone.open(path, merge_operator=operator) as db:
        db.merge(b"stone", b"flag")
        with pytest.raises(flagstone.Corruption, match="test.wrong"):
            db[b"stone"]
        results[0] = b"right"
        assert db[b"stone"] == b"right"


def test_an_exception_during_a_compaction_is_reported_and_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_broken = True
    reported: list[BaseException | None] = []

    def append(key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes:
        if is_broken:
            raise ZeroDivisionError("broken")
        return b"".join([existing or b"", *operands])

    monkeypatch.setattr(sys, "unraisablehook", lambda told: reported.append(told.exc_value))
    operator = flagstone.MergeOperator("test.append", append)
    with flagstone.open(path, merge_operator=operator) as db:
        db[b"stone"] = b"flag"
        db.flush()
        db.merge(b"stone", b"-")
        db.merge(b"stone", b"mile")
        db.flush()
        db.compact()
        assert reported and all(isinstance(told, ZeroDivisionError) for told in reported)
        is_broken = False
        assert db[b"stone"] == b"flag-mile"


def test_an_operator_needs_a_name_and_a_callable(path: Path) -> None:
    with pytest.raises(TypeError, match="needs a name"):
        flagstone.open(path, merge_operator=add_up)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="name"):
        flagstone.MergeOperator("", add_up)
    with pytest.raises(TypeError, match="callable"):
        flagstone.MergeOperator("test", 7)  # type: ignore[arg-type]
    assert not path.exists()


def test_merging_without_an_operator_is_refused(db: flagstone.Database) -> None:
    with pytest.raises(flagstone.InvalidArgument, match="merge operator"):
        db.merge(b"stone", b"flag")
