"""A database is used like a dict of bytes."""

import array
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import flagstone


def test_what_is_put_is_found_and_survives_a_close(path: Path) -> None:
    with flagstone.open(path) as db:
        db[b"stone"] = b"flag"
        assert db[b"stone"] == b"flag"
        assert b"stone" in db
        assert b"cat" not in db
    with flagstone.open(path) as db:
        assert db[b"stone"] == b"flag"


def test_a_missing_key_is_a_key_error(db: flagstone.Database) -> None:
    with pytest.raises(KeyError) as caught:
        db[b"cat"]
    assert caught.value.args == (b"cat",)
    with pytest.raises(KeyError):
        del db[b"cat"]
    with pytest.raises(KeyError):
        db.pop(b"cat")
    db.delete(b"cat")
    assert db.get(b"cat") is None
    assert db.get(b"cat", b"grey") == b"grey"


def test_pop_setdefault_and_update(db: flagstone.Database) -> None:
    assert db.setdefault(b"tom", b"grey") == b"grey"
    assert db.setdefault(b"tom", b"white") == b"grey"
    assert db.pop(b"tom") == b"grey"
    assert db.pop(b"tom", None) is None
    db.update({b"kit": b"black", b"tom": b"white"})
    db.update([(b"rex", b"brown")])
    with flagstone.open(Path(db.path).with_name("copy")) as copy:
        copy.update(db)
        assert dict(copy) == {b"kit": b"black", b"rex": b"brown", b"tom": b"white"}


def test_an_update_with_a_wrong_entry_changes_nothing(db: flagstone.Database) -> None:
    with pytest.raises(TypeError):
        db.update([(b"kit", b"black"), (b"tom", 7)])  # type: ignore[list-item]
    assert list(db) == []


def test_len_is_refused_and_truth_is_not(db: flagstone.Database) -> None:
    with pytest.raises(TypeError, match="approximate_count"):
        len(db)
    assert db
    db[b"stone"] = b"flag"
    assert list(db) == [b"stone"]
    assert db.approximate_count() == 1


def test_keys_are_in_order_and_may_hold_zero_bytes(db: flagstone.Database) -> None:
    keys = [b"", b"\0", b"\0\0", b"\0\1", b"a", b"a\0", b"a\0b", b"b"]
    for key in reversed(keys):
        db[key] = key + b"!"
    assert list(db) == keys
    assert list(db.items()) == [(key, key + b"!") for key in keys]
    assert list(db.values()) == [key + b"!" for key in keys]
    assert list(reversed(db)) == keys[::-1]
    assert db[b"a\0"] == b"a\0!"
    assert list(db.keys(prefix=b"a\0")) == [b"a\0", b"a\0b"]


def test_any_bytes_like_object_is_a_key_or_a_value(db: flagstone.Database) -> None:
    db[bytearray(b"kit")] = memoryview(b"black")
    db[memoryview(b"-tom-")[1:4]] = array.array("H", [1, 2])
    assert db[b"kit"] == b"black"
    assert db[memoryview(b"tom")] == array.array("H", [1, 2]).tobytes()
    # Every other byte: what is not contiguous is put together.
    db[memoryview(b"r.e.x.")[::2]] = b"brown"
    assert db[b"rex"] == b"brown"
    value = db.get_buffer(b"rex")
    assert value is not None
    db[b"copy"] = value
    assert db[b"copy"] == b"brown"


@pytest.mark.parametrize("wrong", ["text", 7, None, [1, 2], object()])
def test_what_is_no_bytes_is_a_type_error(db: flagstone.Database, wrong: object) -> None:
    calls: list[Callable[[], object]] = [
        lambda: db[wrong],  # type: ignore[index]
        lambda: db.put(b"key", wrong),  # type: ignore[arg-type]
        lambda: db.delete(wrong),  # type: ignore[arg-type]
        lambda: wrong in db,  # type: ignore[operator]
        lambda: db.get_many([b"key", wrong]),  # type: ignore[list-item]
        lambda: db.prefix(wrong),  # type: ignore[arg-type]
        lambda: db.batch().put(wrong, b"value"),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(TypeError, match="bytes-like object is required"):
            call()
    assert list(db) == []


def test_a_str_is_told_to_be_encoded(db: flagstone.Database) -> None:
    with pytest.raises(TypeError, match="not 'str'; encode it first"):
        db["stone"] = b"flag"  # type: ignore[index]


def test_many_keys_at_once(db: flagstone.Database) -> None:
    db.update((f"{number:04}".encode(), b"x" * number) for number in range(1000))
    found = db.get_many(f"{number:04}".encode() for number in [7, 2000, 0, 999, 7])
    assert found == [b"x" * 7, None, b"", b"x" * 999, b"x" * 7]


def test_single_deletes_and_deleted_ranges(db: flagstone.Database) -> None:
    db.update({b"a": b"", b"b": b"", b"c": b"", b"d": b""})
    db.single_delete(b"a", synced=True)
    db.delete_range(b"b", b"d", synced=True)
    assert list(db) == [b"d"]
    with pytest.raises(flagstone.InvalidArgument):
        db.delete_range(b"z", b"a")


def test_a_database_cannot_be_pickled(db: flagstone.Database) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(db)


def test_words_for_people(db: flagstone.Database) -> None:
    assert repr(db) == f"<flagstone.Database '{db.path}'>"
    assert repr(db.column_family("default")) == "<flagstone.ColumnFamily 'default'>"
    assert repr(db.range(b"a\0", None)) == "<flagstone.Range of items, from b'a\\x00' to None>"
    assert repr(db.batch()) == "<flagstone.Batch of 0 writes>"
