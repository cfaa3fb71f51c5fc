"""Backups, tables from outside, exports, and databases that another process writes."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

import flagstone


def test_backups_share_files_and_are_restored(db: flagstone.Database, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    backups = flagstone.Backups(tmp_path / "backups")
    for year in range(1000):
        db[b"year %04d" % year] = b"quiet" * 20
    first = backups.create(db, flush=True, metadata=b"before")
    db[b"year 1815"] = b"ada"
    second = backups.create(db, progress=lambda copied, total: seen.append((copied, total)))
    assert [info.id for info in backups.list()] == [first, second]
    assert backups.list()[0].metadata == b"before"
    assert backups.list()[0].sequence_number == 1000
    assert all(copied <= total for copied, total in seen)
    backups.verify(second, checksums=True)
    assert backups.restore(tmp_path / "old", id=first) == first
    assert backups.restore(tmp_path / "new") == second
    with flagstone.open(tmp_path / "old") as old, flagstone.open(tmp_path / "new") as new:
        assert b"year 1815" not in old
        assert new[b"year 1815"] == b"ada"
        assert sum(1 for _ in new) == 1001


def test_backups_are_deleted_and_damage_is_told(db: flagstone.Database, tmp_path: Path) -> None:
    backups = flagstone.Backups(tmp_path / "backups")
    numbers = []
    for at in range(4):
        db[b"at"] = b"%d" % at
        numbers.append(backups.create(db, flush=True))
    backups.delete(numbers[0])
    backups.purge(2)
    backups.collect_garbage()
    assert [info.id for info in backups.list()] == numbers[2:]
    with pytest.raises(flagstone.NotFound):
        backups.verify(numbers[0])
    for table in (tmp_path / "backups" / "shared_checksum").iterdir():
        table.write_bytes(table.read_bytes()[:-1] + b"?")
    with pytest.raises(flagstone.Corruption, match="sst"):
        backups.verify(numbers[3], checksums=True)
    reading = flagstone.Backups(tmp_path / "backups", read_only=True)
    assert len(reading.list()) == 2
    with pytest.raises(flagstone.NotSupported, match="read only"):
        reading.delete(numbers[3])


def test_progress_may_not_change_the_backups(db: flagstone.Database, tmp_path: Path) -> None:
    backups = flagstone.Backups(tmp_path / "backups")
    db[b"stone"] = random.randbytes(9_000_000)
    refused: list[BaseException] = []

    def meddle(copied: int, total: int) -> None:
        try:
            backups.purge(0)
        except flagstone.Busy as busy:
            refused.append(busy)

    assert backups.create(db, flush=True, progress=meddle) == 1
    assert refused
    backups.purge(0)
    assert backups.list() == []


def test_ldb_restores_a_backup(db: flagstone.Database, tmp_path: Path) -> None:
    ldb = shutil.which("ldb")
    if ldb is None:
        pytest.skip("ldb is missing (Debian and Ubuntu: rocksdb-tools)")
    db[b"stone"] = b"flag"
    flagstone.Backups(tmp_path / "backups").create(db)
    restored = tmp_path / "restored"
    words = ["restore", f"--backup_dir={tmp_path / 'backups'}", f"--db={restored}"]
    subprocess.run([ldb, *words], check=True, capture_output=True)
    with flagstone.open(restored) as copy:
        assert copy[b"stone"] == b"flag"


def test_tables_are_written_and_taken_in(db: flagstone.Database, tmp_path: Path) -> None:
    db[b"5"] = b"old"
    db[b"9"] = b"kept"
    with flagstone.TableWriter(tmp_path / "a.sst", compression="kNoCompression") as table:
        for digit in range(5):
            table[b"%d" % digit] = b"new"
        table.delete(b"5")
        table.delete_range(b"6", b"7")
    with flagstone.TableWriter(tmp_path / "b.sst") as table:
        table.put_entity(b"a", {b"": b"plain", b"born": b"1815"})
        info = table.finish()
    assert (info.entries, info.smallest_key, info.largest_key) == (1, b"a", b"a")
    db.ingest([tmp_path / "a.sst", tmp_path / "b.sst"], move_files=True)
    assert list(db) == [b"0", b"1", b"2", b"3", b"4", b"9", b"a"]
    assert db.get_entity(b"a") == {b"": b"plain", b"born": b"1815"}
    assert not (tmp_path / "a.sst").exists()


def test_a_table_has_its_keys_in_order_and_is_removed_if_it_fails(tmp_path: Path) -> None:
    with pytest.raises(flagstone.InvalidArgument, match="ascend"):
        with flagstone.TableWriter(tmp_path / "a.sst") as table:
            table[b"b"] = b""
            table[b"a"] = b""
    assert not (tmp_path / "a.sst").exists()
    with pytest.raises(flagstone.Closed, match="begin another"):
        table[b"c"] = b""
    with pytest.raises(flagstone.NotSupported, match="expire"):
        flagstone.TableWriter(tmp_path / "c.sst", expires_after=5)


def test_a_family_moves_to_another_database(db: flagstone.Database, tmp_path: Path) -> None:
    users = db.create_column_family("users")
    users[b"ada"] = b"1815"
    users.export(tmp_path / "export")
    with flagstone.open(tmp_path / "other") as other:
        people = other.import_column_family("people", tmp_path / "export", move_files=True)
        assert people[b"ada"] == b"1815"
        with pytest.raises(flagstone.Error):
            other.import_column_family("again", tmp_path / "nowhere")
        assert other.column_families() == ["default", "people"]


def test_a_secondary_follows_a_writer(db: flagstone.Database, path: Path, tmp_path: Path) -> None:
    db[b"stone"] = b"flag"
    with flagstone.open_secondary(path, tmp_path / "own") as secondary:
        before = secondary.now()
        assert secondary.get(b"stone") == b"flag"
        db[b"stone"] = b"mile"
        assert secondary.catch_up()
        assert not secondary.catch_up()
        assert secondary.get(b"stone") == b"mile"
        assert secondary.get(b"pebble", b"none") == b"none"
        assert before[b"stone"] == b"flag"
        with pytest.raises(flagstone.NotSupported):
            before[b"stone"] = b"lime"
    with pytest.raises(flagstone.Closed, match="no longer followed"):
        secondary.catch_up()
    assert before[b"stone"] == b"flag"
    before.close()


def test_a_follower_sees_tables(db: flagstone.Database, path: Path, tmp_path: Path) -> None:
    db[b"stone"] = b"flag"
    db.flush()
    with flagstone.open_follower(path, tmp_path / "own") as follower:
        assert follower.get(b"stone") == b"flag"
        db[b"stone"] = b"mile"
        assert not follower.catch_up()
        db.flush()
        assert follower.catch_up()
        assert follower.get(b"stone") == b"mile"
