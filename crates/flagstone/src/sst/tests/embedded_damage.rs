//! Damage to values beside the blocks, and references to what is none.

use super::embedded::{built, open_bytes};
use super::support::{Built, build};
use crate::base::FileNumber;
use crate::base::entity::{StoredColumn, encode_stored};
use crate::base::{Code, Error, InternalIterator, InternalKeyBuf, ValueType};
use crate::blob::BlobIndex;
use crate::sst::{IterSettings, TableBuilderSettings, TableReadSettings};

const PROPERTY: &[u8] = b"rocksdb.embedded.blob.stats";

/// A table with one entry that is stored so, which says that it has values beside its blocks.
fn with_entry(kind: ValueType, stored: &[u8], stats: &[u8]) -> Built {
    let user_properties = vec![(PROPERTY.to_vec(), stats.to_vec())];
    let settings = TableBuilderSettings {
        format_version: 7,
        user_properties,
        ..TableBuilderSettings::default()
    };
    build(settings, &[(InternalKeyBuf::new(b"key", 5, kind), stored.to_vec())], &[])
}

fn index(offset: u64, size: u64, compression: u8) -> Vec<u8> {
    let mut out = Vec::new();
    BlobIndex { file: FileNumber(0), offset, size, compression }.encode(&mut out);
    out
}

/// What a lookup, a cursor and a check say, which is the same.
fn refused(table: &Built) -> Error {
    let open = table.open();
    let mut iter = open.iter(IterSettings::default());
    iter.seek_to_first();
    assert!(!iter.valid());
    let of_cursor = iter.status().unwrap_err();
    let sought = InternalKeyBuf::for_seek(b"key", 9);
    let of_lookup = open
        .get(sought.as_key(), &Default::default(), |_, _, _| panic!("nothing is shown"))
        .unwrap_err();
    let mut faults = Vec::new();
    assert!(!open.verify(&mut |fault| faults.push(fault)));
    let of_check = &faults[0].error;
    for error in [&of_cursor, &of_lookup, of_check] {
        assert_eq!(error.path(), Some(open.path()), "{error}");
        assert_eq!(
            (error.code(), error.offset()),
            (of_cursor.code(), of_cursor.offset()),
            "{error}, not {of_cursor}"
        );
    }
    of_cursor
}

#[test]
fn references_to_what_is_no_value_are_refused() {
    let outside = [
        (0, 1 << 40),
        (u64::MAX, 1),
        (1, u64::MAX),
        (u64::MAX - 2, u64::MAX - 2),
        // Into the metadata.
        (60, 100),
    ];
    for (offset, size) in outside {
        let error = refused(&with_entry(ValueType::BlobIndex, &index(offset, size, 0), &[1, 5]));
        assert_eq!((error.code(), error.offset()), (Code::Corruption, Some(offset)), "{error}");
        assert!(error.to_string().contains("must end before"), "{error}");
    }
    // Somewhere within the data block: the checksum is none.
    let error = refused(&with_entry(ValueType::BlobIndex, &index(3, 4, 0), &[1, 5]));
    assert_eq!((error.code(), error.offset()), (Code::Corruption, Some(3)), "{error}");
    let error = refused(&with_entry(ValueType::BlobIndex, &index(0, 4, 4), &[1, 5]));
    assert_eq!((error.code(), error.offset()), (Code::NotSupported, Some(0)), "{error}");
    for malformed in [&b""[..], b"\x01\x00\x00", b"\x07\x00\x00\x05\x00", b"\x00\x05value"] {
        let error = refused(&with_entry(ValueType::BlobIndex, malformed, &[1, 5]));
        assert_eq!(error.code(), Code::Corruption, "{error}");
    }
}

/// An entity with many columns that all name one large value would take that much each.
#[test]
fn the_columns_of_an_entity_do_not_add_up_to_more_than_the_file() {
    let reference = index(0, 120, 0);
    let names: Vec<String> = (0..200).map(|n| format!("{n:04}")).collect();
    let columns: Vec<StoredColumn<'_>> = names
        .iter()
        .map(|name| StoredColumn { name: name.as_bytes(), value: &reference, is_blob: true })
        .collect();
    let table = with_entry(ValueType::WideColumnEntity, &encode_stored(&columns), &[1, 120]);
    assert!(200 * 120 > table.summary.size);
    let error = refused(&table);
    assert!(error.is_corruption() && error.to_string().contains("smaller file"), "{error}");
}

