//! Bytes that the specification gives.

use super::support::{build, entry, file};
use crate::base::checksum::ChecksumType;
use crate::base::{FileNumber, InternalKeyBuf, UniqueId, ValueType};
use crate::env::IoMode;
use crate::sst::filter::FilterPolicy;
use crate::sst::{IterSettings, Table, TableBuilderSettings, TableReadSettings};

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// The table of sst.md 13: everything before the properties is fixed.
#[test]
fn golden_small_table() {
    let settings = TableBuilderSettings {
        checksum: ChecksumType::Crc32c,
        filter_policy: Some(FilterPolicy::Bloom { bits_per_key: 10.0 }),
        ..TableBuilderSettings::default()
    };
    let entries = [
        entry("a1", 0, ValueType::Value, "one"),
        entry("a2", 0, ValueType::Value, "two"),
        entry("b", 0, ValueType::Deletion, ""),
        entry("c", 0, ValueType::Merge, "m"),
    ];
    let table = build(settings, &entries, &[("x", "z", 0)]);
    let bytes = table.bytes();
    let data = "00 0a 03 61 31 01 00 00 00 00 00 00 00 6f 6e 65 \
                01 09 03 32 01 00 00 00 00 00 00 00 74 77 6f \
                00 09 00 62 00 00 00 00 00 00 00 00 \
                00 09 01 63 02 00 00 00 00 00 00 00 6d \
                00 00 00 00 01 00 00 00 \
                00 4d ae 9a 3f";
    assert_eq!(bytes[..0x45], hex(data));
    assert_eq!(bytes[0x45 + 64..0x45 + 69], hex("ff 00 18 00 00"));
    let index = "00 01 63 00 40 00 00 00 00 01 00 00 00";
    assert_eq!(bytes[0x8f..0x8f + 0x0d], hex(index));
    let range_deletions = "00 09 01 78 0f 00 00 00 00 00 00 00 7a 00 00 00 00 01 00 00 00";
    assert_eq!(bytes[0xa1..0xa1 + 0x15], hex(range_deletions));

    let summary = &table.summary;
    assert_eq!(summary.smallest.as_ref().unwrap().user_key(), b"a1");
    let largest = InternalKeyBuf::new(b"z", (1 << 56) - 1, ValueType::RangeDeletion);
    assert_eq!(summary.largest, Some(largest));
    let properties = &summary.properties;
    let number = |name: &str| properties.number(&format!("rocksdb.{name}")).unwrap();
    assert_eq!(number("data.block.restart.interval"), Some(16));
    assert_eq!(number("index.block.restart.interval"), Some(1));
    assert_eq!(properties.uncompressed_data_size, 0x40);
    let compression = &properties.raw[&b"rocksdb.compression_options"[..]];
    assert!(compression.ends_with(b"; checksum=0; _type=0; "));
    let counts = (properties.num_entries, properties.num_deletions, properties.num_merge_operands);
    assert_eq!((counts, properties.num_range_deletions), ((5, 2, 1), 1));
    assert_eq!((properties.data_size, properties.tail_start_offset), (0x45, 0x45));
    assert_eq!(
        (properties.raw_key_size, properties.raw_value_size),
        (10 + 10 + 9 + 9 + 9, 3 + 3 + 1 + 1)
    );
}

/// The table of manifest.md 9: the least that RocksDB takes.
#[test]
fn golden_minimal_table_is_read() {
    let mut bytes =
        hex("00 09 01 61 01 01 00 00 00 00 00 00 78 00 00 00 00 01 00 00 00 00 84 dd 88 74 \
                         00 01 61 00 15 00 00 00 00 01 00 00 00 00 1f e4 3b 1b 00 24 04");
    bytes.extend(b"rocksdb.block.based.table.index.type\0\0\0\0");
    bytes.extend(b"\x08\x15\x01index.key.is.user.key\x01");
    bytes.extend(b"\x0e\x16\x01value.is.delta.encoded\x01");
    bytes.extend(hex("00 00 00 00 01 00 00 00 00 94 c4 94 b3 00 12 02"));
    bytes.extend(b"rocksdb.properties\x2c\x66");
    bytes.extend(hex("00 00 00 00 01 00 00 00 00 bc 38 f2 c0 01 97 01 1f 1a 0d"));
    bytes.resize(bytes.len() + 40 - 5, 0);
    bytes.extend(hex("05 00 00 00 f7 cf f4 85 b7 41 e2 88"));
    assert_eq!(bytes.len(), 240);

    let file = file();
    file.write_at(0, &bytes).unwrap();
    let table = Table::open(file, 240, TableReadSettings::default()).unwrap();
    let mut iter = table.iter(IterSettings::default());
    let entries = super::fixtures::forward(&mut iter);
    assert_eq!(entries, [entry("a", 1, ValueType::Value, "x")]);
    assert!(table.verify(&mut |fault| panic!("{fault:?}")));
}

/// An ingested table: the global sequence number of the MANIFEST replaces the stored 0.
#[test]
fn an_ingested_table_takes_its_sequence_number_from_the_manifest() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/rocksdb-7.8/ingest");
    let fs = crate::env::Env::os().fs;
    for name in ["000025.sst", "000027.sst"] {
        let file = fs
            .open_random_access(std::path::Path::new(&format!("{path}/{name}")), IoMode::Buffered)
            .unwrap();
        let open = |largest_sequence| {
            let settings = TableReadSettings { largest_sequence, ..TableReadSettings::default() };
            Table::open(file.clone(), file.size().unwrap(), settings).unwrap()
        };
        let stored = super::fixtures::check_whole(&open(None));
        if open(None).properties().number("rocksdb.external_sst_file.version").unwrap().is_none() {
            assert_eq!(open(Some(77)).global_sequence, None);
            continue;
        }
        assert!(stored.iter().all(|(key, _)| key.as_key().sequence() == 0));
        let shown = super::fixtures::check_whole(&open(Some(77)));
        assert!(shown.iter().all(|(key, _)| key.as_key().sequence() == 77));
        let user_keys = |entries: &[(InternalKeyBuf, Vec<u8>)]| -> Vec<Vec<u8>> {
            entries.iter().map(|(key, _)| key.user_key().to_vec()).collect()
        };
        assert_eq!(user_keys(&stored), user_keys(&shown));
    }
}

#[test]
fn the_unique_id_is_checked() {
    let (database, session, number) =
        ("fee32865-4035-4ae2-8dd6-3f4cdf8990cf", "QMRXYD2YEAMS18Z2TS60", FileNumber(9));
    let settings = TableBuilderSettings {
        db_identity: database.to_owned(),
        session_identity: session.to_owned(),
        file_number: number,
        ..TableBuilderSettings::default()
    };
    let table = build(settings, &[entry("a", 1, ValueType::Value, "x")], &[]);
    let id = table.summary.unique_id;
    assert_eq!(id, Some(UniqueId::new(database, session, number)));
    table.open_with(TableReadSettings { unique_id: id, ..TableReadSettings::default() });
    let other =
        TableReadSettings { unique_id: Some(UniqueId([1; 16])), ..TableReadSettings::default() };
    let error = Table::open(table.file.clone(), table.summary.size, other).unwrap_err();
    assert!(error.is_corruption() && error.path().is_some(), "{error}");
}
