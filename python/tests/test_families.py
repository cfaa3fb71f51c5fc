"""Column families, batches and snapshots."""

from pathlib import Path

import pytest

import flagstone


def test_families_have_keys_of_their_own(path: Path) -> None:
    with flagstone.open(path, column_families={"users": {"write_buffer_size": 8 << 20}}) as db:
        users = db.column_family("users")
        users[b"ada"] = b"1815"
        assert users.name == "users"
        assert users.option("write_buffer_size") == str(8 << 20)
        assert b"ada" not in db
        assert db.column_families() == ["default", "users"]
    assert flagstone.list_column_families(path) == ["default", "users"]
    with flagstone.open(path) as db:
        assert db.column_family("users")[b"ada"] == b"1815"


def test_families_are_made_and_dropped(db: flagstone.Database) -> None:
    photos = db.create_column_family("photos", compression="kNoCompression")
    photos[b"cat"] = b"grey"
    with pytest.raises(flagstone.InvalidArgument, match="photos"):
        db.create_column_family("photos")
    db.drop_column_family("photos")
    with pytest.raises(flagstone.NotFound, match="there is no column family 'photos'"):
        db.column_family("photos")
    assert photos[b"cat"] == b"grey"
    with pytest.raises(flagstone.ColumnFamilyDropped):
        photos[b"cat"] = b"white"
    with pytest.raises(flagstone.InvalidArgument):
        db.drop_column_family("default")


def test_a_batch_takes_place_as_a_whole(db: flagstone.Database) -> None:
    users = db.create_column_family("users")
    users[b"ada"] = b"1815"
    with db.batch(synced=True) as batch:
        batch[b"newest"] = b"alan"
        batch.put(b"alan", b"1912", family=users)
        batch.delete(b"ada", family=users)
        batch.delete_range(b"x", b"z")
        assert len(batch) == 4
        assert db.get(b"newest") is None
    assert db[b"newest"] == b"alan"
    assert dict(users.items()) == {b"alan": b"1912"}


def test_an_exception_drops_a_batch(db: flagstone.Database) -> None:
    with pytest.raises(ZeroDivisionError):
        with db.batch() as batch:
            batch[b"stone"] = b"flag"
            1 / 0
    assert list(db) == []
    with pytest.raises(flagstone.InvalidArgument, match="committed already"):
        batch[b"stone"] = b"flag"


def test_a_batch_inside_another_is_one_of_its_own(db: flagstone.Database) -> None:
    with pytest.raises(ZeroDivisionError):
        with db.batch() as outer:
            outer[b"outer"] = b"1"
            with db.batch() as inner:
                inner[b"inner"] = b"2"
            assert dict(db) == {b"inner": b"2"}
            1 / 0
    assert dict(db) == {b"inner": b"2"}


def test_a_batch_without_with(db: flagstone.Database) -> None:
    batch = db.batch()
    batch[b"a"] = b"1"
    batch.clear()
    batch[b"b"] = b"2"
    del batch[b"c"]
    batch.single_delete(b"d")
    batch.commit()
    assert dict(db) == {b"b": b"2"}
    for again in (batch.commit, batch.clear):
        with pytest.raises(flagstone.InvalidArgument):
            again()
    # A batch that was committed inside the block is not committed again.
    with db.batch() as early:
        early[b"e"] = b"5"
        early.commit()
    assert db[b"e"] == b"5"


def test_a_family_of_another_database_is_refused(db: flagstone.Database, tmp_path: Path) -> None:
    with flagstone.open(tmp_path / "other") as other:
        strange = other.create_column_family("strange")
        with pytest.raises(flagstone.InvalidArgument, match="another database"):
            db.batch().put(b"stone", b"flag", family=strange)


def test_a_family_has_batches_too(db: flagstone.Database) -> None:
    users = db.create_column_family("users")
    with users.batch() as batch:
        batch[b"ada"] = b"1815"
        batch.put(b"count", b"1", family=db)
    assert dict(users) == {b"ada": b"1815"}
    assert dict(db) == {b"count": b"1"}


def test_a_snapshot_goes_on_seeing_what_it_saw(db: flagstone.Database) -> None:
    users = db.create_column_family("users")
    db[b"cat"] = b"grey"
    users[b"ada"] = b"1815"
    with db.snapshot() as before:
        of_users = before.column_family("users")
        db[b"cat"] = b"white"
        del users[b"ada"]
        db.flush()
        db.compact()
        assert before[b"cat"] == b"grey"
        assert list(before.items()) == [(b"cat", b"grey")]
        assert list(reversed(before.values(prefix=b"c"))) == [b"grey"]
        assert before.get_many([b"cat", b"dog"]) == [b"grey", None]
        assert of_users[b"ada"] == b"1815"
        assert list(of_users) == [b"ada"]
        assert list(users) == []
        assert db.property("rocksdb.num-snapshots") == "1"
    assert db.property("rocksdb.num-snapshots") == "0"
    for closed in (before, of_users):
        with pytest.raises(flagstone.Closed, match="snapshot is closed"):
            closed.get(b"cat")


def test_a_snapshot_takes_no_writes(db: flagstone.Database) -> None:
    snapshot = db.snapshot()
    assert not hasattr(snapshot, "put")
    with pytest.raises(TypeError):
        snapshot[b"cat"] = b"grey"  # type: ignore[index]
