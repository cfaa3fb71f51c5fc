//! A table that a closed database takes in as RocksDB ingests one: without a flush, as no memtable
//! has a key among its own. So it is newer than what WALs hold, and its sequence number is in the
//! MANIFEST alone, or in its properties, too.

use std::path::Path;

use fastrand::Rng;
use flagstone::base::{
    ColumnFamilyId, FileNumber, InternalKeyBuf, SequenceNumber, ValueType, file_name,
};
use flagstone::env::IoMode;
use flagstone::env::memory::MemoryFileSystem;
use flagstone::manifest::{FileMetadata, VersionEdit};
use flagstone::options::Options;
use flagstone::sst::{TableBuilder, TableBuilderSettings};

use super::common::add_to_manifest_of;
use super::holdings::recorded_tables;
use super::life::Extras;
use super::{DIRECTORIES, SOURCE};

/// Takes a table of some of these keys, in order, into a family.
pub fn take_in(
    random: &mut Rng,
    extras: &Extras,
    options: &Options,
    fs: &MemoryFileSystem,
    (id, name): (ColumnFamilyId, &str),
    last_sequence: SequenceNumber,
    keys: impl Iterator<Item = String>,
) {
    let recorded = recorded_tables(fs);
    let epoch_number = recorded.values().map(|(_, file)| file.epoch_number).max().unwrap_or(0) + 1;
    let number = FileNumber(next_number(fs));
    let home = if extras.paths { DIRECTORIES[0] } else { SOURCE };
    let file = options
        .env
        .fs
        .create_writable(&file_name::table(Path::new(home), number), IoMode::Buffered);
    let sequence = last_sequence + 1;
    let noted = if random.bool() { sequence } else { 0 };
    let property = |name: &str, value: &[u8]| (name.as_bytes().to_vec(), value.to_vec());
    let settings = TableBuilderSettings {
        column_family: id,
        column_family_name: name.to_string(),
        user_properties: vec![
            property("rocksdb.external_sst_file.global_seqno", &noted.to_le_bytes()),
            property("rocksdb.external_sst_file.version", &2u32.to_le_bytes()),
        ],
        ..TableBuilderSettings::default()
    };
    let mut builder = TableBuilder::new(file.expect("a file"), settings).expect("a table");
    for key in keys {
        let value = format!("taken in {}", "t".repeat(random.usize(..300)));
        let key = InternalKeyBuf::new(key.as_bytes(), 0, ValueType::Value);
        builder.add(key.as_key(), value.as_bytes()).expect("keys in order");
    }
    let summary = builder.finish().expect("a table");
    let bound = |key: Option<InternalKeyBuf>| {
        InternalKeyBuf::new(key.expect("a key").user_key(), sequence, ValueType::Value)
    };
    let table = FileMetadata {
        number,
        size: summary.size,
        smallest: bound(summary.smallest),
        largest: bound(summary.largest),
        smallest_seqno: sequence,
        largest_seqno: sequence,
        epoch_number,
        ..FileMetadata::default()
    };
    let mut edit = VersionEdit {
        family: id,
        next_file_number: Some(FileNumber(number.0 + 1)),
        last_sequence: Some(sequence),
        ..VersionEdit::default()
    };
    edit.add_file(0, table);
    add_to_manifest_of(Path::new(SOURCE), &options.env, &edit);
}

/// One that no file has.
fn next_number(fs: &MemoryFileSystem) -> u64 {
    let numbers = super::files_of(fs).into_keys().filter_map(|name| {
        let digits: String = super::file_name(&name).chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()
    });
    numbers.max().unwrap_or(0) + 1
}