/// Without the property nothing says that the number 0 is not a blob file's.
#[test]
fn a_reference_in_a_table_without_such_values_is_not_followed() {
    let entry = (InternalKeyBuf::new(b"key", 5, ValueType::BlobIndex), index(0, 4, 0));
    let table = build(TableBuilderSettings::default(), std::slice::from_ref(&entry), &[]).open();
    let mut iter = table.iter(IterSettings::default());
    iter.seek_to_first();
    assert_eq!(iter.value(), entry.1);
    let error = BlobIndex::decode(iter.value()).unwrap_err();
    assert!(error.is_corruption(), "{error}");
}

#[test]
fn each_byte_of_a_value_and_its_trailer_counts() {
    let bytes = built().bytes();
    // The value of 40 bytes, its compression type and its checksum.
    for at in 0..45 {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let table = open_bytes(&damaged).unwrap();
        let mut iter = table.iter(IterSettings::default());
        iter.seek_to_first();
        assert_eq!(iter.value(), b"small", "the others are shown");
        iter.next();
        let error = iter.status().unwrap_err();
        assert_eq!((error.code(), error.offset()), (Code::Corruption, Some(0)), "{at}: {error}");
        let sought = InternalKeyBuf::for_seek(b"c", 9);
        iter.seek(sought.as_key());
        assert!(iter.valid(), "{at}");
        let mut faults = Vec::new();
        assert!(!table.verify(&mut |fault| faults.push(fault)));
        assert_eq!(faults.len(), 1, "{at}: {faults:?}");
        assert_eq!(faults[0].key_range, Some((b"a".to_vec(), b"b".to_vec())), "{at}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let bytes = built().bytes();
    for size in 0..bytes.len() {
        assert!(open_bytes(&bytes[..size]).is_err(), "{size}");
    }
}

/// Readers pass over the numbers, which are for people; a check does not.
#[test]
fn a_wrong_property_is_told_by_a_check() {
    let sound = built();
    let values = sound.summary.properties.raw[PROPERTY].clone();
    for wrong in [&b""[..], &[0x80], &[0, 98], &[4, 97], &[3, 98]] {
        let entries = [(InternalKeyBuf::new(b"key", 5, ValueType::Value), b"value".to_vec())];
        let settings = TableBuilderSettings {
            user_properties: vec![(PROPERTY.to_vec(), wrong.to_vec())],
            ..TableBuilderSettings::default()
        };
        let table = build(settings, &entries, &[]).open();
        let mut iter = table.iter(IterSettings::default());
        iter.seek_to_first();
        assert_eq!(iter.value(), b"value");
        let mut faults = Vec::new();
        assert!(!table.verify(&mut |fault| faults.push(fault)), "{wrong:?}");
        assert!(faults[0].error.is_corruption(), "{faults:?}");
    }
    assert_eq!(values, [4, 98]);
    assert!(sound.open_with(TableReadSettings::default()).verify(&mut |fault| panic!("{fault:?}")));
}

/// A data block without compression passes for a value that is this block. No writer makes such a
/// reference.
#[test]
fn a_value_that_is_a_block_is_told_by_a_check() {
    let first = (InternalKeyBuf::new(b"a", 5, ValueType::Value), b"value".to_vec());
    let settings = TableBuilderSettings {
        format_version: 7,
        block_size: 1,
        user_properties: vec![(PROPERTY.to_vec(), vec![1, 22])],
        ..TableBuilderSettings::default()
    };
    // Three lengths, the key and its number, the value, a restart, and how many there are.
    let size = 3 + 9 + 5 + 8;
    let second = (InternalKeyBuf::new(b"b", 5, ValueType::BlobIndex), index(0, size, 0));
    let table = build(settings, &[first, second], &[]).open();
    let mut faults = Vec::new();
    assert!(!table.verify(&mut |fault| faults.push(fault)));
    let told = faults[0].error.to_string();
    assert!(told.contains("overlaps"), "{told}");
}
