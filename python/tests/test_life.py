"""Opening, closing, forks, the end of the interpreter, threads."""

import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flagstone


def test_what_is_used_after_a_close_is_an_error(path: Path) -> None:
    db = flagstone.open(path)
    db[b"stone"] = b"flag"
    users = db.create_column_family("users")
    snapshot, running, entries = db.snapshot(), iter(db), db.items()
    batch, late = db.batch(), db.batch()
    batch[b"late"] = b"1"
    assert not db.closed
    db.close()
    db.close()
    assert db.closed
    uses: list[Callable[[], Any]] = [
        lambda: db[b"stone"],
        lambda: db.put(b"stone", b"mile"),
        lambda: users.get(b"ada"),
        lambda: users.put(b"ada", b"1815"),
        lambda: snapshot[b"stone"],
        lambda: next(running),
        lambda: iter(entries),
        lambda: batch.commit(),
        lambda: late.put(b"late", b"2"),
        lambda: db.batch(),
        lambda: db.snapshot(),
        lambda: db.column_family("users"),
        lambda: db.column_families(),
        lambda: db.flush(),
        lambda: db.compact(),
        lambda: users.option("write_buffer_size"),
        lambda: db.property("rocksdb.stats"),
        lambda: db.set_options(write_buffer_size=1 << 20),
    ]
    for use in uses:
        with pytest.raises(flagstone.Closed, match="is closed"):
            use()
    snapshot.close()
    running.close()
    with flagstone.open(path) as again:
        assert dict(again) == {b"stone": b"flag"}


def test_a_database_is_open_once(db: flagstone.Database) -> None:
    with pytest.raises(flagstone.Busy):
        flagstone.open(db.path)
    with flagstone.open(db.path, read_only=True) as other:
        assert list(other) == []


def test_a_database_that_nothing_refers_to_is_closed(path: Path) -> None:
    db = flagstone.open(path)
    db[b"stone"] = b"flag"
    del db
    with flagstone.open(path) as again:
        assert again[b"stone"] == b"flag"


def test_reading_without_writing(path: Path) -> None:
    with pytest.raises(flagstone.InvalidArgument):
        flagstone.open(path, read_only=True)
    with pytest.raises(flagstone.InvalidArgument):
        flagstone.open(path, create_if_missing=False)
    with flagstone.open(path) as db:
        db[b"stone"] = b"flag"
    with flagstone.open(path, read_only=True) as db:
        assert db[b"stone"] == b"flag"
        with pytest.raises(flagstone.NotSupported):
            db[b"stone"] = b"mile"


def test_options_have_rocksdbs_names(path: Path) -> None:
    with flagstone.open(
        path,
        max_background_jobs=4,
        write_buffer_size=8 << 20,
        compression="kZSTD",
        compression_opts={"level": 7},
        compression_per_level=["kNoCompression", "kLZ4Compression"],
        block_based_table_factory={"block_size": 8192},
        enable_blob_files=True,
        blob_garbage_collection_age_cutoff=0.5,
    ) as db:
        assert db.option("write_buffer_size") == str(8 << 20)
        assert db.option("compression") == "kZSTD"
        assert "level=7" in (db.option("compression_opts") or "")
        assert db.option("compression_per_level") == "kNoCompression:kLZ4Compression"
        assert db.option("block_size") == "8192"
        assert db.option("enable_blob_files") == "true"
        assert db.option("no such option") is None
        db.set_options(write_buffer_size=4 << 20)
        db.set_db_options(max_background_jobs=2)
        assert db.option("write_buffer_size") == str(4 << 20)
        with pytest.raises(flagstone.InvalidArgument, match="cannot change"):
            db.set_options(comparator="leveldb.BytewiseComparator")
    with flagstone.open_with_stored_options(path) as db:
        assert db.option("compression") == "kZSTD"


