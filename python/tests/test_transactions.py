"""Transactions, with and without locks."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import flagstone


@pytest.fixture(params=[False, True], ids=["optimistic", "locking"])
def either(path: Path, request: pytest.FixtureRequest) -> Iterator[flagstone.Database]:
    with flagstone.open(path, locks=request.param) as database:
        yield database


@pytest.fixture
def locking(path: Path) -> Iterator[flagstone.Database]:
    with flagstone.open(path, locks=True) as database:
        yield database


def test_it_takes_place_as_a_whole(either: flagstone.Database) -> None:
    users = either.create_column_family("users")
    either[b"a"] = b"old"
    either[b"z"] = b"gone"
    with either.transaction(synced=True) as transaction:
        transaction[b"a"] = b"new"
        transaction.put(b"ada", b"1815", family=users)
        del transaction[b"z"]
        assert transaction[b"a"] == b"new" and b"z" not in transaction
        assert transaction.get(b"ada", family=users) == b"1815"
        assert transaction.get(b"no", b"default") == b"default"
        assert list(transaction.items()) == [(b"a", b"new")]
        assert list(transaction.items(prefix=b"ad", family=users)) == [(b"ada", b"1815")]
        assert len(transaction) == 3 and transaction.state == "started"
        assert dict(either) == {b"a": b"old", b"z": b"gone"}
        with pytest.raises(KeyError):
            transaction[b"z"]
    assert transaction.state == "committed"
    assert dict(either) == {b"a": b"new"} and users[b"ada"] == b"1815"
    with pytest.raises(flagstone.InvalidArgument, match="already been committed"):
        transaction[b"b"] = b"1"


def test_an_exception_rolls_it_back(either: flagstone.Database) -> None:
    with pytest.raises(ZeroDivisionError):
        with either.transaction() as transaction:
            transaction[b"a"] = b"1"
            1 / 0
    assert dict(either) == {}
    # Its locks are free.
    either[b"a"] = b"2"
    transaction[b"b"] = b"3"
    transaction.commit()
    assert dict(either) == {b"a": b"2", b"b": b"3"}


def test_save_points_and_merges(path: Path) -> None:
    def joined(_key: bytes, value: bytes | None, operands: list[bytes]) -> bytes:
        return b",".join([*([value] if value is not None else []), *operands])

    operator = flagstone.MergeOperator("joined", joined)
    with flagstone.open(path, merge_operator=operator) as db:
        with db.transaction() as transaction:
            transaction.merge(b"list", b"a")
            transaction.set_save_point()
            transaction.merge(b"list", b"b")
            transaction[b"other"] = b"1"
            assert transaction[b"list"] == b"a,b"
            transaction.rollback_to_save_point()
            with pytest.raises(flagstone.NotFound):
                transaction.rollback_to_save_point()
            transaction.single_delete(b"never")
        assert dict(db) == {b"list": b"a"}


def test_without_locks_the_later_commit_is_refused(db: flagstone.Database) -> None:
    db[b"a"] = b"1"
    transaction = db.transaction(snapshot=True)
    assert transaction.get_for_update(b"a") == b"1"
    transaction[b"b"] = b"2"
    db[b"a"] = b"faster"
    assert transaction[b"a"] == b"1", "it reads as of its beginning"
    with pytest.raises(flagstone.Busy) as raised:
        transaction.commit()
    assert raised.value.subcode is None and b"b" not in db
    transaction.rollback()
    with pytest.raises(flagstone.NotSupported):
        db.transaction(name=b"order")


def test_locks_are_waited_for_and_refused(locking: flagstone.Database) -> None:
    first = locking.transaction()
    first[b"a"] = b"1"
    with locking.transaction(lock_timeout=0) as hasty:
        with pytest.raises(flagstone.TimedOut) as raised:
            hasty[b"a"] = b"2"
        assert raised.value.subcode == "LockTimeout"
        assert isinstance(raised.value, TimeoutError)
        shared = locking.transaction(lock_timeout=timedelta(0))
        assert shared.get_for_update(b"s", shared=True) is None
        assert hasty.get_for_update(b"s", shared=True) is None
        with pytest.raises(flagstone.TimedOut):
            hasty[b"s"] = b"1"
        shared.rollback()

    waited = threading.Thread(target=locking.put, args=(b"a", b"waited"))
    waited.start()
    first.commit()
    waited.join()
    assert locking[b"a"] == b"waited"


def test_a_deadlock_is_refused_at_once(locking: flagstone.Database) -> None:
    first = locking.transaction(lock_timeout=600)
    second = locking.transaction(lock_timeout=0.02, deadlock_detect=True)
    first[b"a"] = b"1"
    second[b"b"] = b"2"
    done: list[str] = []

    def wait() -> None:
        first[b"b"] = b"1"
        done.append("waited")

    waiting = threading.Thread(target=wait)
    waiting.start()
    # Until the other thread waits, too, it is a time-out.
    subcode: str | None = "LockTimeout"
    while subcode == "LockTimeout":
        with pytest.raises((flagstone.Busy, flagstone.TimedOut)) as raised:
            second.get_for_update(b"a")
        subcode = raised.value.subcode
    assert subcode == "Deadlock" and isinstance(raised.value, flagstone.Busy)
    second.rollback()
    waiting.join()
    first.commit()
    assert done == ["waited"] and dict(locking) == {b"a": b"1", b"b": b"1"}


def test_one_that_expired_is_never_written(locking: flagstone.Database) -> None:
    late = locking.transaction(expiration=0)
    with pytest.raises(flagstone.Expired):
        late[b"a"] = b"1"
    assert late.state == "expired"
    with pytest.raises(flagstone.Expired):
        late.commit()


def test_what_is_prepared_survives_the_process(path: Path) -> None:
    name = b"order\0\xff"
    with flagstone.open(path, locks=True) as db:
        with db.transaction(name=name) as transaction:
            transaction[b"stock"] = b"9"
            transaction.prepare()
        assert transaction.state == "prepared" and b"stock" not in db
        with pytest.raises(flagstone.InvalidArgument):
            db.transaction(name=name)
        with db.transaction(name=b"given up") as other:
            other[b"other"] = b"1"
            other.prepare()
            other.rollback()
        assert other.state == "rolled back"
    with pytest.raises(flagstone.NotSupported, match="prepared"):
        flagstone.open(path)
    with flagstone.open(path, locks=True) as db:
        [prepared] = db.prepared_transactions()
        assert prepared.name == name and prepared[b"stock"] == b"9"
        assert db.prepared_transactions() == []
        prepared.commit()
        assert dict(db) == {b"stock": b"9"}
    with flagstone.open(path) as db:
        assert dict(db) == {b"stock": b"9"} and db.prepared_transactions() == []


def test_threads_move_money(either: flagstone.Database) -> None:
    accounts = [b"ada", b"alan", b"grace"]
    either.update((account, b"100") for account in accounts)

    def move(transaction: flagstone.Transaction, source: bytes, target: bytes) -> int:
        balances = [int(transaction.get_for_update(key) or 0) for key in (source, target)]
        transaction[source] = b"%d" % (balances[0] - 1)
        transaction[target] = b"%d" % (balances[1] + 1)
        return balances[0]

    def work(number: int) -> None:
        for turn in range(50):
            source, target = accounts[number], accounts[(number + turn % 2 + 1) % 3]
            found = either.transact(lambda t: move(t, source, target), retries=100_000)
            assert isinstance(found, int)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(int(either[account]) for account in accounts) == 300


def test_transact_tells_what_went_wrong(either: flagstone.Database) -> None:
    calls: list[int] = []

    def wrong(transaction: flagstone.Transaction) -> None:
        transaction[b"a"] = b"1"
        calls.append(1)
        raise KeyError("wrong")

    with pytest.raises(KeyError, match="wrong"):
        either.transact(wrong)
    assert len(calls) == 1 and dict(either) == {}

    def right(transaction: flagstone.Transaction) -> bytes | None:
        transaction[b"a"] = b"2"
        return transaction.get(b"a")

    assert either.transact(right) == b"2" and either[b"a"] == b"2"


def test_conflicts_are_tried_so_often(db: flagstone.Database) -> None:
    calls: list[int] = []

    def overtaken(transaction: flagstone.Transaction) -> None:
        transaction[b"a"] = b"mine"
        calls.append(1)
        db[b"a"] = b"faster"

    with pytest.raises(flagstone.Busy):
        db.transact(overtaken, retries=3)
    assert len(calls) == 4 and db[b"a"] == b"faster"


def test_a_transaction_ends_with_its_database(path: Path) -> None:
    with flagstone.open(path, locks=True) as db:
        transaction = db.transaction()
        transaction[b"a"] = b"1"
        with flagstone.open(path.with_name("other")) as other:
            with pytest.raises(flagstone.InvalidArgument, match="another database"):
                transaction.put(b"a", b"1", family=other)
    with pytest.raises(flagstone.Closed):
        transaction.commit()
    with pytest.raises(TypeError, match="no locks"):
        flagstone.open(path, locks=True, read_only=True)
