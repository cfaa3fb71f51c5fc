use std::io::{Read, Write};

use crate::batch::WriteBatch;
use crate::cache::MemoryKind;
use crate::db::TtlDb;
use crate::db::TtlOptions;
use crate::db::handle::Db;
use crate::db::reading::value_reader::ValueReader;
use crate::env::Env;
use crate::options::{Options, ReadOptions, WriteOptions};

const SIZE: usize = (3 << 20) + 7;

fn value(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at / 251 * 31 + at) as u8).collect()
}

fn options() -> Options {
    let mut options = Options { env: Env::memory(), ..Options::default() };
    options.create_if_missing = true;
    options.set("enable_blob_files", "true").unwrap();
    options.set("blob_compression_type", "kNoCompression").unwrap();
    options
}

fn all(reader: Option<ValueReader>) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.expect("a value").read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn any_value_has_a_reader_and_a_large_one_is_read_from_its_file() {
    let db = Db::open("/db", &options()).unwrap();
    let family = db.default_column_family();
    let mut writer = db.put_stream(family, "streamed", &WriteOptions::default()).unwrap();
    writer.write_all(&value(SIZE)).unwrap();
    writer.commit().unwrap();
    db.put("put", value(SIZE - 1)).unwrap();
    db.put("small", "s").unwrap();
    for place in ["memtables", "files"] {
        let read = ReadOptions::default();
        for (key, size) in [("streamed", SIZE), ("put", SIZE - 1)] {
            let reader = db.get_in_pieces(&read, family, key).unwrap();
            assert_eq!(reader.as_ref().unwrap().size(), size as u64);
            assert!(all(reader) == value(size), "{key} in {place}");
        }
        let mut small = db.get_in_pieces(&read, family, "small").unwrap().unwrap();
        assert_eq!(format!("{small:?}"), "ValueReader(1 of 1 bytes left)");
        assert_eq!(small.next_piece().unwrap().unwrap(), "s");
        assert!(small.next_piece().unwrap().is_none());
        assert!(db.get_in_pieces(&read, family, "none").unwrap().is_none());
        let cached = ReadOptions { cache_only: true, ..ReadOptions::default() };
        let whole = db.get_with(&cached, family, "put").map(|value| value.unwrap().to_vec());
        let pieces = db.get_in_pieces(&cached, family, "put").map(all);
        assert_eq!(pieces.map_err(|error| error.code()), whole.map_err(|error| error.code()));
        let mut iter = db.iter(&read).unwrap();
        for is_forward in [true, false] {
            if is_forward {
                iter.seek_to_first()
            } else {
                iter.seek_to_last()
            }
            let mut sizes = Vec::new();
            while iter.valid() {
                sizes.push(iter.value_in_pieces().unwrap().map(|reader| all(Some(reader)).len()));
                if is_forward { iter.next() } else { iter.prev() }
            }
            if !is_forward {
                sizes.reverse();
            }
            assert_eq!(sizes, [Some(SIZE - 1), None, Some(SIZE)], "{place}");
        }
        db.flush_all().unwrap();
    }
}

/// [`View::get_in_pieces`](crate::View::get_in_pieces) answered `None` for a value that is there
/// but small, compressed, merged or an entity.
#[test]
fn what_is_no_file_of_its_own_is_handed_out_in_pieces_too() {
    let mut options = options();
    options.set("blob_compression_type", "kLZ4Compression").unwrap();
    options.set("merge_operator", "stringappend").unwrap();
    let db = Db::open("/db", &options).unwrap();
    let family = db.default_column_family();
    db.put("compressed", value(SIZE)).unwrap();
    db.put("empty", "").unwrap();
    db.put("merged", value(SIZE)).unwrap();
    db.merge("merged", "m").unwrap();
    let mut batch = WriteBatch::new();
    batch.put_entity("entity", [("", "e"), ("x", "y")]).unwrap();
    db.write(batch).unwrap();
    db.flush_all().unwrap();
    let merged = [&value(SIZE), &b",m"[..]].concat();
    let read = ReadOptions::default();
    for (key, expected) in
        [("compressed", &value(SIZE)[..]), ("empty", b""), ("entity", b"e"), ("merged", &merged)]
    {
        let mut reader = db.get_in_pieces(&read, family, key).unwrap().unwrap();
        assert_eq!(reader.size(), expected.len() as u64, "{key}");
        let mut pieces = Vec::new();
        while let Some(piece) = reader.next_piece().unwrap() {
            assert!(piece.len() <= 1 << 20);
            pieces.extend_from_slice(&piece);
        }
        assert!(pieces == expected, "{key}");
    }
}

/// Its file is not removed, nor punched, under it; and it is counted with what it takes.
#[test]
fn a_reader_keeps_its_value_and_a_piece_in_the_account() {
    let db = Db::open("/db", &options()).unwrap();
    let family = db.default_column_family();
    db.put("key", value(SIZE)).unwrap();
    db.flush_all().unwrap();
    let reader = db.get_in_pieces(&ReadOptions::default(), family, "key").unwrap();
    let held = || db.inner().tables.account().held(MemoryKind::Values);
    assert!((1 << 20..2 << 20).contains(&held()), "{}", held());
    db.delete("key").unwrap();
    db.compact_range(family, None, None, &Default::default()).unwrap();
    db.inner().wait_until_idle().unwrap();
    assert!(all(reader) == value(SIZE));
    assert_eq!(held(), 0);
}

#[test]
fn stamps_are_taken_off() {
    let db = TtlDb::open("/db", &options(), TtlOptions::strict(1000)).unwrap();
    let family = db.base().default_column_family();
    // The stamp lies in the last piece, in a piece of its own, and in two.
    let sizes = [SIZE, 2 << 20, (2 << 20) - 2];
    for (at, size) in sizes.iter().enumerate() {
        db.put([at as u8], value(*size)).unwrap();
        db.put_until(&WriteOptions::default(), family, [9], value(*size), 1_700_000_000).unwrap();
        let read = ReadOptions::default();
        let reader = db.get_in_pieces(&read, family, [at as u8]).unwrap();
        assert_eq!(reader.as_ref().unwrap().size(), *size as u64);
        assert!(all(reader) == value(*size), "{size}");
        assert!(db.get_in_pieces(&read, family, [9]).unwrap().is_none(), "it has expired");
        let mut iter = db.iter(&read).unwrap();
        iter.seek([at as u8]);
        assert!(all(iter.value_in_pieces().unwrap()) == value(*size), "{size}");
        iter.next();
        assert!(!iter.valid());
    }
    for small in ["", "small"] {
        db.put("small", small).unwrap();
        let reader = db.get_in_pieces(&ReadOptions::default(), family, "small").unwrap();
        assert_eq!(all(reader), small.as_bytes());
    }
    db.put_until(&WriteOptions::default(), family, "small", "s", 1_700_000_000).unwrap();
    assert!(db.get_in_pieces(&ReadOptions::default(), family, "small").unwrap().is_none());
}
