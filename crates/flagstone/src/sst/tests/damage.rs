//! Damaged tables: an error or the right data, never a panic and never wrong data.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::support::{build, entries, entry, file, large_keys_in_few_bytes};
use crate::base::checksum::ChecksumType;
use crate::base::compression::CompressionType;
use crate::base::{Error, InternalIterator, InternalKeyBuf, Result, ValueType};
use crate::sst::filter::FilterPolicy;
use crate::sst::{
    BlockHandle, Footer, IndexType, IterSettings, ReadSettings, Table, TableBuilderSettings,
    TableReadSettings,
};

type Entries = Vec<(InternalKeyBuf, Vec<u8>)>;

fn open(bytes: &[u8]) -> Result<Arc<Table>> {
    let file = file();
    file.write_at(0, bytes)?;
    Table::open(file, bytes.len() as u64, TableReadSettings::default())
}

fn read_all(bytes: &[u8]) -> Result<Entries> {
    let table = open(bytes)?;
    let mut read = Entries::new();
    let mut iter = table.iter(IterSettings::default());
    iter.seek_to_first();
    while iter.valid() {
        read.push((iter.key().to_buf(), iter.value().to_vec()));
        iter.next();
    }
    iter.status()?;
    Ok(read)
}

fn small_table(settings: TableBuilderSettings) -> (Entries, Vec<u8>) {
    let entries = entries(30);
    let built = build(settings, &entries, &[("a", "c", 5)]);
    (entries, built.bytes())
}

fn forms() -> Vec<TableBuilderSettings> {
    let base = || TableBuilderSettings {
        block_size: 500,
        filter_policy: Some(FilterPolicy::DEFAULT),
        ..TableBuilderSettings::default()
    };
    vec![
        base(),
        TableBuilderSettings {
            compression: CompressionType::Lz4,
            data_block_hash_ratio: Some(0.7),
            ..base()
        },
        TableBuilderSettings {
            index_type: IndexType::TwoLevel,
            partition_filters: true,
            metadata_block_size: 50,
            index_block_restart_interval: 3,
            format_version: 7,
            ..base()
        },
    ]
}

#[test]
fn every_flipped_byte_is_an_error_or_harmless() {
    for settings in forms() {
        let (entries, bytes) = small_table(settings);
        assert!(read_all(&bytes).unwrap() == entries);
        let mut caught = 0;
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            match read_all(&flipped) {
                Ok(read) => {
                    assert!(read == entries, "byte {at}: wrong data");
                    caught += usize::from(!open(&flipped).unwrap().verify(&mut |_| {}));
                }
                Err(error) => {
                    assert!(
                        error.path().is_some() && error.offset().is_some(),
                        "byte {at}: {error}"
                    );
                    caught += 1;
                }
            }
        }
        // Only the padding within the footer is covered by nothing.
        assert!(caught > bytes.len() - Footer::SIZE_MAX, "{caught} of {}", bytes.len());
    }
}

#[test]
fn every_truncation_is_an_error() {
    let (_, bytes) = small_table(TableBuilderSettings::default());
    for length in 0..bytes.len() {
        assert!(read_all(&bytes[..length]).is_err(), "{length} bytes");
    }
}

/// Without checksums damage may show wrong data, but must not panic, hang or allocate beyond
/// reason.
#[test]
fn damage_that_no_checksum_covers_does_not_panic() {
    let mut random = fastrand::Rng::with_seed(11);
    for settings in forms() {
        let checksum = crate::base::checksum::ChecksumType::None;
        let (entries, bytes) = small_table(TableBuilderSettings { checksum, ..settings });
        for _ in 0..400 {
            let mut damaged = bytes.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(0..damaged.len());
                damaged[at] = random.u8(..);
            }
            exercise(&damaged, &entries);
        }
    }
}

fn exercise(bytes: &[u8], entries: &Entries) {
    let Ok(table) = open(bytes) else { return };
    let mut iter = table.iter(IterSettings::default());
    iter.seek_to_last();
    let mut steps = 0;
    while iter.valid() && steps < 10_000 {
        iter.prev();
        steps += 1;
    }
    iter.seek_to_first();
    while iter.valid() && steps < 20_000 {
        iter.next();
        steps += 1;
    }
    for (key, _) in entries.iter().step_by(5) {
        iter.seek(key.as_key());
        iter.seek_for_prev(key.as_key());
        let _ = table
            .get(key.as_key(), &ReadSettings::default(), |_, _, _| Ok(ControlFlow::Continue(())));
    }
    table.verify(&mut |_| {});
}

