"""A guest book: column families, batches, prefixes, counters, a snapshot and a large value."""

import struct
import sys
import tempfile
from pathlib import Path

import flagstone


def add_up(_key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes:
    numbers = [existing or bytes(8), *operands]
    return struct.pack("<Q", sum(struct.unpack("<Q", number)[0] for number in numbers))


def write_entries(db: flagstone.Database) -> None:
    visits = db.column_family("visits")
    for page, day, text in [
        ("cats", "2026-02-01", "purr"),
        ("dogs", "2026-02-01", "woof"),
        ("cats", "2026-02-03", "meow"),
    ]:
        # Both writes take place, or none.
        with db.batch(synced=True) as batch:
            batch[f"{page}/{day}".encode()] = text.encode()
            batch.merge(page.encode(), struct.pack("<Q", 1), family=visits)


def main(directory: Path) -> None:
    sums = flagstone.MergeOperator("example.sum", add_up)
    with flagstone.open(
        directory / "guests",
        column_families={
            "visits": {"merge_operator": sums},
            "photos": {"compression": "kNoCompression", "write_buffer_size": 8 << 20},
        },
    ) as db:
        write_entries(db)
        for key, text in db.prefix(b"cats/"):
            print(key.decode(), text.decode())
        for page, count in reversed(db.column_family("visits").items()):
            print(page.decode(), struct.unpack("<Q", count)[0])

        with db.snapshot() as before:
            del db[b"dogs/2026-02-01"]
            print(b"dogs/2026-02-01" in db, before[b"dogs/2026-02-01"])

        photos = db.column_family("photos")
        photos[b"tom.jpg"] = bytes(range(256)) * 4096
        photo = photos.get_buffer(b"tom.jpg")
        assert photo is not None
        # No copy is made: the view reads what the engine has in memory.
        print(len(photo), memoryview(photo)[255])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(Path(directory))
