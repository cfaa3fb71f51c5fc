use std::io::{Read, Write};

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
    reader.expect("a large value").read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn large_values_are_read_in_pieces_forwards_and_backwards_and_others_are_not() {
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
        for key in ["small", "none"] {
            assert!(db.get_in_pieces(&read, family, key).unwrap().is_none());
        }
        let cached = ReadOptions { cache_only: true, ..ReadOptions::default() };
        assert!(db.get_in_pieces(&cached, family, "put").unwrap().is_none());
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
}