/// Scans over them did not end, lookups took them for deletions.
#[test]
fn range_tombstones_in_a_data_block_are_damage() {
    let versions = (1..=12).rev().map(|at| entry("aaaa", at, ValueType::Value, "v"));
    let entries: Vec<_> = versions.chain([entry("bbbb", 1, ValueType::Value, "v")]).collect();
    let settings =
        TableBuilderSettings { checksum: ChecksumType::None, ..TableBuilderSettings::default() };
    let mut bytes = build(settings, &entries, &[]).bytes();
    // The other versions share its type.
    assert_eq!(bytes[3..11], *b"aaaa\x01\x0c\0\0");
    bytes[7] = ValueType::RangeDeletion as u8;
    let is_located =
        |error: Error| error.is_corruption() && error.path().is_some() && error.offset() == Some(0);
    let table = open(&bytes).unwrap();
    let mut iter = table.iter(IterSettings::default());
    iter.seek_to_first();
    assert!(!iter.valid() && iter.status().is_err_and(is_located));
    let newest = InternalKeyBuf::for_seek(b"aaaa", 100);
    iter.seek(newest.as_key());
    assert!(!iter.valid() && iter.status().is_err_and(is_located));
    iter.seek_to_last();
    assert!(!iter.valid() && iter.status().is_err_and(is_located));
    // Twice: the block may be searched in another way the second time.
    for _ in 0..2 {
        let found = table
            .get(newest.as_key(), &ReadSettings::default(), |_, _, _| Ok(ControlFlow::Break(())));
        assert!(found.is_err_and(is_located));
    }
    assert!(!table.verify(&mut |fault| assert!(is_located(fault.error.clone()))));
}

/// To open a table of 1 MiB took 20 GB.
#[test]
fn names_that_would_fill_the_memory_are_damage() {
    let settings =
        TableBuilderSettings { checksum: ChecksumType::None, ..TableBuilderSettings::default() };
    let mut bytes = build(settings, &entries(3), &[]).bytes();
    let footer = *open(&bytes).unwrap().footer();
    let block = large_keys_in_few_bytes(40_000);
    let metaindex = BlockHandle { offset: bytes.len() as u64, size: block.len() as u64 };
    bytes.extend_from_slice(&block);
    // The trailer.
    bytes.extend_from_slice(&[0; 5]);
    let end = bytes.len() as u64;
    Footer { metaindex, ..footer }.encode(end, &mut bytes);
    let error = open(&bytes).unwrap_err();
    assert!(error.is_corruption() && error.path().is_some(), "{error}");
    assert_eq!(error.offset(), Some(metaindex.offset), "{error}");
}

/// To open a table of 1 MiB took 20 GB: each fragment had the numbers of all ranges that go on.
#[test]
fn ranges_nested_so_deeply_that_they_would_fill_the_memory_are_damage() {
    let nested = |count: u64| {
        let ends: Vec<String> = (1..=count).map(|end| format!("b{end:06}")).collect();
        let ranges: Vec<_> =
            ends.iter().zip(1..).map(|(end, sequence)| ("a", end.as_str(), sequence)).collect();
        build(TableBuilderSettings::default(), &entries(3), &ranges).bytes()
    };
    let error = open(&nested(7000)).unwrap_err();
    assert!(error.is_corruption() && error.path().is_some() && error.offset().is_some(), "{error}");
    assert!(open(&nested(1000)).is_ok(), "tables from before RocksDB cut them have some");
}

#[test]
fn verify_names_the_damaged_block_and_its_keys() {
    let (_, mut bytes) =
        small_table(TableBuilderSettings { block_size: 500, ..TableBuilderSettings::default() });
    bytes[700] ^= 1;
    let table = open(&bytes).unwrap();
    let mut faults = Vec::new();
    assert!(!table.verify(&mut |fault| faults.push(fault)));
    assert_eq!(faults.len(), 1, "{faults:?}");
    let error = &faults[0].error;
    assert!(error.is_corruption() && error.to_string().contains("000007.sst"), "{error}");
    assert!(error.offset().is_some_and(|offset| offset <= 700), "{error}");
    let (low, high) = faults[0].key_range.clone().unwrap();
    assert!(low < high, "{low:?} {high:?}");
}
