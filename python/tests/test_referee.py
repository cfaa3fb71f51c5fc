"""RocksDB's own program reads what Python wrote."""

import shutil
import subprocess
from pathlib import Path

import pytest

import flagstone


def test_ldb_reads_what_python_wrote(path: Path) -> None:
    ldb = shutil.which("ldb")
    if ldb is None:
        pytest.skip("ldb is missing (Debian and Ubuntu: rocksdb-tools)")
    with flagstone.open(path, merge_operator="uint64add") as db:
        users = db.create_column_family("users")
        users[b"ada"] = b"1815"
        db[b"in a table"] = b"flag"
        db.flush()
        db[b"in the log"] = b"mile"
        del db[b"in a table"]

    def asked(*words: str) -> str:
        command = [ldb, f"--db={path}", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "in the log" in asked("scan") and "mile" in asked("scan")
    assert "in a table" not in asked("scan")
    assert "ada" in asked("--column_family=users", "scan")
    assert "users" in asked("list_column_families")
