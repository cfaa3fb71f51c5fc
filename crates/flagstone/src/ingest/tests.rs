//! What the writer accepts, what it refuses, and what it leaves on the disk.

use std::path::Path;
use std::sync::Arc;

use super::{SstFileWriter, SstFileWriterOptions};
use crate::base::checksum::crc32c;
use crate::base::{Code, Comparator, FileChecksum, InternalIterator, ValueType};
use crate::env::{Env, IoMode, read_file};
use crate::sst::{IterSettings, Table, TableReadSettings};

const FILE: &str = "/tables/one.sst";

fn options() -> SstFileWriterOptions {
    let env = Env::memory();
    env.fs.create_directory(Path::new("/tables")).expect("a directory");
    SstFileWriterOptions { env, ..SstFileWriterOptions::default() }
}

fn open(options: &SstFileWriterOptions, largest: Option<u64>) -> Arc<Table> {
    let file = options.env.fs.open_random_access(Path::new(FILE), IoMode::Buffered);
    let file = file.expect("the table");
    let size = file.size().expect("its size");
    let settings = TableReadSettings {
        comparator: options.family.comparator.clone(),
        largest_sequence: largest,
        ..TableReadSettings::default()
    };
    Table::open(file, size, settings).expect("a table")
}

fn is_there(options: &SstFileWriterOptions) -> bool {
    options.env.fs.metadata(Path::new(FILE)).is_ok()
}

#[test]
fn every_kind_of_entry_is_written() {
    let options = SstFileWriterOptions { file_checksum: true, ..options() };
    let mut writer = SstFileWriter::create(FILE, &options).expect("a writer");
    writer.put("a", "1").expect("a put");
    writer.delete("b").expect("a deletion");
    writer.delete_range("x", "z").expect("a range");
    writer.merge("c", "+1").expect("an operand");
    writer.delete_range("0", "1").expect("a range before the keys");
    writer.delete_range("q", "q").expect("an empty range");
    writer.single_delete("d").expect("a single deletion");
    writer.put_entity("e", [("name", "w"), ("", "v")]).expect("an entity");
    let info = writer.finish().expect("a table");
    assert_eq!((info.num_entries, info.num_range_deletions), (5, 2));
    assert_eq!((info.smallest_key, info.largest_key), (Some(b"a".to_vec()), Some(b"e".to_vec())));
    assert_eq!(info.smallest_range_deletion, Some(b"0".to_vec()));
    assert_eq!(info.largest_range_deletion, Some(b"z".to_vec()));
    let bytes = read_file(&*options.env.fs, Path::new(FILE), 1 << 20).expect("the file");
    assert_eq!(info.file_size, bytes.len() as u64);
    assert_eq!(info.file_checksum, Some(FileChecksum::crc32c(crc32c(&bytes))));

    for sequence in [None, Some(7)] {
        let table = open(&options, sequence);
        let mut found = Vec::new();
        let mut iter = table.iter(IterSettings::default());
        iter.seek_to_first();
        while iter.valid() {
            let key = iter.key();
            assert_eq!(key.sequence(), sequence.unwrap_or(0));
            found.push((key.user_key().to_vec(), key.value_type().expect("a type")));
            iter.next();
        }
        iter.status().expect("every block is read");
        let expected = [
            (b"a", ValueType::Value),
            (b"b", ValueType::Deletion),
            (b"c", ValueType::Merge),
            (b"d", ValueType::SingleDeletion),
            (b"e", ValueType::WideColumnEntity),
        ];
        let expected: Vec<_> = expected.iter().map(|(key, kind)| (key.to_vec(), *kind)).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn keys_ascend_by_the_comparator_of_the_family() {
    let mut options = options();
    options.family.comparator = Comparator::ReverseBytewise;
    let mut writer = SstFileWriter::create(FILE, &options).expect("a writer");
    writer.put("b", "").expect("the first");
    writer.put("a", "").expect("the next");
    let error = writer.put("aa", "").expect_err("it sorts before 'a'");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(error.path(), Some(Path::new(FILE)));
    assert!(error.to_string().contains("keys must ascend, but 'aa' comes after 'a'"), "{error}");
}

#[test]
fn a_key_comes_once() {
    let options = options();
    let mut writer = SstFileWriter::create(FILE, &options).expect("a writer");
    writer.put("a", "1").expect("a put");
    let error = writer.delete("a").expect_err("the same key");
    assert_eq!(error.code(), Code::InvalidArgument);
    let error = writer.put("b", "2").expect_err("the table lacks an entry");
    assert_eq!(error.code(), Code::InvalidArgument);
    let error = writer.finish().expect_err("the table lacks an entry");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(!is_there(&options));
}

#[test]
fn a_table_has_something_in_it() {
    let options = options();
    let writer = SstFileWriter::create(FILE, &options).expect("a writer");
    let error = writer.finish().expect_err("there is nothing in it");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(!is_there(&options));

    let mut writer = SstFileWriter::create(FILE, &options).expect("a writer");
    let error = writer.delete_range("b", "a").expect_err("it ends before it begins");
    assert_eq!(error.code(), Code::InvalidArgument);
    drop(writer);

    let mut writer = SstFileWriter::create(FILE, &options).expect("a writer");
    writer.delete_range("a", "b").expect("a range");
    let info = writer.finish().expect("a table of one range deletion");
    assert_eq!((info.smallest_key, info.num_entries, info.num_range_deletions), (None, 0, 1));
}

#[test]
fn a_writer_that_is_dropped_leaves_no_file() {
    let options = options();
    let mut writer = SstFileWriter::create(FILE, &options).expect("a writer");
    writer.put("a", "1").expect("a put");
    assert!(is_there(&options));
    drop(writer);
    assert!(!is_there(&options));
}

/// A database that has linked a table would find its file changed.
#[test]
fn a_file_that_is_there_is_not_written_over() {
    let (options, linked) = (options(), Path::new("/tables/linked.sst"));
    let write = |value: &str| {
        let mut writer = SstFileWriter::create(FILE, &options).expect("a writer");
        writer.put("a", value).expect("a put");
        writer.finish().expect("a table").file_size
    };
    let size = write("first");
    options.env.fs.link(Path::new(FILE), linked).expect("a link");
    let before = read_file(&*options.env.fs, linked, 1 << 20).expect("the link");
    assert_eq!(before.len() as u64, size);
    write("another value, which is longer");
    assert_eq!(read_file(&*options.env.fs, linked, 1 << 20).expect("the link"), before);
}