def test_wrong_options_are_refused_with_what_was_meant(path: Path) -> None:
    with pytest.raises(flagstone.InvalidArgument, match="did you mean 'write_buffer_size'"):
        flagstone.open(path, write_bufer_size=1)
    with pytest.raises(flagstone.InvalidArgument, match="did you mean 'compression'"):
        flagstone.open(path, column_families={"users": {"compresion": "kZSTD"}})
    with pytest.raises(ValueError, match="write_buffer_size"):
        flagstone.open(path, write_buffer_size="large")
    with pytest.raises(TypeError, match="a bool, a number"):
        flagstone.open(path, write_buffer_size=object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dict"):
        flagstone.open(path, column_families={"users": 7})  # type: ignore[dict-item]
    assert not path.exists()


def test_errors_say_what_and_where(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(flagstone.IOError) as caught:
        flagstone.open(tmp_path / "file" / "db")
    assert isinstance(caught.value, OSError) and isinstance(caught.value, flagstone.Error)
    assert caught.value.errno is not None
    assert caught.value.path is not None and str(tmp_path) in caught.value.path


def test_damage_is_an_error(path: Path) -> None:
    with flagstone.open(path) as db:
        db[b"stone"] = b"flag" * 1000
        db.flush()
    (table,) = path.glob("*.sst")
    content = bytearray(table.read_bytes())
    content[10] ^= 1
    table.write_bytes(content)
    with flagstone.open(path) as db:
        with pytest.raises(flagstone.Corruption) as caught:
            db[b"stone"]
        assert caught.value.path == str(table)


def test_a_checkpoint_is_a_database(db: flagstone.Database, tmp_path: Path) -> None:
    db[b"stone"] = b"flag"
    db.checkpoint(tmp_path / "copy")
    db[b"stone"] = b"mile"
    db.sync_wal()
    with flagstone.open(tmp_path / "copy") as copy:
        assert copy[b"stone"] == b"flag"
    with pytest.raises(flagstone.InvalidArgument):
        db.checkpoint(tmp_path / "copy")


def test_threads_write_and_read_side_by_side(db: flagstone.Database) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(300):
                key = f"{number}/{step:03}".encode()
                db[key] = key * 3
                assert db[key] == key * 3
                with db.batch() as batch:
                    batch[key + b"a"] = b"1"
                    batch[key + b"b"] = b"2"
                if step % 100 == 0:
                    db.flush()
            assert len(list(db.prefix(f"{number}/".encode()))) == 900
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(list(db)) == 5400


def test_other_threads_go_on_while_a_call_waits(path: Path) -> None:
    # The close waits for a flush, the flush for an operator, and the operator for a thread of
    # Python that sees the close: all of it ends only if the close leaves the interpreter to others.
    program = """
        import sys, threading, flagstone
        begun, may_end = threading.Event(), threading.Event()
        def join(key, existing, operands):
            if threading.current_thread() is not threading.main_thread():
                begun.set()
                may_end.wait()
            return b"".join([existing or b"", *operands])
        def partial(key, operands):
            return join(key, None, operands)
        operator = flagstone.MergeOperator("test.join", join, partial)
        db = flagstone.open(
            sys.argv[1], merge_operator=operator,
            write_buffer_size=1 << 16, max_write_buffer_number=1000,
        )
        while not begun.is_set():
            db.merge(b"stone", b"x" * 100)
        def watch():
            while not db.closed:
                pass
            may_end.set()
        threading.Thread(target=watch).start()
        db.close()
        print("closed")
    """
    assert run(program, path) == "closed\n"


def test_a_close_while_others_work(path: Path) -> None:
    db = flagstone.open(path)
    begun = threading.Barrier(5)
    ends: list[str] = []

    def work(number: int) -> None:
        begun.wait()
        try:
            while True:
                db[bytes([number])] = b"1"
                for _ in db.items():
                    pass
        except flagstone.Closed:
            ends.append("closed")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    db.close()
    for thread in threads:
        thread.join()
    assert ends == ["closed"] * 4
    flagstone.open(path).close()


@pytest.mark.filterwarnings("ignore:This process.*:DeprecationWarning")
def test_a_child_may_not_use_what_its_parent_opened(path: Path) -> None:
    db = flagstone.open(path, merge_operator="stringappend")
    db[b"stone"] = b"flag"
    running, snapshot, value = iter(db), db.snapshot(), db.get_buffer(b"stone")
    entries = db.items()
    batch = db.batch()
    child = os.fork()
    if child == 0:
        # Says by its exit status how far it came.
        status = 0
        try:
            uses: list[Callable[[], Any]] = [
                lambda: db[b"stone"],
                lambda: db.put(b"stone", b"mile"),
                lambda: next(running),
                lambda: snapshot[b"stone"],
                lambda: iter(entries),
                lambda: batch.put(b"stone", b"mile"),
                lambda: db.flush(),
                lambda: flagstone.open(path),
            ]
            for status, use in enumerate(uses, 1):
                expected = flagstone.Busy if status == len(uses) else flagstone.Forked
                with pytest.raises(expected):
                    use()
            status = 50
            assert value == b"flag"
            db.close()
            status = 51
            del running, snapshot, value, batch, entries, uses, use, db
            status = 52
            with flagstone.open(path.with_name("own")) as own:
                own[b"cat"] = b"grey"
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    # The parent's database is as it was.
    db.merge(b"stone", b"mile")
    assert db[b"stone"] == b"flag,mile"
    assert list(running) == [b"stone"]
    with pytest.raises(flagstone.Busy):
        flagstone.open(path)
    db.close()


def in_a_child(path: str, results: Any) -> None:
    with flagstone.open(path) as db:
        db[b"child"] = b"1"
        results.put(dict(db.items()))


def test_a_spawned_process_opens_a_database_of_its_own(path: Path) -> None:
    with flagstone.open(path) as db:
        db[b"parent"] = b"1"
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=in_a_child, args=(str(path), results))
    process.start()
    assert results.get(timeout=60) == {b"child": b"1", b"parent": b"1"}
    process.join()
    results.close()
    results.join_thread()
    assert process.exitcode == 0


def run(program: str, path: Path) -> str:
    words = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


def test_the_end_of_the_interpreter_closes_what_is_open(path: Path) -> None:
    # A merge operator may be called until then; the cycle keeps the database alive to the end.
    program = """
        import sys, flagstone
        def join(key, existing, operands):
            return b"".join([existing or b"", *operands])
        operator = flagstone.MergeOperator("test.join", join)
        db = flagstone.open(sys.argv[1], merge_operator=operator, write_buffer_size=1 << 16)
        cycle = [db]
        cycle.append(cycle)
        for step in range(2000):
            db.merge(str(step % 10).encode(), b"x" * 100)
        left = iter(db.items())
        next(left)
    """
    assert run(program, path) == ""

    def join(key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes:
        return b"".join([existing or b"", *operands])

    operator = flagstone.MergeOperator("test.join", join)
    with flagstone.open(path, merge_operator=operator) as db:
        assert all(value == b"x" * 20000 for value in db.values())
        assert len(list(db)) == 10


@pytest.mark.filterwarnings("ignore:This process.*:DeprecationWarning")
def test_a_forked_child_ends_in_the_ordinary_way(path: Path) -> None:
    program = """
        import os, sys, warnings, flagstone
        warnings.simplefilter("ignore")
        db = flagstone.open(sys.argv[1])
        db[b"stone"] = b"flag"
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
            assert db[b"stone"] == b"flag"
        else:
            own = flagstone.open(sys.argv[1] + "-own")
            own[b"cat"] = b"grey"
    """
    assert run(program, path) == ""
    with flagstone.open(str(path) + "-own") as own:
        assert own[b"cat"] == b"grey"


def test_a_subinterpreter_is_refused() -> None:
    reason = "this Python has no module _interpreters"
    interpreters: Any = pytest.importorskip("_interpreters", reason=reason)
    other = interpreters.create()
    try:
        failed = interpreters.run_string(other, "import flagstone")
        assert failed is not None and "ImportError" in str(failed)
    finally:
        interpreters.destroy(other)
