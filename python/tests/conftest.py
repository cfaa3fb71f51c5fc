"""A database in a directory of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import flagstone


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


@pytest.fixture
def db(path: Path) -> Iterator[flagstone.Database]:
    with flagstone.open(path) as database:
        yield database
