"""Column families, batches and snapshots."""

import math
import threading
import time
from datetime import timedelta
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


def test_a_batch_is_refused_where_a_key_has_changed(db: flagstone.Database) -> None:
    users = db.create_column_family("users")
    users[b"ada"] = b"1815"
    with db.snapshot() as before:
        with db.batch(since=before) as batch:
            batch.check_unchanged(b"ada", family=users)
            batch[b"count"] = b"1"
        users[b"ada"] = b"1816"
        with pytest.raises(flagstone.Busy):
            with db.batch(since=before, synced=True) as batch:
                batch.check_unchanged(b"ada", family=users)
                batch[b"count"] = b"2"
        assert db[b"count"] == b"1"
    with pytest.raises(flagstone.InvalidArgument, match="since=snapshot"):
        db.batch().check_unchanged(b"ada")
    with pytest.raises(flagstone.Closed):
        db.batch(since=before).commit()


def add_one(db: flagstone.Database, key: bytes) -> None:
    while True:
        with db.snapshot() as before:
            try:
                with db.batch(since=before) as batch:
                    batch.check_unchanged(key)
                    batch[key] = b"%d" % (int(before.get(key, b"0")) + 1)
                return
            except flagstone.Busy:
                continue


def test_threads_count_together(db: flagstone.Database) -> None:
    taken: list[bytes] = []

    def work() -> None:
        for number in range(100):
            add_one(db, b"count")
            db.setdefault(b"ticket %d" % number, b"")
            if db.pop(b"ticket %d" % number, None) is not None:
                taken.append(b"ticket %d" % number)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db[b"count"] == b"400"
    assert list(db) == [b"count"]
    assert len(taken) >= 100 and len(set(taken)) == 100


def test_values_expire(path: Path) -> None:
    hour = timedelta(hours=1)
    with flagstone.open(path, column_families={"sessions": {"expires_after": hour}}) as db:
        sessions = db.column_family("sessions")
        assert sessions.expires_after == 3600 and db.expires_after is None
        now = int(time.time())
        sessions[b"ada"] = b"an hour"
        sessions.put(b"alan", b"a day", expires_after=24 * hour)
        sessions.put(b"grace", b"always", expires_after=math.inf, synced=True)
        sessions.put(b"tim", b"not long", expires_after=0.25)
        with pytest.raises(flagstone.InvalidArgument):
            sessions.put(b"none", b"no time", expires_after=0)
        with db.batch() as batch:
            batch.put(b"edsger", b"an hour", family=sessions)
        expiries: dict[bytes, int] = {}
        for key in (b"ada", b"alan", b"edsger"):
            found = sessions.get_with_expiry(key)
            assert found is not None and found[1] is not None
            expiries[key] = found[1] - now
        assert 3600 <= expiries[b"ada"] < 3700 and 3600 <= expiries[b"edsger"] < 3700
        assert 86400 <= expiries[b"alan"] < 86500
        assert sessions.get_with_expiry(b"grace") == (b"always", None)
        assert sessions.get_with_expiry(b"none") is None
        # A value lives to the end of its last second.
        while b"tim" in sessions:
            pass
        assert list(sessions) == [b"ada", b"alan", b"edsger", b"grace"]
        assert db.create_column_family("leases", expires_after=1.5).expires_after == 2
    with flagstone.open(path) as db:
        assert db.column_family("sessions").expires_after == 3600


def test_times_to_live_that_make_no_sense(db: flagstone.Database) -> None:
    for wrong in (-1, math.nan, 1e30, timedelta(seconds=-1)):
        with pytest.raises(ValueError):
            db.create_column_family("leases", expires_after=wrong)
    with pytest.raises(TypeError):
        db.create_column_family("leases", expires_after="an hour")
    with pytest.raises(flagstone.InvalidArgument):
        db.put(b"stone", b"flag", expires_after=60)
    assert db.column_families() == ["default"]
